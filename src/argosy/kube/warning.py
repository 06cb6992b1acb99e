"""Warnings of an API server: the texts of Warning headers (RFC 7234, as Kubernetes uses them), written and read.

The client decides what to do with them.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

__all__ = ["header", "lines", "texts"]

#: Characters of all texts of a response. If there are more, each is cut, and the rest is left out.
MAX_TOTAL: Final = 4096
MAX_CUT: Final = 256
#: Clients refuse responses with too many header lines: Python's own at 100.
MAX_LINES: Final = 32

#: `299 - "text"`: code, agent, text with escaped quotes, perhaps a date.
_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')
#: Quotes within a text are escaped.
_BETWEEN = re.compile(r'(?<="), (?=299 - ")')
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_ESCAPED = re.compile(r"\\(.)")


def texts(header: str) -> tuple[str, ...]:
    """The texts of a header's value, which may have several; what is not a warning is left out."""
    return tuple(_ESCAPED.sub(r"\1", text) for text in _WARNING.findall(header)) if header else ()


def header(texts: Iterable[str]) -> str:
    """The value of a header with these texts, each once, within kube-apiserver's bounds."""
    told = list(dict.fromkeys(text for text in texts if text))
    if sum(map(len, told)) > MAX_TOTAL:
        told = list(_cut(told))
    return ", ".join(f'299 - "{_escaped(text)}"' for text in told)


def lines(header: str) -> list[str]:
    """A header's value as the lines to send: one warning per line, or several if there are very many."""
    each = _BETWEEN.split(header)
    size = -(-len(each) // MAX_LINES)
    return [", ".join(each[start : start + size]) for start in range(0, len(each), size)]


def _cut(told: Iterable[str]) -> Iterator[str]:
    written = 0
    for text in told:
        if written >= MAX_TOTAL:
            return
        yield text[:MAX_CUT]
        written += len(text[:MAX_CUT])


def _escaped(text: str) -> str:
    return _CONTROL.sub(" ", text).replace("\\", "\\\\").replace('"', '\\"')
