"""Warnings on Argosy's own API server: of what is accepted and has no effect (`api.admission.caveats`, which an admission policy
states on others), and, since the stored objects are at hand, of what cannot be done as they are (`plan.status.shortfalls`).

Nothing is ever refused here. Where no federation was installed nothing is said.
"""

from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from argosy.api import keys, resources
from argosy.api.admission import caveats
from argosy.api.policies import PropagationPolicy
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.cli.local.bound import BoundControllers
from argosy.kube.resource import Resource
from argosy.plan.claims.claim import Selectors, ref_of
from argosy.plan.claims.claim import complaints as selecting_complaints
from argosy.plan.claims.exclusions import subject_of
from argosy.plan.claims.record import InForce, as_claimed
from argosy.plan.metadata import annotations_of, labels_of
from argosy.plan.pipeline.policy import PolicyRef, override_refs, propagation_ref
from argosy.plan.status.shortfalls import Named, obstacles, shortfalls
from argosy.server.admission.chain import AdmissionPlugin
from argosy.server.auth.identity import Authorizer
from argosy.server.http.request import Call
from argosy.server.registry import Object
from argosy.server.watchcache.entry import Entry
from argosy.server.watchcache.store import Store, StoreEvent

__all__ = ["Caveats"]

T = TypeVar("T")
_TYPE_CONFIGS: Final = f"{keys.GROUP}/{resources.FEDERATED_TYPE_CONFIGS.plural}"
_POLICIES: Final = frozenset({resources.PROPAGATION_POLICIES.plural, resources.CLUSTER_PROPAGATION_POLICIES.plural})
_POLICY_TABLES: Final = sorted(f"{keys.GROUP}/{plural}" for plural in _POLICIES)
_OURS: Final = (keys.PREFIX, keys.ARGOSY_PREFIX)


class Caveats(AdmissionPlugin):
    def __init__(self, store: Store, authorizer: Authorizer):
        self._store = store
        self._controllers = BoundControllers(store)
        #: The policies that select, followed from the first write on.
        self._selectors: Selectors | None = None
        #: The type configs by group and kind, and the entries they were read from.
        self._types: tuple[list[Entry], dict[tuple[str, str], FederatedTypeConfig]] = ([], {})

    def settle(self, call: Call, new: Object, old: Object | None) -> None:
        kind, user = call.kind, call.user
        if call.subresource:
            return
        selected = self._selected(call, new)
        if kind.group not in caveats.GROUPS and selected is None and not _is_ours(new):
            return
        controllers = self._controllers.subjects()
        if not controllers or not caveats.is_warned(user.name, user.groups, controllers):
            return
        resource = Resource(kind.group, kind.version, kind.plural, kind.kind, kind.namespaced)
        obj = {**new, "apiVersion": resource.api_version, "kind": kind.kind}
        claimed = as_claimed(obj, InForce(selected, selected=True)) if selected is not None else obj
        call.warnings.extend(caveats.told(resource, claimed))
        if kind.group != keys.GROUP:
            call.warnings.extend(self._of_source(resource, obj, selected))
        elif kind.plural in _POLICIES and (policy := _typed(obj, PropagationPolicy)) is not None:
            call.warnings.extend(self._of_policy(policy))

    def _of_policy(self, policy: PropagationPolicy) -> list[str]:
        from argosy.plan.scheduling import complaints  # needs numpy, and a server alone may never need it

        found = [*complaints.of_policy(policy), *selecting_complaints(policy, self._types_by_kind())]
        if not self._has_profile(policy):
            name = policy.spec.scheduling_profile
            found.append(f"SchedulingProfile {name} does not exist: nothing is placed by this policy until it does")
        return found

    def _selected(self, call: Call, new: Object) -> PolicyRef | None:
        """The policy whose selectors claim an object that names none."""
        if call.kind.group == keys.GROUP or propagation_ref(labels_of(new), call.namespace) is not None:
            return None
        if self._selectors is None:
            self._selectors = Selectors()
            self._store.follow(partial(_follow, self._selectors), *_POLICY_TABLES)
        if not len(self._selectors):
            return None
        namespace = self._store.get(f"core/namespaces/{call.namespace}") if call.namespace else None
        labels = {call.namespace: labels_of(namespace.decode())} if namespace is not None else {}
        claim = self._selectors.claim(subject_of(call.kind.group, call.kind.kind, new["metadata"]), labels)
        return claim.ref if claim is not None else None

    def _of_source(self, resource: Resource, source: Object, selected: PolicyRef | None) -> list[str]:
        config = self._type_config(resource)
        labels, namespace = labels_of(source), source["metadata"].get("namespace") or ""
        ref = selected or propagation_ref(labels, namespace)
        policy = None
        if ref is not None:
            kind = resources.PROPAGATION_POLICIES if ref.namespace else resources.CLUSTER_PROPAGATION_POLICIES
            policy = self._get(kind, ref.key, PropagationPolicy)
        named = Named(
            policy=policy,
            selected=selected,
            overrides=frozenset(
                each for each in override_refs(labels, namespace) if self._has_overrides(each.key, bool(each.namespace))
            ),
            profile=policy is None or self._has_profile(policy),
        )
        found = obstacles(source, config, named)
        if config is None or found or annotations_of(source).get(keys.NO_FEDERATED_RESOURCE):
            return found
        found += shortfalls(source, config, policy)
        return found + _complaints(source, policy, config) if policy is not None else found

    def _type_config(self, resource: Resource) -> FederatedTypeConfig | None:
        return self._types_by_kind().get((resource.group, resource.kind))

    def _types_by_kind(self) -> dict[tuple[str, str], FederatedTypeConfig]:
        entries = list(self._store.table(_TYPE_CONFIGS).entries.values())
        if entries != self._types[0]:
            found = [config for entry in entries if (config := _typed(entry.decode(), FederatedTypeConfig)) is not None]
            self._types = (entries, {(config.resource.group, config.kind): config for config in found})
        return self._types[1]

    def _has_profile(self, policy: PropagationPolicy) -> bool:
        name = policy.spec.scheduling_profile
        return not name or self._store.get(_key(resources.SCHEDULING_PROFILES, name)) is not None

    def _has_overrides(self, key: str, namespaced: bool) -> bool:
        kind = resources.OVERRIDE_POLICIES if namespaced else resources.CLUSTER_OVERRIDE_POLICIES
        return self._store.get(_key(kind, key)) is not None

    def _get(self, kind: Resource, key: str, type: type[T]) -> T | None:
        entry = self._store.get(_key(kind, key))
        return None if entry is None else _typed(entry.decode(), type)


def _follow(selectors: Selectors, event: StoreEvent) -> None:
    policy = _typed(event.entry.decode(), PropagationPolicy)
    if policy is None:
        return
    if event.deleted:
        selectors.drop(ref_of(policy))
    else:
        selectors.put(policy)


def _complaints(source: Object, policy: PropagationPolicy, config: FederatedTypeConfig) -> list[str]:
    from argosy.plan.scheduling import complaints

    return complaints.of_object(source, policy, config)


def _key(kind: Resource, key: str) -> str:
    return f"{kind.group}/{kind.plural}/{key}"


def _typed(obj: dict[str, Any], type: type[T]) -> T | None:
    try:
        return msgspec.convert(obj, type)
    except msgspec.ValidationError:
        return None


def _is_ours(obj: Object) -> bool:
    """Whether an object of another API says anything to the federation."""
    return any(key.startswith(_OURS) for key in (*labels_of(obj), *annotations_of(obj)))
