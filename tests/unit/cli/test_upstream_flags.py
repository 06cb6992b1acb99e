"""A command line of KubeAdmiral's manager works here, or says what is to be decided."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from argosy.cli.app import app
from argosy.cli.options.upstream import FLAGS, translated
from argosy.cli.options.work import work_options
from argosy.cli.output.failures import Failure

ROOT = Path(__file__).parents[3]
#: All of the manager's flags with their defaults there.
UPSTREAM = {
    "port": "11257",
    "controllers": "*",
    "enable-leader-elect": "false",
    "leader-elect-resource-name": "federation-controller-manager",
    "master": "",
    "kubeconfig": "hub.kubeconfig",
    "kube-api-qps": "500",
    "kube-api-burst": "1000",
    "worker-count": "1",
    "cascading-deletion-worker-count": "1",
    "enable-profiling": "false",
    "ns-autoprop-exclude-regexp": "^dev-",
    "cluster-join-timeout": "10m",
    "member-object-enqueue-delay": "5s",
    "max-pod-listers": "0",
    "enable-pod-pruning": "false",
    "export-prometheus": "true",
    "prometheus-addr": "",
    "prometheus-port": "9090",
    "prometheus-quantiles": "0.5=0.01,0.95=0.01,0.99=0.002",
    "enable-katalyst-support": "false",
    "cluster-health-check-period": "30s",
    "cluster-status-threshold": "100s",
    "klog-v": "4",
}


def parsed(*arguments: str, command: str = "controllers") -> dict[str, Any]:
    """What a command is told by these arguments."""
    found: dict[str, Any] = {}
    cli: Any = typer.main.get_command(app)
    cli.commands[command].callback = lambda **told: found.update(told)
    cli.main([command, *arguments], prog_name="argosy", standalone_mode=False)
    return found


@pytest.mark.parametrize("flag", UPSTREAM)
def test_every_flag_of_the_manager_is_accepted_with_its_default(flag: str) -> None:
    parsed(f"--{flag}={UPSTREAM[flag]}")


def test_flags_that_mean_something_are_what_they_mean() -> None:
    told = parsed(*(f"--{flag}={value}" for flag, value in UPSTREAM.items()))
    assert (told["port"], told["kubeconfig"], told["leader_elect"]) == (11257, "hub.kubeconfig", False)
    assert (told["kube_api_qps"], told["kube_api_burst"], told["worker_count"]) == (500, 1000, 1)
    assert told["ns_autoprop_exclude_regexp"] == "^dev-"
    assert parsed("--enable-leader-elect")["leader_elect"] is True
    assert parsed("--enable-katalyst-support=true")["enable_katalyst_support"] is True
    work = work_options(4, 50.0, 80, "7s", "^dev-", True)
    from argosy.control.options import Options
    from argosy.control.timings import Timings

    options = work.chosen(Options())
    assert (options.workers, options.member_qps, options.member_burst) == (4, 50.0, 80)
    assert (options.exclude_namespaces, options.katalyst, work.applied(Timings()).member_event) == ("^dev-", True, 7.0)
    found = parsed(*work.arguments(), command="up")
    assert (found["worker_count"], found["kube_api_burst"], found["member_object_enqueue_delay"]) == (4, 80, "7.0s")
    assert (found["ns_autoprop_exclude_regexp"], found["enable_katalyst_support"]) == ("^dev-", True)


@pytest.mark.parametrize(
    ("arguments", "kept", "words"),
    [
        (["--klog-v", "4", "--port", "1"], ["--port", "1"], ["--klog-v has no effect"]),
        (["--klog-logtostderr", "--port=1"], ["--port=1"], ["--klog-logtostderr has no effect"]),
        (["--prometheus-port", "9090"], [], ["--prometheus-port has no effect"]),
        (["--export-prometheus"], [], []),
        (["--export-prometheus=false"], [], ["--export-prometheus has no effect"]),
        (["--enable-profiling=true", "--enable-pod-pruning=f"], [], ["--enable-profiling has no effect"]),
        (["--controllers", "*", "--master="], [], []),
        (["--enable-leader-elect=F"], ["--no-leader-elect"], []),
        (["--", "--klog-v=4"], ["--", "--klog-v=4"], []),
    ],
)
def test_flags_without_effect_are_taken_out_with_a_word(
    arguments: list[str], kept: list[str], words: list[str]
) -> None:
    found = translated(arguments)
    assert found.arguments == kept
    assert [word.partition(":")[0] for word in found.words] == words


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--master=https://hub"], "--master of KubeAdmiral is not supported"),
        (["--controllers", "*,-follower"], "--controllers of KubeAdmiral is not supported"),
        (
            ["--resource-aggregation-node-filter=pool=a"],
            "--resource-aggregation-node-filter of KubeAdmiral is not supported",
        ),
        (["--enable-leader-elect=perhaps"], "'perhaps' is neither true nor false"),
        (["--prometheus-port"], "--prometheus-port needs a value"),
    ],
)
def test_what_cannot_be_done_is_refused(arguments: list[str], why: str) -> None:
    with pytest.raises(Failure, match=re.escape(why)) as failure:
        translated(arguments)
    assert failure.value.code == 2


def test_the_docs_have_a_row_for_each() -> None:
    text = (ROOT / "docs" / "running.md").read_text()
    rows = {flag for line in text.splitlines() if line.startswith("| `--") for flag in re.findall(r"`(--[\w-]+)", line)}
    assert FLAGS | {f"--{flag}" for flag in UPSTREAM} <= rows
