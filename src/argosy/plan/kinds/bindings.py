"""Kinds of which a member keeps one field: the one it binds, generates or reports itself."""

from collections.abc import Callable, Iterator
from typing import Final

from argosy.kube.podreferences import Reference, references_at
from argosy.plan import fields
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind

__all__ = ["PERSISTENT_VOLUME", "PERSISTENT_VOLUME_CLAIM", "SERVICE_ACCOUNT", "WORKFLOW"]


def _keeping(path: str) -> Callable[[Json, Json], Json]:
    def retain(desired: Json, observed: Json) -> Json:
        value = fields.get(observed, path, None)
        return desired if value is None else fields.put(desired, path, value)

    return retain


def _keeping_secrets(desired: Json, observed: Json) -> Json:
    if desired.get("secrets") or not observed.get("secrets"):
        return desired
    return {**desired, "secrets": observed["secrets"]}


def _lost(desired: Json, copy: Json) -> list[str]:
    """A claim that is still pending may wait for its first pod, as its storage class says."""
    return ["its volume is lost"] if fields.get(copy, "status.phase", None) == "Lost" else []


def _pull_secrets(account: Json) -> Iterator[Reference]:
    """Pods of the account pull their images with these. Its tokens are each cluster's own."""
    for each in references_at(account, "imagePullSecrets[*].name", "", "Secret"):
        yield each._replace(optional=True)


PERSISTENT_VOLUME: Final = Kind(retain=_keeping("spec.claimRef"))
PERSISTENT_VOLUME_CLAIM: Final = Kind(retain=_keeping("spec.volumeName"), unfinished=_lost)
SERVICE_ACCOUNT: Final = Kind(retain=_keeping_secrets, references=_pull_secrets)
#: Argo keeps the status in the object itself, without a subresource.
WORKFLOW: Final = Kind(retain=_keeping("status"))
