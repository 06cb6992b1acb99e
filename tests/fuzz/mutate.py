"""Mutations: a JSON value made odd somewhere, and its encoding made odd as well."""

import json
import random
from collections.abc import Callable
from typing import Any

import yaml

__all__ = ["broken", "encoded", "mutated", "odd", "odd_json"]

_TEXTS = (
    "", " ", "\x00", "a\nb", "é" * 64, "\ud83d\ude00", "\u202etxt", "\ufeff", "null", "true", "1:59:59", "0x10", "1e3", "-",
    "..", "../..", "%2e%2e", "a/b", "*", "[", "(a+)+$", "^[ab]*a[ab]{9}c$", "2026-01-01T00:00:00Z", "9999-99-99T99:99:99Z",
    "1Gi", "-5", "1e999999999", "100%", "{{.}}", "${x}", "<html>", "A" * 254, "a" * 64, "🏳️\u200d🌈", "\ud800",
)  # fmt: skip
_NUMBERS = (
    0, -1, 1, 2, 3.5, -0.0, 1e308, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30,
    float("inf"), float("nan"),
)  # fmt: skip
#: Bytes of a part and its copies: more than any server takes.
MOST_COPIED = 8 * 1024 * 1024


def odd(rng: random.Random) -> Any:
    """A value that hardly any field expects."""
    makers: tuple[Callable[[], Any], ...] = (
        lambda: None,
        lambda: rng.choice((True, False)),
        lambda: rng.choice(_NUMBERS),
        lambda: rng.choice(_TEXTS),
        lambda: rng.choice(_TEXTS) * rng.randrange(1, 200),
        lambda: "x" * rng.choice((253, 1024, 65_536, 300_000)),
        list,
        dict,
        lambda: [odd(rng) for _ in range(rng.randrange(1, 4))],
        lambda: {rng.choice(_TEXTS): odd(rng)},
        lambda: _nested(rng),
        lambda: [rng.choice(_NUMBERS)] * rng.choice((10, 1000, 20_000)),
        lambda: {f"k{n}": str(n) for n in range(rng.choice((10, 1000, 20_000)))},
    )
    weights = (6, 3, 6, 8, 2, 1, 3, 3, 2, 2, 1, 0.5, 0.5)
    return rng.choices(makers, weights)[0]()


def _nested(rng: random.Random) -> Any:
    depth = rng.choice((5, 60, 300, 1100, 5000))
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if rng.random() < 0.5 else [value]
    return value


def mutated(rng: random.Random, value: Any, times: int | None = None) -> Any:
    """The value, changed in a few places, where it is."""
    for _ in range(rng.choice((1, 1, 1, 2, 3)) if times is None else times):
        places = list(_places(value))
        if not places:
            return odd(rng)
        owner, key = rng.choice(places)
        if _change(rng, owner, key):
            break
    return value


def _places(value: Any) -> Any:
    """Every (container, key) below the value, without recursion: it may be deep."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, child in children:
            yield node, key
            waiting.append(child)


def _change(rng: random.Random, owner: Any, key: Any) -> bool:
    """Whether that was enough: what is changed in copies is changed in all of them, and may become gigabytes."""
    how = rng.random()
    if how < 0.45:
        owner[key] = odd(rng)
    elif how < 0.6:
        del owner[key]
    elif how < 0.7 and isinstance(owner, dict):
        owner[rng.choice(("unknown", "kind", "metadata", "spec", "status", "apiVersion", *_TEXTS))] = odd(rng)
    elif how < 0.8 and isinstance(owner[key], str | int | float):
        owner[key] = str(owner[key]) if not isinstance(owner[key], str) else len(owner[key])
    elif how < 0.9:
        copies = 1 if rng.random() < 0.7 else _copies(owner[key], rng.choice((2, 100, 3000)))
        owner[key] = [owner[key]] * copies
        return copies > 1
    elif isinstance(owner, dict):
        owner[f"{key}{rng.choice(('x', ' ', '.', '/'))}"] = owner.pop(key)
    return False


def _copies(value: Any, wanted: int) -> int:
    """As many as wanted, or as are within bounds: to make more takes this process a minute, and tells nothing new."""
    try:
        return max(1, min(wanted, MOST_COPIED // len(json.dumps(value))))
    except RecursionError:
        return 1


def encoded(rng: random.Random, value: Any) -> bytes:
    """As JSON, with what JSON may hold and what it may not: NaN, halves of characters, numbers without bounds."""
    try:
        return json.dumps(value, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    except RecursionError:
        return b"[" * 20_000 + b"]" * 20_000


def broken(rng: random.Random, body: bytes) -> bytes:
    """The bytes with something wrong about them."""
    makers: tuple[Callable[[], bytes], ...] = (
        lambda: body[: rng.randrange(len(body) + 1)],
        lambda: body + rng.choice((b"x", b"{}", b"\x00", b"]" * 50)),
        lambda: b"\xef\xbb\xbf" + body,
        lambda: body.decode("utf-8", "replace").encode("utf-16"),
        lambda: body.replace(b"{", b'{"kind":"Twice",', 1),
        lambda: body.replace(b'"', b"'"),
        lambda: _flipped(rng, body),
        lambda: b"",
        lambda: rng.randbytes(rng.choice((1, 100, 5000))),
        lambda: _as_yaml(rng, body),
        lambda: (
            b"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c]\n"
        ),
        lambda: b"metadata:\n  name: " + b"1:59" * rng.choice((10, 2000)) + b"\n",
        lambda: b"k8s\x00" + rng.randbytes(rng.choice((0, 10, 500))),
    )
    return rng.choice(makers)()


def _flipped(rng: random.Random, body: bytes) -> bytes:
    changed = bytearray(body)
    for _ in range(rng.randrange(1, 8)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _as_yaml(rng: random.Random, body: bytes) -> bytes:
    try:
        text: str = yaml.dump(json.loads(body), Dumper=yaml.CSafeDumper, default_flow_style=rng.random() < 0.3)
        return text.encode("utf-8", "replace")
    except (ValueError, RecursionError, yaml.YAMLError):
        return body


def odd_json(rng: random.Random) -> bytes:
    """Any answer at all."""
    body = encoded(rng, odd(rng))
    return broken(rng, body) if rng.random() < 0.2 else body
