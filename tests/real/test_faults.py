"""One minute of the storm (`make faults`), half of it on each ground whose members are stock Kubernetes."""

from pathlib import Path

import pytest

from argosy.testing.pytest_plugin import Kubernetes
from tests.faults.storm.report import shown
from tests.faults.storm.run import storm
from tests.faults.storm.stage import MEMBER, stage
from tests.real.controllers import PLANE

SEED = 1
SECONDS = 30.0


@pytest.mark.parametrize("ground", ["b", "c"])
async def test_everything_is_in_its_place_after_a_storm(ground: str, kubernetes: Kubernetes, tmp_path: Path) -> None:
    members = await kubernetes(3, MEMBER)
    plane = (await kubernetes(1, PLANE))[0] if ground == "c" else None
    async with stage(plane, members, tmp_path) as made:
        outcome = await storm(made, SEED, SECONDS)
    print(shown(outcome))
    assert not outcome.violations, shown(outcome)
    if ground == "c":
        assert outcome.terms > 1, "nobody took the sleeping leader's lease"
