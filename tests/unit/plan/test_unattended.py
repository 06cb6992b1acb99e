"""Which shards nobody runs, by their leases alone."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.api.shards import Shard
from argosy.kube import timestamps
from argosy.plan.explain.unattended import unattended

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


def lease(name: str, ago: float, holder: str = "somebody", duration: int = 15) -> dict[str, Any]:
    renewed = timestamps.micro_timestamp(NOW - timedelta(seconds=ago))
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": duration}
    return {"metadata": {"name": f"argosy-controllers{name}"}, "spec": spec}


@pytest.mark.parametrize(
    ("leases", "expected"),
    [
        ([], []),
        ([lease("", 1)], []),
        ([lease("", 100)], ["0/1"]),
        ([lease("", 3, holder="", duration=1)], ["0/1"]),
        ([lease("", 60, duration=60)], []),
        ([lease("-0-of-2", 1), lease("-1-of-2", 2)], []),
        ([lease("-0-of-2", 1), lease("-1-of-2", 40)], ["1/2"]),
        # Never taken.
        ([lease("-1-of-3", 1)], ["0/3", "2/3"]),
        # What is left of another layout says nothing.
        ([lease("-0-of-2", 1), lease("-1-of-2", 1), lease("", 4000), lease("-2-of-3", 1, holder="")], []),
        ([lease("-0-of-2", 500), lease("-1-of-2", 400)], ["0/2", "1/2"]),
        # The reader's clock is two hours behind, or a minute ahead: the leases are compared with one another.
        ([lease("-0-of-2", -7200), lease("-1-of-2", -7201)], []),
        ([lease("-0-of-2", -7200), lease("-1-of-2", -7160)], ["1/2"]),
        ([lease("-0-of-2", 60), lease("-1-of-2", 61)], []),
        ([{"metadata": {"name": "argosy-controllers"}, "spec": {}}], []),
        ([lease("-of-somebody", 1000)], []),
    ],
)
def test_a_shard_runs_while_its_lease_is_renewed(leases: list[dict[str, Any]], expected: list[str]) -> None:
    assert [str(each.shard) for each in unattended(leases, NOW)] == expected


def test_it_is_told_since_when() -> None:
    (one,) = unattended([lease("-0-of-2", 1), lease("-1-of-2", 300)], NOW)
    assert one.text == (
        "shard 1/2 does not run: nobody holds the lease argosy-controllers-1-of-2 (renewed last at 2026-07-01T11:55:00Z),"
        " so nobody works on its objects"
    )
    (whole,) = unattended([lease("", 300)], NOW)
    assert whole.shard == Shard()
    assert whole.text.startswith(
        "the controllers do not run: nobody holds the lease argosy-controllers (renewed last at 2026"
    )
