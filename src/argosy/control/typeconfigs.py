"""Type configs: makes one for a kind of the user's own when a policy claims objects of it, from what its definition says.

A policy claims them by naming the kind, by selecting one, or because an object names the policy. Objects of kinds without a type
config are watched for that: those with a label that names a policy, and all of them while some policy selects without naming
kinds.

What is made has the label `argosy.io/derived`. It follows its definition unless somebody changed it, and goes when nobody
claims such objects and none is federated. Where objects were federated before, none is made: somebody took their type config
away. Keys are definitions. Only the owner of what has no namespace runs this.
"""

import logging
from collections.abc import Iterable, Iterator
from typing import Any, Final

from argosy.api import keys, resources
from argosy.api.conditions import EventReason
from argosy.api.policies import PropagationPolicy
from argosy.api.selectors import named_kinds, selects_any_kind
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.control.caches.catalog import TypeChange
from argosy.control.caches.informers import DEFINITIONS, Caches
from argosy.control.caches.views import FederatedView
from argosy.control.context import ControllerContext
from argosy.control.permissions import HINT, missing
from argosy.control.scheduling.claims import Claims
from argosy.control.telemetry.events import ObjectRecorder
from argosy.control.timings import Timings
from argosy.control.wake import Loop, Signal, Wake, itself
from argosy.kube.client import Client, Patch
from argosy.kube.errors import AlreadyExists, NotFound
from argosy.kube.informer import Change, Informer
from argosy.kube.objects import Metadata, OwnerReference, Partial
from argosy.kube.queue import Result, WorkQueue
from argosy.kube.references import reference_of
from argosy.kube.resource import Resource
from argosy.kube.supervise import Supervisor
from argosy.plan import derivedtypes
from argosy.plan.derivedtypes import Definition

__all__ = ["TypeConfigs"]

log = logging.getLogger(__name__)

_LABELS: Final = (keys.PROPAGATION_POLICY_LABEL, keys.CLUSTER_PROPAGATION_POLICY_LABEL)
MADE: Final = "a policy claims objects of this kind: made the FederatedTypeConfig {name} from the definition"
ALONE: Final = "; members that lack the definition get none of them: propagate it, too, by a cluster policy"
LEFT: Final = (
    "it says otherwise where the replicas are than the FederatedTypeConfig {name} made from it, which stays as it is, since its"
    " objects would be divided otherwise: set pathDefinition.replicasSpec there if they are to be"
)
_LOOK_AGAIN: Final = 30.0


