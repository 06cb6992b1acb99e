"""Taints and tolerations: what a node or a cluster repels, and Kubernetes' rule for what bears it."""

__all__ = ["NO_EXECUTE", "NO_SCHEDULE", "PREFER_NO_SCHEDULE", "TaintKey", "matches"]

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

TaintKey = tuple[str, str, str]
"""Key, value, effect: what of a taint decides."""


def matches(key: str, operator: str, value: str, effect: str, taint: TaintKey) -> bool:
    """Whether a toleration of these fields bears the taint. An empty effect or key stands for all; no operator means Equal."""
    if effect and effect != taint[2]:
        return False
    if key and key != taint[0]:
        return False
    if operator in ("", "Equal"):
        return value == taint[1]
    return operator == "Exists"
