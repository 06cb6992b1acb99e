"""Policies that select, and the objects they are for, in tests."""

from typing import Any

import msgspec

from argosy.api.policies import PropagationPolicy
from argosy.kube.objects import Metadata
from argosy.plan.claims.exclusions import Subject


def selecting(name: str, *selectors: dict[str, Any], namespace: str = "", priority: int = 0) -> PropagationPolicy:
    spec = {"schedulingMode": "Duplicate", "resourceSelectors": list(selectors), "priority": priority}
    return msgspec.convert({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, PropagationPolicy)


def subject(kind: str = "Deployment", name: str = "web", group: str = "apps", namespace: str = "shop", **metadata: Any):
    return Subject(group, kind, msgspec.convert({"name": name, "namespace": namespace, **metadata}, Metadata))
