"""The Accept header: which representations a client asks for, in its order of preference.

Kubernetes asks for other shapes of an object with parameters: `application/json;as=Table;v=v1;g=meta.k8s.io`.
"""

from collections.abc import Mapping
from functools import lru_cache

import msgspec

__all__ = ["MediaType", "media_types"]

#: Characters of a header that is cached; those of kubectl have some hundred.
_REMEMBERED = 1024


class MediaType(msgspec.Struct, frozen=True):
    """One entry: `type` in lower case, its parameters without the quality."""

    type: str
    parameters: Mapping[str, str]

    @property
    def shape(self) -> tuple[str, str, str]:
        """The kind, group and version asked for; empty strings where the object itself is."""
        return self.parameters.get("as", ""), self.parameters.get("g", ""), self.parameters.get("v", "")


def media_types(accept: str) -> tuple[MediaType, ...]:
    """The entries of an Accept header, best first: by quality, then in the order written."""
    # Long headers are unusual, and must not fill the cache.
    return _remembered(accept) if len(accept) <= _REMEMBERED else _parsed(accept)


def _parsed(accept: str) -> tuple[MediaType, ...]:
    entries: list[tuple[float, MediaType]] = []
    for part in accept.split(","):
        name, *rest = (piece.strip() for piece in part.split(";"))
        if not name:
            continue
        parameters = {
            key.strip().lower(): value.strip().strip('"') for key, _, value in (p.partition("=") for p in rest)
        }
        entries.append((_quality(parameters.pop("q", "1")), MediaType(name.lower(), parameters)))
    entries.sort(key=lambda entry: -entry[0])
    return tuple(media for quality, media in entries if quality > 0)


_remembered = lru_cache(maxsize=256)(_parsed)


def _quality(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0
