"""What one pass of the pipeline is given: the object, the policies it names, the fleet. Reading them is the caller's part."""

import datetime
import re
from collections.abc import Callable, Mapping

import msgspec

from argosy.api.policies import OverridePolicy, PropagationPolicy
from argosy.api.profiles import SchedulingProfile
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.fleet.snapshot import Fleet
from argosy.plan.fields import Json
from argosy.plan.pipeline.policy import PolicyRef
from argosy.plan.plugins import IN_TREE
from argosy.plan.scheduling.framework import Profile
from argosy.plan.scheduling.profile import Registry
from argosy.plan.scheduling.unit import AutoMigrationInfo

__all__ = ["PassInputs"]


def _unchanged(profile: Profile) -> Profile:
    return profile


class PassInputs(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    #: Not one that is being deleted.
    source: Json
    type_config: FederatedTypeConfig
    #: All members: a cluster that is missing here counts as gone.
    fleet: Fleet
    #: The source's federated object as it is stored.
    existing: Json | None = None

    #: Those the source names, as far as they exist.
    policy: PropagationPolicy | None = None
    override_policies: Mapping[PolicyRef, OverridePolicy] = {}
    #: The one the policy names, and the plugins it may choose from.
    profile: SchedulingProfile | None = None
    registry: Registry = IN_TREE

    #: Whether something besides the source asks for its propagation: an object that leads it, or the choice to federate all.
    wanted: bool = False
    #: Namespaces that are not propagated by themselves.
    exclude_namespaces: re.Pattern[str] | None = None

    #: What the end of a custom migration is measured by. None: none ends.
    now: datetime.datetime | None = None
    #: What members were seen to be able to run. None leaves what is stored.
    migration: AutoMigrationInfo | None = None
    #: Available replicas in each member that can be seen, for those that come back to one.
    available: Mapping[str, int] | None = None
    #: Whether what pods ask for of Katalyst's resources counts.
    katalyst: bool = False
    #: May wrap the plugins that run, to measure them.
    instrument: Callable[[Profile], Profile] = _unchanged

    @property
    def namespace(self) -> str:
        """The source's; empty where it has none."""
        return self.source["metadata"].get("namespace") or ""

    @property
    def replicas_path(self) -> str:
        """Where the source says how many replicas it wants, dotted; empty where its type does not."""
        return self.type_config.spec.path_definition.replicas_spec
