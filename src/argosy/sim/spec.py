"""What a simulated member consists of: its name and labels, and its nodes in pools of equal ones."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

__all__ = ["MemberSpec", "NodePool", "NodeSpec", "default_members"]

#: Node counts of the default members, in turn: unequal on purpose, as in real fleets.
_SIZES = (3, 5, 8, 4, 6, 10)
_REGIONS = ("eu-north", "eu-west", "us-east", "us-west", "ap-south")
_REGION_LABEL = "topology.kubernetes.io/region"
_ZONE_LABEL = "topology.kubernetes.io/zone"


class NodeSpec(msgspec.Struct, frozen=True):
    """One node; `index` is its number in the member, from which its addresses follow."""

    name: str
    index: int
    capacity: Mapping[str, str]
    labels: Mapping[str, str]
    taints: Sequence[Mapping[str, str]] = ()


class NodePool(msgspec.Struct, frozen=True):
    count: int
    cpu: str = "4"
    memory: str = "16Gi"
    pods: int = 110
    #: Extended resources, such as {"nvidia.com/gpu": "2"}.
    extended: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    taints: Sequence[Mapping[str, str]] = ()
    #: Distinguishes the nodes of several pools by name.
    name: str = "node"


class MemberSpec(msgspec.Struct, frozen=True):
    name: str
    pools: Sequence[NodePool] = (NodePool(3),)
    #: Given to every node, as clouds do with region and zone.
    labels: Mapping[str, str] = {}
    #: 0 takes a free port, the same one again after a restart with data.
    port: int = 0
    #: Seconds added to each way between clients and this member's API server; None: no link in between that could add any.
    latency: float | None = None

    def nodes(self) -> Iterator[NodeSpec]:
        index = 0
        for pool in self.pools:
            capacity = {"cpu": pool.cpu, "memory": pool.memory, "pods": str(pool.pods), **pool.extended}
            for number in range(pool.count):
                labels = {**self.labels, **pool.labels}
                yield NodeSpec(f"{self.name}-{pool.name}-{number}", index, capacity, labels, pool.taints)
                index += 1


def default_members(count: int, nodes: int | None = None) -> list[MemberSpec]:
    """member-1, member-2, …: spread over regions and zones, with unequal numbers of nodes unless `nodes` says how many."""
    return [_default_member(index, nodes or _SIZES[index % len(_SIZES)]) for index in range(count)]


def _default_member(index: int, nodes: int) -> MemberSpec:
    region = _REGIONS[index % len(_REGIONS)]
    zone = f"{region}-{'abc'[index // len(_REGIONS) % 3]}"
    return MemberSpec(
        name=f"member-{index + 1}",
        pools=(NodePool(nodes),),
        labels={_REGION_LABEL: region, _ZONE_LABEL: zone},
    )
