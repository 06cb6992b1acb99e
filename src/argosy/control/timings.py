"""Timings: every delay, period and threshold of the loops in one value, so that tests can run them faster.

Defaults are KubeAdmiral's where it has one; where ours is shorter the reason is beside it.
"""

import msgspec

from argosy.kube.backoff import Backoff

__all__ = ["Timings"]


class Timings(msgspec.Struct, frozen=True):
    """All in seconds."""

    #: How often a joined member's health, API resources and capacity are looked at.
    health_period: float = 30.0
    #: How long a changed health must last before it is published.
    health_threshold: float = 100.0
    #: How long it is good for that a member was seen to be the one that joined; asked again with the next request after that.
    identity_period: float = 3.0
    #: ... and how soon to look again after another cluster answered in its place.
    identity_recheck: float = 5.0
    #: A member that could not be joined for so long is given up until its object is made anew.
    join_timeout: float = 600.0
    #: A cluster made before its secret waits so long before that counts as a failure to join.
    secret_grace: float = 5.0
    #: For how long a service account token is asked. Longer survives longer absences of the control plane.
    token_lifetime: float = 7 * 24 * 3600.0
    #: After how much of its life, in per cent, the next one is asked for.
    token_renewal: int = 80
    #: Members' accounts keep their rights to a kind for so long after it is federated no more: it may be a type config that is
    #: being replaced, and an account cannot take back what it gave up.
    rights_kept: float = 100.0
    #: How long a member's node and pod caches may take before its capacity counts as unknown.
    capacity_sync: float = 5.0
    #: A member whose nodes and pods were not heard of for so long has stale figures: it is weighed by its size alone.
    capacity_stale: float = 300.0

    #: What a shard has reserved is shown to the others no more often than this,
    reservations_shown: float = 1.0
    #: ... and counts no longer than this after it was heard of last.
    reservations_kept: float = 60.0

    #: A member object that changed behind our back is looked at after this.
    member_event: float = 5.0
    #: Between two looks through all objects for what changed clusters mean to them. KubeAdmiral waits 20 s and more; our
    #: looks are cheap, and health is debounced before.
    sweep: float = 0.1
    #: Objects about which a plugin elsewhere could not tell all it was asked are tried again after this.
    plugin_retry: float = 10.0
    #: How long a webhook may take over all requests of one question, unless one of them may take longer.
    webhook_question: float = 60.0
    #: How long a plugin of a Python package may take over one question before its process is ended,
    plugin_answer: float = 5.0
    #: ... and how long its package may take to be loaded.
    plugin_load: float = 30.0
    #: Objects that found no cluster are tried again no more often than this while members gain room.
    room_retry: float = 1.0

    #: A cluster that has not been ready for so long has failed: its workloads are started elsewhere. Off unless asked for.
    failover_after: float | None = None
    #: ... and one that has been ready for so long again has recovered: workloads may come back.
    failback_after: float = 300.0
    #: What members could not place is looked at when a workload's pods have been changing for so long.
    migration_quiet: float = 10.0

    #: Statuses are merged once an object's members have been quiet for so long. KubeAdmiral waits 3 s; our merge is cheap.
    status_quiet: float = 0.1
    #: ... but no later than this after the first change, however busy its members are,
    status_longest: float = 0.5
    #: ... or this, while objects wait to be carried to members (propagation goes before status) or the object's replicas are
    #: starting and stopping there (the next change is near, and that all are ready is told at once).
    status_longest_busy: float = 2.0
    #: A round of member writes is reported without the members that have not answered by then; they are reported later.
    #: It is also how long a silent member can hold up a worker.
    round_patience: float = 2.0
    #: One write to one member.
    member_write: float = 30.0
    #: A member that asks to be left alone (429) is, but for no longer than this: meanwhile nobody would know how it is.
    member_hold: float = 60.0
    #: A member with requests under way that has answered nothing for so long is sent no more until it does.
    member_silence: float = 5.0
    #: Deletion looks again whether the copies are gone; events usually come first.
    deletion_recheck: float = 5.0
    cascade_recheck: float = 10.0
    #: How long copies are taken out of a member that leaves before others have their turn; then it goes on at the next recheck.
    cascade_pass: float = 30.0
    conflict: float = 0.5
    #: How long an API server works on a request: one that deletes a source may have begun before the source had our finalizer.
    longest_request: float = 60.0
    #: Back-off of a key that fails, and of a watch on a member.
    retry_first: float = 0.5
    retry_most: float = 60.0
    #: Silence on a watch that counts as its death.
    watch_liveness: float = 60.0
    #: Consecutive failures to reach a member that open its circuit breaker, and for how long it stays open at first.
    breaker_failures: int = 5
    breaker_open: float = 1.0

    @property
    def watch_backoff(self) -> Backoff:
        """Between tries to list or watch something in a member."""
        return Backoff(base=self.retry_first, cap=min(self.retry_most, 30.0), jitter=0.4)

    def scaled(self, factor: float) -> "Timings":
        """The same with every duration multiplied (counts stay)."""
        durations = {
            name: value * factor for name, value in msgspec.structs.asdict(self).items() if type(value) is float
        }
        return msgspec.structs.replace(self, **durations)
