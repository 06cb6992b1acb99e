"""The README's tour, command by command, as a newcomer would type it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def commands() -> list[str]:
    """Every line of the tour's code blocks."""
    readme = (ROOT / "README.md").read_text()
    tour = readme[readme.index("## A five-minute tour") : readme.index("## Your own clusters")]
    blocks = re.findall(r"```sh\n(.*?)```", tour, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


class Shell:
    """Runs commands like a newcomer's shell, with a federation of its own in `.argosy` of a copy of the examples."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.environment = os.environ | {"KUBECONFIG": str(folder / ".argosy/kubeconfig")}
        self.environment["PATH"] = f"{Path(sys.executable).parent}:{self.environment['PATH']}"

    def run(self, command: str, timeout: float = 150.0) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def replicas(self, name: str) -> dict[str, int]:
        """Replicas wanted per cluster, from `argosy status -o json`."""

        status = json.loads(self.run(f"argosy status deployment/{name} -o json"))
        return {row["name"]: row["replicas"] for row in status["clusters"]}


# One for each tool: two tours within a minute delete more than half of all there is, which the brake holds.
@pytest.fixture
def shell(tmp_path):
    folder = tmp_path / "tour"
    shutil.copytree(ROOT / "examples", folder / "examples")
    shell = Shell(folder)
    try:
        shell.run("argosy up --detach --members 3 --data .argosy --example")
        yield shell
    finally:
        shell.run("argosy down --data .argosy")


def translated(command: str) -> str | None:
    """The same step for those without kubectl; None where the tour needs it only to look."""
    rules = (
        (r"kubectl get deploy,fcluster,fo", "argosy get clusters"),
        (r"kubectl --context .*", None),
        (r"kubectl -n (\S+) rollout status (\S+) .*", r"argosy status \2 -n \1 --wait"),
        (r"kubectl -n (\S+) get .*", None),
        (r"kubectl rollout status deployment/(\S+) .*", r"argosy status deployment/\1 --wait"),
        (
            r"kubectl patch propagationpolicy (\S+) --type merge --patch-file (\S+)",
            r'argosy patch propagationpolicy/\1 -p "$(cat \2)"',
        ),
        (
            r"kubectl set image deployment/(\S+) (\S+)=(\S+)",
            r"""argosy patch deployment/\1 --type strategic -p """
            r"""'{"spec":{"template":{"spec":{"containers":[{"name":"\2","image":"\3"}]}}}}'""",
        ),
        (r"kubectl (apply|scale|label|delete) (.*)", r"argosy \1 \2"),
    )
    for pattern, replacement in rules:
        if re.fullmatch(pattern, command):
            return re.sub(pattern, replacement, command) if replacement is not None else None
    return command


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["kubectl", "argosy"])
def test_the_tour(shell, tool):
    if tool == "kubectl" and shutil.which("kubectl", path=shell.environment["PATH"]) is None:
        pytest.skip("there is no kubectl on this machine")
    seen: list[dict[str, int]] = []
    for command in commands():
        if command.startswith("export "):
            continue
        step = command if tool == "kubectl" else translated(command)
        if step is None:
            continue
        output = shell.run(step)
        if command == "argosy status deployment/shop":
            seen.append(shell.replicas("shop"))
        if "jsonpath" in command:
            assert output == "mirror.example/nginx:1.30"
        if command.startswith("argosy explain pdb/front"):
            assert "follows    Deployment front" in output
        if command.startswith("argosy taint cluster member-1 maintenance=disk"):
            shell.run("argosy status deployment/shop --wait")
            assert "member-1" not in shell.replicas("shop")
    start, grown, shrunk, paused = seen
    assert start == {"member-1": 15, "member-2": 15}
    assert grown == {"member-1": 15, "member-2": 15, "member-3": 6}, "only the new ones start"
    assert sum(shrunk.values()) == 15
    assert all(shrunk.get(cluster, 0) <= grown[cluster] for cluster in grown), "only the surplus stops"
    assert sum(paused.values()) == 20
    assert "shop" not in shell.run("argosy get placements")
