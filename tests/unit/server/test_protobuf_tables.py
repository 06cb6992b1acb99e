"""Protobuf's tables: they agree with the schemas, cover what is served, and read what Kubernetes' own encoder wrote.

`protobuf_bodies.json` holds bodies encoded by Kubernetes 1.36 and the JSON it writes for the same objects, without nulls.
"""

import base64
from pathlib import Path
from typing import Any

import orjson
import pytest

from argosy.kube import schema
from argosy.server.kinds import builtin_kinds
from argosy.server.protobuf import decode, objects

BODIES = orjson.loads(Path(__file__).with_name("protobuf_bodies.json").read_bytes())
MESSAGES = objects._messages()


@pytest.mark.parametrize("case", BODIES, ids=lambda case: case["object"]["kind"])
def test_bodies_of_kubernetes_give_the_objects_its_json_gives(case: dict[str, Any]) -> None:
    assert decode(base64.b64decode(case["body"])) == case["object"]


def test_every_kind_served_has_a_message() -> None:
    served = {(kind.api_version, kind.kind) for kind in builtin_kinds()}
    assert len(served) > 50
    assert {pair for pair in served if objects._message_name(*pair) not in MESSAGES} == set()


def test_every_field_is_one_the_schemas_know() -> None:
    schemas = schema.load("1.36")
    unknown: set[tuple[str, str]] = set()
    seen: set[tuple[str, str | None]] = set()

    def walk(message: str, type: schema.Type) -> None:
        if (message, type.definition) in seen:
            return
        seen.add((message, type.definition))
        for name, field, shape in MESSAGES[message].values():
            if shape == ".":
                walk(field, type)
                continue
            inner = type.fields.get(name)
            if inner is None:
                unknown.add((message, name))
                continue
            value = inner.item if shape in ("*", "m") else inner
            if value is not None and value.kind == "object" and field not in objects._SPECIAL:
                walk(field, value)

    for group, version, kind in schemas.kinds():
        message = objects._message_name(f"{group}/{version}" if group else version, kind)
        type = schemas.kind(group, version, kind)
        if message in MESSAGES and type is not None:
            walk(message, type)
    assert len(seen) > 400
    assert unknown == set()
