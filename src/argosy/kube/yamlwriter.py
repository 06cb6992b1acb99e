"""YAML from JSON values: block style, strings quoted wherever a reader could take them for something else.

Written value by value: a library's emitter would block the interpreter, and so the event loop, for a whole document.
"""

import re
from typing import Any

import orjson

__all__ = ["to_yaml"]

#: Words, names and paths that need no quotes, unless they are one of the words below.
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*", re.ASCII).fullmatch
_TAKEN = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
#: Not printable in YAML, but unescaped in JSON.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_LONGEST_PLAIN = 256
#: Longer keys cannot be before a colon.
_LONGEST_KEY = 1000
_INDENTS = ["  " * depth for depth in range(64)]


def to_yaml(value: Any, depth: int = 0) -> bytes:
    """The value as a document, or as a part of one at this indentation."""
    out: list[str] = []
    if value and isinstance(value, dict | list):
        _write(value, depth, out)
    else:
        out.append(f"{_indent(depth)}{_scalar(value)}\n")
    return "".join(out).encode()


def _write(value: Any, depth: int, out: list[str]) -> None:
    """A collection that is not empty, at the beginning of a line."""
    indent = _indent(depth)
    if type(value) is list:
        for item in value:
            if item and (type(item) is dict or type(item) is list):
                # The item's first line goes after the dash, and the rest is aligned with it.
                at = len(out)
                _write(item, depth + 1, out)
                out[at] = f"{indent}- {out[at][len(indent) + 2 :]}"
            else:
                out.append(f"{indent}- {_scalar(item)}\n")
        return
    for key, item in value.items():
        name = _string(key)
        name = f"{indent}{name}:" if len(name) < _LONGEST_KEY else f"{indent}? {name}\n{indent}:"
        if item and (type(item) is dict or type(item) is list):
            out.append(f"{name}\n")
            _write(item, depth + 1, out)
        else:
            out.append(f"{name} {_scalar(item)}\n")


def _indent(depth: int) -> str:
    return _INDENTS[depth] if depth < len(_INDENTS) else "  " * depth


def _scalar(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return _string(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if kind is float:
        text = repr(value)
        # YAML 1.1 recognizes a number with an exponent by its decimal point.
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    return "null" if value is None else "{}" if kind is dict else "[]"


def _string(text: str) -> str:
    if len(text) <= _LONGEST_PLAIN and _PLAIN(text) is not None and text.lower() not in _TAKEN:
        return text
    quoted = orjson.dumps(text).decode()
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
