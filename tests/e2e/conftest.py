"""One federation for the tests of the command line, started and stopped by the command line itself."""

from pathlib import Path

import pytest

from tests.harness.commands import Said, argosy, here


class Cli:
    """Commands against the session's federation, in this process."""

    def __init__(self, data: Path):
        self.data = data
        self.kubeconfig = data / "kubeconfig"

    def __call__(self, *arguments: str) -> Said:
        return self.bare("--kubeconfig", str(self.kubeconfig), *arguments)

    def bare(self, *arguments: str) -> Said:
        return here(*arguments)

    def ok(self, *arguments: str) -> str:
        said = self(*arguments)
        assert said.code == 0, f"argosy {' '.join(arguments)}\n{said.out}{said.err}"
        return said.out


@pytest.fixture(scope="session")
def federation(tmp_path_factory):
    """`argosy up --detach --members 3 --example`; (what it said, Cli)."""
    data = tmp_path_factory.mktemp("federation") / "data"
    said = argosy("up", "--detach", "--members", "3", "--data", str(data), "--example")
    try:
        assert said.code == 0, said.err
        yield said, Cli(data)
    finally:
        argosy("down", "--data", str(data))


@pytest.fixture(scope="session")
def cli(federation) -> Cli:
    return federation[1]
