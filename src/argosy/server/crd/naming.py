"""Names of custom resource definitions: each belongs to one definition of its group, the first that asked for it."""

from collections.abc import Iterable
from typing import Any

from argosy.kube.conditions import find, is_true, set_condition
from argosy.kube.timestamps import now
from argosy.server.registry import Object

__all__ = ["accept_names"]


def accept_names(obj: Object, existing: Iterable[Object]) -> dict[str, Any]:
    """The status a definition is stored with; `existing` are the other definitions, whose accepted names are taken."""
    spec, before = obj["spec"], obj.get("status") or {}
    accepted: dict[str, Any] = dict(before.get("acceptedNames") or {})
    reason, message = _claim(spec["names"], accepted, *_taken(obj, existing))
    conditions = list(before.get("conditions") or ())
    moment = now()
    if reason:
        conditions = set_condition(conditions, "NamesAccepted", "False", reason, message, moment)
        if find(conditions, "Established") is None:
            text = "not all names are accepted"
            conditions = set_condition(conditions, "Established", "False", "NotAccepted", text, moment)
    else:
        text = "no conflicts found"
        conditions = set_condition(conditions, "NamesAccepted", "True", "NoConflicts", text, moment)
        if not is_true(conditions, "Established"):
            text = "the initial names have been accepted"
            conditions = set_condition(conditions, "Established", "True", "InitialNamesAccepted", text, moment)
    stored = list(before.get("storedVersions") or ())
    stored += [v["name"] for v in spec["versions"] if v.get("storage") and v["name"] not in stored]
    return {**before, "acceptedNames": accepted, "conditions": conditions, "storedVersions": stored}


def _taken(obj: Object, existing: Iterable[Object]) -> tuple[set[str], set[str]]:
    """Resource names and kinds that other definitions of the group hold."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in existing:
        if other["metadata"]["name"] == obj["metadata"]["name"] or other["spec"]["group"] != obj["spec"]["group"]:
            continue
        names = (other.get("status") or {}).get("acceptedNames") or {}
        resources.update(name for name in (names.get("plural"), names.get("singular")) if name)
        resources.update(names.get("shortNames") or ())
        kinds.update(name for name in (names.get("kind"), names.get("listKind")) if name)
    return resources, kinds


def _claim(wanted: Object, accepted: Object, resources: set[str], kinds: set[str]) -> tuple[str, str]:
    """Add every wanted name that is free to `accepted`; the last conflict is the reported reason."""
    reason = message = ""
    for field, taken in (("plural", resources), ("singular", resources), ("shortNames", resources),
                         ("kind", kinds), ("listKind", kinds)):  # fmt: skip
        value = wanted.get(field)
        held = accepted.get(field)
        names = value or [] if field == "shortNames" else [value or ""]
        ours = set(held or [] if field == "shortNames" else [held or ""])
        conflicts = [f'"{name}" is already in use' for name in names if name in taken and name not in ours]
        if conflicts:
            reason = f"{field[0].upper()}{field[1:]}Conflict"
            message = conflicts[0] if len(conflicts) == 1 else f"[{', '.join(conflicts)}]"
        elif value:
            accepted[field] = value
        else:
            accepted.pop(field, None)
    if wanted.get("categories"):
        accepted["categories"] = wanted["categories"]
    else:
        accepted.pop("categories", None)
    return reason, message
