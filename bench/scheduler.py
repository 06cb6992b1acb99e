"""Scheduling decisions on one core, without API servers: how many a second, how long one takes, what its record weighs.

Fleets of unequal clusters of which some are tainted or not ready; workloads that are placed and scaled up or down by a
tenth. Every decision runs all default plugins with dynamic weights and avoids disruption. `--profile` shows where the
time of a decision goes.
"""

import cProfile
import itertools
import pstats
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np

from argosy.api import keys
from argosy.api.clusters import FederatedCluster
from argosy.api.policies import ClusterSelectorRequirement, ClusterSelectorTerm, PropagationPolicy
from argosy.api.typeconfigs import FederatedTypeConfig
from argosy.control.caches.views import FederatedView
from argosy.fleet.snapshot import Fleet
from argosy.kube.objects import decode as decode_object
from argosy.kube.objects import encode as encode_object
from argosy.plan.explain.record import Inputs, encode, record_of
from argosy.plan.pipeline.inputs import PassInputs
from argosy.plan.pipeline.run import run_locally
from argosy.plan.scheduling.schedule import schedule
from argosy.plan.scheduling.triggers import decide, triggers_of
from argosy.plan.scheduling.unit import Unit, unit_of
from argosy.plan.scheduling.wakeups import Concern, Wakeups
from bench.report import Report, parser, percentile

DEPLOYMENTS = {
    "group": "apps",
    "version": "v1",
    "kind": "Deployment",
    "pluralName": "deployments",
    "scope": "Namespaced",
}
TYPE_CONFIG = msgspec.convert(
    {
        "metadata": {"name": "d"},
        "spec": {
            "sourceType": DEPLOYMENTS,
            "pathDefinition": {"replicasSpec": "spec.replicas"},
            "controllers": [[keys.GLOBAL_SCHEDULER], [keys.OVERRIDE_CONTROLLER]],
        },
    },
    FederatedTypeConfig,
)
POLICY = msgspec.convert(
    {
        "metadata": {"name": "everywhere", "namespace": "team"},
        "spec": {
            "schedulingMode": "Divide",
            "reschedulePolicy": {
                "rescheduleWhen": {"policyContentChanged": True, "clusterLabelsChanged": True},
                "replicaRescheduling": {"avoidDisruption": True},
            },
        },
    },
    PropagationPolicy,
)
BY_ZONE = msgspec.structs.replace(
    POLICY,
    spec=msgspec.structs.replace(
        POLICY.spec,
        cluster_affinity=(ClusterSelectorTerm((ClusterSelectorRequirement("zone", "NotIn", ("closed",)),)),),
    ),
)
INPUTS = Inputs(policy="PropagationPolicy/everywhere", policy_generation=1, source_generation=1)
KUBEADMIRAL = 77
"""Decisions a second of KubeAdmiral in Go with 500 clusters, measured for this project on such a machine."""


class Workload(NamedTuple):
    template: dict[str, Any]
    unit: Unit


def cluster(name: str, random: np.random.Generator) -> FederatedCluster:
    cpu, memory = int(random.integers(64, 4096)), int(random.integers(256, 16384))
    used = random.beta(4, 2, size=2)
    conditions = [{"type": "Joined", "status": "True"}, {"type": "Ready", "status": str(random.random() > 0.04)}]
    taints = [{"key": "maintenance", "effect": "NoSchedule"}] if random.random() < 0.08 else []
    body = {
        "metadata": {"name": name, "labels": {"zone": f"z{random.integers(0, 12)}", "tier": "production"}},
        "spec": {"taints": taints},
        "status": {
            "conditions": conditions,
            "apiResourceTypes": [DEPLOYMENTS],
            "resources": {
                "allocatable": {"cpu": str(cpu), "memory": f"{memory}Gi"},
                "available": {"cpu": str(int(cpu * (1 - used[0]))), "memory": f"{int(memory * (1 - used[1]))}Gi"},
            },
        },
    }
    return msgspec.convert(body, FederatedCluster)


def clusters_of(count: int, random: np.random.Generator) -> list[FederatedCluster]:
    return [cluster(f"member-{number:04}", random) for number in range(count)]


def fleet_of(count: int, random: np.random.Generator) -> Fleet:
    return Fleet.of(clusters_of(count, random))


