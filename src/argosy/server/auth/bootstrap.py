"""The roles and bindings every Kubernetes API server has from its first start.

`bootstrap.json` is distilled from a stock kube-apiserver by `scripts/distill_bootstrap_roles.py`.
"""

from importlib import resources
from typing import Any

import orjson

__all__ = ["AUTO_UPDATE", "bootstrap_objects", "reconciled"]

AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"


def bootstrap_objects() -> list[dict[str, Any]]:
    data = resources.files("argosy.server.auth").joinpath("bootstrap.json").read_bytes()
    objects: list[dict[str, Any]] = orjson.loads(data)
    return objects


def reconciled(wanted: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any] | None:
    """The stored object with what it lacks added, or None when nothing is missing.

    As in Kubernetes, permissions are only ever added, and an object whose auto-update annotation is "false" is left alone.
    """
    if (stored["metadata"].get("annotations") or {}).get(AUTO_UPDATE) == "false":
        return None
    changed = dict(stored)
    for field in ("rules", "subjects"):
        present = list(stored.get(field) or ())
        lacking = [item for item in wanted.get(field) or () if item not in present]
        if lacking and not wanted.get("aggregationRule"):
            changed[field] = present + lacking
    return None if changed == stored else changed
