"""A member that answers nobody is said to be silent, or unready, in time; and one that answers is not called silent for long."""

from collections.abc import Callable, Collection

from argosy.api import keys
from argosy.api.shards import lease_name
from argosy.kube.transport import Event, Request
from argosy.server.storage.base import Change
from tests.world.disk import Disk
from tests.world.judge.line import Line
from tests.world.judge.objects import found
from tests.world.network import Link, Network
from tests.world.places import PLANE, Controllers

__all__ = ["Heard"]

_CLUSTERS, _LEASES = "core.kubeadmiral.io/federatedclusters/", f"coordination.k8s.io/leases/{keys.SYSTEM_NAMESPACE}/"
#: Seconds in which it is told by a leader whom nothing else troubles: two probes in vain, and what stops it for a moment.
_TOLD = 35.0
#: ... and in which it is taken back.
_TAKEN_BACK = 35.0
#: A leader that does not renew its lease for so long is troubled, and so is one that is not answered by the control plane.
_RENEWED, _ANSWERED = 12.0, 3.0
#: After trouble with the control plane the next probe may be so many seconds away: the back-off of its key.
_BACKOFF = 60.0
_PROBE = "/healthz"
#: A member that does not answer one for so long does not answer them all.
_PROBED = 12.0
_WELL = Link()


class Heard(Line):
    """Judges only the process that holds the lease of those who probe."""

    def __init__(
        self,
        broken: Callable[[str], None],
        time: Callable[[], float],
        plane: Disk,
        members: Collection[str],
        controllers: Collection[Controllers],
        network: Network,
    ):
        super().__init__(broken)
        self._time = time
        self._plane = plane
        self._members = members
        self._network = network
        (self._lease,) = {_LEASES + lease_name(each.shard) for each in controllers if each.shard.owns_cluster_scoped}
        self._leader, self._renewed = "", 0.0
        #: Until when it was troubled, by anything but members.
        self._troubled = 0.0
        #: Requests without an answer so far, of the leader to the control plane, and when they were sent.
        self._open: list[tuple[float, Request]] = []
        #: When each member was heard of last, and since when it answers all probes, and did so last.
        self._heard: dict[str, float] = {}
        self._answers: dict[str, tuple[float, float]] = {}
        #: Since when each is said to be silent.
        self._silent: dict[str, float] = {}
        #: Uids of clusters, and since when they are known.
        self._known: dict[str, float] = {}

    def sent(self, client: str, server: str, request: Request) -> None:
        if (
            client == self._leader
            and server == PLANE
            and ("/federatedclusters" in request.path or "/leases" in request.path)
        ):
            self._open.append((self._time(), request))

    def heard(self, client: str, server: str, request: Request, answer: object) -> None:
        if client != self._leader:
            return
        if server == PLANE:
            self._open = [each for each in self._open if each[1] is not request]
        else:
            self._heard[server] = self._time()
            if request.path == _PROBE:
                self._answers[server] = (self._answers_since(server), self._time())

    def told(self, client: str, server: str, request: Request, events: list[Event]) -> None:
        if client == self._leader:
            self._heard[server] = self._time()

    def stored(self, server: str, change: Change) -> None:
        lease = found(self._plane, self._lease) if server == PLANE and change.key == self._lease else None
        if lease is None:
            return
        now, leader = self._time(), (lease["spec"].get("holderIdentity") or "").partition("/")[0]
        if leader != self._leader or now - self._renewed > _RENEWED:
            self._leader, self._troubled, self._open = leader, now, []
            self._answers.clear()
        self._renewed = now
        late = [each for each in self._open if now - each[0] > _ANSWERED]
        if late:
            self._open = [each for each in self._open if each not in late]
            self._troubled = now + _BACKOFF
        for name in self._members:
            self._look(name, now)

    def _answers_since(self, name: str) -> float:
        now = self._time()
        since, last = self._answers.get(name, (now, now))
        return since if now - last < _PROBED else now

    def _look(self, name: str, now: float) -> None:
        there, back = self._network.link(self._leader, name), self._network.link(name, self._leader)
        if there.refused:
            self._heard[name] = now  # an error is an answer
        if there != _WELL or back != _WELL or name in self._network.muted or self._network.impostors[name]:
            self._answers.pop(name, None)
        cluster = found(self._plane, _CLUSTERS + name)
        if cluster is None or cluster["metadata"].get("deletionTimestamp"):
            return
        since = max(self._troubled, self._known.setdefault(cluster["metadata"]["uid"], now))
        states = {each["type"]: each["status"] for each in (cluster.get("status") or {}).get("conditions") or ()}
        unheard = now - max(since, self._heard.get(name, 0.0))
        fine = states.get("Joined") == states.get("Ready") == "True" and states.get("Responding") != "False"
        if fine and unheard > _TOLD:
            self.broken(f"{name} has not answered for {unheard:.1f} s, and is said to be well")
            self._heard[name] = now
        if states.get("Responding") != "False":
            self._silent.pop(name, None)
            return
        answers = now - max(since, self._answers_since(name), self._silent.setdefault(name, now))
        if answers > _TAKEN_BACK:
            self.broken(f"{name} has answered for {answers:.1f} s, and is said to be silent")
            self._answers.pop(name)
