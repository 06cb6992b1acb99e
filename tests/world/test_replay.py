"""The same seed gives the same world, and a script can be cut until the shortest is left."""

import os
import subprocess
import sys
from pathlib import Path

from tests.world.script import written
from tests.world.shrink import shrunk
from tests.world.steps import dump, load

ROOT = Path(__file__).parents[2]


def played(seed: int, hash_seed: int) -> str:
    command = [sys.executable, "-m", "tests.world", "--seed", str(seed)]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()[-1]


def test_the_same_seed_gives_the_same_trace_in_another_process() -> None:
    first = played(1, 1)
    assert first == played(1, 2)
    assert first != played(3, 1)


def test_a_script_can_be_written_down() -> None:
    script = written("7")
    assert load(dump(script)) == script
    assert script != written("8")


def test_a_script_is_shrunk_to_what_fails() -> None:
    script = written("7")
    needed = (script[3], script[-2])
    assert shrunk(script, lambda some: all(step in some for step in needed)) == needed
