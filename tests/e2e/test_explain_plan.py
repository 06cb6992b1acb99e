"""`argosy explain` and `argosy plan` against a federation of three simulated members and the example application."""

import json

import pytest
import yaml

from tests.e2e.conftest import Cli
from tests.e2e.test_cli import until
from tests.harness.commands import Said

CLUSTER = {"apiVersion": "core.kubeadmiral.io/v1alpha1", "kind": "FederatedCluster", "metadata": {"name": "oslo"}}


def planned(cli: Cli, *arguments: str, code: int = 2) -> dict:
    said = cli("plan", *arguments, "-o", "json")
    assert said.code == code, said
    return json.loads(said.out)


def written(cli: Cli) -> list[object]:
    """The versions of everything a plan looks at; of clusters what is no heartbeat."""
    listed = json.loads(cli.ok("get", "clusters", "-o", "json"))
    beating = ("resourceVersion", "managedFields")
    clusters = [
        {
            "metadata": {field: value for field, value in each["metadata"].items() if field not in beating},
            "spec": each["spec"],
        }
        for each in listed["items"]
    ]
    kinds = ("policies", "placements")
    rest = [cli.ok("get", kind, "-o", "json") for kind in kinds] + [cli.ok("status", "deploy/web", "-o", "json")]
    return [clusters, *rest]


def replicas(cli: Cli) -> dict[str, int]:
    report = json.loads(cli.ok("status", "deploy/web", "-o", "json"))
    return {each["name"]: each["replicas"] for each in report["clusters"]}


def not_in(cli: Cli, cluster: str) -> dict | None:
    """Why it is not there, once it is not."""
    told = json.loads(cli.ok("explain", "deploy/web", "--cluster", cluster, "-o", "json"))["cluster"]
    return None if told["placed"] else told


