"""Taints and tolerations of nodes or clusters, and Kubernetes' rule for tolerating a taint."""

__all__ = ["NO_EXECUTE", "NO_SCHEDULE", "PREFER_NO_SCHEDULE", "TaintKey", "matches"]

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

TaintKey = tuple[str, str, str]
"""Key, value, effect: what tolerations match."""


def matches(key: str, operator: str, value: str, effect: str, taint: TaintKey) -> bool:
    """Whether a toleration with these fields tolerates the taint. An empty effect or key matches all; no operator means
    Equal."""
    if effect and effect != taint[2]:
        return False
    if key and key != taint[0]:
        return False
    if operator in ("", "Equal"):
        return value == taint[1]
    return operator == "Exists"
