"""What would follow for divided Jobs, and for objects of a kind that members do not serve yet."""

from typing import Any

import msgspec

from argosy.api import keys
from argosy.kube.objects import encode
from argosy.plan.explain.snapshot import ObjectKey, Snapshot
from argosy.plan.explain.whatif import forecast
from argosy.plan.pipeline.policy import PolicyRef
from tests.unit.plan.scheduling import cluster, policy
from tests.unit.plan.test_divide import JOBS, job, kind_config
from tests.unit.plan.test_whatif import numbers, settled

KEY = ObjectKey("jobs.batch", "default", "db")
JOB = {"group": "batch", "version": "v1", "kind": "Job", "pluralName": "jobs", "scope": "Namespaced"}
EVEN = [{"cluster": f"m{number}", "preferences": {"weight": 1}} for number in range(1, 5)]


def world(*clusters: str) -> Snapshot:
    """A Job of 60 completions, at rest; m3 has done 5 of its share."""
    return settled(
        Snapshot(
            type_configs={JOBS.name: JOBS},
            clusters={name: cluster(name, apis=[JOB]) for name in clusters},
            sources={KEY: encode(job(6, 60))},
            policies={PolicyRef("web", "default"): policy(placement=EVEN)},
            done={KEY: {"m3": 5}},
        )
    )


def tainted(before: Snapshot, name: str) -> Snapshot:
    changed = cluster(name, apis=[JOB], taints=[{"key": "broken", "effect": "NoExecute"}])
    return msgspec.structs.replace(before, clusters={**before.clusters, name: changed})


def test_what_a_cluster_leaves_undone_goes_to_another_one() -> None:
    before = world("m1", "m2", "m3")
    joined = msgspec.structs.replace(before, clusters={**before.clusters, "m4": cluster("m4", apis=[JOB])})
    made = forecast(joined, tainted(joined, "m3"))
    assert numbers(made)["m3"] == (2, None)
    assert numbers(made)["m4"] == (None, 2)
    assert made.objects[0].held is None


def test_what_no_cluster_can_take_over_is_told_without_what_was_done() -> None:
    before = world("m1", "m2", "m3")
    (change,) = forecast(before, tainted(before, "m3")).objects
    assert change.held is not None
    assert change.held.message.startswith("15 of 60 completions are in no cluster")


def test_clusters_that_get_the_definition_and_do_not_serve_the_kind_are_named() -> None:
    definitions = kind_config("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", "")
    placements = [{"controller": keys.GLOBAL_SCHEDULER, "placement": [{"cluster": name} for name in ("m1", "m2")]}]
    defined: dict[str, Any] = {"metadata": {"name": "jobs"}, "spec": {"template": {}, "placements": placements}}
    before = Snapshot(
        type_configs={JOBS.name: JOBS, definitions.name: definitions},
        clusters={name: cluster(name, apis=[JOB] if name == "m1" else []) for name in ("m1", "m2", "m3")},
        federated={ObjectKey(definitions.name, "", "jobs.batch"): encode(defined)},
        policies={PolicyRef("web", "default"): policy(placement=EVEN)},
    )
    made = forecast(before, before.with_object(job(6, 60)))
    assert numbers(made) == {"m1": (None, 6)}
    assert [note for note in made.notes if "m2 get the definition of its kind" in note]
