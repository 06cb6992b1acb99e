"""No condition says `True` of all clusters while something is missing that it is about, whatever its type."""

import pytest

from argosy.kube.conditions import find
from argosy.plan.fields import Json
from argosy.plan.kinds.conditions import concluded
from argosy.plan.kinds.folding import folded
from argosy.plan.kinds.lack import About, Lack
from argosy.plan.kinds.observation import Aggregation
from tests.harness.statuses import LATE

SOURCE = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x", "generation": 1}}


def told(type: str, about: About, source: Json = SOURCE) -> str:
    status = {"conditions": [{"type": type, "status": "True", "reason": "R", "message": ""}]}
    aggregation = Aggregation(source, [], True, LATE, lacking=[Lack("something", about)])
    found = concluded(status, aggregation, has_pods=False, update_time=False)
    return str((find(found["conditions"], type) or {})["status"])


@pytest.mark.parametrize("type", ["Ready", "Healthy", "Released", "Completed", "Synced"])
@pytest.mark.parametrize("about", [About.CLUSTER, About.HOLD, About.PLACEMENT, About.COMPLETION])
def test_what_says_that_all_is_done_is_false_while_anything_is_missing(type: str, about: About) -> None:
    assert told(type, about) == "False"


@pytest.mark.parametrize(
    ("about", "status"),
    [
        (About.CLUSTER, "Unknown"),
        (About.PLACEMENT, "False"),
        (About.HOLD, "True"),
        (About.COMPLETION, "True"),
        (About.SILENCE, "True"),
    ],
)
def test_availability_is_as_that_of_a_deployment(about: About, status: str) -> None:
    assert told("Available", about) == status


def test_the_end_of_a_job_is_never_revoked() -> None:
    stored = {**SOURCE, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    assert told("Complete", About.CLUSTER, stored) == "True"


@pytest.mark.parametrize(
    "type", ["NamespaceDeletionContentFailure", "NamespaceContentRemaining", "SyncError", "UpgradeFailed", "Failed"]
)
def test_a_failure_in_one_cluster_is_one_of_all(type: str) -> None:
    bad = {"type": type, "status": "True", "message": "why"}
    [found] = folded([("m1", [{"type": type, "status": "False"}]), ("m2", [bad])])
    assert (found["status"], found["message"]) == ("True", "m2: why")


@pytest.mark.parametrize(
    ("type", "status"),
    [("Programmed", "Unknown"), ("Accepted", "Unknown"), ("Stalled", "True"), ("Issuing", "True"), ("Paused", "True")],
)
def test_what_one_cluster_has_not_reported_is_not_true_of_all(type: str, status: str) -> None:
    [found] = folded([("m1", [{"type": type, "status": "True"}])], silent=["m2"])
    assert found["status"] == status
    [found] = folded([("m1", [{"type": type, "status": "True"}]), ("m2", [])])
    assert found["status"] == status
    [found] = folded([("m1", [{"type": type, "status": "False"}])], silent=["m2"])
    assert found["status"] == "False"