class TypeConfigs(Loop[str]):
    name = "type configs"
    workers = 1

    def __init__(
        self,
        client: Client,
        queue: WorkQueue[str],
        caches: Caches,
        claims: Claims,
        recorder: ObjectRecorder,
        tasks: Supervisor,
        timings: Timings,
        *,
        alone: bool,
        makes: bool,
    ):
        """`alone`: there are no other shards. With `makes` off, nothing new is made."""
        self.queue = queue
        self._client = client
        self._caches = caches
        self._claims = claims
        self._recorder = recorder
        self._tasks = tasks
        self._timings = timings
        self._alone = alone
        self._makes = makes
        #: Objects of kinds without a type config, by definition and label selector.
        self._watched: dict[str, dict[str, Informer[Partial]]] = {}
        self._claimed: Signal[str] = Signal("objects of kinds without a type config")

    @classmethod
    def of(cls, shared: ControllerContext) -> "TypeConfigs":
        options = shared.options
        return cls(
            shared.client,
            shared.queue(),
            shared.caches,
            shared.claims,
            shared.recorder,
            shared.tasks,
            shared.timings,
            alone=options.shard.is_whole,
            makes=options.make_type_configs,
        )

    # What wakes a definition.

    def wakes(self) -> Iterable[Wake[Any, str]]:
        caches = self._caches
        yield Wake(caches.definitions, self._of_definition, "it came or changed", 1)
        for policies in caches.policies.values():
            yield Wake(policies, self._of_policy, "a policy selects other kinds", 1)
        why = "objects are selected otherwise, as by labels of their namespace"
        yield Wake(self._claims.changes, self._of_claims, why, 1)
        yield Wake(caches.catalog.changes, self._of_type, "its type config came, changed or went", 1)
        yield Wake(self._claimed, itself, "an object of it is claimed")
        why = "the last of its objects may be gone"
        yield Wake(caches.federated_changes, self._of_federated, why, 1, self._timings.types_kept)

    def _of_definition(self, change: Change[Definition]) -> list[str]:
        return [change.key]

    def _of_policy(self, change: Change[PropagationPolicy]) -> Iterator[str]:
        before, after = (
            (each.spec.resource_selectors if each is not None else ()) for each in (change.old, change.new)
        )
        if before != after:
            yield from [each.metadata.name for each in self._caches.definitions.values()]

    def _of_claims(self, _: str) -> list[str]:
        return list(self._watched)

    def _of_type(self, types: TypeChange) -> Iterator[str]:
        for config in types:
            if config is not None and config.resource.group:
                yield f"{config.resource.plural}.{config.resource.group}"

    def _of_federated(self, change: Change[FederatedView]) -> Iterator[str]:
        if change.new is not None or change.old is None:
            return
        for owner in change.old.metadata.owner_references:
            config = self._caches.catalog.of_kind(owner.api_version, owner.kind) if owner.controller else None
            if config is not None and derivedtypes.is_derived(config):
                yield config.name
            elif config is None:
                yield from (each.metadata.name for each in self._caches.definitions.values() if _is_of(each, owner))

    # One definition.

    async def reconcile(self, key: str) -> Result | None:
        if not self._caches.definitions.has_synced:
            return Result(requeue_after=_LOOK_AGAIN)  # one that cannot be read is not absent
        definition = self._caches.definitions.get(key)
        config = self._config(key, definition)
        may = definition is not None and derivedtypes.may_derive(definition)
        if config is not None:
            self._ignore(key)
            if derivedtypes.is_derived(config):
                await self._keep(config, definition if may else None)
            return None
        if definition is None or not may or not self._makes or self._is_federated(definition):
            self._ignore(key)
            return None
        if self._is_being_replaced(definition):
            return Result(requeue_after=self._timings.types_kept)
        if self._is_named(definition) or self._is_claimed_by_object(definition):
            await self._make(definition)
            return None
        return await self._watch(definition)

    def _config(self, key: str, definition: Definition | None) -> FederatedTypeConfig | None:
        catalog = self._caches.catalog
        if definition is not None:
            return catalog.of_group(definition.spec.group, definition.spec.names.kind)
        return catalog.get(key)

    async def _make(self, definition: Definition) -> None:
        manifest = derivedtypes.derived(definition)
        if manifest is None:
            return
        try:
            await self._client.create(resources.FEDERATED_TYPE_CONFIGS, manifest)
        except AlreadyExists:
            return  # one of that name that nobody can read, or for another kind
        text = MADE.format(name=manifest["metadata"]["name"])
        if not self._is_propagated(definition):
            text += ALONE
        self._recorder.on(reference_of(DEFINITIONS, definition.metadata), "Normal", EventReason.TYPE_CONFIG_MADE, text)

    def _is_propagated(self, definition: Definition) -> bool:
        names = (f"{definition.metadata.name}-{DEFINITIONS.plural}.{DEFINITIONS.group}",)
        return any(self._caches.federated[False].get(name) is not None for name in names)

    async def _keep(self, config: FederatedTypeConfig, definition: Definition | None) -> None:
        """Removed if nobody needs it; else it follows its definition. One that somebody changed is theirs."""
        if not derivedtypes.is_unchanged(config):
            return
        if self._alone and not self._is_needed(config, definition):
            try:
                await self._client.delete(resources.FEDERATED_TYPE_CONFIGS, config.name, uid=config.metadata.uid)
            except NotFound:
                return
            return
        wanted = derivedtypes.derived(definition) if definition is not None else None
        if definition is None or wanted is None:
            return
        digest = wanted["metadata"]["annotations"][keys.DERIVED_SPEC]
        # Objects keep their names only with the same source type: a version that goes is somebody's decision.
        same_version = wanted["spec"]["sourceType"]["version"] == config.resource.version
        if not same_version or digest == config.metadata.annotations[keys.DERIVED_SPEC]:
            return
        paths = wanted["spec"].get("pathDefinition", {})
        if paths.get("replicasSpec", "") != config.spec.path_definition.replicas_spec and self._is_federated(
            definition
        ):
            await self._leave(config, definition, digest)
            return
        await self._patch(config, {"op": "replace", "path": "/spec", "value": wanted["spec"]}, _noting(digest))

    async def _leave(self, config: FederatedTypeConfig, definition: Definition, digest: str) -> None:
        """What runs whole would be divided, or the other way round: that is for somebody to decide. Told once."""
        if config.metadata.annotations.get(keys.DERIVED_LEFT) == digest:
            return
        await self._patch(config, _noting(digest, keys.DERIVED_LEFT))
        text = LEFT.format(name=config.name)
        reference = reference_of(DEFINITIONS, definition.metadata)
        self._recorder.on(reference, "Warning", EventReason.TYPE_CONFIG_LEFT, text)

    async def _patch(self, config: FederatedTypeConfig, *changes: dict[str, Any]) -> None:
        seen = {"op": "replace", "path": "/metadata/resourceVersion", "value": config.metadata.resource_version}
        await self._client.patch(resources.FEDERATED_TYPE_CONFIGS, config.name, [seen, *changes], kind=Patch.JSON)

    def _is_needed(self, config: FederatedTypeConfig, definition: Definition | None) -> bool:
        if definition is not None and self._is_named(definition):
            return True
        label = (config.api_version, config.kind)
        if any(label in view.metadata.labels.items() for view in self._caches.federated[config.namespaced].values()):
            return True
        if definition is None:
            return False
        if not self._caches.sources_synced(config.name):
            return True  # nobody knows
        sources = self._caches.sources[config.name].values()
        return any(self._wants(definition, source.metadata) for source in sources)

    def _is_federated(self, definition: Definition) -> bool:
        """Whether objects of a kind without a type config are: whoever took it away wanted that, and they might be divided
        otherwise with another one."""
        views = self._caches.federated[definition.spec.scope == keys.NAMESPACED].values()
        return any(_is_of(definition, owner) for view in views for owner in view.metadata.owner_references)

    def _is_being_replaced(self, definition: Definition) -> bool:
        kind, lately = _kind(definition), self._caches.catalog.lately(self._timings.types_kept)
        return any((each.resource.group, each.kind) == kind and not derivedtypes.is_derived(each) for each in lately)

    # Who claims objects of it.

    def _is_named(self, definition: Definition) -> bool:
        """A policy of a namespace selects nothing without one."""
        kind, namespaced = _kind(definition), definition.spec.scope == keys.NAMESPACED
        policies = (each for each in self._policies() if namespaced or not each.metadata.namespace)
        return any(kind in named_kinds(policy.spec) for policy in policies)

    def _policies(self) -> Iterator[PropagationPolicy]:
        for policies in self._caches.policies.values():
            yield from policies.values()

    def _is_claimed_by_object(self, definition: Definition) -> bool:
        watched = self._watched.get(definition.metadata.name, {})
        return any(
            self._wants(definition, each.metadata) for informer in watched.values() for each in informer.values()
        )

    def _wants(self, definition: Definition, metadata: Metadata) -> bool:
        return self._claims.wants(definition.spec.group, definition.spec.names.kind, metadata)

    # Objects of kinds without a type config.

    async def _watch(self, definition: Definition) -> Result | None:
        name, version = definition.metadata.name, definition.version
        if version is None:
            return None
        spec = definition.spec
        resource = Resource(spec.group, version.name, spec.names.plural, spec.names.kind, spec.scope == keys.NAMESPACED)
        selectors = [""] if any(selects_any_kind(policy.spec) for policy in self._policies()) else list(_LABELS)
        watched = self._watched.get(name, {})
        if list(watched) == selectors and all(each.resource == resource for each in watched.values()):
            return None
        self._ignore(name)
        lacking = await missing(self._client, [_rule(resource)])
        if lacking:
            log.info(
                "whether %s are to be federated cannot be seen: the controllers may not %s: %s", name, lacking[0], HINT
            )
            return Result(requeue_after=_LOOK_AGAIN)
        for selector in selectors:
            informer: Informer[Partial] = Informer(
                self._client,
                resource,
                Partial,
                label_selector=selector,
                liveness=self._timings.watch_liveness,
                on_change=lambda change: self._seen(name, change),
            )
            self._watched.setdefault(name, {})[selector] = informer
            self._tasks.start(_task(name, selector), informer.run)
        return None

    def _seen(self, name: str, change: Change[Partial]) -> None:
        definition = self._caches.definitions.get(name)
        if change.new is not None and definition is not None and self._wants(definition, change.new.metadata):
            self._claimed.tell(name)

    def _ignore(self, name: str) -> None:
        for selector in self._watched.pop(name, {}):
            self._tasks.cancel(_task(name, selector))


def _noting(digest: str, key: str = keys.DERIVED_SPEC) -> dict[str, Any]:
    return {"op": "add", "path": f"/metadata/annotations/{key.replace('/', '~1')}", "value": digest}


def _kind(definition: Definition) -> tuple[str, str]:
    return definition.spec.group, definition.spec.names.kind


def _is_of(definition: Definition, owner: OwnerReference) -> bool:
    """Whether a federated object's source is of the kind that is defined."""
    return bool(owner.controller) and (owner.api_version.rpartition("/")[0], owner.kind) == _kind(definition)


def _task(name: str, selector: str) -> str:
    return f"watch {name} for policies{f' ({selector})' if selector else ''}"


def _rule(resource: Resource) -> dict[str, Any]:
    return {"apiGroups": [resource.group], "resources": [resource.plural], "verbs": ["list", "watch"]}
