"""The brake counts what there is: its counts, kept by changes alone, agree with the placements that are stored."""

from collections import Counter
from collections.abc import Iterator

from tests.harness.inside import Inside
from tests.world.judge.objects import listed, placed
from tests.world.world import World

__all__ = ["miscounted"]

_TABLES = ("core.kubeadmiral.io/federatedobjects", "core.kubeadmiral.io/clusterfederatedobjects")


def miscounted(world: World) -> Iterator[str]:
    for each in world.controllers:
        if each.process is None or each.manager is None or not each.manager.ready.is_set():
            continue
        there: Counter[str] = Counter()
        for table in _TABLES:
            for name, federated in listed(world.plane.disk, table).items():
                namespace = name.rpartition("/")[0]
                if each.shard.owns(namespace):
                    there.update(set(placed(federated)))
        counted = {name: number for name, number in Inside(each.manager).copies.items() if number}
        if counted != there:
            yield f"{each.name} counts {counted} copies, and there are {dict(there)}"