def placed(number: int, fleet: Fleet, random: np.random.Generator, *, settled: bool = False) -> Workload:
    """A workload that runs, and is now wanted a tenth larger or smaller, or as it is."""
    replicas = int(random.integers(2, 6)) * len(fleet)
    template = {
        "metadata": {"name": f"web-{number:06}", "namespace": "team", "labels": {"app": f"web-{number:06}"}},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "web", "image": "web:1"}]}}},
    }
    first = schedule(unit_of(template, {}, {}, POLICY, TYPE_CONFIG), fleet)
    if not settled:
        template["spec"]["replicas"] = replicas + (1 if random.random() < 0.5 else -1) * max(replicas // 10, 1)
    return Workload(template, unit_of(template, {}, first.placements, POLICY, TYPE_CONFIG))


def explained(unit: Unit, fleet: Fleet) -> str:
    """What a pass does with a decision: the placement in names, and the record to store."""
    decision = schedule(unit, fleet)
    assert decision.placements
    return encode(record_of(decision, INPUTS))


def plain(unit: Unit, fleet: Fleet) -> str:
    assert schedule(unit, fleet).placements
    return ""


def microseconds(run: Callable[[Unit, Fleet], str], units: list[Unit], fleets: Iterator[Fleet], rounds: int) -> float:
    """CPU time of a decision: the best of the rounds, since other work on the machine only ever adds."""
    best = float("inf")
    for _ in range(rounds):
        pairs = [(unit, next(fleets)) for unit in units]
        started = time.process_time()
        for unit, fleet in pairs:
            run(unit, fleet)
        best = min(best, time.process_time() - started)
    return best / len(units) * 1e6


def measure_decisions(report: Report, count: int, random: np.random.Generator, *, quick: bool) -> None:
    fleet = fleet_of(count, random)
    units = [placed(number, fleet, random).unit for number in range(20 if quick else 100)]
    rounds = 3 if quick else 10
    for unit in units:
        explained(unit, fleet)  # once, so that what a fleet keeps is there
    bar = 500.0 if count == 500 else None
    for what, run in (("explanation on", explained), ("explanation off", plain)):
        taken = microseconds(run, units, itertools.repeat(fleet), rounds)
        on = run is explained
        report.add(f"{count:,} clusters, {what}: one decision", taken, "µs CPU", "lower", bar if on else None)
        report.add(f"{count:,} clusters, {what}: decisions", 1e6 / taken, "/s", bar=2000.0 if bar and on else None)
    changing = microseconds(explained, units, _changing(fleet, random), rounds)
    report.add(f"{count:,} clusters, explanation on, capacity changes before each", changing, "µs CPU", "lower")
    if count == 500:
        sizes = [float(len(explained(unit, fleet))) for unit in units]
        report.add("500 clusters: stored record, median", percentile(sizes, 0.5), "bytes", "lower", bar=2048)
        report.add("500 clusters: stored record, largest", max(sizes), "bytes", "lower", bar=2048)


def _changing(fleet: Fleet, random: np.random.Generator) -> Iterator[Fleet]:
    """Another cluster's free capacity each time, as what is decided takes it."""
    while True:
        row = int(random.integers(0, len(fleet)))
        before = fleet.members[row]
        taken = {"cpu": {before.name: int(random.integers(1, 500))}}
        yield fleet.with_reserved(taken)


def measure_no_op(report: Report, random: np.random.Generator, *, quick: bool) -> None:
    """An object whose stored triggers say that nothing changed: what scheduling costs a pass that has nothing to do."""
    fleet = fleet_of(500, random)
    workload = placed(0, fleet, random)
    stored = triggers_of(workload.template, {}, POLICY, TYPE_CONFIG, fleet).text
    best = float("inf")
    for _ in range(5):
        started = time.process_time()
        for _ in range(200 if quick else 2000):
            now = triggers_of(workload.template, {keys.SCHEDULING_TRIGGERS: stored}, POLICY, TYPE_CONFIG, fleet)
            assert not decide(stored, now, POLICY, placed=True).schedule
        best = min(best, (time.process_time() - started) / (200 if quick else 2000))
    report.add("500 clusters: nothing to decide", best * 1e6, "µs CPU", "lower", bar=50)


def measure_no_op_pass(report: Report, random: np.random.Generator, *, quick: bool) -> None:
    """The whole pass over such an object, from the stored bytes to the finding that nothing is to be written."""
    fleet = fleet_of(500, random)
    source = placed(0, fleet, random).template
    identity = {"uid": "1", "labels": {keys.PROPAGATION_POLICY_LABEL: POLICY.metadata.name}}
    source |= {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {**source["metadata"], **identity}}
    inputs = PassInputs(source=source, type_config=TYPE_CONFIG, fleet=fleet, policy=POLICY)
    made = run_locally(inputs).object
    assert made is not None
    stored = encode_object({**made, "metadata": {**made["metadata"], "generation": 1}})
    best = float("inf")
    for _ in range(5):
        started = time.process_time()
        for _ in range(20 if quick else 200):
            existing = decode_object(stored, dict)
            assert run_locally(msgspec.structs.replace(inputs, existing=existing)).object is None
        best = min(best, (time.process_time() - started) / (20 if quick else 200))
    where = len(made["spec"]["placements"][0]["placement"])
    report.add(f"a whole pass that finds nothing to do ({where} clusters)", best * 1e6, "µs CPU", "lower")


def measure_label_change(report: Report, random: np.random.Generator, *, quick: bool) -> None:
    """One cluster gets another zone, which every workload's policy reads and asks for rescheduling then.

    First as the controllers go about it, who has to move: all workloads of a policy are asked about at once. Then each
    is decided again, although none moves.
    """
    count = 2000 if quick else 100_000
    clusters = clusters_of(500, random)
    fleet = Fleet.of(clusters)
    pool = [placed(number, fleet, random, settled=True) for number in range(50)]
    views = [_view(each, triggers_of(each.template, {}, BY_ZONE, TYPE_CONFIG, fleet).text) for each in pool]
    after = fleet.with_cluster(_relabelled(clusters[250]))
    started = time.process_time()
    wakeups = Wakeups(after)
    for number in range(count):
        view = views[number % len(pool)]
        assert wakeups.concern(BY_ZONE, view.metadata.annotations, view.placed) is Concern.RECORD
    told = time.process_time() - started
    bar = None if quick else 30
    report.add(f"500 clusters: {count:,} workloads after a label change: who has to move", told, "s CPU", "lower", bar)
    started = time.process_time()
    for number in range(count):
        template, unit = pool[number % len(pool)]
        now = triggers_of(template, {}, BY_ZONE, TYPE_CONFIG, after)
        stored = views[number % len(pool)].metadata.annotations[keys.SCHEDULING_TRIGGERS]
        assert decide(stored, now, BY_ZONE, placed=True).schedule
        assert schedule(msgspec.structs.replace(unit, name=f"web-{number:06}"), after).rows is not None
    taken = time.process_time() - started
    report.add(
        f"500 clusters: {count:,} workloads after a label change: all decided anew", taken, "s CPU", "lower", bar
    )


def _view(workload: Workload, triggers: str) -> FederatedView:
    """What the controllers keep of the workload's federated object."""
    placement = [{"cluster": name} for name in workload.unit.current]
    body = {
        "metadata": {"annotations": {keys.SCHEDULING_TRIGGERS: triggers}},
        "spec": {"placements": [{"controller": keys.GLOBAL_SCHEDULER, "placement": placement}]},
    }
    return msgspec.convert(body, FederatedView)


def _relabelled(cluster: FederatedCluster) -> FederatedCluster:
    metadata = msgspec.structs.replace(cluster.metadata, labels={**cluster.metadata.labels, "zone": "another"})
    return msgspec.structs.replace(cluster, metadata=metadata)


def profile(random: np.random.Generator) -> None:
    """Where the time of a decision over 500 clusters goes, by function."""
    fleet = fleet_of(500, random)
    units = [placed(number, fleet, random).unit for number in range(50)]
    profiler = cProfile.Profile()
    profiler.enable()
    for unit in units * 20:
        explained(unit, fleet)
    profiler.disable()
    pstats.Stats(profiler).sort_stats("cumulative").print_stats("argosy|zlib|sort|fromiter", 40)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--profile", action="store_true", help="only show where the time of a decision goes")
    arguments = options.parse_args()
    random = np.random.default_rng(17)
    if arguments.profile:
        profile(random)
        return
    report = Report("scheduler", {"quick": arguments.quick})
    for count in (10, 100, 500, 5000):
        measure_decisions(report, count, random, quick=arguments.quick)
    measure_no_op(report, random, quick=arguments.quick)
    measure_no_op_pass(report, random, quick=arguments.quick)
    measure_label_change(report, random, quick=arguments.quick)
    report.add("KubeAdmiral, 500 clusters: decisions", KUBEADMIRAL, "/s")
    report.finish(arguments)


if __name__ == "__main__":
    main()
