"""Scale: the number of replicas of any scalable kind, read and written without knowing the kind."""

from typing import Any

from argosy.kube import schema, typecheck
from argosy.kube.selectors import SelectorError, from_label_selector
from argosy.server.fielderrors import FieldError, invalid
from argosy.server.registry import Decoded, Kind, Object, ScalePaths, Strategy

__all__ = ["SCALE", "read_scale", "write_scale"]


class _ScaleStrategy(Strategy):
    generation = False
    name_rule = "path"

    def decode(self, obj: Object) -> Decoded:
        type = schema.load().kind("autoscaling", "v1", "Scale")
        assert type is not None
        checked = typecheck.check(type, obj)
        return Decoded(checked.unknown, checked.mistyped)

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        if not isinstance(spec, dict):
            return [invalid("spec", spec, "must be an object")]
        replicas = spec.get("replicas", 0)
        if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
            return [invalid("spec.replicas", replicas, "must be greater than or equal to 0")]
        return []


#: The kind clients see at /scale, whatever the resource.
SCALE = Kind("autoscaling", "v1", "Scale", "scales", "scale", True, _ScaleStrategy())


def read_scale(kind: Kind, obj: Object) -> Object:
    paths = kind.scale or ScalePaths()
    meta = obj["metadata"]
    out: Object = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            key: meta[key]
            for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
            if key in meta
        },
        "spec": {},
        "status": {"replicas": _dig(obj, paths.status_replicas) or 0},
    }
    replicas = _dig(obj, paths.spec_replicas)
    if replicas:
        out["spec"]["replicas"] = replicas
    selector = _selector(_dig(obj, paths.selector)) if paths.selector else ""
    if selector:
        out["status"]["selector"] = selector
    return out


def _selector(value: Any) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        return ""
    if value and "matchLabels" not in value and "matchExpressions" not in value:
        # The selector of a ReplicationController is a plain map.
        value = {"matchLabels": value}
    try:
        return str(from_label_selector(value))
    except SelectorError:
        return ""


def write_scale(kind: Kind, obj: Object, scale: Object) -> None:
    """Set the desired replicas (and the version the writer saw) in the scaled object."""
    *parents, last = (kind.scale or ScalePaths()).spec_replicas.split(".")
    node = obj
    for part in parents:
        node = node.setdefault(part, {})
    node[last] = (scale.get("spec") or {}).get("replicas", 0)
    version = scale["metadata"].get("resourceVersion")
    if version:
        obj["metadata"]["resourceVersion"] = version
    else:
        obj["metadata"].pop("resourceVersion", None)
    uid = scale["metadata"].get("uid")
    if uid:
        obj["metadata"]["uid"] = uid


def _dig(obj: Any, path: str) -> Any:
    for part in path.split("."):
        if not isinstance(obj, dict):
            return None
        obj = obj.get(part)
    return obj
