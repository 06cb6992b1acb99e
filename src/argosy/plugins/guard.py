"""Guard: checks every answer of an external plugin before the scheduler uses it.

An exception or an invalid result becomes an error with the plugin's name: objects whose profile names the plugin wait and say
why, the others are scheduled. A traceback is logged once.
"""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from argosy.fleet.snapshot import Column, Fleet, Mask, Rows
from argosy.plan.scheduling.framework import Division, Filter, FrameworkError, Ranked, Reasons, Replicas, Score, Select
from argosy.plan.scheduling.profile import InProcess
from argosy.plan.scheduling.unit import Unit
from argosy.plugins.bounds import LONGEST_ERROR, LONGEST_TEXT, cut, few

__all__ = ["guarded"]

T = TypeVar("T")
log = logging.getLogger(__name__)

#: Larger scores could overflow when summed.
_LARGEST = 2**53
#: How many different failures of one plugin are logged.
_LOGGED = 10


def guarded(plugin: InProcess) -> InProcess:
    """The same plugin with checked answers."""
    guard = _Guard(plugin.name)
    configure: Any = None
    if plugin.configure is not None:
        configure = guard.configured(plugin.configure)
    if isinstance(plugin, Filter):
        return plugin._replace(
            feasible=guard.feasible(plugin.feasible),
            reason=guard.reason(plugin.reason),
            reasons=guard.reasons(plugin.reasons) if plugin.reasons is not None else None,
            configure=configure,
        )
    if isinstance(plugin, Score):
        normalize = guard.normalized(plugin.normalize)
        return plugin._replace(score=guard.scored(plugin.score), normalize=normalize, configure=configure)
    if isinstance(plugin, Select):
        return plugin._replace(select=guard.selected(plugin.select), configure=configure)
    return plugin._replace(divide=guard.divided(plugin.divide), configure=configure)


class _Guard:
    def __init__(self, name: str):
        self._name = name
        self._logged: set[str] = set()

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        try:
            return function(*arguments)
        except FrameworkError as error:
            raise FrameworkError(f"plugin {self._name!r}: {cut(str(error), LONGEST_ERROR)}") from None
        except Exception as error:
            raise self._wrong(f"{type(error).__name__}: {error}", error) from None

    def _wrong(self, what: str, error: Exception | None = None) -> FrameworkError:
        what = cut(what, LONGEST_TEXT)
        if what not in self._logged and len(self._logged) < _LOGGED:
            self._logged.add(what)
            log.error("plugin %s failed: %s", self._name, what, exc_info=error)
        return FrameworkError(f"plugin {self._name!r} failed: {what}")

    def _array(self, answer: Any, length: int | None, kinds: str, what: str) -> Any:
        """The answer as an array of that length, or of any."""
        try:
            array = np.asarray(answer)
        except Exception as error:
            raise self._wrong(f"it must return {what}: {type(error).__name__}: {error}") from None
        if array.ndim != 1 or len(array) != (len(array) if length is None else length):
            raise self._wrong(f"it must return {what}, and returned {array.dtype} of shape {array.shape}")
        if array.dtype.kind not in kinds and len(array):
            raise self._wrong(f"it must return {what}, and returned {array.dtype}")
        return array

    def feasible(self, function: Callable[[Unit, Fleet], Mask]) -> Callable[[Unit, Fleet], Mask]:
        def checked(unit: Unit, fleet: Fleet) -> Mask:
            answer = self.call(function, unit, fleet)
            if answer is fleet.everyone:
                return answer
            mask: Mask = self._array(answer, len(fleet), "b", "one bool a cluster").astype(np.bool_)
            return mask

        return checked

    def reason(self, function: Callable[[Unit, Fleet, int], str]) -> Callable[[Unit, Fleet, int], str]:
        """A plugin that fails to give a reason still refuses the cluster."""

        def checked(unit: Unit, fleet: Fleet, row: int) -> str:
            try:
                return str(self.call(function, unit, fleet, row))
            except FrameworkError as error:
                return str(error)

        return checked if not hasattr(function, "text") else function

    def reasons(self, function: Callable[[Unit, Fleet, Rows], Reasons]) -> Callable[[Unit, Fleet, Rows], Reasons]:
        def checked(unit: Unit, fleet: Fleet, rows: Rows) -> Reasons:
            try:
                answer = self.call(function, unit, fleet, rows)
                if not isinstance(answer, Reasons) or not isinstance(answer.texts, tuple):
                    raise self._wrong("it must return Reasons")
                codes = self._array(answer.codes, len(rows), "iu", "one code a row")
                if len(codes) and not 0 <= codes.min() <= codes.max() < len(answer.texts):
                    raise self._wrong("a code has no text")
                return Reasons(tuple(map(str, answer.texts)), codes.astype(np.int64))
            except FrameworkError as error:
                return Reasons((str(error),), np.zeros(len(rows), dtype=np.int64))

        return checked

    def scored(self, function: Callable[[Unit, Fleet], Column]) -> Callable[[Unit, Fleet], Column]:
        def checked(unit: Unit, fleet: Fleet) -> Column:
            answer = self.call(function, unit, fleet)
            return answer if answer is fleet.zeros else self._scores(answer, len(fleet))

        return checked

    def normalized(self, function: Callable[[Column], Column]) -> Callable[[Column], Column]:
        return lambda scores: self._scores(self.call(function, scores), len(scores))

    def _scores(self, answer: Any, length: int) -> Column:
        scores = self._array(answer, length, "iu", "one whole number a cluster")
        if length and not -_LARGEST <= int(scores.min()) <= int(scores.max()) <= _LARGEST:
            raise self._wrong("a score is too large")
        column: Column = scores.astype(np.int64)
        return column

    def selected(self, function: Callable[[Unit, Fleet, Ranked], Ranked]) -> Callable[[Unit, Fleet, Ranked], Ranked]:
        def checked(unit: Unit, fleet: Fleet, ranked: Ranked) -> Ranked:
            answer = self.call(function, unit, fleet, ranked)
            if not isinstance(answer, Ranked):
                raise self._wrong(f"it must return a Ranked, and returned {type(answer).__name__}")
            rows = self._array(answer.rows, None, "iu", "rows")
            chosen = rows.tolist()
            if len(set(chosen)) != len(chosen) or not set(ranked.rows.tolist()) >= set(chosen):
                raise self._wrong("it must choose from the rows it was given, each once")
            return Ranked(rows.astype(np.intp), self._scores(answer.scores, len(rows)))

        return checked

    def divided(self, function: Callable[[Unit, Fleet, Rows], Division]) -> Callable[[Unit, Fleet, Rows], Division]:
        def checked(unit: Unit, fleet: Fleet, rows: Rows) -> Division:
            answer = self.call(function, unit, fleet, rows)
            if not isinstance(answer, Division) or not isinstance(answer.steps, tuple):
                raise self._wrong(f"it must return a Division, and returned {type(answer).__name__}")
            replicas, overflow = self._scores(answer.replicas, len(rows)), self._scores(answer.overflow, len(rows))
            if len(rows) and min(replicas.min(), overflow.min()) < 0:
                raise self._wrong("there are no negative replicas")
            return Division(replicas, overflow, few(answer.steps))

        return checked

    def configured(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The caller reports its exceptions."""

        def checked(arguments: Any) -> InProcess:
            plugin = function(arguments)
            if not isinstance(plugin, Filter | Score | Select | Replicas):
                raise TypeError(f"configure returned {type(plugin).__name__}, which is no plugin")
            return guarded(plugin)

        return checked
