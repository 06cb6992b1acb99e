"""Domains: clusters with the same value of a label, as arrays.

A cluster without the label is in no domain. Without a key, every cluster is a domain of its own.
"""

import numpy as np
import numpy.typing as npt

from argosy.fleet.snapshot import Column, Fleet

__all__ = ["Codes", "codes_of", "sums_in_domain"]

Codes = npt.NDArray[np.int32]
"""The domain of each cluster as a small number, -1 if it is in none."""


def codes_of(fleet: Fleet, key: str) -> Codes:
    return fleet.labelled(key).codes if key else np.arange(len(fleet), dtype=np.int32)


def sums_in_domain(codes: Codes, amounts: Column) -> Column:
    """For each cluster the sum over its domain; 0 if it is in none."""
    sums = np.zeros(int(codes.max(initial=-1)) + 2, dtype=np.int64)
    np.add.at(sums, codes, amounts)
    # Clusters without a domain (-1) were added to the last entry.
    sums[-1] = 0
    return sums[codes]
