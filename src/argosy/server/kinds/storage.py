"""storage.k8s.io/v1: storage classes, and CSI drivers' own objects. Volumes and claims are core kinds."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from argosy.kube import names
from argosy.kube.quantity import parse_or_zero
from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required, too_long
from argosy.server.kinds.core.resource_lists import canonical_quantity
from argosy.server.kinds.shared import domains
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import BuiltinStrategy, StatuslessStrategy, declare
from argosy.server.kinds.shared.defaults import fill
from argosy.server.registry import Kind, Object
from argosy.server.status import MAX_CAUSES

__all__ = ["kinds"]

GROUP = "storage.k8s.io"
MAX_PARAMETERS = 512
MAX_PARAMETERS_BYTES = 256 * 1024
MAX_ERROR_MESSAGE = 1024
MAX_NODE_ID = 256
MIN_TOKEN_SECONDS = 600
MAX_TOKEN_SECONDS = 1 << 32


def kinds(schemas: Schemas) -> list[Kind]:
    def cluster(strategy: type[BuiltinStrategy], kind: str, plural: str, *short_names: str) -> Kind:
        return declare(schemas, strategy, GROUP, "v1", kind, plural, namespaced=False, short_names=short_names)

    return [
        cluster(CSIDriverStrategy, "CSIDriver", "csidrivers"),
        cluster(CSINodeStrategy, "CSINode", "csinodes"),
        declare(schemas, CapacityStrategy, GROUP, "v1", "CSIStorageCapacity", "csistoragecapacities"),
        cluster(StorageClassStrategy, "StorageClass", "storageclasses", "sc"),
        declare(
            schemas,
            AttachmentStrategy,
            GROUP,
            "v1",
            "VolumeAttachment",
            "volumeattachments",
            namespaced=False,
            subresources=frozenset({"status"}),
        ),
        cluster(AttributesClassStrategy, "VolumeAttributesClass", "volumeattributesclasses", "vac"),
    ]


def _provisioner(name: str, path: str) -> list[FieldError]:
    return rules.messages(name.lower(), path, names.qualified_name_errors(name.lower())) if name else [required(path)]


def _parameters(parameters: Mapping[str, str], path: str) -> list[FieldError]:
    if len(parameters) > MAX_PARAMETERS:
        return [too_long(path, MAX_PARAMETERS)]
    errors = [invalid(path, "", "field can not be empty.")] if "" in parameters else []
    if sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items()) > MAX_PARAMETERS_BYTES:
        errors.append(too_long(path, MAX_PARAMETERS_BYTES))
    return errors


class StorageClassStrategy(StatuslessStrategy):
    validates_prefix = True

    def default(self, obj: Object) -> None:
        fill(obj, "provisioner", "")
        fill(obj, "reclaimPolicy", "Delete")
        fill(obj, "volumeBindingMode", "Immediate")

    def validate(self, obj: Object) -> list[FieldError]:
        errors = _provisioner(obj["provisioner"], "provisioner")
        errors += _parameters(obj.get("parameters") or {}, "parameters")
        if obj["reclaimPolicy"] not in ("", "Delete", "Retain"):
            errors.append(not_supported("reclaimPolicy", obj["reclaimPolicy"], ["Delete", "Retain"]))
        if obj["volumeBindingMode"] not in ("Immediate", "WaitForFirstConsumer"):
            supported = ["Immediate", "WaitForFirstConsumer"]
            errors.append(not_supported("volumeBindingMode", obj["volumeBindingMode"], supported))
        return errors + _topologies(obj.get("allowedTopologies") or [], "allowedTopologies")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = self.validate(new)
        for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
            errors += rules.immutable(new.get(field), old.get(field), field)
        return errors


def _topologies(terms: list[Mapping[str, Any]], path: str) -> list[FieldError]:
    errors = []
    # Kubernetes also compares with as many empty terms as there are terms: an empty one always is a duplicate.
    seen = Counter({frozenset[tuple[str, frozenset[str]]](): len(terms)})
    for i, term in enumerate(terms):
        expressions: dict[str, frozenset[str]] = {}
        for j, expression in enumerate(term.get("matchLabelExpressions") or ()):
            where = f"{path}[{i}].matchLabelExpressions[{j}]"
            key, values = expression.get("key") or "", expression.get("values") or []
            errors += [] if values else [required(f"{where}.values")]
            errors += rules.unique(values, f"{where}.values")
            errors += rules.label_name(key, f"{where}.key")
            if key in expressions:
                errors.append(duplicate(f"{where}.key", key))
            expressions[key] = frozenset(values)
        term_key = frozenset(expressions.items())
        # Kubernetes reports it once for each earlier one; here the number of reports is limited.
        errors += [duplicate(f"{path}[{i}].matchLabelExpressions", "")] * min(seen[term_key], MAX_CAUSES)
        if len(errors) > MAX_CAUSES:
            break
        seen[term_key] += 1
    return errors


class AttributesClassStrategy(StatuslessStrategy):
    def default(self, obj: Object) -> None:
        fill(obj, "driverName", "")

    def validate(self, obj: Object) -> list[FieldError]:
        errors = _provisioner(obj["driverName"], "driverName")
        errors += _parameters(obj.get("parameters") or {}, "parameters")
        if not obj.get("parameters"):
            errors.append(required("parameters", "must contain at least one key/value pair"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = [
            forbidden(field, f"updates to {field} are forbidden.")
            for field in ("driverName", "parameters")
            if not rules.same(new.get(field), old.get(field))
        ]
        return errors + self.validate(new)


class AttachmentStrategy(BuiltinStrategy):
    generation = False
    unconditional_update = False

    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"attached": False}

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        source, path = spec.get("source") or {}, "spec.source"
        errors = domains.csi_driver(spec.get("attacher") or "", "spec.attacher")
        inline, volume = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
        one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        if inline is None and volume is None:
            errors.append(required(path, one))
        elif inline is not None and volume is not None:
            errors.append(forbidden(path, one))
        elif volume == "":
            errors.append(required(f"{path}.persistentVolumeName", "must specify non empty persistentVolumeName"))
        errors += rules.dns_subdomain(spec.get("nodeName") or "", "spec.nodeName")
        errors += _attachment_status(obj.get("status") or {})
        if volume is not None:
            errors += rules.dns_subdomain(volume, f"{path}.persistentVolumeName")
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate(new) + rules.immutable(new["spec"], old["spec"], "spec")

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate(new)


def _attachment_status(status: Mapping[str, Any]) -> list[FieldError]:
    errors = []
    metadata: Mapping[str, str] = status.get("attachmentMetadata") or {}
    if sum(len(key.encode()) + len(value.encode()) for key, value in metadata.items()) > MAX_PARAMETERS_BYTES:
        errors.append(too_long("status.attachmentMetadata", MAX_PARAMETERS_BYTES))
    for field in ("attachError", "detachError"):
        error = status.get(field) or {}
        if len((error.get("message") or "").encode()) > MAX_ERROR_MESSAGE:
            errors.append(too_long(f"status.{field}.message", MAX_PARAMETERS_BYTES))
        errors += rules.inclusive_range(error.get("errorCode") or 0, f"status.{field}.errorCode", 0, rules.MAX_INT32)
    return errors


class CSIDriverStrategy(StatuslessStrategy):
    unconditional_update = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        fill(spec, "attachRequired", True)
        for field in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
            fill(spec, field, False)
        fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType")
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]
        for request in spec.get("tokenRequests") or ():
            fill(request, "audience", "")

    def prepare_create(self, obj: Object) -> None:
        # Behind a feature gate that is off by default.
        obj["spec"].pop("preventPodSchedulingIfMissing", None)

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = []
        if spec["fsGroupPolicy"] not in ("File", "None", "ReadWriteOnceWithFSType"):
            supported = ["File", "None", "ReadWriteOnceWithFSType"]
            errors.append(not_supported("spec.fsGroupPolicy", spec["fsGroupPolicy"], supported))
        requests = spec.get("tokenRequests") or []
        errors += _token_requests(requests, "spec.tokenRequests")
        for mode in spec["volumeLifecycleModes"]:
            if mode not in ("Persistent", "Ephemeral"):
                errors.append(not_supported("spec.volumeLifecycleModes", mode, ["Persistent", "Ephemeral"]))
        period = spec.get("nodeAllocatableUpdatePeriodSeconds")
        if period is not None and period < 10:
            detail = "must be greater than or equal to 10 seconds"
            errors.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, detail))
        in_secrets = spec.get("serviceAccountTokenInSecrets")
        if in_secrets is not None and not requests:
            detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
            errors.append(invalid("spec.serviceAccountTokenInSecrets", in_secrets, detail))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = self.validate(new)
        # The path is misspelt in Kubernetes, too.
        attach = new["spec"]["attachRequired"], old["spec"].get("attachRequired")
        errors += rules.immutable(*attach, "spec.attachedRequired")
        modes = new["spec"]["volumeLifecycleModes"], old["spec"].get("volumeLifecycleModes")
        return errors + rules.immutable(*modes, "spec.volumeLifecycleModes")


def _token_requests(requests: list[Mapping[str, Any]], path: str) -> list[FieldError]:
    errors = []
    audiences: set[str] = set()
    for i, request in enumerate(requests):
        audience, seconds = request.get("audience") or "", request.get("expirationSeconds")
        if audience in audiences:
            errors.append(duplicate(f"{path}[{i}].audience", audience))
            continue
        audiences.add(audience)
        if seconds is not None and seconds < MIN_TOKEN_SECONDS:
            detail = "may not specify a duration less than 10 minutes"
            errors.append(invalid(f"{path}[{i}].expirationSeconds", seconds, detail))
        if seconds is not None and seconds > MAX_TOKEN_SECONDS:
            detail = "may not specify a duration larger than 2^32 seconds"
            errors.append(invalid(f"{path}[{i}].expirationSeconds", seconds, detail))
    return errors


class CSINodeStrategy(StatuslessStrategy):
    unconditional_update = False

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec["drivers"] = spec.get("drivers") or None

    def validate(self, obj: Object) -> list[FieldError]:
        errors = []
        seen: set[str] = set()
        for i, driver in enumerate(obj["spec"].get("drivers") or ()):
            path = f"spec.drivers[{i}]"
            name, node = driver.get("name") or "", driver.get("nodeID") or ""
            errors += domains.csi_driver(name, f"{path}.name")
            errors += [] if node else [required(f"{path}.nodeID")]
            if len(node) > MAX_NODE_ID:
                errors.append(invalid(f"{path}.nodeID", node, f"must be {MAX_NODE_ID} characters or less"))
            count = (driver.get("allocatable") or {}).get("count")
            errors += rules.nonnegative(count or 0, f"{path}.allocatable.count")
            if name in seen:
                errors.append(duplicate(f"{path}.name", name))
            seen.add(name)
            errors += _topology_keys(driver.get("topologyKeys") or [], path)
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = self.validate(new)
        stored = {driver.get("name"): driver for driver in old["spec"].get("drivers") or ()}
        for driver in new["spec"].get("drivers") or ():
            before = stored.get(driver.get("name"))
            if before is not None:
                errors += rules.immutable(_fixed(driver), _fixed(before), "spec.drivers")
        return errors


def _fixed(driver: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in driver.items() if key != "allocatable"}


def _topology_keys(keys: list[str], path: str) -> list[FieldError]:
    errors = []
    for key, repeated in zip(keys, rules.repeated(keys), strict=True):
        errors += [] if key else [required(path)]
        errors += [duplicate(path, key)] if repeated else []
        errors += rules.qualified_name(key, path)
    return errors


class CapacityStrategy(StatuslessStrategy):
    unconditional_update = False

    def default(self, obj: Object) -> None:
        fill(obj, "storageClassName", "")
        for field in ("capacity", "maximumVolumeSize"):
            if obj.get(field) is not None:
                obj[field] = canonical_quantity(obj[field])

    def validate(self, obj: Object) -> list[FieldError]:
        errors = rules.label_selector(obj.get("nodeTopology"), "nodeTopology")
        errors += rules.dns_subdomain(obj["storageClassName"], "storageClassName")
        capacity = obj.get("capacity")
        if capacity is not None and parse_or_zero(capacity).milli() < 0:
            errors.append(invalid("capacity", capacity, "must be greater than or equal to 0"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = self.validate(new)
        for field in ("nodeTopology", "storageClassName"):
            errors += rules.immutable(new.get(field), old.get(field), field)
        return errors
