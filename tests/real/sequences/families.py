"""Families: sequences about owners and what becomes of their dependents, circles of owners among them.

Garbage is collected in each server's own time, so after every step both are asked until all of the family look alike and stay
so; what a later step answers is then comparable again.
"""

import random
from typing import Any

import msgspec

from tests.real.sequences.steps import Step, namespaces

__all__ = ["View", "family", "released", "stuck", "view"]

MERGE = "application/merge-patch+json"
_HOLD = "example.com/hold"
_RBAC = "rbac.authorization.k8s.io/v1"


class _Member(msgspec.Struct, frozen=True):
    api_version: str
    kind: str
    collection: str
    name: str

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.name}"

    def reference(self, *, blocks: bool) -> dict[str, Any]:
        named = {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": f"<uid {self.path}>"}
        return {**named, "blockOwnerDeletion": blocks}


class View(msgspec.Struct, frozen=True):
    """What is compared of one object: whether it goes, what keeps it, and whom it names as its owners."""

    uid: str
    deleting: bool
    finalizers: tuple[str, ...]
    owners: tuple[tuple[str, bool], ...]

    @property
    def waits(self) -> bool:
        return self.deleting and "foregroundDeletion" in self.finalizers


def view(obj: dict[str, Any]) -> View:
    meta = obj["metadata"]
    owners = [(one["uid"], bool(one.get("blockOwnerDeletion"))) for one in meta.get("ownerReferences") or ()]
    return View(
        meta["uid"], "deletionTimestamp" in meta, tuple(sorted(meta.get("finalizers") or ())), tuple(sorted(owners))
    )


def stuck(views: dict[str, View]) -> set[str]:
    """The objects that wait for themselves: each for the next of a circle, all in the foreground.

    Kubernetes leaves them so for good; it breaks a circle only where it deletes one of it itself.
    """
    waiting = {one.uid: (name, one) for name, one in views.items() if one.waits}
    circles = set()
    for uid, (name, _) in waiting.items():
        seen: set[str] = set()
        stack = [uid]
        while stack:
            owner = stack.pop()
            for dependent, (_, one) in waiting.items():
                if (owner, True) in one.owners and dependent not in seen:
                    seen.add(dependent)
                    stack.append(dependent)
        if uid in seen:
            circles.add(name)
    return circles


def released(views: dict[str, View]) -> set[str]:
    """Dependents that some owner which is held while it goes does not wait for.

    They go before it or after it: kube-controller-manager decides that by whether it sees the owner's finalizer in time.
    """
    going = {one.uid for one in views.values() if one.deleting and set(one.finalizers) - {"foregroundDeletion"}}
    return {path for path, one in views.items() if any(uid in going and not blocks for uid, blocks in one.owners)}


def family(seed: int, steps: int) -> list[Step]:
    return _Family(random.Random(seed)).steps(steps)


class _Family:
    def __init__(self, rng: random.Random):
        self._rng = rng
        here, there = namespaces()
        self._members = [self._member(f"m{number}", here) for number in range(rng.randint(1, 6))]
        if rng.random() < 0.1:
            self._members.append(self._member("away", there))
        self._paths = [member.path for member in self._members]

    def _member(self, name: str, namespace: str) -> _Member:
        core = f"/api/v1/namespaces/{namespace}"
        return self._rng.choice((
            _Member("v1", "ConfigMap", f"{core}/configmaps", name),
            _Member("v1", "ConfigMap", f"{core}/configmaps", name),
            _Member("v1", "Secret", f"{core}/secrets", name),
            _Member(_RBAC, "Role", f"/apis/{_RBAC}/namespaces/{namespace}/roles", name),
            _Member(_RBAC, "ClusterRole", f"/apis/{_RBAC}/clusterroles", f"{name}-{{id}}"),
        ))  # fmt: skip

    def steps(self, count: int) -> list[Step]:
        members = self._rng.sample(self._members, len(self._members))
        made = [self._create(member, members[:number]) for number, member in enumerate(members)]
        if self._rng.random() < 0.8:
            made += self._circle()
        kinds = [(self._delete, 5), (self._hold, 2), (self._own, 2), (self._again, 1)]
        choices, weights = zip(*kinds, strict=True)
        rest = [self._rng.choices(choices, weights)[0]() for _ in range(max(1, count - len(made)))]
        return [msgspec.structs.replace(step, family=self._paths) for step in (*made, *rest)]

    def _create(self, member: _Member, owners: list[_Member]) -> Step:
        chosen = self._rng.sample(owners, self._rng.randint(0, min(2, len(owners))))
        meta = {"name": member.name, "labels": {"seq": "{id}"}, "ownerReferences": self._references(chosen)}
        if self._rng.random() < 0.1:
            meta["finalizers"] = [_HOLD]
        body = {"apiVersion": member.api_version, "kind": member.kind, "metadata": meta}
        return Step(method="POST", path=member.collection, body=body)

    def _references(self, owners: list[_Member]) -> list[dict[str, Any]]:
        return [owner.reference(blocks=self._rng.random() < 0.8) for owner in owners]

    def _circle(self) -> list[Step]:
        """Each of some is owned by the one before it, and the first by the last; often all of them block."""
        some = self._rng.sample(self._members, self._rng.randint(1, len(self._members)))
        blocks = self._rng.random() < 0.7
        return [
            self._patch(member, {"ownerReferences": [owner.reference(blocks=blocks or self._rng.random() < 0.5)]})
            for owner, member in zip([some[-1], *some[:-1]], some, strict=True)
        ]

    def _patch(self, member: _Member, metadata: dict[str, Any]) -> Step:
        return Step(method="PATCH", path=member.path, type=MERGE, body={"metadata": metadata})

    def _delete(self) -> Step:
        policy = self._rng.choices(("Foreground", "Background", "Orphan"), (3, 1, 1))[0]
        return Step(method="DELETE", path=self._rng.choice(self._paths), body={"propagationPolicy": policy})

    def _hold(self) -> Step:
        return self._patch(
            self._rng.choice(self._members), {"finalizers": [_HOLD] if self._rng.random() < 0.4 else None}
        )

    def _own(self) -> Step:
        owners = self._rng.sample(self._members, self._rng.randint(0, min(2, len(self._members))))
        return self._patch(self._rng.choice(self._members), {"ownerReferences": self._references(owners)})

    def _again(self) -> Step:
        return self._create(self._rng.choice(self._members), self._members)
