"""View: what of a record two members are compared by. What is left out is in `differences`.

A view is plain data, so that a difference between two of them can be shown line by line.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from tests.real.simulation import differences
from tests.real.simulation.record import Entry, Object, Record


def state(record: Record) -> dict[str, Any]:
    """The namespace as it is now."""
    view: dict[str, Any] = {}
    for kind, objects in record.objects.items():
        if kind == "Event":
            continue
        lines = Counter(_text(_object(record, obj)) for obj in objects.values())
        for line, count in lines.items():
            view[f"{kind} {line}"] = count
    for key, count in events(record).items():
        view[f"Event {key}"] = count
    return view


def events(record: Record) -> dict[str, int]:
    """How often each kind of event was told of each object; 1 for those that are told again and again."""
    counted: Counter[str] = Counter()
    for event in record.objects["Event"].values():
        if differences.is_told_by_kubelet(event) or event["reason"] in differences.PASSING:
            continue
        involved = event["involvedObject"]
        if event["reason"] == "FailedScheduling" and _has_claims(record, involved["name"]):
            continue  # whether a claim is there is seen by a scheduler in time or a moment later
        about = _named(record, involved["kind"], involved["name"], involved.get("uid", ""))
        key = f"{event['type']} {event['reason']} of {about} by {differences.component(event)}"
        series = event.get("series") or {}
        counted[key] += event.get("count") or series.get("count") or 1
    return {key: 1 if _is_repeated(key) else count for key, count in counted.items()}


def _has_claims(record: Record, pod: str) -> bool:
    versions = [entry.object for entry in record.ordered() if (entry.kind, entry.name) == ("Pod", pod)]
    return any("persistentVolumeClaim" in volume for each in versions for volume in each["spec"].get("volumes") or ())


def _is_repeated(key: str) -> bool:
    return key.partition(" ")[2].startswith(differences.REPEATED)


def steps(record: Record) -> list[str]:
    """Every change of the size of a ReplicaSet, in order."""
    sizes: dict[str, int] = {}
    found = []
    for entry in record.ordered():
        if entry.kind != "ReplicaSet" or entry.type == "DELETED":
            continue
        name, size = replica_set(record, entry.object), entry.object["spec"]["replicas"]
        if sizes.get(name) != size:
            found.append(f"{name}: {sizes.get(name, 'new')} to {size}")
            sizes[name] = size
    return found


def reasons(record: Record, kind: str, name: str, condition: str) -> list[str]:
    """The statuses and reasons a condition of one object went through."""
    found: list[str] = []
    for entry in record.ordered():
        if (entry.kind, entry.name) != (kind, name) or entry.type == "DELETED":
            continue
        now = conditions(entry.object).get(condition)
        if now is not None and (not found or found[-1] != now):
            found.append(now)
    return found


def least_available(record: Record, name: str = "web") -> int:
    """The fewest available replicas a Deployment has told of since it was first complete."""
    told: list[int] = []
    for entry in record.ordered():
        if (entry.kind, entry.name) == ("Deployment", name) and entry.type != "DELETED":
            available = (entry.object.get("status") or {}).get("availableReplicas", 0)
            if told or available == entry.object["spec"]["replicas"]:
                told.append(available)
    return min(told)


def ends(record: Record) -> list[str]:
    """The kinds in the order in which objects went, one after the other of the same kind told once."""
    found: list[str] = []
    for entry in record.ordered():
        gone = entry.type == "DELETED" and entry.kind not in ("Event", "ControllerRevision")
        if gone and found[-1:] != [entry.kind]:
            found.append(entry.kind)
    return found


def starts(record: Record) -> list[str]:
    """Pods with names of their own in the order in which they came and went."""
    words = {"ADDED": "came", "DELETED": "went"}
    return [f"{entry.name} {words[entry.type]}" for entry in record.ordered() if _comes_or_goes(entry)]


def _comes_or_goes(entry: Entry) -> bool:
    return entry.kind == "Pod" and entry.type in ("ADDED", "DELETED")


def replica_set(record: Record, obj: Object) -> str:
    """A ReplicaSet by its number, or by its name where a user chose that."""
    name = str(obj["metadata"]["name"])
    owned = "pod-template-hash" in (obj["metadata"].get("labels") or {})
    return f"ReplicaSet {record.numbers[obj['metadata']['uid']]}" if owned else f"ReplicaSet {name}"


def conditions(obj: Object) -> dict[str, str]:
    found = (obj.get("status") or {}).get("conditions") or ()
    return {one["type"]: f"{one['status']} {one.get('reason') or ''}".strip() for one in found}


def _text(view: Any) -> str:
    return orjson.dumps(view, option=orjson.OPT_SORT_KEYS).decode()


def _object(record: Record, obj: Object) -> dict[str, Any]:
    metadata, kind = obj["metadata"], obj["kind"]
    view: dict[str, Any] = {
        "name": _named(record, kind, metadata["name"], metadata["uid"]),
        "owners": [_owner(record, one) for one in metadata.get("ownerReferences") or ()],
        "labels": _plain(metadata.get("labels")),
        "annotations": _plain(metadata.get("annotations")),
        "finalizers": metadata.get("finalizers") or [],
        "deleting": "deletionTimestamp" in metadata,
        "generation": metadata.get("generation"),
        "conditions": conditions(obj),
    }
    if kind == "Pod":
        return view | _pod(obj)
    if kind == "ControllerRevision":
        return view | {"revision": obj["revision"]}
    if kind == "PersistentVolumeClaim":
        view |= {"class": obj["spec"].get("storageClassName"), "bound": bool(obj["spec"].get("volumeName"))}
    return view | {"replicas": obj["spec"].get("replicas"), "status": _status(record, obj)}


def _owner(record: Record, reference: Object) -> list[Any]:
    name = _named(record, reference["kind"], reference["name"], reference["uid"])
    return [name, reference.get("controller"), reference.get("blockOwnerDeletion")]


def _named(record: Record, kind: str, name: str, uid: str) -> str:
    if kind == "ReplicaSet":
        found = record.objects["ReplicaSet"].get(name)
        if found is not None:
            return replica_set(record, found)
        return f"ReplicaSet {record.numbers.get(uid, name)}"
    if kind == "ControllerRevision":
        return "ControllerRevision"
    if kind == "Pod":
        last = next((one for one in reversed(record.entries) if one.kind == "Pod" and one.name == name), None)
        owners = last.object["metadata"].get("ownerReferences") or [] if last is not None else []
        chosen = any(one["kind"] == "StatefulSet" for one in owners)
        if last is not None and not chosen and "generateName" in last.object["metadata"]:
            return f"Pod of {_owner(record, owners[0])[0]}" if owners else "Pod of nobody"
    return f"{kind} {_timeless(name)}"


def _timeless(text: str) -> str:
    return differences.MINUTE.sub("-*", text)


def _plain(values: Mapping[str, str] | None) -> dict[str, str]:
    return {key: "*" if key in differences.CHANCE else _timeless(value) for key, value in (values or {}).items()}


def _pod(obj: Object) -> dict[str, Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    return {
        "bound": bool(spec.get("nodeName")),
        "generated": "generateName" in obj["metadata"],
        "image": [one["image"] for one in spec["containers"]],
        "env": [one.get("env") for one in spec["containers"]],
        "hostname": [spec.get("hostname"), spec.get("subdomain")],
        "tolerations": spec.get("tolerations"),
        "phase": status.get("phase"),
        "observed": status.get("observedGeneration"),
        "containers": [_container(one) for one in status.get("containerStatuses") or ()],
    }


def _container(status: Object) -> list[Any]:
    [(kind, details)] = (status.get("state") or {"none": {}}).items()
    return [kind, details.get("reason"), details.get("exitCode"), status["ready"], status["restartCount"]]


def _status(record: Record, obj: Object) -> dict[str, Any]:
    view = {key: value for key, value in (obj.get("status") or {}).items() if key not in differences.TIMES}
    if "active" in view and isinstance(view["active"], list):
        view["active"] = [_named(record, one["kind"], one["name"], one["uid"]) for one in view["active"]]
    for field in ("currentRevision", "updateRevision"):
        if field in view:
            found = record.objects["ControllerRevision"].get(view[field])
            view[field] = found["revision"] if found is not None else "gone"
    return view


def difference(one: Mapping[str, Any], other: Mapping[str, Any], names: Sequence[str]) -> str:
    """Lines that only one of two views has; of the fields of objects those that are not the same in all of these lines."""
    keys = [key for key in sorted({*one, *other}) if one.get(key) != other.get(key)]
    return "\n".join(
        f"  {names[0]} {one.get(key, 0)}, {names[1]} {other.get(key, 0)}: {short}"
        for key, short in zip(keys, _shortened(keys), strict=True)
    )


def _shortened(lines: Sequence[str]) -> list[str]:
    parts = [line.partition(" ") for line in lines]
    fields = {
        kind: [orjson.loads(text) for other, _, text in parts if other == kind and text.startswith("{")]
        for kind, _, _ in parts
    }
    short = []
    for kind, _, text in parts:
        alike, own = fields[kind], orjson.loads(text) if text.startswith("{") else {}
        told = {key: own[key] for key in own if key == "name" or any(one[key] != own[key] for one in alike)}
        short.append(f"{kind} {_text(told) if own else text}")
    return short
