"""The report on one object: what it waits for."""

import subprocess
import sys
from typing import Any

import msgspec

from argosy.api import keys
from argosy.api.types import FederatedObject
from argosy.cli.output.report import Facts, report
from argosy.fleet.snapshot import Fleet
from tests.unit.plan.worlds import DEPLOYMENTS, World, cluster

CLUSTERS = (cluster("m1"), cluster("m2"))
HELD = '{"reason":"PolicyNotFound","message":"there is no PropagationPolicy nowhere"}'
PENDING = '[["kubeadmiral.io/global-scheduler"]]'


def waiting(annotations: dict[str, str], *, placed: bool) -> list[str]:
    """What a Deployment with these annotations waits for."""
    world = World(fleet=Fleet.of(CLUSTERS))
    world.run()
    federated: dict[str, Any] = {**world.object, "metadata": {**world.object["metadata"], "annotations": annotations}}
    if not placed:
        federated["spec"] = {**federated["spec"], "placements": []}
    return report(
        Facts(
            source=world.source,
            type_config=DEPLOYMENTS,
            federated=msgspec.convert(federated, FederatedObject),
            collected=None,
            clusters=CLUSTERS,
            fleet_paused=False,
            warnings=(),
        )
    ).waiting


def test_controllers_that_have_yet_to_act_are_named():
    found = waiting({keys.PENDING_CONTROLLERS: PENDING}, placed=False)
    assert "controllers that have yet to act: kubeadmiral.io/global-scheduler" in found


def test_what_is_held_waits_for_what_holds_it_and_for_no_controller():
    annotations = {keys.PENDING_CONTROLLERS: PENDING, keys.HELD: HELD}
    for placed, what in ((False, "held, placed nowhere"), (True, "placement is held as it was")):
        found = waiting(annotations, placed=placed)
        assert f"{what}: PolicyNotFound: there is no PropagationPolicy nowhere" in found
        assert not any("yet to act" in line for line in found)


def test_a_controller_that_is_not_ours_is_waited_for_in_any_case():
    annotations = {keys.PENDING_CONTROLLERS: '[["example.com/approval"],["kubeadmiral.io/global-scheduler"]]'}
    found = waiting({**annotations, keys.HELD: HELD}, placed=False)
    assert "controllers that have yet to act: example.com/approval" in found


def test_a_report_loads_nothing_that_takes_long_to_load():
    code = "import sys, argosy.cli.output.report; print(sorted({'numpy', 'argosy.kube.schema', 're2'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
