"""Retain: the fields of a member's object that an update keeps.

Members fill in fields of their own (addresses, bindings, injected volumes), and their users add labels and annotations. An
update must not remove those. Fields special to a kind are in `kinds`, and in its type config.
"""

from collections.abc import Collection, Mapping

from argosy.api import keys
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.registry import kind_in
from argosy.plan.metadata import annotations_of, labels_of

__all__ = ["merge_string_maps", "recorded_keys", "retain", "retain_replicas"]


def retain(desired: Json, observed: Json, type_config: FederatedTypeConfig) -> Json:
    """The desired object with the fields that the member's copy may keep."""
    found = annotations_of(observed)
    metadata = {
        **desired["metadata"],
        "labels": merge_string_maps(
            labels_of(desired), labels_of(observed), recorded_keys(found, keys.PROPAGATED_LABEL_KEYS)
        ),
        "annotations": merge_string_maps(
            annotations_of(desired), found, recorded_keys(found, keys.PROPAGATED_ANNOTATION_KEYS)
        ),
    }
    if version := (observed.get("metadata") or {}).get("resourceVersion"):
        metadata["resourceVersion"] = version
    result = {**desired, "metadata": metadata}
    if (desired.get("apiVersion"), desired.get("kind")) != (observed.get("apiVersion"), observed.get("kind")):
        return result
    return kind_in(desired, type_config).retain(result, observed)


def recorded_keys(annotations: Mapping[str, str], key: str) -> list[str]:
    """The keys that the last write of a copy brought, by its annotations."""
    recorded = annotations.get(key)
    return recorded.split(",") if recorded else []


def merge_string_maps(
    template: Mapping[str, str] | None, observed: Mapping[str, str] | None, last_propagated: Collection[str] | None
) -> dict[str, str]:
    """Our values, and the member's own keys except those that once came from us and were removed since."""
    ours = set(last_propagated or ())
    kept = {key: value for key, value in (observed or {}).items() if key not in ours}
    return {**kept, **(template or {})}


def retain_replicas(desired: Json, observed: Json, annotations: Mapping[str, str], path: str) -> Json:
    """The desired object with the member's number of replicas, if the federated object asks for that."""
    if annotations.get(keys.RETAIN_REPLICAS) != "true" or not path:
        return desired
    replicas = fields.get(observed, path)
    return desired if replicas is fields.ABSENT else fields.put(desired, path, replicas)
