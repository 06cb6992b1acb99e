"""A run writes into memory where that is large enough, and leaves nothing there."""

import os
import tempfile
from pathlib import Path

import pytest

from tests.scratch import ROOM, environment


def info(folder: Path, size: int) -> Path:
    made = folder / "meminfo"
    made.write_text(f"MemTotal:       99999999 kB\nMemAvailable:   {size // 1024} kB\n")
    return made


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the one in memory, on a file system with enough room whatever this machine has."""
    monkeypatch.delenv("TMPDIR", raising=False)
    there = os.statvfs(tmp_path)
    monkeypatch.setattr("tests.scratch.ROOM", min(ROOM, there.f_bavail * there.f_frsize))
    (tmp_path / "memory").mkdir()
    return tmp_path / "memory"


def test_there_is_a_folder_in_memory_as_long_as_the_run(memory: Path, tmp_path: Path) -> None:
    with environment(memory, info(tmp_path, ROOM)) as variables:
        folder = Path(variables["TMPDIR"])
        assert folder.parent == memory
        (folder / "left").touch()
    assert not list(memory.iterdir())
    assert "TMPDIR" not in os.environ


@pytest.mark.parametrize("lack", ["memory", "the folder", "the kernel's word"])
def test_without_room_it_is_the_usual_place(memory: Path, tmp_path: Path, lack: str) -> None:
    told = info(tmp_path, 0 if lack == "memory" else ROOM)
    if lack == "the kernel's word":
        told.write_text("")
    with environment(memory / "none" if lack == "the folder" else memory, told) as variables:
        assert "TMPDIR" not in variables
    assert not list(memory.iterdir())


def test_who_names_a_folder_gets_it(memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", tempfile.gettempdir())
    with environment(memory, info(tmp_path, ROOM)) as variables:
        assert variables["TMPDIR"] == tempfile.gettempdir()


def test_what_is_compiled_is_kept(memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    with environment(memory, info(tmp_path, ROOM)) as variables:
        assert not variables["PYTHONDONTWRITEBYTECODE"]
