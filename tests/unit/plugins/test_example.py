"""The example package: installed with pip it is found, is chosen by a profile, and changes a decision."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from argosy.api import keys, resources
from argosy.api.profiles import SchedulingProfile
from argosy.fleet.snapshot import Fleet
from argosy.kube.client import Patch
from argosy.kube.objects import decode, encode
from argosy.plan.plugins import IN_TREE
from argosy.plan.scheduling.schedule import profile_of, schedule
from argosy.plugins import Unit, cluster, installed
from tests.harness.federation import Federation

EXAMPLE = Path(__file__).parents[3] / "examples" / "carbon"
LABEL = "example.com/gco2-per-kwh"
WEB = Unit(group="apps", version="v1", kind="Deployment", name="web", max_clusters=1)


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """The folder it is installed in; nothing is downloaded."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("example")
    source = shutil.copytree(EXAMPLE, folder / "source")
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check", "--quiet"]
    into = folder / "installed"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "--target", into, source], check=True, timeout=120
    )
    return into


@pytest.fixture
def registry(target, monkeypatch):
    """The plugins there are once it is installed."""
    monkeypatch.syspath_prepend(str(target))
    found = installed()
    yield found
    sys.modules.pop("argosy_carbon", None)


def profile():
    """The one that comes with it."""
    first, _ = yaml.safe_load_all((EXAMPLE / "profile.yaml").read_text())
    return decode(encode(first), SchedulingProfile)


def test_its_own_tests_run_without_a_cluster(target):
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", EXAMPLE / "pyproject.toml", EXAMPLE / "tests"],
        env={**os.environ, "PYTHONPATH": str(target)},
        cwd=target,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "8 passed" in ran.stdout


def test_it_changes_a_decision(registry):
    fleet = Fleet.of([cluster("a", labels={LABEL: "800"}), cluster("b", labels={LABEL: "20"}), cluster("c")])
    assert schedule(WEB, fleet).clusters == ("a",)
    decision = schedule(WEB, fleet, profile_of(profile(), registry))
    assert decision.clusters == ("b",)
    assert decision.rejected == {"a": ("CarbonLimit", "cluster(s) make more than 500 g of CO2 a kWh")}
    assert dict(decision.scored.by_plugin)["CarbonIntensity"].tolist() == [300, 0]
    assert registry.contents["CarbonLimit"] == "argosy-carbon 1.0.0"


async def test_it_changes_where_an_object_is_carried(registry):
    async with Federation(3, plugins=registry) as fed:
        for name, grams in (("m1", "800"), ("m2", "20")):
            labels = {"metadata": {"labels": {LABEL: grams}}}
            await fed.client.patch(resources.FEDERATED_CLUSTERS, name, labels, kind=Patch.MERGE)
        await fed.eventually(lambda: fed.inside.snapshot.labelled(LABEL).values == ("20", "800"))
        of = {"SchedulingProfile": resources.SCHEDULING_PROFILES, "PropagationPolicy": resources.PROPAGATION_POLICIES}
        for manifest in yaml.safe_load_all((EXAMPLE / "profile.yaml").read_text()):
            await fed.client.create(of[manifest["kind"]], manifest)
        await fed.deploy(replicas=2, policy="clean")
        await fed.eventually_replicas({"m2": 2}, timeout=30.0)
        await fed.client.patch(
            resources.SCHEDULING_PROFILES,
            "clean",
            {"spec": {"pluginConfig": [{"name": "CarbonLimit", "args": {}}]}},
            kind=Patch.MERGE,
        )

        async def held():
            annotations = (await fed.federated())["metadata"]["annotations"]
            return "args.limit must be a whole number of grams" in annotations.get(keys.HELD, "")

        await fed.eventually(held)
        assert await fed.replicas() == {"m2": 2}


def test_without_it_the_profile_says_what_is_missing():
    with pytest.raises(ValueError, match="there is no filter plugin 'CarbonLimit'"):
        profile_of(profile(), IN_TREE)
