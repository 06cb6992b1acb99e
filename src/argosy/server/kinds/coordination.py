"""coordination.k8s.io/v1: Leases."""

from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, invalid
from argosy.server.kinds.shared.builtin import StatuslessStrategy, declare
from argosy.server.registry import Kind, Object

__all__ = ["kinds"]


def kinds(schemas: Schemas) -> list[Kind]:
    return [declare(schemas, LeaseStrategy, "coordination.k8s.io", "v1", "Lease", "leases")]


class LeaseStrategy(StatuslessStrategy):
    create_on_update = True
    unconditional_update = False

    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})

    def prepare_create(self, obj: Object) -> None:
        _drop_strategy(obj, {})

    def prepare_update(self, new: Object, old: Object) -> None:
        _drop_strategy(new, old.get("spec") or {})

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = []
        duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if duration is not None and duration <= 0:
            errors.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            errors.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
        return errors


def _drop_strategy(obj: Object, stored: Object) -> None:
    """Coordinated leader election is behind a gate that is off by default."""
    for field in ("strategy", "preferredHolder"):
        if stored.get(field) is None:
            obj["spec"].pop(field, None)
