"""One member cluster as the scheduler knows it: the few facts that decisions depend on, parsed once.

Built from a FederatedCluster when it changes. Everything else in that object (credentials, messages, probe times) is left out,
so that a heartbeat that changes none of these facts yields an equal Member and causes no decision.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from argosy.api.clusters import FederatedCluster, ResourceList
from argosy.fleet.columns import LARGEST
from argosy.fleet.declared import POWER_OF_REFERENCE, declared_power, declared_price
from argosy.kube import quantity
from argosy.kube.taints import TaintKey

__all__ = ["ApiKey", "Member", "digest", "member_of", "readable", "units"]

ApiKey = tuple[str, str, str]
"""Group, version, kind."""

CPU = "cpu"
#: A resource name is a prefix, a slash and a name.
_LONGEST_NAME = 253 + 1 + 63


class Member(msgspec.Struct, frozen=True):
    """Facts about one cluster. cpu counts in thousandths of a core, every other resource in whole units.

    The digests stand for labels, taints and served APIs; equal facts have equal digests whatever their order.
    """

    name: str
    joined: bool
    ready: bool
    terminating: bool
    labels: dict[str, str]
    taints: tuple[TaintKey, ...]
    apis: frozenset[ApiKey]
    allocatable: dict[str, int]
    available: dict[str, int]
    labels_digest: int
    taints_digest: int
    apis_digest: int
    #: The power of one core, in thousandths of a core of the fleet's reference.
    power: int = POWER_OF_REFERENCE
    #: The price of a core-hour, in billionths; None if it is not declared.
    price: int | None = None
    #: Whether its available amounts have not been updated for long. Set by the control plane, not reported by the cluster.
    stale: bool = False


def member_of(cluster: FederatedCluster, previous: Member | None = None) -> Member:
    """The facts of a cluster. Sets and digests of `previous` are reused if unchanged: API lists are long."""
    taints = tuple((taint.key, taint.value, taint.effect) for taint in cluster.spec.taints)
    apis = frozenset((api.group, api.version, api.kind) for api in cluster.status.api_resource_types)
    labels = cluster.metadata.labels or {}
    if previous is not None and previous.apis == apis:
        apis, apis_digest = previous.apis, previous.apis_digest
    else:
        apis_digest = digest(sorted(apis))
    resources = cluster.status.resources
    return Member(
        name=cluster.name,
        joined=cluster.joined,
        ready=cluster.ready,
        terminating=cluster.terminating,
        labels=labels,
        taints=taints,
        apis=apis,
        allocatable=_amounts(resources.allocatable),
        available=_amounts(resources.available),
        labels_digest=digest(sorted(labels.items())),
        taints_digest=digest(sorted(taints)),
        apis_digest=apis_digest,
        power=declared_power(cluster.metadata),
        price=declared_price(cluster.metadata),
        stale=previous is not None and previous.stale,
    )


def digest(value: Any) -> int:
    """64 bits that stand for a value of lists, strings and numbers."""
    return int.from_bytes(blake2b(msgspec.json.encode(value), digest_size=8).digest(), "big")


def units(resource: str, amount: str | int | float) -> int:
    """A quantity in the unit of its column. Raises QuantityError."""
    parsed = quantity.parse(amount)
    return parsed.milli() if resource == CPU else parsed.value()


def readable(resources: Mapping[str, str | int | float], least: int = 0) -> dict[str, int]:
    """The readable quantities; an invalid or negative one counts as not reported."""
    amounts = {}
    for name, amount in resources.items():
        try:
            found = units(name, amount)
        except quantity.QuantityError:
            continue
        if found >= least and len(name) <= _LONGEST_NAME:
            amounts[name] = min(found, LARGEST)
    return amounts


def _amounts(resources: ResourceList) -> dict[str, int]:
    """Available amounts may be negative."""
    return readable(resources, -LARGEST)
