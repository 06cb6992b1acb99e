"""The same seed gives the same world."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def played(seed: int, hash_seed: int) -> str:
    command = [sys.executable, "-m", "tests.world", "--seed", str(seed)]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=300)
    return done.stdout


def test_the_same_seed_gives_the_same_trace_in_another_process() -> None:
    first = played(1, 1)
    assert first == played(1, 2)
    assert first != played(2, 1)
