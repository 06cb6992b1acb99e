"""authentication.k8s.io/v1: token and identity reviews. Never stored; `server.auth` answers them."""

from argosy.kube.schema import Schemas
from argosy.server.kinds.shared.builtin import VirtualStrategy, declare
from argosy.server.registry import Kind

__all__ = ["kinds", "token_request"]

CREATE = frozenset({"create"})


def kinds(schemas: Schemas) -> list[Kind]:
    return [
        declare(
            schemas,
            VirtualStrategy,
            "authentication.k8s.io",
            "v1",
            kind,
            f"{kind.lower()}s",
            namespaced=False,
            verbs=CREATE,
        )
        for kind in ("SelfSubjectReview", "TokenReview")
    ]


def token_request(schemas: Schemas) -> Kind:
    """The body of serviceaccounts/token; not a resource of its own."""
    return declare(schemas, VirtualStrategy, "authentication.k8s.io", "v1", "TokenRequest", "tokenrequests")
