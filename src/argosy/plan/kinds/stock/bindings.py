"""ServiceAccount and Argo's Workflow, of which a member keeps one field: the one it generates or reports itself."""

from collections.abc import Iterator
from typing import Final

from argosy.kube.podreferences import Reference, references_at
from argosy.plan.fields import Json
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.stock.volumes import keeping

__all__ = ["SERVICE_ACCOUNT", "WORKFLOW"]


def _keeping_secrets(desired: Json, observed: Json) -> Json:
    if desired.get("secrets") or not observed.get("secrets"):
        return desired
    return {**desired, "secrets": observed["secrets"]}


def _pull_secrets(account: Json) -> Iterator[Reference]:
    """Pods of the account pull their images with these. Its tokens are each cluster's own."""
    for each in references_at(account, "imagePullSecrets[*].name", "", "Secret"):
        yield each._replace(optional=True)


SERVICE_ACCOUNT: Final = Kind(retain=_keeping_secrets, references=_pull_secrets)
#: Argo keeps the status in the object itself, without a subresource.
WORKFLOW: Final = Kind(retain=keeping("status"))
