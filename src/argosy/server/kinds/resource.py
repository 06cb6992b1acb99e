"""resource.k8s.io/v1: devices, their classes, and claims to them, as stored objects.

Nothing is allocated here, and CEL selectors are stored as written.
"""

from collections.abc import Mapping
from typing import Any

from argosy.kube.schema import Schemas
from argosy.server.fielderrors import FieldError, duplicate, invalid, not_supported, required
from argosy.server.kinds.shared import domains
from argosy.server.kinds.shared import meta_rules as rules
from argosy.server.kinds.shared.builtin import BuiltinStrategy, StatuslessStrategy, declare
from argosy.server.kinds.shared.defaults import fill
from argosy.server.registry import Kind, Object

__all__ = ["kinds"]

GROUP = "resource.k8s.io"
MODES = ["All", "ExactCount"]
PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def kinds(schemas: Schemas) -> list[Kind]:
    claims = declare(
        schemas,
        ResourceClaimStrategy,
        GROUP,
        "v1",
        "ResourceClaim",
        "resourceclaims",
        subresources=frozenset({"status"}),
    )
    return [
        declare(schemas, DeviceClassStrategy, GROUP, "v1", "DeviceClass", "deviceclasses", namespaced=False),
        claims,
        declare(schemas, ClaimTemplateStrategy, GROUP, "v1", "ResourceClaimTemplate", "resourceclaimtemplates"),
        declare(schemas, ResourceSliceStrategy, GROUP, "v1", "ResourceSlice", "resourceslices", namespaced=False),
    ]


class DeviceClassStrategy(StatuslessStrategy):
    generation = True

    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})


class ResourceClaimStrategy(BuiltinStrategy):
    generation = False

    def default(self, obj: Object) -> None:
        _default_claim(obj.setdefault("spec", {}))

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> list[FieldError]:
        return _requests(obj["spec"], "spec.devices.requests")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return rules.immutable(new["spec"], old["spec"], "spec")


class ClaimTemplateStrategy(StatuslessStrategy):
    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("metadata", {})
        _default_claim(spec.setdefault("spec", {}))

    def validate(self, obj: Object) -> list[FieldError]:
        return _requests(obj["spec"]["spec"], "spec.spec.devices.requests")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return rules.immutable(new["spec"], old["spec"], "spec")


class ResourceSliceStrategy(StatuslessStrategy):
    generation = True
    selectable = {  # noqa: RUF012
        "spec.nodeName": lambda obj: str((obj.get("spec") or {}).get("nodeName") or ""),
        "spec.driver": lambda obj: str((obj.get("spec") or {}).get("driver") or ""),
    }

    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {}).setdefault("pool", {})

    def validate(self, obj: Object) -> list[FieldError]:
        spec, pool = obj["spec"], obj["spec"]["pool"]
        errors = domains.csi_driver(spec.get("driver") or "", "spec.driver")
        if not pool.get("name"):
            errors.append(required("spec.pool.name"))
        errors += rules.positive(pool.get("resourceSliceCount") or 0, "spec.pool.resourceSliceCount")
        errors += rules.nonnegative(pool.get("generation") or 0, "spec.pool.generation")
        given = [field for field in PLACES if spec.get(field)]
        which = ", ".join(f"`{field}`" for field in PLACES)
        if not given:
            errors.append(required("spec", f"exactly one of {which} is required"))
        elif len(given) > 1:
            shown = "{" + ", ".join(given) + "}"
            errors.append(invalid("spec", shown, f"exactly one of {which} is required, but multiple fields are set"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = self.validate(new)
        spec, stored = new["spec"], old["spec"]
        for field in ("nodeName", "driver"):
            errors += rules.immutable(spec.get(field), stored.get(field), f"spec.{field}")
        pool, before = spec["pool"].get("name"), (stored.get("pool") or {}).get("name")
        return errors + rules.immutable(pool, before, "spec.pool.name")


def _default_claim(spec: Object) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for exact in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if exact is None:
                continue
            if not exact.get("allocationMode"):
                exact["allocationMode"] = "ExactCount"
            if exact["allocationMode"] == "ExactCount" and not exact.get("count"):
                exact["count"] = 1
            for toleration in exact.get("tolerations") or ():
                fill(toleration, "operator", "Equal")


def _requests(spec: Mapping[str, Any], path: str) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for i, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        at, name = f"{path}[{i}]", request.get("name") or ""
        exact, first = request.get("exactly"), request.get("firstAvailable")
        errors += rules.dns_label(name, f"{at}.name") if name else [required(f"{at}.name")]
        if (exact is None) == (not first):
            detail = "exactly one of `exactly` or `firstAvailable` is required"
            errors.append(required(at, detail) if exact is None else invalid(at, None, detail))
        if exact is not None:
            errors += _exact(exact, f"{at}.exactly")
        for j, choice in enumerate(first or ()):
            errors += _exact(choice, f"{at}.firstAvailable[{j}]")
        if name in seen:
            errors.append(duplicate(at, name))
        seen.add(name)
    return errors


def _exact(exact: Mapping[str, Any], path: str) -> list[FieldError]:
    name, mode, count = exact.get("deviceClassName") or "", exact["allocationMode"], exact.get("count") or 0
    at = f"{path}.deviceClassName"
    errors = rules.dns_subdomain(name, at) if name else [required(at)]
    if mode not in MODES:
        errors.append(not_supported(f"{path}.allocationMode", mode, MODES))
    elif mode == "ExactCount":
        errors += rules.positive(count, f"{path}.count")
    elif count:
        detail = f"must not be specified when allocationMode is '{mode}'"
        errors.append(invalid(f"{path}.count", count, detail))
    return errors
