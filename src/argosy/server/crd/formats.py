"""String formats of schemas: which values are a date-time, an IPv4 address, base64, …

The names are those of kube-apiserver; any other format checks nothing, as there.
"""

import base64
import binascii
import datetime
import ipaddress
import re
import unicodedata
from collections.abc import Callable
from urllib.parse import urlsplit

__all__ = ["FORMATS", "string_format"]

_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})")
_DURATION = re.compile(r"[+-]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
#: The pattern above is not linear in runs of digits.
_LONGEST_DURATION = 1000
#: One digit is enough to search for: starting again at each digit of a long number would take quadratic time.
_AMOUNT = re.compile(r"[0-9]\s*([A-Za-zµ]+)")
_UNITS = frozenset({"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"})
_UNIT_NAMES = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_ADDRESS = re.compile(r"(?:[^<>]*<([^<>]+)>|([^<>]+))")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)+"')
_LITERAL = re.compile(r"\[[0-9a-fA-F:.]+\]")
_ATOMS = re.compile(r"[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*")
_MAC = re.compile(
    r"[0-9a-f]{2}(?:([:-])[0-9a-f]{2})(?:\1[0-9a-f]{2}){4}(?:(?:\1[0-9a-f]{2}){2}|(?:\1[0-9a-f]{2}){14})?"
    r"|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}(?:\.[0-9a-f]{4}){0,1}|[0-9a-f]{12}|[0-9a-f]{16}|[0-9a-f]{40}",
    re.I,
)
_CREDIT_CARD = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)
_RGB = re.compile(r"rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)")


def _date(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


def _date_time(text: str) -> bool:
    day, _, time = text.lower().partition("t")
    found = _TIME.fullmatch(time)
    return _date(day) and found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _duration(text: str) -> bool:
    """Go's own form; or, as loosely as in kube-apiserver, an amount and a unit of time anywhere in the text."""
    if len(text) <= _LONGEST_DURATION and _DURATION.fullmatch(text):
        return True
    return any(unit.lower() in _UNITS or unit.startswith(_UNIT_NAMES) for unit in _AMOUNT.findall(text))


def _byte(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return bool(text)


def _ipv4(text: str) -> bool:
    """Four numbers, leading zeros allowed; Go also takes an IPv6 address that ends in four numbers for one."""
    parts = text.split(".")
    if len(parts) == 4 and all(part.isascii() and part.isdigit() and len(part) <= 9 for part in parts):
        return all(int(part) <= 255 for part in parts)
    return "." in text and _ipv6(text)


def _ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text


def _cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    if not (slash and bits.isascii() and bits.isdigit()):
        return False
    return (_ipv4(address) and int(bits) <= 32) or (_ipv6(address) and int(bits) <= 128)


def _uri(text: str) -> bool:
    """As Go's net/url.ParseRequestURI: an absolute URI or an absolute path."""
    if not text or any(c <= " " or c == "\x7f" for c in text):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return text.startswith("/") or bool(parts.scheme)


def _email(text: str) -> bool:
    """An address, with or without a name in front of it."""
    found = _ADDRESS.fullmatch(text.strip())
    local, at, domain = (found[1] or found[2]).strip().rpartition("@") if found else ("", "", "")
    named = _ATOMS.fullmatch(local) is not None or _QUOTED.fullmatch(local) is not None
    return bool(at) and named and (_ATOMS.fullmatch(domain) is not None or _LITERAL.fullmatch(domain) is not None)


def _in_hostname(char: str) -> bool:
    return (char.isascii() and char.isalnum()) or unicodedata.category(char)[0] in "LS"


def _hostname(text: str) -> bool:
    """A bare name, or labels in front of a top-level domain of letters. Letters and symbols of any script are taken."""
    labels = text.split(".")
    if len(text.encode()) > 255 or any(len(label.encode()) > 63 for label in labels):
        return False
    *front, last = labels
    if not front:
        rest = last[1:].removeprefix("-")
        return bool(last) and _in_hostname(last[0]) and all(_in_hostname(char) for char in rest)
    if not (len(last) >= 2 and all(char.isalpha() for char in last)):
        return False
    return all(
        label
        and all(_in_hostname(end) for end in (label[0], label[-1]))
        and all(c == "-" or _in_hostname(c) for c in label)
        for label in front
    )


def _isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch(r"[0-9]{9}[0-9X]", digits) is None:
        return False
    return sum((10 - i) * (10 if d == "X" else int(d)) for i, d in enumerate(digits)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    return (
        re.fullmatch(r"[0-9]{13}", digits) is not None
        and sum(int(d) * (1, 3)[i % 2] for i, d in enumerate(digits)) % 10 == 0
    )


def _credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if _CREDIT_CARD.fullmatch(digits) is None:
        return False
    doubled = (int(d) * (1 + i % 2) for i, d in enumerate(reversed(digits)))
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def _rgb(text: str) -> bool:
    found = _RGB.fullmatch(text)
    return found is not None and all(int(part) <= 255 for part in found.groups())


def _matching(pattern: str, longest: int | None = None) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: (longest is None or len(text) <= longest) and compiled.fullmatch(text) is not None


_NAME = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"

FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matching("(?i)[0-9a-f]{24}"),
    "byte": _byte,
    "cidr": _cidr,
    "creditcard": _credit_card,
    "date": _date,
    "datetime": _date_time,
    "duration": _duration,
    "email": _email,
    "hexcolor": _matching("#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "k8slongname": _matching(rf"{_NAME}(?:\.{_NAME})*", 253),
    "k8sshortname": _matching(_NAME, 63),
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "password": lambda text: True,
    "rgbcolor": _rgb,
    "ssn": _matching(r"[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}"),
    "uri": _uri,
    "uuid": _matching("(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"),
    "uuid3": _matching("(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}"),
    "uuid4": _matching("(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}"),
    "uuid5": _matching("(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}"),
}


def string_format(name: str) -> Callable[[str], bool] | None:
    """The check of a format, or None for one that checks nothing; dashes in names do not count."""
    return FORMATS.get(name.replace("-", ""))
