"""What a policy selected stays where it is when none does any more: it is emptied only if its owner lets it go.

`expected` says which policy is to have an object, by the rules as a user would apply them to the policies that scripts write.
"""

from collections.abc import Callable

import orjson

from argosy.api import keys
from argosy.server.storage.base import Change
from tests.world.disk import Disk
from tests.world.judge.line import Line
from tests.world.judge.objects import Object, body_of, found, placed
from tests.world.places import PLANE
from tests.world.script import SELECTING

__all__ = ["Claims", "claimed", "expected"]

_FEDERATED = "core.kubeadmiral.io/federatedobjects/"
_POLICIES = "core.kubeadmiral.io/propagationpolicies"
_CLUSTERS = "core.kubeadmiral.io/federatedclusters"


def expected(plane: Disk, source: Object) -> str:
    """The policy that is to have a Deployment without a label; empty if none is."""
    metadata = source["metadata"]
    if (metadata.get("annotations") or {}).get(keys.NO_SELECTION) == "true":
        return ""
    best: tuple[int, bool, int] | None = None
    for number, name in enumerate(SELECTING):
        policy = found(plane, f"{_POLICIES}/{metadata['namespace']}/{name}")
        for each in ((policy or {}).get("spec") or {}).get("resourceSelectors") or ():
            if policy is not None and each.get("name", metadata["name"]) == metadata["name"]:
                rank = (policy["spec"].get("priority", 0), "name" in each, -number)
                best = rank if best is None else max(best, rank)
    return SELECTING[-best[2]] if best is not None else ""


def claimed(federated: Object) -> str:
    """The policy that has selected an object; empty if none has."""
    metadata = federated["metadata"]
    if keys.SELECTED_BY not in (metadata.get("annotations") or {}):
        return ""
    return str((metadata.get("labels") or {}).get(keys.PROPAGATION_POLICY_LABEL))


class Claims(Line):
    def __init__(self, broken: Callable[[str], None], plane: Disk):
        super().__init__(broken)
        self._plane = plane

    def stored(self, server: str, change: Change) -> None:
        if server != PLANE or not change.key.startswith(_FEDERATED) or change.deleted or change.previous is None:
            return
        before, after = body_of(change.previous), orjson.loads(change.value)
        assert before is not None
        template = after["spec"]["template"]
        if template["kind"] != "Deployment" or not claimed(before):
            return
        metadata = template["metadata"]
        source = found(self._plane, f"apps/deployments/{metadata['namespace']}/{metadata['name']}")
        if source is None or "deletionTimestamp" in source["metadata"]:
            return
        # Its owner may have let it go and taken that back: then the template tells what was read.
        let_go = keys.NO_SELECTION in str(source["metadata"].get("annotations")) or keys.NO_SELECTION in str(metadata)
        gone = [each for each in placed(before) if found(self._plane, f"{_CLUSTERS}/{each}") is not None]
        if gone and not placed(after) and not let_go:
            self.broken(f"{change.key} was selected and placed in {gone}, and is placed nowhere now")
        if not claimed(after) and not let_go:
            self.broken(f"{change.key} was selected by {claimed(before)}, and nobody says why it is not any more")
