"""events.k8s.io/v1: Events in the newer API. They are stored as core Events, which are the same objects."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import orjson

from argosy.kube import names
from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, invalid, required
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import StatuslessStrategy, declare
from argosy.server.registry import Kind, Object

__all__ = ["from_core", "kinds", "to_core"]

#: Field of events.k8s.io/v1 -> field of core/v1.
FIELDS = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
MAX_LENGTHS = {"reportingInstance": 128, "action": 128, "reason": 128, "note": 1024}
#: Names of Kubernetes' internal types, by which messages show them.
INTERNAL_REFERENCE = {
    "Kind": "kind",
    "Namespace": "namespace",
    "Name": "name",
    "UID": "uid",
    "APIVersion": "apiVersion",
    "ResourceVersion": "resourceVersion",
    "FieldPath": "fieldPath",
}
INTERNAL_SOURCE = {"Component": "component", "Host": "host"}
NAMESPACE = "involvedObject.namespace"
UNMATCHED = "does not match event.namespace"


def kinds(schemas: Schemas) -> list[Kind]:
    kind = declare(schemas, EventStrategy, "events.k8s.io", "v1", "Event", "events", short_names=("ev",))
    return [
        msgspec.structs.replace(
            kind, storage_group="", storage_version="v1", to_storage=to_core, from_storage=from_core
        )
    ]


def to_core(obj: Object) -> None:
    obj["apiVersion"] = "v1"
    for field, core in FIELDS.items():
        if field in obj:
            obj[core] = obj.pop(field)
    # Fields that core/v1 always writes, even if empty.
    obj.setdefault("reportingComponent", "")
    obj.setdefault("reportingInstance", "")


def from_core(obj: Object) -> None:
    obj["apiVersion"] = "events.k8s.io/v1"
    for field, core in FIELDS.items():
        if core in obj:
            obj[field] = obj.pop(core)
    for field in ("reportingController", "reportingInstance"):
        if not obj.get(field):
            obj.pop(field, None)


def _selected(field: str, part: str = "") -> Callable[[Object], str]:
    """A field to select by. Objects come as they are stored, which is the core form, or as they are served."""
    core = FIELDS.get(field, field)

    def value(obj: Object) -> str:
        found = obj.get(field) or obj.get(core)
        if part:
            found = (found or {}).get(part)
        return str(found or "")

    return value


class EventStrategy(StatuslessStrategy):
    create_on_update = True
    selectable = {  # noqa: RUF012
        "reason": _selected("reason"),
        "type": _selected("type"),
        "reportingController": _selected("reportingController"),
        **{
            f"regarding.{field}": _selected("regarding", field)
            for field in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        },
    }

    def default(self, obj: Object) -> None:
        obj.setdefault("eventTime", None)
        obj.setdefault("deprecatedSource", {})
        obj.setdefault("deprecatedFirstTimestamp", None)
        obj.setdefault("deprecatedLastTimestamp", None)
        obj.setdefault("regarding", {})

    def validate(self, obj: Object) -> list[FieldError]:
        errors = _common(obj) + _series(obj)
        if not obj.get("eventTime"):
            errors.append(required("eventTime"))
        if obj.get("type") not in ("Normal", "Warning"):
            errors.append(invalid("type", "", f"has invalid value: {obj.get('type') or ''}"))
        # Paths are those of the core object, as in Kubernetes.
        for field in ("deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount"):
            if obj.get(field):
                errors.append(invalid(FIELDS[field], "", "needs to be unset"))
        source = obj.get("deprecatedSource") or {}
        if source.get("component") or source.get("host"):
            errors.append(invalid("source", "", "needs to be unset"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        """Only the series of an event may change."""
        errors = _common(new)
        if not rules.same(new.get("series"), old.get("series")):
            errors += _series(new)
        fields = ("regarding", "reason", "note", "deprecatedSource", "deprecatedFirstTimestamp")
        more = ("deprecatedLastTimestamp", "deprecatedCount", "reason", "type", "eventTime", "action", "related")
        for field in (*fields, *more, "reportingController", "reportingInstance"):
            path = "reportingController" if field == "reportingController" else FIELDS.get(field, field)
            if field in ("regarding", "related", "deprecatedSource"):
                errors += _kept_reference(new.get(field), old.get(field), path)
            else:
                errors += rules.immutable(new.get(field), old.get(field), path)
        return errors


def _kept_reference(new: Mapping[str, Any] | None, old: Mapping[str, Any] | None, path: str) -> list[FieldError]:
    if rules.same(new, old):
        return []
    internal = INTERNAL_SOURCE if path == "source" else INTERNAL_REFERENCE
    shown = None if new is None else {name: new.get(field) or "" for name, field in internal.items()}
    return [invalid(path, orjson.Fragment(orjson.dumps(shown)), rules.IMMUTABLE)]


def _common(obj: Mapping[str, Any]) -> list[FieldError]:
    errors = []
    namespace, regarding = obj["metadata"].get("namespace", ""), (obj.get("regarding") or {}).get("namespace") or ""
    if not obj.get("eventTime"):
        if namespace != regarding and not (not regarding and namespace in ("", "default")):
            errors.append(invalid(NAMESPACE, regarding, UNMATCHED))
        return errors
    if not regarding and namespace not in ("default", "kube-system"):
        errors.append(invalid(NAMESPACE, regarding, UNMATCHED))
    controller = obj.get("reportingController") or ""
    errors += [] if controller else [required("reportingController")]
    errors += rules.messages(controller, "reportingController", names.qualified_name_errors(controller))
    for field, limit in MAX_LENGTHS.items():
        value = obj.get(field) or ""
        path = FIELDS.get(field, field)
        if not value and field != "note":
            errors.append(required(path))
        if len(value.encode()) > limit:
            errors.append(invalid(path, "", f"can have at most {limit} characters"))
    return errors


def _series(obj: Mapping[str, Any]) -> list[FieldError]:
    series = obj.get("series")
    if series is None:
        return []
    errors = []
    if (series.get("count") or 0) < 2:
        errors.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(required("series.lastObservedTime"))
    return errors
