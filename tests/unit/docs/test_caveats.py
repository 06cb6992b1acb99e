"""docs/caveats.md lists what is warned of, all of it and nothing else."""

import re
from pathlib import Path

from argosy.api.admission.caveats import TABLE, Caveat
from argosy.api.conditions import EventReason
from argosy.plan.pipeline.held import HeldReason

TEXT = (Path(__file__).parents[3] / "docs" / "caveats.md").read_text()


def row(caveat: Caveat) -> str:
    kinds = ", ".join(each.kind for each in caveat.of) if caveat.of is not None else "any object to be federated"
    return f"| {kinds} | {caveat.text} |"


def test_the_list_is_the_table():
    [listed] = re.findall(r"^\| object \| what is told \|\n\|---\|---\|\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    assert listed.splitlines() == [row(caveat) for caveat in TABLE]


def test_the_states_are_named_as_they_are():
    for reason in (
        *HeldReason,
        EventReason.WITHOUT_EFFECT,
        EventReason.WAITING_FOR_CONTROLLERS,
        EventReason.DRY_RUN_WORKED,
    ):
        if reason not in (HeldReason.PROFILE_INVALID, HeldReason.OVERRIDES_INVALID):
            assert f"`{reason}`" in TEXT, reason
