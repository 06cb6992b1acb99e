"""Warnings of an API server: the texts of Warning headers (RFC 7234, as Kubernetes uses them).

What becomes of them is the client's affair.
"""

import re

__all__ = ["texts"]

#: `299 - "text"`: code, agent, text with escaped quotes, perhaps a date.
_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


def texts(header: str) -> tuple[str, ...]:
    """The texts of a header's value, which may hold several; what is not a warning is left out."""
    return tuple(_ESCAPED.sub(r"\1", text) for text in _WARNING.findall(header)) if header else ()
