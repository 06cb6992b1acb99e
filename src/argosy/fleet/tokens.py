"""Service account tokens: how long one lasts, and when to ask for the next.

Read from the token's own claims, which are not verified: whoever issued it decides what it is worth, this only decides when
it is asked again. So nothing has to be remembered, and a restart changes nothing.
"""

import base64
import binascii
import hashlib

import msgspec

__all__ = ["SHORTEST", "Life", "life_of", "renewal_time"]

#: Kubernetes issues none for less.
SHORTEST = 600
#: So much of the life, in both directions, that a fleet of tokens issued at once is not renewed at once.
_SPREAD = 0.05


class Life(msgspec.Struct, frozen=True):
    """Unix times."""

    issued: float
    expires: float


class _Claims(msgspec.Struct):
    exp: float
    iat: float | None = None
    nbf: float | None = None


def life_of(token: bytes) -> Life | None:
    """None for a token that tells no end: a legacy one, or one that is no JWT at all."""
    parts = token.strip().split(b".")
    if len(parts) != 3:
        return None
    try:
        body = base64.urlsafe_b64decode(parts[1] + b"=" * (-len(parts[1]) % 4))
        claims = msgspec.json.decode(body, type=_Claims)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        return None
    issued = claims.iat if claims.iat is not None else claims.nbf
    if issued is None or claims.exp <= issued:
        # Without a beginning there is no share of a life: renewed at the next look, since it does end.
        return Life(claims.exp, claims.exp)
    return Life(issued, claims.exp)


def renewal_time(life: Life, percent: int, salt: str) -> float:
    """When about so much of the life is over. The same life and salt give the same time, in every process."""
    digest = hashlib.sha256(f"{salt}/{life.issued:.0f}".encode()).digest()
    offset = _SPREAD * (int.from_bytes(digest[:4], "big") / 2**31 - 1)
    share = min(max(percent / 100 * (1 + offset), 0.0), 0.95)
    return life.issued + (life.expires - life.issued) * share
