"""FNV hashes and Kubernetes' vowel-free alphabet: stable short names derived from content.

Other programs must get the same numbers (pod-template-hash, KubeAdmiral's naming rule), so the algorithms are fixed.
Not for security.
"""

from typing import Final

__all__ = ["ALPHABET", "fnv1_32", "fnv1a_32", "fnv1a_64", "safe_encode"]

#: No vowels and no look-alikes, so that no random name spells a word.
ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"

_OFFSET_32: Final = 0x811C9DC5
_PRIME_32: Final = 0x01000193
_OFFSET_64: Final = 0xCBF29CE484222325
_PRIME_64: Final = 0x100000001B3
_ENCODED: Final = str.maketrans({chr(code): ALPHABET[code % len(ALPHABET)] for code in range(128)})


def fnv1_32(data: bytes) -> int:
    """FNV-1, 32 bits: multiply, then xor."""
    value = _OFFSET_32
    for byte in data:
        value = (value * _PRIME_32 & 0xFFFFFFFF) ^ byte
    return value


def fnv1a_32(data: bytes) -> int:
    """FNV-1a, 32 bits: xor, then multiply."""
    value = _OFFSET_32
    for byte in data:
        value = (value ^ byte) * _PRIME_32 & 0xFFFFFFFF
    return value


def fnv1a_64(data: bytes) -> int:
    """FNV-1a, 64 bits."""
    value = _OFFSET_64
    for byte in data:
        value = (value ^ byte) * _PRIME_64 & 0xFFFFFFFFFFFFFFFF
    return value


def safe_encode(text: str) -> str:
    """Each ASCII character replaced by one of the safe alphabet, as Kubernetes does with hashes in names."""
    return text.translate(_ENCODED)
