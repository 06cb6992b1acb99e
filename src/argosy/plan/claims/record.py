"""Record: the claim of a selector as the federated object keeps it, and the policy that is in force for a source.

The federated object gets the label that the source does not have, so that all that looks for policies there finds it, and an
annotation that says where the label comes from. A claim ends only with another one, with a label, or because the source says so:
where no policy selects the object any more, the last one stays on record, and the object is held. A policy that does not exist
keeps what it selected: it may be about to come back, and no other policy takes that over meanwhile.
"""

from collections.abc import Callable, Mapping

import msgspec

from argosy.api import keys
from argosy.kube.objects import Metadata
from argosy.plan.fields import Json
from argosy.plan.metadata import annotations_of, labels_of
from argosy.plan.pipeline.policy import PolicyRef, propagation_ref

__all__ = [
    "NOBODY",
    "InForce",
    "as_claimed",
    "claimed_by",
    "claimed_label",
    "in_force",
    "in_force_now",
    "looked_at",
    "recorded",
    "unless_missed",
]


class InForce(msgspec.Struct, frozen=True):
    """The policy that counts for a source; None if it has none."""

    ref: PolicyRef | None = None
    #: Selectors claimed it: the source does not name it.
    selected: bool = False
    #: They do so no more.
    lost: bool = False


NOBODY = InForce()


def claimed_by(labels: Mapping[str, str], annotations: Mapping[str, str], namespace: str) -> PolicyRef | None:
    """The policy whose selectors claimed a source, by its federated object; None if none did."""
    return propagation_ref(labels, namespace) if keys.SELECTED_BY in annotations else None


def unless_missed(
    selected: PolicyRef | None, federated: Metadata | None, exists: Callable[[PolicyRef], bool]
) -> PolicyRef | None:
    """The policy that selects a source now; None as long as the one on record does not exist."""
    stored = None
    if federated is not None:
        stored = claimed_by(federated.labels, federated.annotations, federated.namespace)
    return selected if stored is None or exists(stored) else None


def in_force(source: Metadata, federated: Metadata | None, selected: PolicyRef | None) -> InForce:
    """`selected` is the policy whose selectors claim the source now."""
    own = propagation_ref(source.labels, source.namespace)
    if own is not None:
        return InForce(own)
    if selected is not None:
        return InForce(selected, selected=True)
    if federated is None or source.annotations.get(keys.NO_SELECTION) == "true":
        return NOBODY
    stored = claimed_by(federated.labels, federated.annotations, source.namespace)
    return NOBODY if stored is None else InForce(stored, selected=True, lost=True)


def in_force_now(source: Json, federated: Json | None, selected: PolicyRef | None) -> InForce:
    """The same of objects as they are stored."""
    of_federated = looked_at(federated) if federated is not None else None
    return in_force(looked_at(source), of_federated, selected)


def looked_at(obj: Json) -> Metadata:
    """The metadata that says which policy counts."""
    namespace = obj["metadata"].get("namespace") or ""
    return Metadata(namespace=namespace, labels=labels_of(obj), annotations=annotations_of(obj))


def recorded(policy: InForce) -> tuple[dict[str, str], dict[str, str]]:
    """The labels and annotations with which a federated object keeps the claim."""
    if not policy.selected or policy.ref is None:
        return {}, {}
    return {policy.ref.label: policy.ref.name}, {keys.SELECTED_BY: f"{policy.ref.kind}/{policy.ref.name}"}


def as_claimed(source: Json, policy: InForce) -> Json:
    """The source as if it named by label the policy that selected it."""
    labels, _ = recorded(policy)
    if not labels:
        return source
    return {**source, "metadata": {**source["metadata"], "labels": {**labels_of(source), **labels}}}


def claimed_label(source: Mapping[str, str], federated: Metadata) -> dict[str, str]:
    """The label of a federated object that comes from a selector, of a source with these labels."""
    ref = claimed_by(federated.labels, federated.annotations, federated.namespace)
    return {ref.label: ref.name} if ref is not None and propagation_ref(source, federated.namespace) is None else {}
