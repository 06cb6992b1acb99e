"""Options: what an operator may choose for the controllers, as one value."""

import msgspec

from argosy.api.shards import WHOLE, Shard
from argosy.kube.answers import DEFAULT, AnswerLimits
from argosy.kube.endpoints import EndpointRules

__all__ = ["Options"]


class Options(msgspec.Struct, frozen=True):
    #: Federate every object of a configured type, as KubeAdmiral does, not only those something wants propagated.
    federate_all: bool = False
    #: A regular expression: namespaces of these names are not propagated.
    exclude_namespaces: str = ""
    workers: int = 32
    member_qps: float = 500.0
    member_burst: int = 1000
    #: How much of a member's answer is read.
    answers: AnswerLimits = DEFAULT
    #: Count what Katalyst reclaims in members that have it.
    katalyst: bool = False
    #: Which part of the objects is ours.
    shard: Shard = WHOLE
    #: Where members and webhooks may be.
    endpoints: EndpointRules = EndpointRules()
