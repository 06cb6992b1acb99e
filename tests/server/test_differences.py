"""docs/server.md lists the differences from kube-apiserver: exactly those that request files and sequences know."""

import re
from pathlib import Path

from tests.real.sequences.rules import RULES
from tests.server.replay import REQUESTS, load

DOCUMENT = Path(__file__).parents[2] / "docs" / "server.md"


def listed() -> list[str]:
    section = DOCUMENT.read_text().partition("## Where it differs")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE)


def marked() -> set[str]:
    steps = [step for path in REQUESTS.glob("*.yaml") for step in load(path)["steps"]]
    return {step["differs"] for step in steps if "differs" in step}


def test_every_difference_is_listed_once_and_every_entry_is_a_difference() -> None:
    assert sorted(listed()) == sorted(marked() | {rule.name for rule in RULES})
