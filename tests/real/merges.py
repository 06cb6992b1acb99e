"""Generated Deployments, Services and Pods, and changes of them: whole new manifests, and strategic merge patches.

Everything is drawn from a `random.Random`, which may be hypothesis' own, so that what fails can be made small. Manifests are
mostly valid; patches are anything a strategic merge patch may say, directives included.
"""

import copy
import random
from typing import Any

from argosy.kube.schema import Type
from argosy.kube.strategic import DELETE_FROM, DIRECTIVE, RETAIN_KEYS, SET_ORDER

Object = dict[str, Any]
KINDS = ("Deployment", "Service", "Pod")

_VOLUMES = [
    {"emptyDir": {}},
    {"emptyDir": {"medium": "Memory"}},
    {"configMap": {"name": "c"}},
    {"configMap": {"name": "c", "optional": True, "items": [{"key": "k", "path": "p"}]}},
    {"secret": {"secretName": "s"}},
    {"hostPath": {"path": "/x"}},
]
_VALUES: dict[str, list[Any]] = {
    "image": ["app:1", "app:2"],
    "value": ["1", "2"],
    "replicas": [0, 1, 3],
    "containerPort": [80, 81],
    "targetPort": [8080, "web"],
    "effect": ["NoSchedule", "NoExecute"],
    "imagePullPolicy": ["Always", "Never"],
    "tolerationSeconds": [1, 2],
    "activeDeadlineSeconds": [100, 50],
}
#: Of metadata, what a patch may touch without making another object of it.
_METADATA = ("labels", "annotations", "finalizers")


def manifest(chance: random.Random, kind: str, name: str) -> Object:
    if kind == "Service":
        return _object("v1", kind, name, _service(chance))
    spec = _pod_spec(chance)
    if kind == "Pod":
        return _object("v1", kind, name, spec)
    labels = {"app": name, **_some_map(chance)}
    made: Object = {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": labels}, "spec": spec},
    }
    _maybe(chance, made, "replicas", lambda: chance.choice([0, 1, 2]))
    _maybe(chance, made, "strategy", lambda: _strategy(chance))
    _maybe(chance, made, "paused", lambda: chance.choice([True, False]))
    _maybe(chance, made, "revisionHistoryLimit", lambda: chance.choice([1, 2]))
    return _object("apps/v1", kind, name, made)


def modified(chance: random.Random, obj: Object) -> Object:
    """Another manifest of the same object: parts of it drawn anew, lists with items added, taken out and moved, nulls."""
    name = obj["metadata"]["name"]
    fresh = manifest(chance, obj["kind"], name)
    result = copy.deepcopy(obj)
    result["metadata"] = {**fresh["metadata"], "name": name}
    _mix(chance, result["spec"], fresh["spec"])
    return result


def pod_change(chance: random.Random, obj: Object) -> Object:
    """A change of a Pod that the API allows: most of its spec may not be touched."""
    result = copy.deepcopy(obj)
    result["metadata"] = manifest(chance, "Pod", obj["metadata"]["name"])["metadata"]
    for container in result["spec"]["containers"]:
        container["image"] = chance.choice(_VALUES["image"])
    result["spec"]["tolerations"] = [*result["spec"].get("tolerations", []), {"key": "new", "operator": "Exists"}]
    return result


def patch(chance: random.Random, stored: Object, type: Type) -> Object:
    """Any strategic merge patch of a stored object."""
    made: Object = {}
    spec = type.child("spec")
    if stored["kind"] == "Pod" and chance.random() < 0.7:
        made["spec"] = _allowed_changes(chance, stored["spec"])
    elif chance.random() < 0.9:
        made["spec"] = _changes(chance, stored["spec"], spec)
    if chance.random() < 0.4:
        metadata = type.child("metadata")
        held = {key: stored["metadata"].get(key, {} if key != "finalizers" else []) for key in _METADATA}
        made["metadata"] = {
            key: value for key, value in _changes(chance, held, metadata).items() if key.rpartition("/")[2] in _METADATA
        }
    return made


