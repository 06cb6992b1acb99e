"""Item: one federated object during a pass of dispatch, with what is computed once for all its clusters."""

import re
from typing import Any, Final, NamedTuple

import msgspec

from argosy.api import keys
from argosy.api.types import FederatedObject, FederatedTypeConfig, PropagationEntry
from argosy.control.caches.informers import Caches
from argosy.control.caches.objectkeys import FederatedKey, SourceKey
from argosy.kube.objects import Metadata, decode
from argosy.plan.copies import drift, placement
from argosy.plan.copies.digest import digest, template_digest
from argosy.plan.copies.held_copies import HeldCopies, held_copies
from argosy.plan.copies.identity import Refusal, Subject, refusal, subject_of

__all__ = ["Item", "Nobodys", "item_of"]

#: As a number it fits into 64 bits. In a member, anything may be written there.
_GENERATION: Final = re.compile("[0-9]{1,18}")


class Item(NamedTuple):
    key: FederatedKey
    federated: FederatedObject
    #: The source: it decides the copies' identity in members, whatever the template says.
    subject: Subject
    #: Why the template is not sent, None if it is.
    refusal: Refusal | None
    template_digest: str
    #: All overrides, by cluster.
    overrides: dict[str, Any]
    #: The clusters whose copy stays as it is.
    held: HeldCopies

    @property
    def config(self) -> FederatedTypeConfig:
        return self.subject.config

    @property
    def member_key(self) -> str:
        """Key of the object in members, and of its source."""
        return self.subject.key

    @property
    def annotations(self) -> dict[str, str]:
        return self.federated.metadata.annotations

    @property
    def source(self) -> SourceKey:
        return SourceKey(self.config.name, self.member_key)

    @property
    def noted(self) -> list[str]:
        """Clusters whose copy may be removed."""
        return placement.to_be_removed(self.annotations)

    def patches(self, cluster: str) -> placement.Patches:
        return placement.overrides_for(self.overrides, cluster, self.config.spec.controllers)

    def digest(self, cluster: str) -> str:
        """Digest of everything that decides this cluster's copy."""
        return digest(self.template_digest, self.patches(cluster), self.annotations)

    def since(self, cluster: str, observed: Metadata | None) -> drift.Since:
        """What is known of this cluster's copy since it was written last. `observed` is the copy's."""
        record, reports = self.record(cluster), drift.reports(self.annotations)
        if record is None or not record.version:
            return drift.Since(reports=reports)
        template, left = self.federated.spec.template, drift.left_in(record)
        then = observed.annotations.get(keys.SOURCE_GENERATION) if observed is not None else None
        if then is None or then == str(template["metadata"].get("generation")):
            same = record.digest == self.digest(cluster)
            return drift.Since(same, same, reports, left)
        if not _GENERATION.fullmatch(then):  # nobody's source had that
            return drift.Since(reports=reports, left=left)
        # As it was when the source was of the generation that the copy is of, but for the generation.
        as_then = {**template, "metadata": {**template["metadata"], "generation": int(then)}}
        unchanged = record.digest == digest(template_digest(as_then), self.patches(cluster), self.annotations)
        return drift.Since(unchanged, False, reports, left)

    def aim(self, cluster: str, wanted: bool) -> str:
        """What is to be done in this cluster; the same text for the same."""
        if not wanted:
            return "remove"
        return "hold" if self.held.why(cluster) else self.digest(cluster)

    def record(self, cluster: str) -> PropagationEntry | None:
        for entry in self.federated.status.clusters:
            if entry.cluster == cluster:
                return entry
        return None


class Nobodys(NamedTuple):
    """A federated object whose source cannot be determined."""

    federated: FederatedObject
    refusal: Refusal


def item_of(caches: Caches, key: FederatedKey) -> Item | Nobodys | None:
    """From the cache; None if it is gone."""
    raw = caches.federated[key.namespaced].raw(key.key)
    if raw is None:
        return None
    federated = decode(raw, FederatedObject)
    subject = subject_of(federated.metadata, federated.spec.template, caches.catalog)
    if isinstance(subject, Refusal):
        return Nobodys(federated, subject)
    source = caches.source(SourceKey(subject.config.name, subject.key))
    refused = refusal(federated, subject, source.metadata if source is not None else None)
    overrides = {"overrides": msgspec.to_builtins(federated.spec.overrides)}
    held = held_copies(federated.metadata.annotations)
    return Item(key, federated, subject, refused, template_digest(federated.spec.template), overrides, held)
