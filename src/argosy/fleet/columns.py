"""Columns: one number or bool per cluster, in the order of a fleet's names; and amounts of resources as columns."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["LARGEST", "Amounts", "Column", "Mask", "Rows", "read_only"]

Column = npt.NDArray[np.int64]
"""One number per cluster."""

Mask = npt.NDArray[np.bool_]
"""One bool per cluster."""

Rows = npt.NDArray[np.intp]
"""Positions in such columns."""

#: The largest number in a column: sums of two still fit.
LARGEST: Final = 2**62

Array = TypeVar("Array", bound=npt.NDArray[Any])


def read_only(array: Array) -> Array:
    """The same array, read-only from now on."""
    array.flags.writeable = False
    return array


class Amounts:
    """Amounts of every resource, clusters × resources, with a mask of the reported ones."""

    __slots__ = ("_amounts", "_column", "_present")

    def __init__(self, rows: list[dict[str, int]]) -> None:
        resources = sorted({resource for row in rows for resource in row})
        self._column = {resource: position for position, resource in enumerate(resources)}
        # One contiguous column per resource: a decision reads one resource of all clusters.
        self._amounts = np.zeros((len(resources), len(rows)), dtype=np.int64)
        self._present = np.zeros((len(resources), len(rows)), dtype=np.bool_)
        for position, row in enumerate(rows):
            self._fill(position, row)

    def _fill(self, position: int, row: dict[str, int]) -> None:
        for resource, amount in row.items():
            self._amounts[self._column[resource], position] = amount
            self._present[self._column[resource], position] = True

    def with_row(self, position: int, row: dict[str, int]) -> "Amounts":
        unknown = [resource for resource in row if resource not in self._column]
        size = self._amounts.shape[1]
        changed = object.__new__(Amounts)
        changed._column = self._column | {name: len(self._column) + at for at, name in enumerate(unknown)}
        changed._amounts = np.concatenate([self._amounts, np.zeros((len(unknown), size), dtype=np.int64)])
        changed._present = np.concatenate([self._present, np.zeros((len(unknown), size), dtype=np.bool_)])
        changed._amounts[:, position] = 0
        changed._present[:, position] = False
        changed._fill(position, row)
        return changed

    def less(self, taken: Mapping[str, Column]) -> "Amounts":
        """With these amounts subtracted where the resource is reported."""
        changed = object.__new__(Amounts)
        changed._column, changed._present = self._column, self._present
        changed._amounts = self._amounts.copy()
        for resource, amounts in taken.items():
            column = self._column.get(resource)
            if column is not None:
                left = np.where(self._present[column], self._amounts[column] - amounts, 0)
                changed._amounts[column] = np.clip(left, -LARGEST, LARGEST)
        return changed

    def at_most(self, bounds: Mapping[str, Column]) -> "Amounts":
        """With these amounts where more is reported."""
        changed = object.__new__(Amounts)
        changed._column, changed._present = self._column, self._present
        changed._amounts = self._amounts.copy()
        for resource, most in bounds.items():
            column = self._column.get(resource)
            if column is not None:
                changed._amounts[column] = np.minimum(self._amounts[column], most)
        return changed

    def only(self, rows: Rows) -> "Amounts":
        """For these clusters, in this order."""
        changed = object.__new__(Amounts)
        changed._column = self._column
        changed._amounts, changed._present = self._amounts[:, rows], self._present[:, rows]
        return changed

    def amount(self, resource: str) -> Column:
        column = self._column.get(resource)
        return np.zeros(self._amounts.shape[1], dtype=np.int64) if column is None else self._amounts[column]

    def present(self, resource: str) -> Mask:
        column = self._column.get(resource)
        return np.zeros(self._present.shape[1], dtype=np.bool_) if column is None else self._present[column]
