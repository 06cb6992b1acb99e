"""Render: the object a member cluster should have, and whether the member's object already matches.

Rendering is skipped if the record for a cluster says that this template with these patches was written there, and the
member's object has not changed since.
"""

from collections.abc import Mapping

from argosy.api import keys
from argosy.api.conditions import Propagation
from argosy.api.federated import PropagationEntry
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.kube.objects import Metadata
from argosy.plan.copies.adoption import adopted_mark
from argosy.plan.copies.patches import OverrideError, apply_patches
from argosy.plan.copies.placement import Patches
from argosy.plan.copies.retain import retain, retain_replicas
from argosy.plan.fields import Json, equal
from argosy.plan.kinds.registry import kind_of
from argosy.plan.metadata import annotations_of, labels_of, meta_equivalent, without_annotations

__all__ = [
    "RenderError",
    "adopted",
    "in_bucket",
    "is_as_written",
    "is_current",
    "is_replaced",
    "needs_update",
    "orphaned",
    "render",
    "version_of",
]


class RenderError(ValueError):
    """The desired object cannot be built; `status` is the state reported for the cluster."""

    def __init__(self, status: Propagation, message: str):
        super().__init__(message)
        self.status = status


def render(
    template: Json,
    patches: Patches,
    observed: Json | None,
    annotations: Mapping[str, str],
    type_config: FederatedTypeConfig,
) -> Json:
    """The object to write: a new one if `observed` is None, else an update of `observed`.

    `annotations` are the federated object's.
    """
    desired = kind_of(template).strip(_without_generation(template))
    finalizers = (observed or {}).get("metadata", {}).get("finalizers") or []
    desired = {**desired, "metadata": {**desired["metadata"], "finalizers": list(finalizers)}}
    try:
        desired = apply_patches(desired, patches)
    except OverrideError as error:
        raise RenderError(Propagation.APPLY_OVERRIDES_FAILED, str(error)) from None
    desired = _marked(desired, _generation(template))
    if observed is None:
        return desired
    desired = retain_replicas(
        retain(desired, observed, type_config), observed, annotations, type_config.spec.path_definition.replicas_spec
    )
    desired = _adopted_as(desired, adopted_mark(annotations_of(observed)))
    unique = list(dict.fromkeys(desired["metadata"].get("finalizers") or ()))
    return {**desired, "metadata": {**desired["metadata"], "finalizers": unique}}


def _generation(template: Json) -> int:
    return template["metadata"].get("generation") or 0


def _without_generation(template: Json) -> Json:
    """Each member counts generations itself."""
    metadata = {key: value for key, value in template["metadata"].items() if key != "generation"}
    return {**template, "metadata": metadata}


def _marked(desired: Json, generation: int) -> Json:
    """Adds the managed label, the source's generation, and the lists of the keys that come from us, so that a later update
    knows which keys were removed. Done after the patches, which cannot change these. Never sets the adopted annotation."""
    labels = {**labels_of(desired), keys.MANAGED_LABEL: "true"}
    annotations = without_annotations(annotations_of(desired), keys.ADOPTED)
    if generation:
        annotations[keys.SOURCE_GENERATION] = str(generation)
    recorded = {
        keys.PROPAGATED_LABEL_KEYS: ",".join(sorted(labels)),
        keys.PROPAGATED_ANNOTATION_KEYS: ",".join(sorted(annotations)),
    }
    return {
        **desired,
        "metadata": {**desired["metadata"], "labels": labels, "annotations": {**annotations, **recorded}},
    }


def _adopted_as(desired: Json, mark: str | None) -> Json:
    annotations = without_annotations(annotations_of(desired), keys.ADOPTED)
    if mark is not None:
        annotations[keys.ADOPTED] = mark
    return {**desired, "metadata": {**desired["metadata"], "annotations": annotations}}


def adopted(observed: Json) -> Json:
    """An existing object as the one to update, marked as adopted if it was not managed yet."""
    if keys.MANAGED_LABEL in labels_of(observed):
        return observed
    annotations = annotations_of(observed)
    if keys.RESCUED in annotations:  # it was ours
        annotations = without_annotations(annotations, keys.RESCUED)
    else:
        annotations = {**annotations, keys.ADOPTED: "true"}
    return {**observed, "metadata": {**observed["metadata"], "annotations": annotations}}


