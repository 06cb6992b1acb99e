"""Distil Kubernetes' published schemas into the compact tables in src/argosy/kube/schemas.

    python scripts/distill_schemas.py [--source DIR] [minor ...]

Source: the `kubernetes-validate` package, which holds the OpenAPI definitions of many minors as JSON schema. It is
downloaded into a temporary folder (22 MB) unless --source names an unpacked copy, and is never a dependency.
Compared with Kubernetes' own swagger.json of 1.36 it has the same definitions, types, required fields, merge keys, list
types and descriptions; it adds enums to apiVersion and kind and rewrites Quantity and IntOrString, which is undone here.
It has no defaults and no enums of string fields, so the tables have none either.

Written: one zlib-compressed JSON table a minor, and `descriptions.json.xz`, the texts of all minors, each once; tables
refer to them by position. `argosy.kube.schema` documents what it reads.
"""

import argparse
import json
import lzma
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

DEFAULT_MINORS = ("1.33", "1.34", "1.35", "1.36", "1.37")
TARGET = Path(__file__).resolve().parent.parent / "src/argosy/kube/schemas"

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
#: What the source package lost: the types of the two scalars with several spellings.
RESTORED: dict[str, dict[str, Any]] = {
    QUANTITY: {
        "type": "string",
        "description": 'An exact amount: a number and an optional suffix (m, k, M, G, Ki, Mi, Gi), as in "100m" or "1Gi".',
    },
    INT_OR_STRING: {
        "type": "string",
        "format": "int-or-string",
        "description": "Either an integer or a string.",
    },
}
#: Keys of a schema and the short names they have in the tables.
SHORT = {
    "format": "f",
    "x-kubernetes-patch-merge-key": "k",
    "x-kubernetes-patch-strategy": "s",
    "x-kubernetes-list-type": "l",
    "x-kubernetes-list-map-keys": "m",
    "x-kubernetes-map-type": "M",
    "x-kubernetes-unions": "u",
}
KNOWN = {*SHORT, "description", "type", "$ref", "items", "additionalProperties", "properties", "required", "enum"}
KNOWN |= {"x-kubernetes-group-version-kind", "oneOf"}


class Texts:
    """All descriptions in the order they were met."""

    def __init__(self) -> None:
        self.positions: dict[str, int] = {}

    def position(self, text: str) -> int:
        return self.positions.setdefault(text, len(self.positions))


def node(schema: dict[str, Any], texts: Texts) -> dict[str, Any]:
    if unknown := set(schema) - KNOWN:
        raise SystemExit(f"schemas hold something new: {sorted(unknown)}")
    out: dict[str, Any] = {}
    if "$ref" in schema:
        out["$"] = schema["$ref"].rsplit("/", 1)[1]
    if kind := schema.get("type"):
        out["t"] = kind[0] if isinstance(kind, list) else kind
    for long, short in SHORT.items():
        if long in schema:
            out[short] = schema[long]
    if "items" in schema:
        out["i"] = node(schema["items"], texts)
    if isinstance(schema.get("additionalProperties"), dict):
        out["v"] = node(schema["additionalProperties"], texts)
    if "description" in schema:
        out["d"] = texts.position(schema["description"])
    return out


def definition(name: str, schema: dict[str, Any], texts: Texts) -> dict[str, Any]:
    out = node(RESTORED.get(name, schema), texts)
    if name in RESTORED:
        return out
    if properties := schema.get("properties"):
        out["p"] = {field: node(inner, texts) for field, inner in sorted(properties.items())}
    if required := schema.get("required"):
        out["r"] = sorted(required)
    return out


def unpacked(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), "kubernetes-validate"]
    subprocess.run(command, check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    return folder


def distil(source: Path, minors: list[str]) -> None:
    texts = Texts()
    TARGET.mkdir(parents=True, exist_ok=True)
    for minor in minors:
        file = source / f"kubernetes_validate/kubernetes-json-schema/v{minor}.0-local/_definitions.json"
        definitions = json.loads(file.read_text())["$defs"]
        table = {name: definition(name, schema, texts) for name, schema in sorted(definitions.items())}
        kinds = [
            [kind["group"], kind["version"], kind["kind"], name]
            for name, schema in sorted(definitions.items())
            for kind in schema.get("x-kubernetes-group-version-kind", ())
        ]
        content = {"kinds": kinds, "definitions": table}
        packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 9)
        (TARGET / f"{minor}.json.z").write_bytes(packed)
        print(f"{minor}: {len(table)} definitions, {len(packed) // 1024} KiB")
    packed = lzma.compress(json.dumps(list(texts.positions), ensure_ascii=False).encode(), preset=9)
    (TARGET / "descriptions.json.xz").write_bytes(packed)
    print(f"descriptions: {len(texts.positions)} texts, {len(packed) // 1024} KiB")


def main() -> None:
    parser = argparse.ArgumentParser(description="Distil Kubernetes' schemas into compact tables.")
    parser.add_argument("--source", type=Path, help="an unpacked kubernetes-validate wheel; downloaded when absent")
    parser.add_argument("minors", nargs="*", default=list(DEFAULT_MINORS))
    arguments = parser.parse_args()
    if arguments.source:
        return distil(arguments.source, arguments.minors)
    with tempfile.TemporaryDirectory() as folder:
        return distil(unpacked(Path(folder)), arguments.minors)


if __name__ == "__main__":
    main()
