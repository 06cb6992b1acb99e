"""Distil the numbers of Kubernetes' protobuf fields into src/argosy/server/protobuf/messages.json.z.

    python scripts/distill_protobuf.py DIR      (DIR holds MODULE@VERSION folders, such as api@v0.36.3)

Source: the Go modules of MODULES. Their generated.proto files tell number and type of each field; the tags in types.go tell its
JSON name, whether it is inlined, and whether JSON shows its zero value: that of a pointer, of a field without omitempty, and of
a struct without omitzero. Only stable versions (v1, v2) are taken. `argosy.server.protobuf.objects` documents the table it reads.
"""

import json
import re
import sys
import zlib
from pathlib import Path
from typing import Any, NamedTuple

TARGET = Path(__file__).resolve().parent.parent / "src/argosy/server/protobuf/messages.json.z"
MODULES = ("api", "apimachinery", "apiextensions-apiserver", "kube-aggregator")
SCALARS = {
    "string": "s",
    "bytes": "b",
    "bool": "?",
    "int32": "i",
    "int64": "i",
    "uint32": "i",
    "uint64": "i",
    "double": "d",
    "float": "f",
}
PACKAGE = re.compile(r"^package ([\w.]+);", re.M)
MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.M | re.S)
MAP = re.compile(r"^  map<string, ?([\w.]+)> (\w+) = (\d+)[; ]", re.M)
PLAIN = re.compile(r"^  (optional|repeated|required) ([\w.]+) (\w+) = (\d+)[; ]", re.M)
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
#: Of fields without a JSON tag: structs that write their own JSON.
OMITTED = frozenset({"omitempty", "omitzero"})
TAGGED = re.compile(r'^\t([^`\n]*?)`[^`]*?json:"([^"]*)"[^`]*?protobuf:"(\w+),(\d+)[^"]*"', re.M)


class Tag(NamedTuple):
    name: str
    options: frozenset[str]
    pointer: bool

    @property
    def inline(self) -> bool:
        return not self.name and "inline" in self.options

    def shows_zero(self, scalar: bool) -> bool:
        """omitempty leaves no struct out."""
        return self.pointer or not self.options & ({"omitempty", "omitzero"} if scalar else {"omitzero"})


def go_tags(folder: Path) -> dict[tuple[str, int], Tag]:
    """(struct, number) -> JSON name and options, pointer."""
    tags: dict[tuple[str, int], Tag] = {}
    for file in sorted(folder.glob("*.go")):
        if file.name.endswith(("_test.go", "generated.pb.go")):
            continue
        for struct, body in STRUCT.findall(file.read_text()):
            for declaration, json_tag, _, number in TAGGED.findall(body):
                name, _, options = json_tag.partition(",")
                tags[struct, int(number)] = Tag(name, frozenset(options.split(",")), "*" in declaration)
    return tags


def messages_of(proto: Path) -> dict[str, list[list[Any]]]:
    text = proto.read_text()
    found = PACKAGE.search(text)
    assert found, proto
    package = found[1]
    tags = go_tags(proto.parent)
    out: dict[str, list[list[Any]]] = {}
    for message, body in MESSAGE.findall(text):
        fields: list[list[Any]] = []
        for label, type, name, number in PLAIN.findall(body):
            tag = tags.get((message, int(number)), Tag(name, OMITTED, False))
            shown = "p" if tag.shows_zero(type in SCALARS) else ""
            shape = "*" if label == "repeated" else "." if tag.inline else shown
            fields.append([int(number), tag.name or name, _type(package, type), shape])
        for type, name, number in MAP.findall(body):
            tag = tags.get((message, int(number)), Tag(name, OMITTED, False))
            fields.append([int(number), tag.name or name, _type(package, type), "m"])
        out[f"{package}.{message}"] = sorted(fields)
    return out


def _type(package: str, type: str) -> str:
    if type in SCALARS:
        return SCALARS[type]
    return type.lstrip(".") if type.startswith(".") else f"{package}.{type}"


def main(root: Path) -> None:
    table: dict[str, list[list[Any]]] = {}
    for proto in sorted(root.glob("*@*/**/generated.proto")):
        if proto.relative_to(root).parts[0].partition("@")[0] not in MODULES:
            continue
        version = proto.parent.name
        if re.fullmatch(r"v\d+(alpha|beta)\d+", version) or "testdata" in proto.parts:
            continue
        table |= messages_of(proto)
    known = set(table) | set(SCALARS.values())
    missing = {field[2] for fields in table.values() for field in fields} - known
    assert not missing, missing
    data = json.dumps(table, separators=(",", ":"), sort_keys=True).encode()
    TARGET.write_bytes(zlib.compress(data, 9))
    print(f"{len(table)} messages, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