def _object(api_version: str, kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _service(chance: random.Random) -> Object:
    numbers = chance.sample([80, 81, 53, 443], chance.randint(1, 3))
    ports = []
    for number in numbers:
        port: Object = {"name": f"p{number}", "port": number}
        _maybe(chance, port, "targetPort", lambda: chance.choice(_VALUES["targetPort"]))
        _maybe(chance, port, "protocol", lambda: chance.choice(["TCP", "UDP"]))
        ports.append(port)
    spec: Object = {"clusterIP": "None", "ports": ports}
    _maybe(chance, spec, "selector", lambda: _some_map(chance))
    _maybe(chance, spec, "externalIPs", lambda: chance.sample(["192.0.2.1", "192.0.2.2", "192.0.2.3"], 2))
    _maybe(chance, spec, "publishNotReadyAddresses", lambda: True)
    return spec


def _pod_spec(chance: random.Random) -> Object:
    volumes = [
        {"name": f"v{number}", **chance.choice(_VOLUMES)} for number in chance.sample(range(4), chance.randint(0, 3))
    ]
    names = [volume["name"] for volume in volumes]
    containers = [_container(chance, name, names) for name in chance.sample("abcd", chance.randint(1, 3))]
    spec: Object = {"automountServiceAccountToken": False, "containers": containers}
    if volumes:
        spec["volumes"] = volumes
    _maybe(
        chance,
        spec,
        "initContainers",
        lambda: [_container(chance, f"i{name}", names) for name in chance.sample("ab", 1)],
    )
    _maybe(chance, spec, "tolerations", lambda: [_toleration(chance) for _ in range(chance.randint(1, 3))])
    _maybe(chance, spec, "nodeSelector", lambda: _some_map(chance))
    _maybe(chance, spec, "imagePullSecrets", lambda: [{"name": name} for name in chance.sample(["x", "y", "z"], 2)])
    _maybe(
        chance,
        spec,
        "hostAliases",
        lambda: [
            {"ip": ip, "hostnames": chance.sample(["h", "i"], 1)} for ip in chance.sample(["192.0.2.1", "192.0.2.2"], 1)
        ],
    )
    _maybe(chance, spec, "terminationGracePeriodSeconds", lambda: chance.choice([1, 2]))
    return spec


def _container(chance: random.Random, name: str, volumes: list[str]) -> Object:
    container: Object = {"name": name, "image": chance.choice(_VALUES["image"])}
    _maybe(chance, container, "ports", lambda: _ports(chance))
    _maybe(
        chance,
        container,
        "env",
        lambda: [_variable(chance, key) for key in chance.sample("ABCD", chance.randint(1, 3))],
    )
    _maybe(chance, container, "args", lambda: chance.sample(["x", "y", "z"], 2))
    _maybe(chance, container, "resources", lambda: {"requests": {"cpu": chance.choice(["1", "100m"])}})
    if volumes:
        _maybe(
            chance,
            container,
            "volumeMounts",
            lambda: [
                {"name": chance.choice(volumes), "mountPath": path} for path in chance.sample(["/a", "/b", "/c"], 2)
            ],
        )
    return container


def _ports(chance: random.Random) -> list[Object]:
    ports = []
    for number in chance.sample([53, 80, 443, 8080], chance.randint(1, 3)):
        port: Object = {"containerPort": number}
        _maybe(chance, port, "name", lambda number=number: f"p{number}")
        _maybe(chance, port, "protocol", lambda: chance.choice(["TCP", "UDP"]))
        ports.append(port)
    return ports


def _variable(chance: random.Random, name: str) -> Object:
    if chance.random() < 0.3:
        return {
            "name": name,
            "valueFrom": {"fieldRef": {"fieldPath": chance.choice(["metadata.name", "spec.nodeName"])}},
        }
    return {"name": name, "value": chance.choice(_VALUES["value"])}


def _toleration(chance: random.Random) -> Object:
    toleration: Object = {"key": chance.choice(["k", "l"]), "operator": "Exists"}
    _maybe(chance, toleration, "effect", lambda: chance.choice(_VALUES["effect"]))
    return toleration


def _strategy(chance: random.Random) -> Object:
    if chance.random() < 0.4:
        return {"type": "Recreate"}
    strategy: Object = {"type": "RollingUpdate"}
    _maybe(chance, strategy, "rollingUpdate", lambda: {"maxSurge": chance.choice([1, "50%"])})
    return strategy


def _some_map(chance: random.Random) -> dict[str, str]:
    return {key: chance.choice("12") for key in chance.sample("pqr", chance.randint(1, 2))}


def _maybe(chance: random.Random, into: Object, key: str, make: Any) -> None:
    if chance.random() < 0.5:
        into[key] = make()


def _mix(chance: random.Random, into: Object, fresh: Object) -> None:
    for key in sorted({*into, *fresh}):
        roll = chance.random()
        if key in ("selector", "clusterIP", "automountServiceAccountToken") or roll < 0.3:
            continue
        if key in into and key in fresh and isinstance(into[key], dict) and isinstance(fresh[key], dict) and roll < 0.8:
            _mix(chance, into[key], fresh[key])
        elif key in into and isinstance(into[key], list) and into[key] and roll < 0.8:
            into[key] = _mixed_list(chance, into[key], fresh.get(key) or [])
        elif key in fresh:
            into[key] = fresh[key]
        elif key not in ("containers", "template", "metadata", "labels", "app", "spec", "ports", "name", "image"):
            # A null says the same as leaving it out.
            into[key] = None
            if roll < 0.9:
                del into[key]


def _mixed_list(chance: random.Random, items: list[Any], fresh: list[Any]) -> list[Any]:
    """Some of the old items, some of the new ones, in any order; no two of the same key."""
    pool = [item for item in [*items, *fresh] if chance.random() < 0.7] or items[:1]
    chance.shuffle(pool)
    found: dict[str, Any] = {}
    for item in pool:
        found.setdefault(_label(item), item)
    return list(found.values())


def _label(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item)
    for key in ("mountPath", "containerPort", "port", "ip", "name", "key"):
        if key in item:
            return str(item[key])
    return str(item)


def _changes(chance: random.Random, current: Object, type: Type | None) -> Object:
    """A patch of an object: nulls, new values, patches of what is inside, directives."""
    made: Object = {}
    for key in sorted(current):
        if chance.random() < 0.45:
            continue
        value, field = current[key], type.child(key) if type is not None else None
        if isinstance(value, dict):
            made[key] = None if chance.random() < 0.08 else _changes(chance, value, field)
        elif isinstance(value, list):
            _list_changes(chance, made, key, value, field)
        else:
            made[key] = _scalar(chance, key, value)
    roll = chance.random()
    if roll < 0.04:
        made[DIRECTIVE] = "delete"
    elif roll < 0.1:
        made[DIRECTIVE] = "replace"
    elif roll < 0.2:
        kept = [key for key in sorted(current) if chance.random() < 0.8]
        made[RETAIN_KEYS] = sorted({*kept, *(key for key in made if not key.startswith("$"))})
    return made


def _allowed_changes(chance: random.Random, current: Object) -> Object:
    """Of a Pod's spec: images, more tolerations, a shorter life; containers named in any order."""
    items = [{"name": one["name"], "image": chance.choice(_VALUES["image"])} for one in current["containers"]]
    chance.shuffle(items)
    made: Object = {"containers": items[: chance.randint(0, len(items))]}
    if chance.random() < 0.6:
        made[f"{SET_ORDER}/containers"] = [{"name": one["name"]} for one in current["containers"]]
        made["containers"].sort(key=lambda one: [each["name"] for each in current["containers"]].index(one["name"]))
    _maybe(chance, made, "tolerations", lambda: [*current.get("tolerations", []), _toleration(chance)])
    _maybe(chance, made, "activeDeadlineSeconds", lambda: chance.choice(_VALUES["activeDeadlineSeconds"]))
    _maybe(chance, made, "nodeName", lambda: None)
    return made


def _scalar(chance: random.Random, key: str, value: Any) -> Any:
    if chance.random() < 0.2:
        return None
    return chance.choice([value, *_VALUES.get(key, [])])


def _list_changes(chance: random.Random, made: Object, key: str, items: list[Any], type: Type | None) -> None:
    if type is None or "merge" not in type.strategies:
        made[key] = chance.sample(items, chance.randint(0, len(items)))
        return
    if not type.merge_key:
        _set_changes(chance, made, key, items)
        return
    merge_key = type.merge_key
    changed = [
        {**_changes(chance, item, type.item), merge_key: item[merge_key]} for item in items if chance.random() < 0.5
    ]
    gone = [{DIRECTIVE: "delete", merge_key: item[merge_key]} for item in items if chance.random() < 0.2]
    if items and chance.random() < 0.4:
        new = copy.deepcopy(chance.choice(items))
        new[merge_key] = 7 if isinstance(new[merge_key], int) else f"{new[merge_key]}n"
        changed.append(new)
    chance.shuffle(changed)
    roll = chance.random()
    if roll < 0.4:
        _order(chance, made, key, changed, items, merge_key)
    if roll > 0.95:
        gone.append({DIRECTIVE: "replace"})
    everything = changed + gone
    if roll > 0.7:
        chance.shuffle(everything)
    if everything or roll < 0.05:
        made[key] = everything


def _order(chance: random.Random, made: Object, key: str, changed: list[Any], items: list[Any], merge_key: str) -> None:
    """The order of what the patch has, with some of the others in between; now and then one that does not fit."""
    order = [item[merge_key] for item in changed]
    for item in items:
        if item[merge_key] not in order and chance.random() < 0.6:
            order.insert(chance.randint(0, len(order)), item[merge_key])
    if chance.random() < 0.1:
        chance.shuffle(order)
    made[f"{SET_ORDER}/{key}"] = [{merge_key: value} for value in order]


def _set_changes(chance: random.Random, made: Object, key: str, items: list[Any]) -> None:
    made[key] = [f"example.com/{letter}" for letter in "abc" if chance.random() < 0.4]
    if chance.random() < 0.5:
        made[f"{DELETE_FROM}/{key}"] = [item for item in [*items, "example.com/z"] if chance.random() < 0.5]
    if chance.random() < 0.3:
        made[f"{SET_ORDER}/{key}"] = [*made[key], *(item for item in items if item not in made[key])]
