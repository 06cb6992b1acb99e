"""Preflight: what would keep the controllers from working at all, told before they start instead of retried for ever."""

from argosy.api import keys, rights
from argosy.cli.output.failures import Failure
from argosy.control.members.join import NAMESPACES
from argosy.control.permissions import missing
from argosy.kube.client import Client
from argosy.kube.errors import Forbidden, NotFound
from argosy.kube.objects import Partial

__all__ = ["check"]

_TOLD = 5


async def check(client: Client) -> None:
    """Raise Failure where the federation's kinds are not served, or where we may not do what every federation needs."""
    try:
        await client.request("GET", f"/apis/{keys.API_VERSION}")
    except NotFound:
        raise Failure(
            f"this control plane does not serve the federation's kinds ({keys.API_VERSION})",
            "`argosy install` installs them",
        ) from None
    try:
        await client.get(NAMESPACES, keys.SYSTEM_NAMESPACE, into=Partial)
    except NotFound:
        raise Failure(
            f"this control plane has no namespace {keys.SYSTEM_NAMESPACE}",
            "`argosy install` makes it, and what belongs there",
        ) from None
    except Forbidden:
        pass  # named below, with whatever else is lacking
    lacking = []
    for manifest in rights.manifests([], []):
        lacking += await missing(client, manifest.get("rules", ()), manifest["metadata"].get("namespace", ""))
    if lacking:
        more = f" and {len(lacking) - _TOLD} more" if len(lacking) > _TOLD else ""
        raise Failure(
            f"the controllers' user may not {', '.join(lacking[:_TOLD])}{more}",
            f"run them as the service account {keys.SYSTEM_NAMESPACE}/{rights.CONTROLLERS}, which `argosy install` makes, or "
            "grant their user the same with `argosy install --controllers-user NAME`",
        )
