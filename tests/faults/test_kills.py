"""The quick form of `make kills`."""

import os
import random
from pathlib import Path

import pytest

from tests.faults.kills import MOMENTS, kills

KILLS = int(os.environ.get("ARGOSY_KILLS", "14"))
SEED = int(os.environ.get("ARGOSY_SEED") or random.randrange(10**6))


@pytest.mark.slow
async def test_killed_under_load_no_write_is_lost_and_no_version_used_twice(tmp_path: Path) -> None:
    print(f"ARGOSY_SEED={SEED}")
    outcome = await kills(KILLS, SEED, tmp_path)
    print(outcome)
    assert outcome.acknowledged > 20 * KILLS
    assert outcome.resumed >= KILLS // 2
    assert set(outcome.hits) >= set(MOMENTS) - {"backup", "any"}, "each kind of moment was met"
