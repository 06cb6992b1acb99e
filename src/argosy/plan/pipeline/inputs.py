"""The inputs of one pass of the pipeline: the object, the policies it names, the fleet. The caller reads them."""

import datetime
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property

import msgspec

from argosy.api.policies import OverridePolicy, PropagationPolicy
from argosy.api.profiles import SchedulingProfile
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.fleet.snapshot import Fleet
from argosy.kube.regexp import Pattern
from argosy.plan.claims.record import InForce, in_force_now
from argosy.plan.fields import Json
from argosy.plan.followers.graph import Following
from argosy.plan.pipeline.policy import PolicyRef
from argosy.plan.plugins import IN_TREE
from argosy.plan.scheduling.arriving import Arrival
from argosy.plan.scheduling.framework import Profile
from argosy.plan.scheduling.profile import Registry
from argosy.plan.scheduling.triggers import Unwritten
from argosy.plan.scheduling.unit import AutoMigrationInfo

__all__ = ["PassInputs"]


def _unchanged(profile: Profile) -> Profile:
    return profile


class PassInputs(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    #: Never an object that is being deleted.
    source: Json
    type_config: FederatedTypeConfig
    #: All members: a cluster missing here counts as gone.
    fleet: Fleet
    #: Failed clusters that the object may not leave yet: the fleet has them as if they had not failed.
    bound: Collection[str] = ()
    #: The source's federated object as stored.
    existing: Json | None = None

    #: The policy whose selectors claim the source. It counts unless the source names one.
    selected: PolicyRef | None = None
    #: The policy in force, and the override policies the source names, if they exist.
    policy: PropagationPolicy | None = None
    override_policies: Mapping[PolicyRef, OverridePolicy] = {}
    #: The profile the policy names, and the plugins it can name.
    profile: SchedulingProfile | None = None
    registry: Registry = IN_TREE

    #: The last decision, if it is not on record.
    unwritten: Unwritten | None = None

    #: Whether something besides the source asks for propagation: a leader object, or the setting to federate all.
    wanted: bool = False
    #: Whom the object follows, and where that places it. None if nobody knows: then what is stored stays.
    following: Following | None = None
    #: Where those are that it followed, as stored.
    leaders_at: Callable[[], Collection[str]] = tuple
    #: What the object needs and does not exist, each as `Kind namespace/name`. None if nobody knows.
    missing: Sequence[str] | None = None
    #: Namespaces that are not propagated without a policy.
    exclude_namespaces: Pattern | None = None

    #: The time by which custom migrations expire. None: none expires.
    now: datetime.datetime | None = None
    #: What members were seen to be able to run. None keeps what is stored.
    migration: AutoMigrationInfo | None = None
    #: Available replicas in each reachable member, for failback.
    available: Mapping[str, int] | None = None
    #: Members have begun to serve its kind only now.
    arrival: Arrival | None = None
    #: How much of a divided Job's work each copy has done, where that is known.
    done: Mapping[str, int] = {}
    #: Whether requests for Katalyst's resources count.
    katalyst: bool = False
    #: May wrap the plugins, to measure them.
    instrument: Callable[[Profile], Profile] = _unchanged

    @cached_property
    def in_force(self) -> InForce:
        """The propagation policy that counts, whether or not it exists."""
        return in_force_now(self.source, self.existing, self.selected)

    @property
    def namespace(self) -> str:
        """The source's namespace; empty if it has none."""
        return self.source["metadata"].get("namespace") or ""

    @property
    def replicas_path(self) -> str:
        """The dotted path of the source's replicas; empty if its type has none."""
        return self.type_config.spec.path_definition.replicas_spec
