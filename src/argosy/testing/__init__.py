"""Stock Kubernetes clusters from their own binaries, on loopback, for tests: ours and those of Argosy's users.

    async with clusters(2) as (east, west):
        await east.client().create(...)

Not a simulation (that is `argosy.sim`) and not for production: data is deleted at the end.
`argosy.testing.pytest_plugin` has the fixture; docs/testing.md says how to get the binaries.
"""

from argosy.testing.binaries import OLDEST, VERSION, Binaries, BinariesMissing, find
from argosy.testing.cluster import Cluster, StartError, clusters
from argosy.testing.options import API_SERVER, CONTROL_PLANE, Options

__all__ = [
    "API_SERVER",
    "CONTROL_PLANE",
    "OLDEST",
    "VERSION",
    "Binaries",
    "BinariesMissing",
    "Cluster",
    "Options",
    "StartError",
    "clusters",
    "find",
]
