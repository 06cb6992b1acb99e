"""Manifests: objects from YAML or JSON files, folders and stdin, each with the place it came from, so that an error names it."""

import sys
from pathlib import Path
from typing import Any

import msgspec

from argosy.cli.output.failures import Failure
from argosy.kube import yamlreader

__all__ = ["Manifest", "read"]

_ENDINGS = (".yaml", ".yml", ".json")


class Manifest(msgspec.Struct, frozen=True):
    """One object and its place, `file.yaml line 12`."""

    object: dict[str, Any]
    place: str


def read(names: list[str]) -> list[Manifest]:
    """Everything in these files; a folder gives its files by name, `-` is stdin, a list of any kind its items. Raises Failure."""
    found: list[Manifest] = []
    for name in names:
        if name == "-":
            found += _parse("stdin", sys.stdin.buffer.read())
            continue
        for path in _files(Path(name)):
            try:
                content = path.read_bytes()
            except OSError as error:
                raise Failure(f"{path}: {error.strerror or error}", "check the path given with -f") from None
            found += _parse(str(path), content)
    if not found:
        raise Failure(f"no objects in {', '.join(names)}")
    return found


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.suffix in _ENDINGS and file.is_file())


def _parse(label: str, content: bytes) -> list[Manifest]:
    found: list[Manifest] = []
    try:
        for document in yamlreader.documents(content):
            for twice in document.duplicates:
                if twice.merged:  # that is what merging is for
                    continue
                raise Failure(
                    f"{label} line {twice.line}: the field {twice.name!r} is there twice",
                    "nothing was changed; remove one of them",
                )
            if document.value is not None:
                found += _objects(document.value, f"{label} line {document.line}")
    except yamlreader.YamlError as error:
        where = f" line {error.line}" if error.line else ""
        where += f", column {error.column}" if error.column else ""
        raise Failure(f"{label}{where}: not valid YAML: {error.problem}", "nothing was changed") from None
    return found


def _of_list(item: Any, holder: dict[str, Any]) -> Any:
    """An item of a ConfigMapList may leave out that it is a ConfigMap."""
    kind = holder["kind"].removesuffix("List")
    if not isinstance(item, dict) or not kind:
        return item
    return {"apiVersion": holder.get("apiVersion"), "kind": kind, **item}


def _objects(document: Any, place: str) -> list[Manifest]:
    if not isinstance(document, dict):
        raise Failure(f"{place}: this is no Kubernetes object", "an object has apiVersion, kind and metadata")
    kind = document.get("kind")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(document.get("items"), list):
        return [found for item in document["items"] for found in _objects(_of_list(item, document), place)]
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field), str) or not document[field]:
            raise Failure(f"{place}: {field} is missing", "an object has apiVersion, kind and metadata")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise Failure(f"{place}: metadata.name is missing")
    return [Manifest(document, place)]
