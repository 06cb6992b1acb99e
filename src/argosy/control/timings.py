"""Timings: every delay, period and threshold of the loops in one value, so that tests can run them faster.

Defaults are KubeAdmiral's if it has one; the reason for a shorter one is beside it.
"""

import msgspec

from argosy.kube.backoff import Backoff

__all__ = ["Timings"]


class Timings(msgspec.Struct, frozen=True):
    """All in seconds."""

    #: How often a joined member is probed. KubeAdmiral: 30 s; ours is one small request most of the time.
    health_period: float = 10.0
    #: How long a probe waits for the member's answer.
    probe_timeout: float = 5.0
    #: How soon after the first failure, of a probe or of anything else, a member is probed again: one lost packet is no silence.
    health_recheck: float = 1.0
    #: How long a changed health must last before it is published. KubeAdmiral: 100 s.
    health_threshold: float = 30.0
    #: How often the APIs and resources of a member are read and stored, with the time it was heard of.
    report_period: float = 30.0
    #: Watches on a member that fail for so long mean silence, even if it answers probes.
    watch_lost: float = 5.0
    #: How long a member must not have served a kind before that is believed.
    apis_kept: float = 100.0
    #: How long a confirmation of a member's identity is valid; the next request after that asks again.
    identity_period: float = 3.0
    #: How soon to check again after another cluster answered in its place.
    identity_recheck: float = 5.0
    #: A cluster that could not join for so long is given up until its object is created anew.
    join_timeout: float = 600.0
    #: How long a cluster created before its secret waits until that counts as a failure to join.
    secret_grace: float = 5.0
    #: The requested lifetime of a service account token. A longer one survives longer downtimes of the control plane.
    token_lifetime: float = 7 * 24 * 3600.0
    #: The percentage of its lifetime after which the token is renewed.
    token_renewal: int = 80
    #: Members' accounts keep their rights to a kind for so long after it is no longer federated: the type config may be being
    #: replaced, and an account cannot regain rights it gave up.
    rights_kept: float = 100.0
    #: Sources keep our finalizer for so long after their kind is no longer federated, for the same reason.
    types_kept: float = 100.0
    #: How long a member's node and pod caches may take to sync before its capacity counts as unknown.
    capacity_sync: float = 5.0
    #: The figures of a member without events of nodes and pods for so long are stale: only its size counts.
    capacity_stale: float = 300.0

    #: A shard publishes its reservations at most this often,
    reservations_shown: float = 1.0
    #: ... and others count them for at most this long after the last update.
    reservations_kept: float = 60.0
    #: Changes of how many objects name a policy are counted in its status after so long.
    policy_counts: float = 10.0
    #: How often a shard reads the leases of the others.
    shards_watched: float = 5.0
    #: A shard whose lease nobody has held or renewed for so long is missing. Longer than a lease lasts, and than a restart takes.
    shard_missing: float = 30.0

    #: A member object that was changed by others is reconciled after this.
    member_event: float = 5.0
    #: Between two sweeps over all objects after changes of clusters. KubeAdmiral waits 20 s and more; our sweeps are cheap, and
    #: health is debounced before.
    sweep: float = 0.1
    #: A new object of a kind that came to the fleet only now waits so long for other members to serve it, too.
    kind_patience: float = 5.0
    #: A member that should serve a kind soon, because it got the definition or another member serves it, is asked again this
    #: often for as long.
    kind_recheck: float = 1.0
    #: Objects for which a remote plugin did not answer completely are tried again after this.
    plugin_retry: float = 10.0
    #: How long a webhook may take for all requests of one question, unless one of them may take longer.
    webhook_question: float = 60.0
    #: How long a plugin of a Python package may take for one question before its process is killed,
    plugin_answer: float = 5.0
    #: ... and how long its package may take to be loaded.
    plugin_load: float = 30.0
    #: Objects that found no cluster are tried again at most this often while members gain room.
    room_retry: float = 1.0

    #: What an object needs may come after it: that something is missing is told after so long.
    missing_grace: float = 5.0
    #: A follower of many waits so long after a change of one of them: a burst of changes costs few writes.
    leaders_quiet: float = 0.1
    #: How long the deletion of an object waits for its followers to note it.
    followers_patience: float = 5.0
    #: What would be taken away waits until nothing more of it came for so long,
    brake_settle: float = 5.0
    #: ... but no longer than this after the first.
    brake_longest: float = 30.0
    #: A cluster that is emptied because of itself waits so long for a second one: then it is no order, but perhaps a loop.
    brake_order: float = 1.0
    #: What was taken away within this time counts as well.
    brake_window: float = 600.0
    #: An object whose policy label vanished keeps its copies for so long in any case.
    brake_unnamed: float = 60.0
    #: The deletion of a source waits until no other was deleted for so long, where there are many sources.
    brake_deletions: float = 2.0
    #: Deletions within this time count as one.
    brake_minute: float = 60.0

    #: A cluster that was not ready for so long has failed: its workloads are started elsewhere. Off by default.
    failover_after: float | None = None
    #: A cluster that has been ready for so long again has recovered: workloads may return.
    failback_after: float = 300.0
    #: Of what runs in failed clusters, a share may be started elsewhere within so long (`plan.failover.pacing`).
    failover_window: float = 60.0
    #: Pods that members could not schedule are checked when a workload's pods have been changing for so long.
    migration_quiet: float = 10.0

    #: Statuses are merged once an object's members have been quiet for so long. KubeAdmiral waits 3 s; our merge is cheap.
    status_quiet: float = 0.1
    #: ... but no later than this after the first change, however busy its members are,
    status_longest: float = 0.5
    #: ... or this, while objects wait to be propagated (propagation goes before status) or the object's replicas are starting
    #: and stopping (the next change is near; that all are ready is reported at once).
    status_longest_busy: float = 2.0
    #: An event about why pods are not ready is not repeated for the same object, cluster and reason within this.
    cause_repeat: float = 3600.0
    #: A pod that runs and is not ready is told of after so long: until then it may be starting.
    unready_grace: float = 30.0
    #: A workload that lacks pods for so long, and has no condition for it: its member is asked for events about them,
    refusal_delay: float = 5.0
    #: ... again after this,
    refusal_recheck: float = 30.0
    #: ... and events up to this age count. Kubernetes' controllers try again at least this often.
    refusal_age: float = 1200.0
    #: A round of member writes is reported without the members that have not answered by then; they are reported later.
    #: It is also how long a silent member can block a worker.
    round_patience: float = 2.0
    #: One write to one member.
    member_write: float = 30.0
    #: The longest wait after a member's 429: a longer one would leave its health unknown.
    member_hold: float = 60.0
    #: A member with requests in progress that has answered nothing for so long is sent no more until it does.
    member_silence: float = 5.0
    #: Deletion checks again whether the copies are gone; events usually come first.
    deletion_recheck: float = 5.0
    cascade_recheck: float = 10.0
    #: How long one pass of a cascading deletion may take; it goes on at the next recheck.
    cascade_pass: float = 30.0
    conflict: float = 0.5
    #: How long an API server may work on a request: a delete of a source may have begun before it had our finalizer.
    longest_request: float = 60.0
    #: Back-off of a key that fails, and of a watch on a member.
    retry_first: float = 0.5
    retry_most: float = 60.0
    #: A watch that is silent for so long counts as dead.
    watch_liveness: float = 60.0
    #: Consecutive failures that open a member's circuit breaker, and for how long it stays open at first.
    breaker_failures: int = 5
    breaker_open: float = 1.0

    @property
    def unready_after(self) -> float:
        """A member that dies is shown as not ready within this: a probe, its time-out, the threshold, and the probe after it."""
        return self.health_period + self.health_threshold + 2 * self.probe_timeout

    @property
    def watch_backoff(self) -> Backoff:
        """Between retries to list or watch in a member."""
        return Backoff(base=self.retry_first, cap=min(self.retry_most, 30.0), jitter=0.4)

    def scaled(self, factor: float) -> "Timings":
        """The same with every duration multiplied (counts stay)."""
        durations = {
            name: value * factor for name, value in msgspec.structs.asdict(self).items() if type(value) is float
        }
        return msgspec.structs.replace(self, **durations)
