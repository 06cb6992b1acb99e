"""Namespaces. Their content is deleted elsewhere; here they get the finalizer that makes deletion wait for that."""

from argosy.kube import names
from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, invalid
from argosy.server.kinds.shared.builtin import BuiltinStrategy, declare
from argosy.server.kinds.shared.defaults import fill_condition_times
from argosy.server.registry import ALL_VERBS, Kind, Object

__all__ = ["NamespaceStrategy", "kinds"]

FINALIZER = "kubernetes"
NAME_LABEL = "kubernetes.io/metadata.name"
_STANDARD_FINALIZERS = (FINALIZER, "orphan", "foregroundDeletion")


def kinds(schemas: Schemas) -> list[Kind]:
    return [
        declare(
            schemas,
            NamespaceStrategy,
            "",
            "v1",
            "Namespace",
            "namespaces",
            namespaced=False,
            short_names=("ns",),
            verbs=ALL_VERBS - {"deletecollection"},
            subresources=frozenset({"finalize", "status"}),
        )
    ]


class NamespaceStrategy(BuiltinStrategy):
    generation = False
    name_rule = "label"
    selectable = {"status.phase": lambda obj: str((obj.get("status") or {}).get("phase", ""))}  # noqa: RUF012

    def default(self, obj: Object) -> None:
        metadata = obj["metadata"]
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        status["phase"] = status.get("phase") or "Active"
        fill_condition_times(obj, "lastTransitionTime")
        if metadata.get("name"):
            metadata["labels"] = {**(metadata.get("labels") or {}), NAME_LABEL: metadata["name"]}

    def prepare_create(self, obj: Object) -> None:
        # The name may have been generated after defaulting.
        obj["metadata"]["labels"] = {**(obj["metadata"].get("labels") or {}), NAME_LABEL: obj["metadata"]["name"]}
        obj["status"] = {"phase": "Active"}
        finalizers = obj.setdefault("spec", {}).get("finalizers") or []
        if FINALIZER not in finalizers:
            obj["spec"]["finalizers"] = [*finalizers, FINALIZER]

    def begin_deletion(self, obj: Object, at: str) -> bool:
        """Every namespace goes through Terminating; its controller then finishes it."""
        obj["metadata"].setdefault("deletionTimestamp", at)
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
        return True

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        spec = new.setdefault("spec", {})
        spec.pop("finalizers", None)
        if (old.get("spec") or {}).get("finalizers"):
            spec["finalizers"] = old["spec"]["finalizers"]

    def validate(self, obj: Object) -> list[FieldError]:
        finalizers = (obj.get("spec") or {}).get("finalizers") or []
        return [error for name in finalizers for error in _finalizer(name, "spec.finalizers")]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        """Only /finalize changes them; there, unlike on creation, an error says which one it is about."""
        finalizers = (new.get("spec") or {}).get("finalizers") or []
        return [error for i, name in enumerate(finalizers) for error in _finalizer(name, f"spec.finalizers[{i}]")]

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        phase = (new.get("status") or {}).get("phase", "")
        if new["metadata"].get("deletionTimestamp"):
            expected, when = "Terminating", "is not empty"
        else:
            expected, when = "Active", "is empty"
        if phase == expected:
            return []
        return [invalid("status.Phase", phase, f"may only be '{expected}' if `deletionTimestamp` {when}")]


def _finalizer(name: str, path: str) -> list[FieldError]:
    """Qualified, or one of the few that need no domain."""
    errors = [invalid(path, name, message) for message in names.qualified_name_errors(name)]
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        detail = "name is neither a standard finalizer name nor is it fully qualified"
        errors.append(invalid(path, name, detail))
    return errors
