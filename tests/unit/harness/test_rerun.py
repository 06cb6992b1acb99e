"""A test that fails is run once more, alone: what passes then is told, and what does not has failed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rerun import known, noted

HEAD = "# Flaky tests\n\n<!-- newest first -->\n"
ROOT = Path(__file__).parents[3]
#: Fails whenever its file is not there yet, and leaves it.
ONCE = """
from pathlib import Path

def test_once_{number}(request):
    seen = Path(__file__).with_name("seen-{number}")
    if not seen.exists():
        seen.touch()
        raise AssertionError("the first time")
"""


def run(folder: Path, source: str, record: str = HEAD) -> tuple[int, str, str]:
    (folder / "test_some.py").write_text(source)
    (folder / "flaky.md").write_text(record)
    program = (
        "import sys; from pathlib import Path; from tests.rerun import main;"
        f"sys.exit(main(['-q', '-p', 'no:cacheprovider', '--rootdir', {str(folder)!r}, 'test_some.py'],"
        f" Path({str(folder / 'flaky.md')!r})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, (folder / "flaky.md").read_text()


def test_a_run_without_failures_says_nothing(tmp_path: Path) -> None:
    code, printed, record = run(tmp_path, "def test_well(): pass\n")
    assert (code, "flaky" in printed, record) == (0, False, HEAD)


def test_what_passes_alone_is_flaky_told_last_and_written_down(tmp_path: Path) -> None:
    code, printed, record = run(tmp_path, ONCE.format(number=1))
    assert code == 0, printed
    assert printed.rstrip().splitlines()[-1] == "flaky: test_some.py::test_once_1"
    assert known(record) == ["test_some.py::test_once_1"]


def test_what_fails_alone_has_failed(tmp_path: Path) -> None:
    code, printed, record = run(tmp_path, "def test_broken(): assert 0\n")
    assert code == 1
    assert "failed twice: test_some.py::test_broken" in printed
    assert record == HEAD


def test_the_same_test_is_excused_once(tmp_path: Path) -> None:
    code, printed, record = run(tmp_path, ONCE.format(number=1), f"{HEAD}* `test_some.py::test_once_1` (then): slow\n")
    assert code == 1
    assert "for the second time" in printed
    assert known(record) == ["test_some.py::test_once_1"] * 2
    assert run(tmp_path, "def test_well(): pass\n", record)[0] == 1, "it is to be mended before anything passes"


def test_of_more_than_three_none_is_tried_again(tmp_path: Path) -> None:
    code, printed, record = run(tmp_path, "".join(ONCE.format(number=number) for number in range(4)))
    assert code == 1
    assert "4 tests failed" in printed
    assert record == HEAD


@pytest.mark.parametrize("source", ["import nothing_like_that\n", "def test_other(): pass\n"])
def test_what_is_no_failure_of_a_test_is_not_tried_again(tmp_path: Path, source: str) -> None:
    """An error while tests are collected, say."""
    code, printed, _ = run(tmp_path, source)
    assert code == (0 if "def" in source else 2)
    assert "once more" not in printed


def test_the_newest_comes_first() -> None:
    record = noted(noted(HEAD, ["a"], "2026-01-01"), ["b"], "2026-01-02")
    assert known(record) == ["b", "a"]


def test_a_run_that_is_ended_leaves_no_files(tmp_path: Path) -> None:
    hanging = 'import time\ndef test_hangs(tmp_path):\n    print(f"\\n{tmp_path}", flush=True)\n    time.sleep(600)\n'
    (tmp_path / "test_some.py").write_text(hanging)
    command = [sys.executable, "-m", "tests.rerun", "-s", "-p", "no:cacheprovider", str(tmp_path / "test_some.py")]
    environ = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    with subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        written = Path(next(line for line in process.stdout if line.startswith("/")).strip())
        process.terminate()
        assert process.wait(60) == 143
    in_memory = next((parent for parent in written.parents if parent.name.startswith("argosy-tests-")), None)
    if in_memory is None:
        pytest.skip("there is no room in memory on this machine")
    assert not in_memory.exists()
