"""Service account tokens: how long one lasts, and when to request the next.

Read from the token's own claims, which need no verification: they only decide when to renew it. So no state is kept, and a
restart changes nothing.
"""

import base64
import binascii
import hashlib

import msgspec

__all__ = ["SHORTEST", "Life", "life_of", "renewal_time"]

#: The shortest lifetime that Kubernetes issues.
SHORTEST = 600
#: Jitter as a share of the life, so that tokens issued together are not renewed together.
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
    """None for a token without an expiry: a legacy token, or one that is not a JWT."""
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
        # Without a beginning the share of its life is unknown: renew at once, since it does expire.
        return Life(claims.exp, claims.exp)
    return Life(issued, claims.exp)


def renewal_time(life: Life, percent: int, salt: str) -> float:
    """When about so much of the life is over. The same life and salt give the same time in every process."""
    digest = hashlib.sha256(f"{salt}/{life.issued:.0f}".encode()).digest()
    offset = _SPREAD * (int.from_bytes(digest[:4], "big") / 2**31 - 1)
    share = min(max(percent / 100 * (1 + offset), 0.0), 0.95)
    return life.issued + (life.expires - life.issued) * share
