"""Scripts that once showed a mistake: `kept/SEED-what-was-wrong.jsonl`. Played with their seeds, all is well now."""

from pathlib import Path

import pytest

from tests.world.isolated import isolated
from tests.world.steps import load

KEPT = sorted((Path(__file__).parent / "kept").glob("*.jsonl"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_what_was_wrong_once_is_right(path: Path) -> None:
    seed = int(path.stem.partition("-")[0])
    assert isolated(seed, load(path.read_text())).failures == []


def test_there_are_some() -> None:
    assert KEPT
