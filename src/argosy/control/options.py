"""Options: the operator's choices for the controllers, as one value."""

import msgspec

from argosy.api.shards import WHOLE, Shard
from argosy.kube.answers import DEFAULT, AnswerLimits
from argosy.kube.endpoints import EndpointRules
from argosy.plan.brake.limits import Limits
from argosy.plan.failover.pacing import Pacing

__all__ = ["Options"]


class Options(msgspec.Struct, frozen=True):
    #: Federate every object of a federated type, as KubeAdmiral does, not only those with a policy.
    federate_all: bool = False
    #: Make type configs for kinds without one that policies claim.
    make_type_configs: bool = True
    #: A regular expression: namespaces with these names are not propagated.
    exclude_namespaces: str = ""
    workers: int = 32
    member_qps: float = 500.0
    member_burst: int = 1000
    #: How much of a member's answer is read.
    answers: AnswerLimits = DEFAULT
    #: Count the resources that Katalyst reclaims in members.
    katalyst: bool = False
    #: Our part of the objects.
    shard: Shard = WHOLE
    #: Allowed endpoints for members and webhooks.
    endpoints: EndpointRules = EndpointRules()
    #: How much may be taken away at once.
    brake: Limits = Limits()
    #: How much of what runs in failed clusters is started elsewhere at once.
    failover: Pacing = Pacing()
