"""What operators declare about a cluster that no API server reports: the power of its cores, and their price.

Declared by annotation (or label) on the FederatedCluster. An unreadable value counts as not declared: a typing error must not
move workloads.
"""

from typing import Final

import msgspec

from argosy.api import keys
from argosy.kube import quantity
from argosy.kube.objects import DecodeError, Metadata, decode

__all__ = ["POWER_OF_REFERENCE", "declared_power", "declared_price", "nanos"]

POWER_OF_REFERENCE: Final = 1000
_MOST_POWER: Final = 1000 * POWER_OF_REFERENCE
_MOST_NANOS: Final = 2**62
#: A hundred times a price, and a thousand times that, fit 64 bits.
_HIGHEST_PRICE: Final = 2**45


class _Pool(msgspec.Struct, frozen=True):
    cores: str | int | float
    power: str | int | float


def declared_power(metadata: Metadata) -> int:
    """Thousandths of the reference; the mean over all cores if node pools are declared."""
    pools = metadata.annotations.get(keys.COMPUTE_POWER_POOLS)
    whole = _declared(metadata, keys.COMPUTE_POWER)
    power = _mean_power(pools) if pools is not None and whole is None else _thousandths(whole)
    return POWER_OF_REFERENCE if power is None or not 0 < power <= _MOST_POWER else power


def declared_price(metadata: Metadata) -> int | None:
    """Billionths of the currency for a core-hour."""
    price = nanos(_declared(metadata, keys.PRICE_PER_CORE_HOUR))
    return None if price is None or not 0 <= price <= _HIGHEST_PRICE else price


def nanos(amount: str | int | float | None) -> int | None:
    """A decimal in billionths; None if it is invalid or out of range."""
    if amount is None:
        return None
    try:
        found = quantity.parse(amount).nanos
    except quantity.QuantityError:
        return None
    return found if abs(found) <= _MOST_NANOS else None


def _declared(metadata: Metadata, key: str) -> str | None:
    return metadata.annotations.get(key, metadata.labels.get(key))


def _thousandths(amount: str | int | float | None) -> int | None:
    found = nanos(amount)
    return None if found is None else found // 10**6


def _mean_power(text: str) -> int | None:
    try:
        pools = decode(text.encode(), dict[str, _Pool])
    except DecodeError:
        return None
    cores = [nanos(pool.cores) or 0 for pool in pools.values()]
    powers = [_thousandths(pool.power) or 0 for pool in pools.values()]
    if not pools or min(cores) <= 0 or min(powers) <= 0:
        return None
    return sum(count * power for count, power in zip(cores, powers, strict=True)) // sum(cores)
