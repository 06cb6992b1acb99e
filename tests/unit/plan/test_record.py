"""The stored record of a decision: complete, short, and never a reason to fall over."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.fleet.snapshot import Fleet
from argosy.plan.explain.packing import PackedError, Packing, Unpacker
from argosy.plan.explain.record import Account, Inputs, RecordError, account_of, decode, encode, names_then, record_of
from argosy.plan.scheduling.schedule import schedule
from tests.unit.plan.any_worlds import worlds
from tests.unit.plan.scheduling import cluster, fleet, taint, unit

INPUTS = Inputs("default/web", 3, "fast", 2, 7)


def told(decision) -> Account:
    return account_of(decode(encode(record_of(decision, INPUTS))), decision.fleet.names)


@given(worlds())
@settings(max_examples=150, deadline=None)
def test_the_stored_record_replays_the_decision(world):
    wanted, members = world
    decision = schedule(wanted, Fleet.of(members))
    account = told(decision)
    assert account == account_of(record_of(decision, INPUTS), decision.fleet.names)
    assert account.placements == decision.placements
    assert {name: (r.plugin, r.reason) for r in account.refused for name in r.clusters} == decision.rejected
    assert {name: sum(scores.values()) for name, scores in account.scores.items()} == decision.scores
    assert account.selected == decision.selected
    assert account.overflow == decision.overflow
    assert (account.message, account.unschedulable, account.sticky, account.shortfall) == (
        decision.message,
        decision.unschedulable,
        decision.sticky,
        decision.shortfall,
    )
    assert encode(record_of(schedule(wanted, Fleet.of(reversed(members))), INPUTS)) == encode(
        record_of(decision, INPUTS)
    )


def large_fleet(count: int) -> Fleet:
    random = np.random.default_rng(5)
    members = []
    for number in range(count):
        cpu, memory = int(random.integers(50, 4000)), int(random.integers(200, 16000))
        members.append(
            cluster(
                f"cluster-{number:04}",
                ready=random.random() > 0.04,
                taints=[taint("maintenance")] if random.random() < 0.08 else [],
                labels={"zone": f"z{random.integers(0, 9)}"},
                resources={
                    "allocatable": {"cpu": str(cpu), "memory": f"{memory}Gi"},
                    "available": {
                        "cpu": str(int(cpu * random.random())),
                        "memory": f"{int(memory * random.random())}Gi",
                    },
                },
            )
        )
    return Fleet.of(members)


def test_a_record_over_500_clusters_fits_2_kilobytes():
    members = large_fleet(500)
    first = schedule(unit(2000), members)
    decision = schedule(unit(2300, current=first.placements), members)
    text = encode(record_of(decision, INPUTS))
    assert len(decision.rejected) > 20
    assert len(text) <= 2048
    assert told(decision).placements == decision.placements


def test_names_are_found_again_after_clusters_joined():
    members = large_fleet(80)
    record = decode(encode(record_of(schedule(unit(50), members), INPUTS)))
    assert record.names == ()
    seen = members.hashes.fingerprint
    assert names_then(record, members) == members.names
    grown = members.with_cluster(cluster("cluster-0000b")).with_cluster(cluster("a"))
    assert names_then(record, grown, seen) == members.names
    shrunk = members.without_cluster("cluster-0007")
    assert names_then(record, shrunk, seen) is None
    assert account_of(record, None).refused[0].count > 0


def test_a_small_fleet_is_named_in_the_record():
    record = decode(encode(record_of(schedule(unit(5), fleet("a", "b", "c")), INPUTS)))
    assert names_then(record, fleet("z")) == ("a", "b", "c")


def test_many_and_long_reasons_do_not_make_a_long_record():
    members = fleet(*(cluster(f"c{number:03}", taints=[taint(f"k{number}", value="v" * 300)]) for number in range(200)))
    text = encode(record_of(schedule(unit(5), members), INPUTS))
    assert len(text) < 8000
    account = account_of(decode(text), members.names)
    assert sum(refusal.count for refusal in account.refused) == 200


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"clusters":1}', "nonsense"])
def test_what_is_no_record_is_refused(text):
    with pytest.raises(RecordError):
        decode(text)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_damaged_record_is_refused_or_read_but_never_falls_over(data):
    text = encode(record_of(schedule(unit(5, max_clusters=2), fleet("a", "b", "c")), INPUTS))
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:at] + data.draw(st.text(max_size=3)) + text[at + data.draw(st.integers(0, 4)) :]
    try:
        record = decode(damaged)
    except RecordError:
        return
    account_of(record, ("a", "b", "c"))


def test_a_record_that_counts_too_many_clusters_is_refused():
    text = encode(record_of(schedule(unit(5), fleet("a")), INPUTS))
    stored = msgspec.json.decode(text)
    for clusters in (10**9, -1):
        with pytest.raises(RecordError):
            decode(msgspec.json.encode({**stored, "clusters": clusters}).decode())


numbers = st.one_of(st.integers(0, 3), st.integers(-300, 300), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(st.lists(numbers, max_size=40), max_size=5))
def test_columns_come_back_as_they_were(columns):
    unpacker = Unpacker(Packing().add(*(np.array(column, dtype=np.int64) for column in columns)).text())
    assert [unpacker.take(len(column)).tolist() for column in columns] == columns
    with pytest.raises(PackedError):
        unpacker.take(1)
