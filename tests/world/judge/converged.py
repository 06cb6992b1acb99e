"""When faults have stopped, everything becomes as it should be: members hold what is placed there and no more, and it is told.

Read from the stores themselves, so that no cache, watch or status can make it look well.
"""

from collections.abc import Collection, Mapping, Set

from argosy.api import keys
from tests.world.disk import Disk
from tests.world.judge.claims import claimed, expected
from tests.world.judge.objects import Object, federated_key, found, held, leaders, listed, managed, placed
from tests.world.script import DIFFERING, MIRROR

__all__ = ["differences"]

_CLUSTERS = "core.kubeadmiral.io/federatedclusters"
_POLICIES = "core.kubeadmiral.io/propagationpolicies"
_OVERRIDES = "core.kubeadmiral.io/overridepolicies"
_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
_TABLES = ("apps/deployments", "core/configmaps")


def differences(plane: Disk, members: Mapping[str, Disk], departed: Collection[str] = ()) -> list[str]:
    """What is not as it should be, a sentence each. `departed` are clusters that have left, and may be back."""
    entries = {name: found(plane, f"{_CLUSTERS}/{name}") or {} for name in members}
    wrong = [f"{name} is not ready" for name, entry in entries.items() if not _ready(entry)]
    wrong += [f"{name} is said to be silent" for name, entry in entries.items() if _silent(entry)]
    cordoned = {name for name, entry in entries.items() if "NoSchedule" in str(entry.get("spec", {}).get("taints"))}
    wanted: set[tuple[str, str]] = set()
    for table in _TABLES:
        for name, source in listed(plane, table).items():
            key = f"{table}/{name}"
            federated = found(plane, federated_key(key))
            labelled = keys.PROPAGATION_POLICY_LABEL in (source["metadata"].get("labels") or {})
            if not labelled and table == "core/configmaps":
                clusters_needed = _followed(plane, source)
                wanted |= {(cluster, key) for cluster in clusters_needed}
                wrong += _follower(key, source, clusters_needed, members)
                continue
            if not labelled:
                wrong += _claim(plane, key, source, federated)
                if federated is None:
                    continue
            if "deletionTimestamp" in source["metadata"]:
                wrong.append(f"{key} is still being deleted")
            elif federated is None:
                wrong.append(f"{key} has no federated object")
            else:
                clusters = placed(federated)
                wanted |= {(cluster, key) for cluster in clusters}
                # What is held, for want of its policy say, is carried nowhere: members keep what they have.
                if keys.HELD in federated["metadata"]["annotations"]:
                    wanted |= {(each["cluster"], key) for each in (federated.get("status") or {}).get("clusters") or ()}
                else:
                    wrong += _copies(key, source, federated, clusters, members, cordoned)
                    wrong += _overridden(plane, key, source, federated, clusters, members)
    # What is left in the others are orphans, which only a user removes.
    unchanged = {name: disk for name, disk in members.items() if not disk.restored and name not in departed}
    wrong += _left_over(wanted, unchanged)
    return wrong


def _claim(plane: Disk, key: str, source: Object, federated: Object | None) -> list[str]:
    """A Deployment without a label belongs to the policy that selects it, or to the last one, and then it is held."""
    policy = expected(plane, source)
    if federated is None:
        return [f"{key} has no federated object, and {policy} selects it"] if policy else []
    last = claimed(federated)
    if last and found(plane, f"{_POLICIES}/{source['metadata']['namespace']}/{last}") is None:
        policy = ""  # it is waited for
    if not policy and claimed(federated) and keys.HELD not in federated["metadata"]["annotations"]:
        return [f"{key} is selected by nobody any more, and is not held"]
    return (
        [f"{key} belongs to {claimed(federated)}, and {policy} selects it"]
        if policy not in ("", claimed(federated))
        else []
    )


def _followed(plane: Disk, source: Object) -> set[str]:
    """Where the workloads are that need a ConfigMap. It goes nowhere else, and stays nowhere else."""
    metadata = source["metadata"]
    return {cluster for leader in leaders(plane, metadata["namespace"], metadata["name"]) for cluster in placed(leader)}


def _follower(key: str, source: Object, clusters: set[str], members: Mapping[str, Disk]) -> list[str]:
    copies = {cluster: found(members[cluster], key) for cluster in sorted(clusters)}
    missing = [f"{key} is needed in {cluster} and is not there" for cluster, copy in copies.items() if copy is None]
    return missing + [
        f"{key} has other data in {cluster}"
        for cluster, copy in copies.items()
        if copy is not None and copy.get("data") != source.get("data")
    ]


def _ready(cluster: Object) -> bool:
    return {("Joined", "True"), ("Ready", "True")} <= _states(cluster)


def _silent(cluster: Object) -> bool:
    return ("Responding", "False") in _states(cluster)


def _states(cluster: Object) -> Set[tuple[str, str]]:
    conditions = (cluster.get("status") or {}).get("conditions") or ()
    return {(each["type"], each["status"]) for each in conditions}


