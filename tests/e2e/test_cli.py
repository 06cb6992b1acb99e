"""The command line against a federation it started itself: three simulated members and the example application."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import yaml

from argosy.cli.local.folder import DataFolder
from tests.e2e.conftest import Cli
from tests.harness.commands import argosy
from tests.harness.eventually import PATIENCE


def until(condition, timeout: float = PATIENCE):
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
    return found


def replicas(cli: Cli, name: str) -> dict[str, int]:
    report = json.loads(cli.ok("status", name, "-o", "json"))
    return {each["name"]: each["replicas"] for each in report["clusters"]}


@pytest.fixture
def app(cli, tmp_path):
    """A Deployment of six, divided, under a name of its own."""
    path = tmp_path / "app.yaml"
    labels = {"kubeadmiral.io/propagation-policy-name": "divided"}
    container = {"name": "main", "image": "nginx:1.29", "resources": {"requests": {"cpu": "100m"}}}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "app", "labels": labels},
        "spec": {
            "replicas": 6,
            "selector": {"matchLabels": {"app": "app"}},
            "template": {"metadata": {"labels": {"app": "app"}}, "spec": {"containers": [container]}},
        },
    }
    path.write_text(yaml.safe_dump(manifest))
    assert "deployment.apps/app created" in cli.ok("apply", "-f", str(path))
    cli.ok("status", "deployment/app", "--wait", "--timeout", "30")
    yield path
    cli("resume", "fleet")
    cli("resume", "deploy/app")
    cli("delete", "deployment/app")


def test_up_ends_with_the_example_divided_and_ready_and_says_what_to_try(federation):
    said, cli = federation
    assert "9 of 9 ready" in said.out
    assert "waiting for nothing" in said.out
    assert "Try next:" in said.out
    placed = replicas(cli, "deployment/web")
    assert sorted(placed) == ["member-1", "member-2", "member-3"]
    assert sum(placed.values()) == 9


def test_the_kubeconfig_has_a_context_for_each_cluster_and_is_private(cli):
    config = yaml.safe_load(cli.kubeconfig.read_text())
    assert config["current-context"] == "argosy"
    assert [each["name"] for each in config["contexts"]] == ["argosy", "member-1", "member-2", "member-3"]
    assert cli.kubeconfig.stat().st_mode & 0o077 == 0
    assert cli.data.stat().st_mode & 0o077 == 0


def test_a_second_up_says_so_and_disturbs_nothing(cli):
    pid = DataFolder(cli.data).up.running()
    for arguments in (["--detach"], []):
        said = argosy("up", *arguments, "--data", str(cli.data))
        assert said.code == 1
        assert said.lines[0] == f"error: the data folder {cli.data} is in use by argosy up (process {pid})"
        assert len(said.lines) == 2
    assert DataFolder(cli.data).up.running() == pid
    assert "member-1" in cli.ok("get", "clusters", "-o", "name")


def test_get_in_every_form(cli):
    table = cli.ok("get", "clusters")
    assert table.splitlines()[0].split()[:3] == ["NAME", "READY", "JOINED"]
    assert [line.split()[:3] for line in table.splitlines()[1:4]] == [
        [f"member-{number}", "True", "True"] for number in (1, 2, 3)
    ]
    assert json.loads(cli.ok("get", "clusters", "-o", "json"))["kind"] == "List"
    assert yaml.safe_load(cli.ok("get", "policies", "divided", "-o", "yaml"))["spec"]["schedulingMode"] == "Divide"
    assert "federatedcluster.core.kubeadmiral.io/member-2" in cli.ok("get", "clusters", "-o", "name").split()
    assert "deployment/web" in cli.ok("get", "placements", "-n", "default")
    assert "no placements" in cli.ok("get", "placements", "-n", "kube-public")


def test_get_shows_any_kind_in_the_servers_columns(cli):
    rows = [line.split() for line in cli.ok("get", "deploy", "web").splitlines()]
    assert rows[0] == ["NAMESPACE", "NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert rows[1][:3] == ["default", "web", "9/9"]
    assert cli.ok("get", "deploy/web", "-n", "default").splitlines()[1].startswith("web ")
    objects, clusters, policies = cli.ok("get", "fo,fcluster,pp", "-n", "default").split("\n\n")
    assert objects.splitlines()[0].split() == ["NAME", "CLUSTERS", "PROPAGATED", "GENERATION", "SYNCED", "AGE"]
    [web] = [line.split() for line in objects.splitlines() if "/web-deployments.apps" in line]
    assert web[0] == "federatedobject.core.kubeadmiral.io/web-deployments.apps"
    assert web[1:3] == ["3/3", "True"]
    assert clusters.splitlines()[0].split() == ["NAME", "READY", "JOINED", "VERSION", "HEARD", "RESPONDING", "AGE"]
    [member] = [line.split() for line in clusters.splitlines() if "/member-1 " in line]
    assert member[1:3] == ["True", "True"]
    assert member[3].startswith("v1.")
    assert policies.splitlines()[0].split() == ["NAME", "MODE", "CLUSTERS", "SELECTOR", "AGE"]
    found = json.loads(cli.ok("get", "deployment", "web", "-o", "json"))
    assert (found["apiVersion"], found["kind"], found["metadata"]["name"]) == ("apps/v1", "Deployment", "web")
    assert cli.ok("get", "deploy", "-n", "default", "-o", "name").split() == ["deployment.apps/web"]
    assert cli("get", "deploy", "none").lines[0] == "error: there is no 'none' among the deploy"
    assert cli("get", "depoly").lines[0] == "error: the server has no kind 'depoly'"


def test_apply_again_changes_nothing_and_a_removed_field_goes(cli, app):
    assert "unchanged" in cli.ok("apply", "-f", str(app))
    manifest = yaml.safe_load(app.read_text())
    manifest["metadata"]["labels"]["tier"] = "gold"
    app.write_text(yaml.safe_dump(manifest))
    assert "configured" in cli.ok("apply", "-f", str(app))
    del manifest["metadata"]["labels"]["tier"]
    app.write_text(yaml.safe_dump(manifest))
    assert "configured" in cli.ok("apply", "-f", str(app))
    labels = json.loads(cli.ok("patch", "deploy/app", "-p", "{}", "-o", "json"))["metadata"]["labels"]
    assert "tier" not in labels


def test_scaling_reaches_the_members_and_comes_back(cli, app):
    cli.ok("scale", "deployment/app", "--replicas", "8")
    assert "8 of 8 ready" in cli.ok("status", "deployment/app", "--wait", "--timeout", "30")
    assert sum(replicas(cli, "deploy/app").values()) == 8


def test_pause_holds_changes_back_and_status_says_why(cli, app):
    for what, told in (
        (["deployment/app"], "this object is paused"),
        (["fleet"], "the fleet is paused"),
        (["cluster", "member-3"], "member-3 is paused"),
    ):
        cli.ok("pause", *what)
        until(lambda told=told: told in cli.ok("status", "deployment/app"))
        cli.ok("resume", *what)
    assert "waiting for nothing" in cli.ok("status", "deployment/app", "--wait", "--timeout", "30")


def test_wait_ends_with_zero_only_if_all_is_as_wanted(cli, app):
    def image(name: str) -> None:
        containers = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": name}]}}}}
        cli.ok("patch", "deploy/app", "--type", "strategic", "-p", json.dumps(containers))

    image("nginx:bad")
    until(lambda: "replicas are updated" in cli.ok("status", "deploy/app"))
    said = cli("status", "deploy/app", "--wait", "--timeout", "1")
    assert said.code == 1
    assert said.lines[0].startswith("error: after 1 s still waiting: member-1: ")
    report = json.loads(cli.ok("status", "deploy/app", "-o", "json"))
    assert {line.partition(":")[0] for line in report["waiting"]} == {"member-1", "member-2", "member-3"}
    assert "as it should be" not in cli.ok("status", "deploy/app")
    image("nginx:1.30")
    cli.ok("status", "deploy/app", "--wait", "--timeout", "30")
    assert json.loads(cli.ok("status", "deploy/app", "-o", "json"))["waiting"] == []


def test_a_tainted_cluster_is_left_and_the_taint_goes_again(cli, app):
    cli.ok("taint", "cluster", "member-3", "maintenance=now:NoExecute")
    try:
        assert "maintenance=now:NoExecute" in cli.ok("get", "clusters")
        until(lambda: "member-3" not in replicas(cli, "deployment/app"))
        assert sum(replicas(cli, "deployment/app").values()) == 6
    finally:
        cli.ok("taint", "cluster", "member-3", "maintenance-")
    assert "maintenance" not in cli.ok("get", "clusters")


def test_delete_waits_until_the_copies_are_gone(cli, app):
    assert "deployment.apps/app deleted" in cli.ok("delete", "-f", str(app))
    assert cli("status", "deploy/app").code == 1
    assert cli("--context", "member-1", "patch", "deploy/app", "-p", "{}").code == 1


def test_label_sets_and_removes(cli, app):
    cli.ok("label", "deploy/app", "a=1", "b=2")
    labels = json.loads(cli.ok("label", "deploy/app", "a-", "-o", "json"))["metadata"]["labels"]
    assert "a" not in labels
    assert labels["b"] == "2"


def test_a_cluster_joins_and_leaves(cli, tmp_path):
    data = tmp_path / "clusters"
    command = [sys.executable, "-m", "argosy.cli", "sim", "--members", "1", "--data", str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as clusters:
        try:
            assert clusters.stdout is not None
            assert "member-1   https://127.0.0.1:" in clusters.stdout.readline()
            kubeconfig = str(data / "kubeconfig")
            assert "paris joined and ready" in cli.ok("join", "paris", "--kubeconfig", kubeconfig, "-l", "region=eu")
            assert "was a member already" in cli.ok("join", "paris", "--kubeconfig", kubeconfig)
            joined = json.loads(cli.ok("get", "clusters", "paris", "-o", "json"))
            assert joined["metadata"]["labels"] == {"region": "eu"}
            assert joined["spec"]["useServiceAccount"] is True
            assert "up to date" in cli.ok("join", "paris", "--kubeconfig", kubeconfig, "--refresh-role")
            twice = cli("join", "again", "--kubeconfig", kubeconfig)
            assert twice.code == 1
            assert "is a member already, as paris" in twice.lines[0]
            until(lambda: cli("get", "clusters", "again").code == 1)  # a member that cannot be is taken back
            assert "paris has left" in cli.ok("unjoin", "paris")
            assert cli("get", "clusters", "paris").code == 1
        finally:
            clusters.terminate()
        assert clusters.wait(20) == 0


def test_members_that_die_come_back_by_themselves(cli):
    folder = DataFolder(cli.data)
    pid = folder.sim.running()
    assert pid
    os.kill(pid, signal.SIGKILL)
    until(lambda: folder.sim.running() not in (None, 0, pid))
    until(lambda: "the simulated members are back" in folder.log.read_text())
    assert "killed by SIGKILL" in folder.log.read_text()


def test_no_credentials_in_the_logs(cli):
    folder = DataFolder(cli.data)
    text = "".join(path.read_text() for path in folder.log.parent.iterdir())
    assert text
    assert "PRIVATE KEY" not in text
    for user in yaml.safe_load(cli.kubeconfig.read_text())["users"]:
        assert user["user"]["client-key-data"] not in text


def test_a_second_start_leaves_the_example_as_it_was_changed(tmp_path):
    cli = Cli(tmp_path / "data")
    start = ["up", "--detach", "--members", "1", "--example", "--data", str(cli.data)]
    try:
        assert argosy(*start).code == 0
        cli.ok("scale", "deployment/web", "--replicas", "4")
        cli.ok("status", "deployment/web", "--wait")
        assert argosy("down", "--data", str(cli.data)).code == 0
        assert "4 of 4 ready" in argosy(*start).out
    finally:
        argosy("down", "--data", str(cli.data))


def test_a_member_that_cannot_join_says_why_in_the_list(cli, tmp_path):
    manifest = tmp_path / "cluster.yaml"
    manifest.write_text(
        "apiVersion: core.kubeadmiral.io/v1alpha1\nkind: FederatedCluster\nmetadata: {name: lost}\n"
        "spec: {apiEndpoint: 'https://127.0.0.1:1', secretRef: {name: none-such}}\n"
    )
    assert "PROBLEM" not in cli.ok("get", "clusters")
    cli.ok("apply", "-f", str(manifest))
    try:
        until(lambda: 'secret "none-such" not found' in cli.ok("get", "clusters"))
    finally:
        cli.ok("unjoin", "lost")


def test_down_is_fine_when_nothing_runs(tmp_path):
    said = argosy("down", "--data", str(tmp_path / "nothing"))
    assert said.code == 0
    assert "nothing is running" in said.out


def test_the_example_without_members_is_not_waited_for(tmp_path):
    said = argosy("up", "--detach", "--example", "--data", str(tmp_path / "data"))
    try:
        assert said.code == 1
        assert "no member has joined" in said.err
    finally:
        assert argosy("down", "--data", str(tmp_path / "data")).out == "stopped\n"


def test_state_survives_down_and_up_at_the_same_address(tmp_path):
    data = tmp_path / "data"
    manifest = tmp_path / "cm.yaml"
    manifest.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept}\ndata: {a: b}\n")
    cli = Cli(data)
    assert argosy("up", "--detach", "--data", str(data)).code == 0
    try:
        cli.ok("apply", "-f", str(manifest))
        before = cli.kubeconfig.read_text()
        os.kill(DataFolder(data).up.running() or 0, signal.SIGKILL)
        until(lambda: DataFolder(data).up.running() is None)
        assert argosy("up", "--detach", "--data", str(data)).code == 0
        assert "unchanged" in cli.ok("apply", "-f", str(manifest))
        server = yaml.safe_load(before)["clusters"][0]["cluster"]["server"]
        assert yaml.safe_load(cli.kubeconfig.read_text())["clusters"][0]["cluster"]["server"] == server
    finally:
        assert argosy("down", "--data", str(data)).code == 0
