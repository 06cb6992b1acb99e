"""Manifests: objects from YAML or JSON files, folders and stdin, each with the place it came from, so that an error names it."""

import sys
from pathlib import Path
from typing import Any

import msgspec
import yaml

from argosy.cli.failures import Failure

__all__ = ["Manifest", "read"]

_ENDINGS = (".yaml", ".yml", ".json")
_DEEPEST = 200


class Manifest(msgspec.Struct, frozen=True):
    """One object and its place, `file.yaml line 12`."""

    object: dict[str, Any]
    place: str


def read(names: list[str]) -> list[Manifest]:
    """Everything in these files; a folder gives its files by name, `-` is stdin, a List its items. Raises Failure."""
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
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(content)
    try:
        while loader.check_node():
            node: Any = loader.get_node()
            place = f"{label} line {node.start_mark.line + 1}"
            _check(node, label)
            document = loader.construct_document(node)
            if document is not None:
                found += _objects(document, place)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        problem = error.problem or error.context or "it cannot be read"
        raise Failure(f"{label}{where}: not valid YAML: {problem}", "nothing was changed") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise Failure(f"{label}: not valid YAML: {error}", "nothing was changed") from None
    finally:
        loader.dispose()
    return found


def _check(root: Any, label: str) -> None:
    """Keys written twice, of which the loader would silently keep the last, and depths no object has."""
    waiting = [(root, 0)]
    seen: set[int] = set()
    while waiting:
        node, depth = waiting.pop()
        if depth > _DEEPEST:
            raise Failure(f"{label} line {node.start_mark.line + 1}: nested too deeply")
        if id(node) in seen:  # an alias; what it stands for was looked at where it is
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += [(child, depth + 1) for child in node.value]
        elif isinstance(node, yaml.MappingNode):
            names: set[str] = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in names and key.value != "<<":
                        raise Failure(
                            f"{label} line {key.start_mark.line + 1}: the field {key.value!r} is there twice",
                            "nothing was changed; remove one of them",
                        )
                    names.add(key.value)
                waiting.append((value, depth + 1))


def _objects(document: Any, place: str) -> list[Manifest]:
    if not isinstance(document, dict):
        raise Failure(f"{place}: this is no Kubernetes object", "an object has apiVersion, kind and metadata")
    if document.get("kind") == "List" and isinstance(document.get("items"), list):
        return [found for item in document["items"] for found in _objects(item, place)]
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field), str) or not document[field]:
            raise Failure(f"{place}: {field} is missing", "an object has apiVersion, kind and metadata")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise Failure(f"{place}: metadata.name is missing")
    try:
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))  # dates and bytes as text
    except (TypeError, ValueError, RecursionError) as error:
        raise Failure(f"{place}: cannot be sent as JSON: {error}") from None
    return [Manifest(plain, place)]
