"""Object metadata: the rules shared by all kinds, and the fields that only the server sets.

Names by the kind's rule, labels, annotations, finalizers, owner references; immutable fields. Kinds' own rules are in their
strategies.
"""

from typing import Any

from argosy.kube import chance, names
from argosy.kube.timestamps import now
from argosy.server.fielderrors import FieldError, forbidden, invalid, required, too_many
from argosy.server.registry import Kind, Object

__all__ = [
    "FOREGROUND",
    "METADATA_FIELDS",
    "ORPHAN",
    "check_types",
    "fill_new",
    "fill_update",
    "json_type",
    "validate",
    "validate_prefix",
    "validate_update",
]

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
ANNOTATIONS_LIMIT = 256 * 1024
#: Labels, owners and the like are read by every selector, with each change. Kubernetes has no such limit.
MAX_ITEMS = 5_000
_STANDARD_FINALIZERS = {"kubernetes", ORPHAN, FOREGROUND}
_OTHER_SERVERS = {"apiextensions.k8s.io", "apiregistration.k8s.io"}
IMMUTABLE = "field is immutable"
#: All there are.
METADATA_FIELDS = frozenset({
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
    "managedFields",
})  # fmt: skip

_STRINGS = ("name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
_FIXED = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_BANNED_OWNERS = {("v1", "Event"): "/v1, Kind=Event"}


def check_types(obj: Object) -> str | None:
    """Errors that make the metadata unreadable; later code relies on these types. Nulls and empty values count as absent."""
    metadata = obj.get("metadata")
    if metadata is None:
        obj["metadata"] = {}
        return None
    if not isinstance(metadata, dict):
        return f"json: cannot unmarshal {json_type(metadata)} into Go value of type v1.ObjectMeta"
    for field in [key for key, value in metadata.items() if value is None or value in ({}, [])]:
        del metadata[field]
    for field in _STRINGS:
        if not isinstance(metadata.get(field, ""), str):
            return _mistyped(field, metadata[field], "string")
    for field in ("labels", "annotations"):
        mapping = metadata.get(field, {})
        if not isinstance(mapping, dict):
            return _mistyped(field, mapping, "map[string]string")
        for key, value in mapping.items():
            if value is None:
                mapping[key] = ""
            elif not isinstance(value, str):
                return _mistyped(field, value, "string")
    finalizers = metadata.get("finalizers", [])
    if not isinstance(finalizers, list) or not all(isinstance(item, str) for item in finalizers):
        return _mistyped("finalizers", finalizers, "[]string")
    owners = metadata.get("ownerReferences", [])
    if not isinstance(owners, list) or not all(isinstance(item, dict) for item in owners):
        return _mistyped("ownerReferences", owners, "[]v1.OwnerReference")
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not isinstance(owner.get(field, ""), str):
                return _mistyped(f"ownerReferences.{field}", owner[field], "string")
        for field in ("controller", "blockOwnerDeletion"):
            if not isinstance(owner.get(field), bool | None):
                return _mistyped(f"ownerReferences.{field}", owner[field], "bool")
    for field in ("generation", "deletionGracePeriodSeconds"):
        number = metadata.get(field, 0)
        if not isinstance(number, int) or isinstance(number, bool):
            return _mistyped(field, number, "int64")
    return None


def _mistyped(field: str, value: Any, wanted: str) -> str:
    return f"json: cannot unmarshal {json_type(value)} into Go struct field ObjectMeta.{field} of type {wanted}"


def json_type(value: Any) -> str:
    """What Go calls a JSON value it did not expect."""
    return {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")


def fill_new(kind: Kind, obj: Object) -> None:
    """Set the server's fields on create. Field managers are not tracked yet, so managedFields are not kept."""
    metadata = obj["metadata"]
    metadata.pop("managedFields", None)
    metadata["uid"] = chance.uid()
    metadata["creationTimestamp"] = now()
    if kind.strategy.generation:
        metadata["generation"] = 1


def fill_update(kind: Kind, new: Object, old: Object) -> None:
    """Immutable fields that an update may leave out come from the stored object."""
    fresh, stored = new["metadata"], old["metadata"]
    fresh.pop("managedFields", None)
    fresh["creationTimestamp"] = stored["creationTimestamp"]
    if not fresh.get("uid"):
        fresh["uid"] = stored["uid"]
    for field in ("generation", "deletionTimestamp"):
        if field in stored:
            fresh[field] = stored[field]
        elif field == "generation":
            fresh.pop(field, None)
    if "deletionGracePeriodSeconds" in stored:
        fresh.setdefault("deletionGracePeriodSeconds", stored["deletionGracePeriodSeconds"])


def validate(kind: Kind, obj: Object) -> list[FieldError]:
    metadata = obj["metadata"]
    errors = validate_prefix(kind, obj)
    name = metadata.get("name")
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    else:
        rule = names.RULES[kind.strategy.name_rule]
        errors += [invalid("metadata.name", name, text) for text in rule(name)]
    namespace = metadata.get("namespace")
    if kind.namespaced:
        if not namespace:
            errors.append(required("metadata.namespace"))
        else:
            errors += [invalid("metadata.namespace", namespace, text) for text in names.dns_label_errors(namespace)]
    elif namespace:
        errors.append(forbidden("metadata.namespace", "not allowed on this type"))
    errors += _validate_common(metadata) + _validate_finalizers(metadata)
    return errors + _validate_known_finalizers(kind, metadata)


def validate_prefix(kind: Kind, obj: Object) -> list[FieldError]:
    prefix = obj["metadata"].get("generateName")
    if not prefix:
        return []
    # A prefix may end in a dash, after which the random characters follow.
    masked = prefix[:-1] + "a" if prefix.endswith("-") and kind.strategy.name_rule != "path" else prefix
    return [invalid("metadata.generateName", prefix, text) for text in names.RULES[kind.strategy.name_rule](masked)]


def validate_update(kind: Kind, new: Object, old: Object) -> list[FieldError]:
    fresh, stored = new["metadata"], old["metadata"]
    errors: list[FieldError] = []
    if "deletionTimestamp" in stored:
        extra = sorted(set(fresh.get("finalizers", ())) - set(stored.get("finalizers", ())))
        if extra:
            listed = ", ".join(f'"{name}"' for name in extra)
            text = "no new finalizers can be added if the object is being deleted, found new finalizers "
            errors.append(forbidden("metadata.finalizers", f"{text}[]string{{{listed}}}"))
    errors += [
        invalid(f"metadata.{field}", fresh.get(field), IMMUTABLE)
        for field in _FIXED
        if fresh.get(field) != stored.get(field)
    ]
    errors += _validate_common(fresh) + _validate_finalizers(fresh)
    # On an update kube-apiserver runs these rules twice, once for all kinds and once for each kind, and reports errors twice.
    return errors + errors + _validate_known_finalizers(kind, fresh)


def _validate_common(metadata: Object) -> list[FieldError]:
    errors = [
        too_many(f"metadata.{field}", len(metadata[field]), MAX_ITEMS)
        for field in ("labels", "annotations", "ownerReferences", "finalizers")
        if len(metadata.get(field, ())) > MAX_ITEMS
    ]
    if errors:
        return errors
    if metadata.get("generation", 0) < 0:
        text = "must be greater than or equal to 0"
        errors.append(invalid("metadata.generation", metadata["generation"], text))
    for key, value in metadata.get("labels", {}).items():
        errors += [invalid("metadata.labels", key, text) for text in names.qualified_name_errors(key)]
        errors += [invalid("metadata.labels", value, text) for text in names.label_value_errors(value)]
    annotations = metadata.get("annotations")
    if annotations:
        size = 0
        for key, value in annotations.items():
            errors += [invalid("metadata.annotations", key, text) for text in names.qualified_name_errors(key.lower())]
            size += len(key.encode()) + len(value.encode())
        if size > ANNOTATIONS_LIMIT:
            text = f"may not be more than {ANNOTATIONS_LIMIT} bytes"
            errors.append(FieldError("FieldValueTooLong", "metadata.annotations", "", text))
    return errors + _validate_owners(metadata.get("ownerReferences", ()))


def _validate_owners(owners: list[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    path = "metadata.ownerReferences"
    controller = ""
    for owner in owners:
        api_version = owner.get("apiVersion", "")
        if not api_version or api_version.endswith("/"):
            errors.append(invalid(f"{path}.apiVersion", api_version, "version must not be empty"))
        errors += [
            invalid(f"{path}.{field}", "", "must not be empty")
            for field in ("kind", "name", "uid")
            if not owner.get(field)
        ]
        banned = _BANNED_OWNERS.get((api_version, owner.get("kind", "")))
        if banned:
            errors.append(invalid(path, owner, f"{banned} is disallowed from being an owner"))
        if owner.get("controller") is not True:
            continue
        this = f"{owner.get('kind')}/{owner.get('name')}"
        if controller:
            text = 'Only one reference can have Controller set to true. Found "true" in references for '
            errors.append(invalid(path, owners, f"{text}{controller} and {this}"))
        else:
            controller = this
    return errors


def _validate_finalizers(metadata: Object) -> list[FieldError]:
    finalizers = metadata.get("finalizers", ())
    errors = [
        invalid("metadata.finalizers", name, text) for name in finalizers for text in names.qualified_name_errors(name)
    ]
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        text = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        errors.append(invalid("metadata.finalizers", finalizers, text))
    return errors


def _validate_known_finalizers(kind: Kind, metadata: Object) -> list[FieldError]:
    """Built-in kinds (those with a schema type) take unqualified finalizers only where Kubernetes knows them.

    The two groups that kube-apiserver has from other servers do not have this rule.
    """
    if not kind.builtin or kind.group in _OTHER_SERVERS:
        return []
    text = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid(f"metadata.finalizers[{index}]", name, text)
        for index, name in enumerate(metadata.get("finalizers", ()))
        if "/" not in name and name not in _STANDARD_FINALIZERS
    ]