def in_bucket(desired: Json, bucket: int) -> Json:
    """A rendered object with the label that tells shards which copies are theirs. It is no label of the user: a copy keeps it
    when shards are switched off, and is not rewritten for lack of it when they are switched on (`needs_update`)."""
    labels = {**labels_of(desired), keys.BUCKET_LABEL: str(bucket)}
    return {**desired, "metadata": {**desired["metadata"], "labels": labels}}


def orphaned(observed: Json, *, rescued: bool = False) -> Json:
    """A member's object as it is left behind: no longer managed, otherwise unchanged. One that was rescued says so: it is taken
    over without being asked for if its source is applied again."""
    metadata = dict(observed["metadata"])
    ours = (keys.MANAGED_LABEL, keys.BUCKET_LABEL)
    metadata["labels"] = {key: value for key, value in labels_of(observed).items() if key not in ours}
    if rescued:
        metadata["annotations"] = {**annotations_of(observed), keys.RESCUED: "true"}
    finalizers = metadata.get("finalizers") or []
    metadata["finalizers"] = [name for name in finalizers if name != keys.RETAIN_TERMINATING_FINALIZER]
    return {**observed, "metadata": metadata}


# What was written, and whether the member's object is still that.


def version_of(metadata: Metadata) -> str:
    """A version that changes with the spec if the kind counts generations, else with any write."""
    return f"gen:{metadata.generation}" if metadata.generation else f"rv:{metadata.resource_version}"


def is_replaced(record: PropagationEntry | None, uid: str) -> bool:
    """Whether the member's object is not the one that was written: somebody deleted that and created a new one of the same
    name, whose generation starts again."""
    return record is not None and bool(record.uid and uid) and record.uid != uid


def is_as_written(record: PropagationEntry, observed: Metadata) -> bool:
    """Whether nobody has changed the member's object since it was written or verified."""
    return record.version == version_of(observed) and not is_replaced(record, observed.uid)


def is_current(
    record: PropagationEntry | None, digest: str, observed: Metadata, template: Json, patches: Patches
) -> bool:
    """Whether the member's object certainly is as wanted, without rendering it.

    Labels and annotations do not raise the generation, so ours are compared one by one. If patches touch the metadata, only
    rendering can tell.
    """
    if record is None or record.digest != digest or not is_as_written(record, observed):
        return False
    if not observed.generation:
        return True
    if any(patch["path"].startswith("/metadata") or patch["path"] == "" for patch in patches):
        return False
    marked = _marked(template, _generation(template))
    return (
        labels_of(marked).items() <= observed.labels.items()
        and annotations_of(marked).items() <= observed.annotations.items()
    )


def needs_update(desired: Json, observed: Json, record: PropagationEntry | None, digest: str, version: str) -> bool:
    """Whether to write a rendered object over the member's, whose version is `version`.

    If the record matches, only metadata can have drifted: other differences are the member's defaults and webhooks. Without a
    record, an object equal to the member's is not written.
    """
    if keys.BUCKET_LABEL not in labels_of(observed):
        desired = _without_bucket(desired)
    if is_replaced(record, observed["metadata"].get("uid", "")):
        record = None
    if record is not None and record.digest == digest and record.version == version:
        return version.startswith("gen:") and not meta_equivalent(desired, observed)
    return not _same(desired, observed)


def _without_bucket(desired: Json) -> Json:
    labels = {key: value for key, value in labels_of(desired).items() if key != keys.BUCKET_LABEL}
    return {**desired, "metadata": {**desired["metadata"], "labels": labels}}


def _same(desired: Json, observed: Json) -> bool:
    content = [
        {key: value for key, value in each.items() if key not in ("metadata", "status")} for each in (desired, observed)
    ]
    finalizers = [each["metadata"].get("finalizers") or [] for each in (desired, observed)]
    return equal(content[0], content[1]) and finalizers[0] == finalizers[1] and meta_equivalent(desired, observed)
