"""The controllers' own identity in `argosy up`, and what the control plane is installed with for it.

That control plane is the controllers' alone, so they may read and mark objects of every kind there: a new type config is to
need nothing else.
"""

from argosy.api import rights
from argosy.control.install.installer import Installation, install
from argosy.kube.client import Client

__all__ = ["CONTROLLERS", "INSTALLATION", "grant"]

CONTROLLERS = "system:argosy:controllers"
INSTALLATION = Installation(controllers=(rights.user(CONTROLLERS),), any_source=True)


async def grant(client: Client) -> None:
    """Install with these rights, or add them to an installation that was made without."""
    await install(client, chosen=INSTALLATION)
