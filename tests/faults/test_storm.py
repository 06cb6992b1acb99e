"""The storm's own judgement, on made-up evidence: what must not happen is told, and what explains itself is not."""

from datetime import UTC, datetime
from typing import Any

from argosy.kube.client import Client
from tests.faults.storm.judge import Held, Judge
from tests.faults.storm.plan import Kind, plan
from tests.faults.storm.stage import FEDERATION
from tests.faults.storm.tenants import App, Journal, Moment, Placement
from tests.faults.storm.witness import Term, Wanted, Witness
from tests.real.controllers import Write

BOTH, ONE = frozenset({"m1", "m2"}), frozenset({"m1"})


class Logged:
    """A cluster as far as its log goes."""

    def __init__(self, *audit: dict[str, Any]):
        self.audit = list(audit)


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(1_000_000 + seconds, UTC)


def deleted(seconds: float, name: str = "t1-1", user: str = FEDERATION, code: int = 200) -> dict[str, Any]:
    return {
        "verb": "delete",
        "user": {"username": user},
        "userAgent": "argosy",
        "requestURI": f"/apis/apps/v1/namespaces/storm/deployments/{name}",
        "requestReceivedTimestamp": at(seconds).isoformat(),
        "responseStatus": {"code": code},
        "objectRef": {"resource": "deployments", "namespace": "storm", "name": name},
    }


def judge(client: Client | None = None, faults: tuple[Held, ...] = (), **wanted: list[tuple[float, Any]]) -> Judge:
    witness = Witness(client)  # type: ignore[arg-type]
    for name, states in wanted.items():
        key = f"deployments/{name.replace('_', '-')}"
        witness.wanted[key] = [Wanted(at(since).timestamp(), clusters) for since, clusters in states]
    return Judge(Journal(), witness, list(faults))


def held(target: str, kind: Kind, begun: float, ended: float) -> Held:
    return Held(target, kind, at(begun).timestamp(), at(ended).timestamp())


def test_a_delete_is_explained_by_its_source_or_its_placement_at_that_time() -> None:
    case = judge(t1_1=[(0, BOTH), (50, ONE), (100, None)])
    case.deletions({"m2": Logged(deleted(51)), "m1": Logged(deleted(101))})  # type: ignore[dict-item]
    assert dict(case.deletes) == {"left the placement": 1, "source deleted": 1}
    assert not case.violations


def test_a_delete_that_nothing_explains_is_told() -> None:
    case = judge(t1_1=[(0, BOTH)])
    case.deletions({"m2": Logged(deleted(51), deleted(52, user="admin"), deleted(53, code=409))})  # type: ignore[dict-item]
    assert len(case.violations) == 1
    assert "deployments/t1-1 in m2" in case.violations[0]


def test_a_delete_long_after_the_cluster_came_back_is_told_unless_it_was_held_up() -> None:
    states = [(0.0, BOTH), (50.0, ONE), (55.0, BOTH)]
    late = judge(t1_1=states)
    late.deletions({"m2": Logged(deleted(80))})  # type: ignore[dict-item]
    assert late.violations
    silent = judge(faults=(held("m2", Kind.SILENCE, 52, 79),), t1_1=states)
    silent.deletions({"m2": Logged(deleted(80))})  # type: ignore[dict-item]
    assert dict(silent.deletes) == {"left the placement (and came back meanwhile)": 1}


def test_a_delete_while_the_witness_saw_nothing_is_counted_apart() -> None:
    case = judge(faults=(held("plane", Kind.KILL, 48, 52),), t1_1=[(0, BOTH)])
    case.deletions({"m2": Logged(deleted(47))})  # type: ignore[dict-item]
    assert dict(case.deletes) == {"not witnessed, the control plane being away": 1}
    case.deletions({"m2": Logged(deleted(70))})  # type: ignore[dict-item]
    assert len(case.violations) == 1


def test_a_delete_of_what_nobody_saw_is_explained_by_the_tenant_who_deleted_it() -> None:
    case = judge()
    journal = case._journal
    made, gone = (at(seconds).timestamp() for seconds in (40, 50))
    journal.history["deployments/t1-1"] = [
        Moment(made, made + 0.1, App(1, "i"), True),
        Moment(gone, gone + 0.1, None, True),
    ]
    case.deletions({"m2": Logged(deleted(45), deleted(51))})  # type: ignore[dict-item]
    assert dict(case.deletes) == {"NOT NEEDED": 1, "source deleted (by its tenant's word)": 1}


def test_a_placement_that_shrinks_by_itself_is_told() -> None:
    for asked, wrong in ((("m1",), 0), (("m1", "m2"), 1)):
        case = judge(t1_1=[(0, BOTH), (50, ONE)])
        when = at(40).timestamp()
        case._journal.history["propagationpolicies/t1"] = [Moment(when, when, Placement("Duplicate", asked), True)]
        case._journal.history["deployments/t1-1"] = [Moment(when, when, App(3, "nginx"), True)]
        case.placements()
        assert len(case.violations) == wrong


def test_a_write_after_the_next_leader_began_is_told_unless_it_was_held_up_or_caught() -> None:
    def case(*faults: Held) -> Judge:
        made = judge(faults=faults)
        made._witness.terms = [Term(at(0), "first"), Term(at(50), "second"), Term(at(90), "first")]
        return made

    def written(identity: str, seconds: float, code: int = 200) -> Write:
        return Write("m1", identity, "0/1", "update", "deployments", "storm", "t1-1", "", code, at(seconds))

    fine = case()
    fine.leaders([written("first", 49), written("second", 51), written("first", 91)])
    assert not fine.violations
    awake = case()
    awake.leaders([written("first", 51)])
    assert len(awake.violations) == 1
    early = case()
    early.leaders([written("second", 49)])
    assert len(early.violations) == 1
    paused = case(held("m1", Kind.PAUSE, 45, 60))
    paused.leaders([written("first", 60.1)])
    assert not paused.violations
    assert paused.writes["writes that arrived late"] == 1
    caught = case()
    caught.leaders([written("first", 51, 409)])
    assert not caught.violations
    assert caught.writes["writes that a stop caught"] == 1
    caught.leaders([written("first", 51, 409), written("first", 51.1, 409)])
    assert len(caught.violations) == 1, "only one can have been on its way"


def test_a_seed_repeats_a_plan_and_every_plan_on_stock_ground_has_a_leader_outslept() -> None:
    for seed in range(20):
        faults = plan(seed, "c", ["m1", "m2"], 30.0)
        assert faults == plan(seed, "c", ["m1", "m2"], 30.0)
        assert Kind.OUTSLEEP in {fault.kind for fault in faults}
        assert "plane" in {fault.target for fault in faults}
    assert plan(1, "c", ["m1"], 60.0) != plan(2, "c", ["m1"], 60.0)
