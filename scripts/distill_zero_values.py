"""Distil which fields of the built-in kinds Kubernetes leaves out when they are zero, from its published Go types.

    python scripts/distill_zero_values.py MODULES          # the folder with k8s.io/api@… and the like of a Go module cache

Go leaves a field with `omitempty` out when it is false, 0, "" or empty, unless it is a pointer; OpenAPI does not tell the two
apart. The table says it for each definition that has such fields: `kinds/shared/zero_values.json`, read by the module of that
name beside it.
"""

import json
import re
import sys
from pathlib import Path

VERSION = "v0.36.3"
TARGET = Path(__file__).parents[1] / "src" / "argosy" / "server" / "kinds" / "shared" / "zero_values.json"
#: Module folder and package folder, and how OpenAPI names what is in there.
PACKAGES = (
    ("api", "*/*", "io.k8s.api"),
    ("apimachinery", "pkg/apis/meta/v1", "io.k8s.apimachinery"),
    ("apiextensions-apiserver", "pkg/apis/apiextensions/v1", "io.k8s.apiextensions-apiserver"),
)
_TYPE = re.compile(r"^type (\w+) (.+?)$", re.M)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
_FIELD = re.compile(r'^\t(?:\w+ )?\s*([\[\]*\w.]+)\s+`[^`]*json:"([^",]*)((?:,\w+)*)"', re.M)
_SCALARS = {"string", "bool", "int", "int32", "int64", "uint8", "float64", "byte"}
_OTHER_SCALARS = {"types.UID", "v1.ConditionStatus", "v1.DeletionPropagation", "v1.RestartPolicy"}


def main(modules: Path) -> None:
    table = {}
    for module, pattern, prefix in PACKAGES:
        root = modules / f"{module}@{VERSION}"
        for folder in sorted(root.glob(pattern)):
            source = "\n".join(path.read_text() for path in sorted(folder.glob("types*.go")))
            name = ".".join((prefix, *folder.relative_to(root).parts))
            table |= {f"{name}.{struct}": fields for struct, fields in _dropped(source).items() if fields}
    TARGET.write_text(json.dumps(table, separators=(",", ":"), sort_keys=True) + "\n")
    print(f"{len(table)} definitions, {TARGET.stat().st_size} bytes")


def _dropped(source: str) -> dict[str, list[str]]:
    kinds = {name: _kind(text) for name, text in _TYPE.findall(source)}
    found: dict[str, list[str]] = {}
    for struct, body in _STRUCT.findall(source):
        found[struct] = sorted(
            field
            for type, field, options in _FIELD.findall(body)
            if field and "omitempty" in options and _empties(type, kinds)
        )
    return found


def _kind(text: str) -> str:
    text = text.removeprefix("= ").split(" //")[0].strip()
    return text if text.startswith(("[]", "map[")) else text.split()[0]


def _empties(type: str, kinds: dict[str, str]) -> bool:
    if type.startswith(("[]", "map[")) or type in _SCALARS | _OTHER_SCALARS:
        return True
    if type.startswith("*"):
        return False
    return type in kinds and kinds[type] != type and _empties(kinds[type], kinds)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
