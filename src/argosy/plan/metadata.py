"""Annotations, labels and finalizers as values: read, changed into new ones, compared.

An absent, null or empty map is the same. An empty key is never added.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

__all__ = [
    "SERVERS_OWN",
    "annotations_of",
    "copy_keys",
    "has_annotation",
    "has_value",
    "is_string_map",
    "labels_of",
    "meta_equivalent",
    "with_annotation",
    "with_finalizers",
    "without_annotations",
    "without_finalizers",
    "without_managed_fields",
]

Strings = Mapping[str, str]

#: Metadata that belongs to one cluster's object and is not propagated. The generation is: it tells members which generation
#: of the source they run.
SERVERS_OWN: Final = (
    "selfLink",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
)


def labels_of(obj: Mapping[str, Any]) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def annotations_of(obj: Mapping[str, Any]) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}


def without_managed_fields(obj: Mapping[str, Any]) -> dict[str, Any]:
    """An object's metadata without managedFields: the server's own, neither compared nor written."""
    return {key: value for key, value in obj["metadata"].items() if key != "managedFields"}


def is_string_map(value: Any) -> bool:
    """Whether the value is a map of strings, as labels and annotations are."""
    if value is None:
        return True
    return isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair)


def has_annotation(annotations: Strings | None, key: str) -> bool:
    return bool(annotations) and key in (annotations or {})


def has_value(annotations: Strings | None, key: str, value: str) -> bool:
    return has_annotation(annotations, key) and (annotations or {})[key] == value


def with_annotation(annotations: Strings | None, key: str, value: str) -> dict[str, str]:
    return {**(annotations or {}), key: value} if key else dict(annotations or {})


def without_annotations(annotations: Strings | None, *keys: str) -> dict[str, str]:
    return {key: value for key, value in (annotations or {}).items() if key not in keys}


def copy_keys(source: Strings | None, target: Strings | None, keys: Iterable[str]) -> tuple[dict[str, str], int]:
    """`target` with these keys as in `source`, absent if absent there; and how many keys changed."""
    result, changes = dict(target or {}), 0
    for key in keys:
        wanted, found = (source or {}).get(key), result.get(key)
        if wanted == found:
            continue
        changes += 1
        if wanted is None:
            del result[key]
        else:
            result[key] = wanted
    return result, changes


def with_finalizers(finalizers: Iterable[str], added: Iterable[str]) -> list[str]:
    """Sorted if something was added, so that the result does not depend on the order of additions."""
    before = list(finalizers)
    missing = set(added) - set(before)
    return sorted(missing.union(before)) if missing else before


def without_finalizers(finalizers: Iterable[str], removed: Iterable[str]) -> list[str]:
    gone = set(removed)
    return [finalizer for finalizer in finalizers if finalizer not in gone]


def meta_equivalent(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two objects agree in the metadata that is propagated; versions and uids do not count."""
    one, other = a.get("metadata") or {}, b.get("metadata") or {}
    return (
        one.get("name") == other.get("name")
        and (one.get("namespace") or "") == (other.get("namespace") or "")
        and labels_of(a) == labels_of(b)
        and annotations_of(a) == annotations_of(b)
    )