class TestPlan:
    def test_a_plan_is_what_then_happens(self, cli):
        before = replicas(cli)
        made = planned(cli, "--scale", "deploy/web=15")
        (web,) = made["objects"]
        foretold = before | {each["cluster"]: each["replicasAfter"] for each in web["clusters"]}
        assert made["total"]["started"] == 6
        cli.ok("scale", "deployment/web", "--replicas", "15")
        cli.ok("status", "deployment/web", "--wait", "--timeout", "30")
        assert replicas(cli) == foretold
        cli.ok("scale", "deployment/web", "--replicas", "9")
        cli.ok("status", "deployment/web", "--wait", "--timeout", "30")

    def test_the_table_says_where_and_how_many(self, cli):
        said = cli("plan", "--lose-cluster", "member-1")
        assert said.code == 2
        assert "deployment.apps/web in default\n  member-1: copy removed" in said.out
        header = next(line for line in said.out.splitlines() if line.startswith("CLUSTER"))
        assert header.split()[:3] == ["CLUSTER", "STARTED", "STOPPED"]
        assert said.out.rstrip().endswith("Nothing was written.")

    def test_nothing_changes_and_nothing_is_written(self, cli, tmp_path):
        before = written(cli)
        said = cli("plan", "--cordon", "member-1")
        assert (said.code, said.out) == (0, "Nothing would change (3 objects looked at).\n")
        path = tmp_path / "oslo.yaml"
        path.write_text(yaml.safe_dump(CLUSTER))
        made = planned(cli, "--add-cluster", str(path), "--scale", "deploy/web=30", "--lose-cluster", "member-2")
        assert made["clusters"]["oslo"]["started"] > 0
        assert "member-2" in made["clusters"]
        assert written(cli) == before

    def test_a_new_application_in_a_new_namespace(self, cli, tmp_path):
        labels = {"kubeadmiral.io/propagation-policy-name": "all"}
        container = {"name": "main", "image": "nginx:1.29"}
        selector = {"app": "shop"}
        documents = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fresh"}},
            {
                "apiVersion": "core.kubeadmiral.io/v1alpha1",
                "kind": "PropagationPolicy",
                "metadata": {"name": "all", "namespace": "fresh"},
                "spec": {"schedulingMode": "Duplicate"},
            },
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "shop", "namespace": "fresh", "labels": labels},
                "spec": {
                    "selector": {"matchLabels": selector},
                    "template": {"metadata": {"labels": selector}, "spec": {"containers": [container]}},
                },
            },
        ]
        path = tmp_path / "fresh.yaml"
        path.write_text(yaml.safe_dump_all(documents))
        made = planned(cli, "-f", str(path))
        assert [(each["kind"], len(each["clusters"])) for each in made["objects"]] == [
            ("Deployment", 3),
            ("Namespace", 3),
        ]
        assert made["total"]["started"] == 3  # the server's default of one replica, three times
        assert "fresh" not in cli.ok("get", "placements", "-o", "json")

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            ([], "nothing is supposed to change"),
            (["--cordon", "nowhere"], "there is no cluster 'nowhere'; the clusters are: member-1, member-2, member-3"),
            (["--scale", "deploy/none=3"], '"none" not found'),
            (["--scale", "deploy/web"], "is not KIND/NAME=NUMBER"),
            (["--scale", "deploy/web=-1"], "is not KIND/NAME=NUMBER"),
            (["--scale", "cm/web=3"], "has no number at spec.replicas"),
            (["--scale", "gadget/web=3"], "the server has no kind 'gadget'"),
            (["-f", "absent.yaml"], "absent.yaml: No such file or directory"),
            (["-f", "BAD"], "bad.yaml line 2, column 1: not valid YAML"),
            (["-f", "UNKNOWN"], 'unknown field "spec.replica"'),
            (["--add-cluster", "UNKNOWN"], "this is no FederatedCluster"),
            (["--add-cluster", "TWICE"], "the cluster member-1 already exists"),
            (["--add-cluster", "MISTYPED"], "FederatedCluster oslo: Expected"),
        ],
    )
    def test_what_cannot_be_told_ends_with_one(self, cli, tmp_path, arguments, told):
        texts = {
            "BAD": "a: [b\n",
            "UNKNOWN": yaml.safe_dump(
                {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": {"replica": 1}}
            ),
            "TWICE": yaml.safe_dump(CLUSTER | {"metadata": {"name": "member-1"}}),
            "MISTYPED": yaml.safe_dump(CLUSTER | {"spec": {"taints": "none"}}),
        }
        for number, argument in enumerate(arguments):
            if argument in texts:
                path = tmp_path / f"{argument.lower()}.yaml"
                path.write_text(texts[argument])
                arguments = [*arguments[:number], str(path), *arguments[number + 1 :]]
        said = cli("plan", *arguments)
        assert said.code == 1, said
        assert told in _error(said)

    def test_an_unknown_option_is_no_change(self, cli):
        assert cli("plan", "--shrink", "member-1").code == 1


class TestExplain:
    def test_the_decision_is_told_from_its_record(self, cli):
        said = cli.ok("explain", "deployment/web")
        assert "what was decided (3 clusters considered)" in said
        rows = said[said.index("CLUSTER ") :].splitlines()[1:4]
        assert [row.split()[1] for row in rows] == ["yes"] * 3
        told = json.loads(cli.ok("explain", "deployment/web", "-o", "json"))
        assert told["decision"]["placements"] == told["placements"]
        assert "undecided" not in told

    def test_one_cluster_is_told_with_what_would_change_it(self, cli):
        cli.ok("taint", "cluster", "member-3", "maintenance=now:NoExecute")
        try:
            told = until(lambda: not_in(cli, "member-3"))
            assert "TaintToleration refused it" in told["because"]
            assert told["change"]
            there = cli.ok("explain", "deploy/web", "--cluster", "member-2")
            assert "member-2: placed there with" in there
        finally:
            cli.ok("taint", "cluster", "member-3", "maintenance-")
        now = json.loads(cli.ok("explain", "deploy/web", "--now", "-o", "json"))["decision"]
        assert "refused" not in now
        assert "member-3" in now["selected"]

    def test_what_is_not_decided_says_why(self, cli):
        assert "not federated" in cli.ok("explain", "ns/default")

    def test_unknown_things_are_said(self, cli):
        assert "there is no cluster 'nowhere'" in _error(cli("explain", "deploy/web", "--cluster", "nowhere"))
        assert '"none" not found' in _error(cli("explain", "deploy/none"))


def _error(said: Said) -> str:
    assert said.code == 1, said
    assert "Traceback" not in said.err + said.out
    errors = [line for line in said.lines if line.startswith("error: ")]
    assert len(errors) == 1, said.err
    return errors[0]
