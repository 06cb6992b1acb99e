"""Run the tests; those that fail are run once more, alone, when all others have ended.

    python -m tests.rerun -n 3 --dist loadfile        # takes what pytest takes

A test that passes then is flaky: the run passes and says `flaky: <test>` in its last lines, and the test is written down in
`tests/flaky.md`, for somebody to say there what is suspected. A run with more than three of them fails, and so does one with a
test that the file has already: it was to be mended. Nothing else is tried again.
"""

import datetime
import json
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.scratch import environment

__all__ = ["Reports", "known", "main", "noted"]

MOST = 3
RECORD = Path(__file__).with_name("flaky.md")
#: Where the list of a run's failures is left for us.
OPTION = "--failures-to"
_ENTRY = re.compile(r"^\* `([^`]+)`", re.MULTILINE)


class Reports:
    """A plugin of pytest: the tests that failed, in setting up, in the test or afterwards."""

    def __init__(self, target: str):
        self._target = Path(target)
        self._failed: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._failed[report.nodeid] = None

    def pytest_sessionfinish(self) -> None:
        self._target.write_text(json.dumps(list(self._failed)))


def known(record: str) -> list[str]:
    """The tests that the file has."""
    return _ENTRY.findall(record)


def noted(record: str, tests: Iterable[str], day: str) -> str:
    """The file with these in front of those it has."""
    head, marker, entries = record.partition("<!-- newest first -->\n")
    added = "".join(f"* `{test}` ({day}): not looked into yet\n" for test in tests)
    return f"{head}{marker}{added}{entries}"


def main(arguments: Sequence[str], record: Path = RECORD) -> int:
    repeated = {test for test in known(record.read_text()) if known(record.read_text()).count(test) > 1}
    if repeated:
        print(f"{record.name} has these tests twice, so they are to be mended: {', '.join(sorted(repeated))}")
        return 1
    code, failed = _run(arguments)
    if code != 1 or not failed:
        return code
    if len(failed) > MOST:
        print(f"{len(failed)} tests failed, which is more than the {MOST} that are tried again")
        return code
    print(f"\nonce more, alone: {', '.join(failed)}")
    broken = [test for test in failed if _run([test])[0] != 0]
    if broken:
        print(f"failed twice: {', '.join(broken)}")
        return 1
    again = sorted(set(failed) & set(known(record.read_text())))
    record.write_text(noted(record.read_text(), failed, datetime.date.today().isoformat()))
    for test in failed:
        print(f"flaky: {test}")
    if again:
        print(f"flaky for the second time, so no longer excused: {', '.join(again)}")
    return 1 if again else 0


def _run(arguments: Sequence[str]) -> tuple[int, list[str]]:
    """Pytest's exit code, and the tests that failed."""
    with tempfile.TemporaryDirectory() as folder, environment() as variables:
        failures = Path(folder) / "failures.json"
        command = [sys.executable, "-m", "pytest", "-p", "tests.rerun_plugin", OPTION, str(failures), *arguments]
        code = subprocess.run(command, env=variables, check=False).returncode
        return code, json.loads(failures.read_text()) if failures.exists() else []


if __name__ == "__main__":
    # Ended by others it cleans up as if interrupted: its files are in memory.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