def _copies(
    key: str,
    source: Object,
    federated: Object,
    clusters: Mapping[str, int | None],
    members: Mapping[str, Disk],
    cordoned: Set[str],
) -> list[str]:
    wrong: list[str] = []
    replicas: list[int] = []
    for cluster, number in clusters.items():
        copy = found(members[cluster], key)
        if held(federated, cluster):  # it may have a copy, as it was
            replicas.append(((copy or {}).get("spec") or {}).get("replicas", 0))
            continue
        if copy is None:
            wrong.append(f"{key} is to be in {cluster} and is not")
            continue
        spec = copy.get("spec") or {}
        if "spec" in source:
            wanted = number if number is not None else source["spec"]["replicas"]
            if spec.get("replicas") != wanted:
                wrong.append(f"{key} is to have {wanted} replicas in {cluster}, and has {spec.get('replicas')}")
            replicas.append(spec.get("replicas", 1))
        elif copy.get("data") != source.get("data"):
            wrong.append(f"{key} has other data in {cluster}")
    wrong += _status(key, federated, clusters)
    if "spec" in source and clusters and not wrong and not any(held(federated, cluster) for cluster in clusters):
        wrong += _told(key, source, replicas)
        # A cluster that takes no more may be the only one that a policy leaves.
        divided = None not in clusters.values() and not cordoned.intersection(clusters)
        if divided and not _waits(source) and sum(replicas) != source["spec"]["replicas"]:
            wrong.append(f"{key}: {source['spec']['replicas']} replicas are asked for, and members run {replicas}")
    return wrong


def _status(key: str, federated: Object, clusters: Mapping[str, int | None]) -> list[str]:
    status, generation = federated.get("status") or {}, federated["metadata"]["generation"]
    wrong = []
    if clusters and status.get("syncedGeneration") != generation:
        wrong.append(f"{key}: generation {status.get('syncedGeneration')} of {generation} was carried out")
    states = {each["cluster"]: each.get("status") for each in status.get("clusters") or ()}
    if states != {each: "ApplyOverridesFailed" if held(federated, each) else "OK" for each in clusters}:
        wrong.append(f"{key}: its status is {states}, and it is placed in {sorted(clusters)}")
    if keys.TO_BE_REMOVED in federated["metadata"]["annotations"]:
        wrong.append(f"{key}: {federated['metadata']['annotations'][keys.TO_BE_REMOVED]} is still to be removed")
    return wrong


def _overridden(
    plane: Disk,
    key: str,
    source: Object,
    federated: Object,
    clusters: Mapping[str, int | None],
    members: Mapping[str, Disk],
) -> list[str]:
    """Each Deployment has the image that is wanted in a cluster, with the override that is meant for it; or it is held there."""
    if "spec" not in source:
        return []
    wrong, overriders = [], _overriders(plane, source)
    for cluster in clusters:
        stated = overriders.get(cluster, {})
        if held(federated, cluster) != ("jsonpatch" in stated):
            wrong.append(f"{key} is {'not ' if 'jsonpatch' in stated else ''}held in {cluster}")
        copy = found(members[cluster], key)
        if copy is None or held(federated, cluster):
            continue
        wanted = f"{MIRROR}/{_image(source)}" if "image" in stated else _image(source)
        if _image(copy) != wanted:
            wrong.append(f"{key} is to have the image {wanted} in {cluster}, and has {_image(copy)}")
    return wrong


def _overriders(plane: Disk, source: Object) -> dict[str, Object]:
    """By cluster, of the override policy that it names."""
    metadata = source["metadata"]
    if (metadata.get("labels") or {}).get(keys.OVERRIDE_POLICY_LABEL) is None:
        return {}
    policy = found(plane, f"{_OVERRIDES}/{metadata['namespace']}/{DIFFERING}") or {"spec": {}}
    rules = policy["spec"].get("overrideRules") or ()
    return {cluster: rule["overriders"] for rule in rules for cluster in rule["targetClusters"]["clusters"]}


def _waits(source: Object) -> bool:
    """Whether its pods may wait for room: then fewer are placed, or more while they move, and not all are ready."""
    return bool(source["spec"]["template"]["spec"]["containers"][0].get("resources"))


def _told(key: str, source: Object, replicas: list[int]) -> list[str]:
    """The source's status: all replicas, everywhere."""
    wrong, status = [], source.get("status") or {}
    if status.get("observedGeneration") != source["metadata"]["generation"]:
        wrong.append(f"{key}: its status is of generation {status.get('observedGeneration')}")
    told = {field: status.get(field, 0) for field in _COUNTS}
    if not _waits(source) and set(told.values()) != {sum(replicas)}:
        wrong.append(f"{key}: its status tells of {told}, and there are {sum(replicas)}")
    return wrong


def _left_over(wanted: set[tuple[str, str]], members: Mapping[str, Disk]) -> list[str]:
    wrong = []
    for cluster, disk in members.items():
        for table in _TABLES:
            for name, copy in listed(disk, table).items():
                if managed(copy) and (cluster, f"{table}/{name}") not in wanted:
                    wrong.append(f"{table}/{name} is in {cluster} and nobody wants it there")
    return wrong


def _image(source: Object) -> str:
    image: str = source["spec"]["template"]["spec"]["containers"][0]["image"]
    return image
