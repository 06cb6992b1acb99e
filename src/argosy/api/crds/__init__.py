"""The CustomResourceDefinitions of the federation's 14 kinds, written as code so that twin scopes share one schema."""

from typing import Any

from argosy.api.crds import clusters, configuration, federated, policies

__all__ = ["manifests"]


def manifests() -> list[dict[str, Any]]:
    """All CustomResourceDefinitions, ready to be sent to an API server."""
    return [*clusters.manifests(), *policies.manifests(), *federated.manifests(), *configuration.manifests()]
