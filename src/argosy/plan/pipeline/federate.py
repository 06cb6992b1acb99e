"""Federate: the first step, which makes a source's federated object, if anything asks for one. `template` says what of a
source goes where."""

from collections.abc import Mapping

import orjson

from argosy.api import keys
from argosy.api.names import federated_name
from argosy.api.resources import federated_objects
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.kube import owners
from argosy.plan.claims.record import NOBODY, InForce, recorded
from argosy.plan.fields import Json
from argosy.plan.metadata import SERVERS_OWN, annotations_of, labels_of, with_finalizers, without_managed_fields
from argosy.plan.pipeline import namespaces
from argosy.plan.pipeline.held import held_of
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.state import State
from argosy.plan.pipeline.template import Classified, classify_annotations, classify_labels, template_of

__all__ = ["NameTaken", "federate", "federated_object"]


class NameTaken(ValueError):
    """Another source's federated object has this name."""


def federate(inputs: PassInputs) -> State | None:
    """The state the other steps start from; None if there should be no federated object, or none for now.

    Raises NameTaken if the federated object belongs to another source.
    """
    if not _federates(inputs):
        return None
    before = inputs.existing
    if before is not None:
        before = {**before, "metadata": without_managed_fields(before)}
    base = federated_object(inputs.source, before, inputs.type_config, inputs.in_force)
    annotations = annotations_of(base)
    return State(before, base, base["spec"], annotations, held_of(annotations))


def _federates(inputs: PassInputs) -> bool:
    if annotations_of(inputs.source).get(keys.NO_FEDERATED_RESOURCE) or inputs.namespace == keys.SYSTEM_NAMESPACE:
        return False
    if inputs.existing is None:
        return inputs.wanted or _asks_for_propagation(inputs)
    # A federated object that is being deleted is created anew once it is gone.
    return not inputs.existing["metadata"].get("deletionTimestamp")


def _asks_for_propagation(inputs: PassInputs) -> bool:
    """Whether a policy claims the source, or it is a namespace that goes everywhere."""
    if inputs.in_force.ref is not None:
        return True
    return (
        inputs.type_config.kind == "Namespace"
        and any(keys.NSAUTOPROP_CONTROLLER in step for step in inputs.type_config.spec.controllers)
        and namespaces.propagates(
            inputs.source["metadata"]["name"], annotations_of(inputs.source), inputs.exclude_namespaces
        )
    )


def federated_object(
    source: Json, existing: Json | None, type_config: FederatedTypeConfig, policy: InForce = NOBODY
) -> Json:
    """The federated object as far as the source decides it; placements, overrides and the rest are kept."""
    metadata = source["metadata"]
    name = federated_name(metadata["name"], type_config.name)
    if existing is not None:
        _check_owner(existing, source)
    kind = federated_objects(type_config.namespaced).kind
    before = existing or {"apiVersion": keys.API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": {}}
    meta = dict(before["metadata"])
    if type_config.namespaced:
        meta["namespace"] = metadata["namespace"]
    labels, annotations = recorded(policy)
    meta["labels"] = {**classify_labels(labels_of(source)).federated, **labels, source["apiVersion"]: source["kind"]}
    meta["annotations"] = {**_annotations(source, annotations_of(before)), **annotations}
    meta["finalizers"] = with_finalizers(meta.get("finalizers") or (), [keys.SYNC_FINALIZER])
    meta["ownerReferences"] = _owner_references(source, before)
    return {**before, "metadata": meta, "spec": {**before["spec"], "template": template_of(source)}}


def _annotations(source: Json, existing: Mapping[str, str]) -> dict[str, str]:
    """Annotations of the federated class mirror the source; others on the federated object stay."""
    own = classify_annotations(annotations_of(source))
    replaced = keys.FEDERATED_ANNOTATIONS | {keys.SELECTED_BY}
    kept = {key: value for key, value in existing.items() if key not in replaced}
    labels = classify_labels(labels_of(source))
    return {
        **kept,
        **own.federated,
        keys.OBSERVED_ANNOTATIONS: _observed(own),
        keys.OBSERVED_LABELS: _observed(labels),
        keys.TEMPLATE_MERGE_PATCH: _merge_patch(source, own, labels),
    }


def _observed(values: Classified) -> str:
    """`federated|other` keys, sorted; the feedback that the federation writes to the source is not included."""
    if not values.federated and not values.template:
        return ""
    return f"{','.join(sorted(values.federated))}|{','.join(sorted(values.template))}"


def _merge_patch(source: Json, annotations: Classified, labels: Classified) -> str:
    """The merge patch from source to template.

    It names every removed field, present or not, so that status and feedback written to the source later do not change the
    patch and cause no further write of the federated object. Marks of copies are named only if present: a source rarely has
    them.
    """
    metadata: Json = dict.fromkeys(SERVERS_OWN)
    metadata["annotations"] = dict.fromkeys({*annotations.federated, *annotations.marks, *keys.IGNORED_ANNOTATIONS})
    metadata["labels"] = dict.fromkeys({*labels.federated, *labels.marks})
    return orjson.dumps({"metadata": metadata, "status": None}, option=orjson.OPT_SORT_KEYS).decode()


def _owner_references(source: Json, existing: Json) -> list[Json]:
    own = owners.owner_reference(source, controller=True, block_owner_deletion=True)
    others = [reference for reference in owners.owners_of(existing) if not reference.get("controller")]
    return [own, *others]


def _check_owner(existing: Json, source: Json) -> None:
    owner = owners.controller_of(existing)
    if owner is None:
        return
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != (
        source["apiVersion"],
        source["kind"],
        source["metadata"]["name"],
    ):
        raise NameTaken(
            f"{existing['metadata']['name']} is the federated object of {owner.get('kind')} {owner.get('name')}"
        )
