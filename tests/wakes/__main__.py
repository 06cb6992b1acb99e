"""Shows that every declaration of the wake table is needed: `python -m tests.wakes [NUMBER ...]`, from the repository's root.

For each row, or those of the given numbers, the test that `expected.py` names runs twice: as it is, and with the row taken
out. The first run must pass, the second must fail. That is one row after the other and takes a quarter of an hour, so it is
no part of `make test`.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.wakes.expected import EXPECTED
from tests.wakes.rows import rows

ROOT = Path(__file__).parents[2]
#: Exit statuses of pytest. Any other means that the test did not run.
PASSED, FAILED = 0, 1
#: No row: all of them are there.
NOTHING = "nothing"
#: For a test that waits by itself: hanging without the row is failing, too.
LONGEST = 180.0


def main(numbers: list[int]) -> int:
    table = list(enumerate(rows(), start=1))
    if unknown := [number for number in numbers if not 1 <= number <= len(table)]:
        print(f"rows are numbered from 1 to {len(table)}: {', '.join(map(str, unknown))}", file=sys.stderr)
        return 2
    chosen = [(number, row) for number, row in table if not numbers or number in numbers]
    whole: dict[str, str] = {}
    needed = 0
    for number, row in chosen:
        wrong = verdict(row, whole)
        needed += not wrong
        print(f"{wrong or 'ok'}  {number}  {row}: {EXPECTED.get(row, '')}", flush=True)
    print(f"{needed} of {len(chosen)} declarations are needed by a test")
    return 0 if needed == len(chosen) else 1


def verdict(row: str, whole: dict[str, str]) -> str:
    """What is wrong with a row, or nothing. `whole` remembers what is wrong with a test when nothing is taken out."""
    test = EXPECTED.get(row)
    if test is None:
        return "NO TEST"
    if test not in whole:
        whole[test] = "" if run(test, NOTHING) == PASSED else "FAILS ANYWAY"
    if whole[test]:
        return whole[test]
    ended = run(test, row)
    if ended == PASSED:
        return "PASSES WITHOUT"
    return "" if ended == FAILED else f"PYTEST ENDED WITH {ended}"


def run(test: str, left_out: str) -> int:
    """The exit status of pytest. It is as patient when nothing is left out, so that a slow machine is no proof."""
    command = [sys.executable, "-m", "pytest", "-x", "-p", "tests.wakes.plugin", "--without-wake", left_out, test]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        return FAILED
    return done.returncode


if __name__ == "__main__":
    sys.exit(main([int(number) for number in sys.argv[1:]]))
