"""Template: what of a source is propagated, and whether a federated object has it.

The template is the source without the fields that belong to one cluster's copy. The keys of labels and annotations decide
whether they go into the template or to the federated object itself.
"""

from collections.abc import Mapping

import msgspec

from argosy.api import keys
from argosy.api.federated import FederatedObject
from argosy.plan.claims.record import claimed_label
from argosy.plan.fields import Json, equal
from argosy.plan.metadata import SERVERS_OWN, annotations_of, labels_of

__all__ = [
    "Classified",
    "classify_annotations",
    "classify_labels",
    "names_the_policies",
    "reflects",
    "template_of",
    "up_to_date",
]


class Classified(msgspec.Struct, frozen=True):
    """A source's labels or annotations, by where they go."""

    federated: dict[str, str]
    template: dict[str, str]
    #: The federation's own keys in members, which are not propagated.
    marks: frozenset[str]


def classify_labels(labels: Mapping[str, str]) -> Classified:
    return _classified(labels, keys.POLICY_LABELS, frozenset())


def classify_annotations(annotations: Mapping[str, str]) -> Classified:
    return _classified(annotations, keys.FEDERATED_ANNOTATIONS, keys.IGNORED_ANNOTATIONS)


def _classified(values: Mapping[str, str], federated: frozenset[str], ignored: frozenset[str]) -> Classified:
    elsewhere = federated | ignored | keys.MARKS
    return Classified(
        {key: value for key, value in values.items() if key in federated},
        {key: value for key, value in values.items() if key not in elsewhere},
        keys.MARKS.intersection(values),
    )


def template_of(source: Json) -> Json:
    """The object to propagate. Labels and annotations are always present, so that a patch can add a single key."""
    metadata = {key: value for key, value in source["metadata"].items() if key not in SERVERS_OWN}
    metadata["labels"] = classify_labels(labels_of(source)).template
    metadata["annotations"] = classify_annotations(annotations_of(source)).template
    return {**{key: value for key, value in source.items() if key != "status"}, "metadata": metadata}


def reflects(source: Json, federated: FederatedObject) -> bool:
    """Whether the federated object has the template and the annotations of this source."""
    own = classify_annotations(annotations_of(source)).federated
    stored = {key: value for key, value in federated.metadata.annotations.items() if key in keys.FEDERATED_ANNOTATIONS}
    return own == stored and equal(template_of(source), federated.spec.template)


def names_the_policies(source: Json, federated: FederatedObject) -> bool:
    """Whether the federated object names the policies that this source names, besides one that selected it. Labels do not raise
    a generation."""
    stored = {key: value for key, value in federated.metadata.labels.items() if key in keys.POLICY_LABELS}
    own = labels_of(source)
    return {**classify_labels(own).federated, **claimed_label(own, federated.metadata)} == stored


def up_to_date(source: Json, federated: FederatedObject) -> bool:
    """Whether the federated object reflects this source and every cluster has it."""
    return (
        reflects(source, federated)
        and federated.status.synced_generation == federated.metadata.generation
        and all(entry.status == "OK" for entry in federated.status.clusters)
    )
