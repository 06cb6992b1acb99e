"""A field or key of the API that no code reads has a caveat: whoever writes it is warned."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from argosy.api import crds, keys
from argosy.api.admission.caveats import TABLE

SRC = Path(__file__).parents[3] / "src" / "argosy"
READERS = [*(path for room in ("plan", "fleet", "control", "cli") for path in (SRC / room).rglob("*.py"))]
CODE = "".join(
    path.read_text() for path in [*READERS, SRC / "api" / "policies.py", SRC / "api" / "crds" / "upgrade.py"]
)
TOLD = "".join(row.text for row in TABLE)

#: Kinds that users write; the cluster-scoped ones have the same schemas.
KINDS = {
    "FederatedCluster",
    "FederatedTypeConfig",
    "OverridePolicy",
    "PropagationPolicy",
    "SchedulerPluginWebhookConfiguration",
    "SchedulingProfile",
}
#: No user writes a status.
UNTOLD = {"refCount", "typedRefCount"}
#: Parts of keys, and what others than the controllers read.
NOT_KEYS = {keys.PREFIX, keys.INTERNAL_PREFIX, keys.FEDERATE_PREFIX, keys.ARGOSY_PREFIX, keys.API_VERSION}


def fields(schema: dict[str, Any]) -> Iterator[str]:
    for name, inner in (schema.get("properties") or {}).items():
        yield name
        yield from fields(inner)
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from fields(inner)


def attribute(field: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", field).lower()


def test_a_field_that_nobody_reads_is_warned_of():
    unread = set()
    for manifest in crds.manifests():
        if manifest["spec"]["names"]["kind"] in KINDS:
            schema = manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            for field in {*fields(schema)} - {"apiVersion", "kind", "metadata"}:
                if not re.search(rf"\.{attribute(field)}\b|[\"']{field}[\"']|\b{attribute(field)}=", CODE):
                    unread.add(field)
    assert "tolerationSeconds" in unread, "this test finds nothing"
    assert {field for field in unread - UNTOLD if field not in TOLD} == set()


def test_a_key_that_nobody_reads_is_warned_of():
    found = {
        value: name
        for name, value in vars(keys).items()
        if name.isupper() and isinstance(value, str) and "/" in value and value not in NOT_KEYS
    }
    unread = {value for value, name in found.items() if not re.search(rf"\bkeys\.{name}\b", CODE)}
    assert keys.FOLLOWS_OBJECT in unread, "this test finds nothing"
    assert {key for key in unread if key not in TOLD} == set()
