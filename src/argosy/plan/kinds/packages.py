"""Packages: kinds that an installed Python package describes, found by entry point.

The name of an entry point says for which kind it is, `Widget.example.com`. So only what is needed is loaded, when the first
object of the kind is met. It stays the same for all the life of the process, and so decisions do.

What a package says is called in this process, unlike scheduling plugins. A package that cannot be loaded, or fails, affects only
its own kind, of which no copy counts as finished. Without it, the status is merged as that of any kind; where its merge fails,
the status stays.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

import msgspec

from argosy.kube.podreferences import Reference
from argosy.plan.fields import MISSHAPEN, Json
from argosy.plan.kinds.generic import is_stock
from argosy.plan.kinds.kind import Kind
from argosy.plan.kinds.merging import reported
from argosy.plan.kinds.observation import Aggregation
from argosy.plan.kinds.rules.rule import kind_by, read_rule
from argosy.plan.kinds.unmergeable import Unmergeable, to_blame

__all__ = ["GROUP", "loaded", "of_package"]

GROUP: Final = "argosy.kinds"
_LONGEST: Final = 300
log = logging.getLogger(__name__)


def of_package(group: str, kind: str) -> Kind | None:
    """The kind as an installed package describes it, None if none does."""
    point = _offered().get(f"{kind}.{group}" if group else kind)
    if point is None:
        return None
    if is_stock(group, kind):
        log.warning("kind %s: it is one of Kubernetes' own, so %s is not used", point.name, _origin(point))
        return None
    return loaded(point, group, kind)


@lru_cache(maxsize=1)
def _offered() -> Mapping[str, EntryPoint]:
    """By the name of the kind; of several packages, the one whose name comes first."""
    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=GROUP), key=_origin):
        if (first := found.setdefault(point.name, point)) != point:
            log.warning("kind %s: %s is used, %s is not", point.name, _origin(first), _origin(point))
    return found


def loaded(point: EntryPoint, group: str, kind: str) -> Kind:
    """An entry point is a Kind, or a rule as data."""
    try:
        described = point.load()
        if isinstance(described, Mapping):
            described = kind_by(read_rule({**described, "group": group, "kind": kind}))
        if not isinstance(described, Kind):
            raise TypeError(f"a Kind or a rule is needed, not {type(described).__name__}")
    except (Exception, SystemExit) as error:
        log.exception("kind %s: %s (%s) cannot be loaded", point.name, _origin(point), point.value)
        return _unusable(f"{_origin(point)}, which describes its kind, cannot be loaded: {_text(error)}")
    log.info("kind %s: described by %s", point.name, _origin(point))
    return _Guard(_origin(point)).guarded(described)


def _unusable(why: str) -> Kind:
    return Kind(unfinished=lambda desired, copy: [why])


class _Guard:
    """What a package's functions raise is logged once for each of them, and ends nothing else."""

    def __init__(self, origin: str):
        self._origin = origin
        self._logged: set[str] = set()

    def guarded(self, kind: Kind) -> Kind:
        """But for what is kept in copies and taken out of templates: there an error keeps the object as it is."""
        unfinished = self._unfinished(kind.unfinished) if kind.unfinished is not None else None
        return msgspec.structs.replace(
            kind,
            aggregate=self._aggregate(kind.aggregate),
            unfinished=unfinished,
            references=self._references(kind.references),
        )

    def _failed(self, what: str, error: Exception) -> None:
        if what not in self._logged:
            self._logged.add(what)
            log.error("%s: %s failed", self._origin, what, exc_info=error)

    # Its errors are those of a member if it can merge what others report.
    def _aggregate(self, aggregate: Callable[[Aggregation], Json | None]) -> Callable[[Aggregation], Json | None]:
        def guarded(aggregation: Aggregation) -> Json | None:
            try:
                status = aggregate(aggregation)
                if status is not None and not isinstance(status, dict):
                    raise TypeError(f"a status is an object, not {type(status).__name__}")
            except Exception as error:
                if isinstance(error, MISSHAPEN):
                    blamed = to_blame(aggregate, aggregation)
                    if 0 < len(blamed) < len(reported(aggregation)):
                        raise Unmergeable(blamed) from error
                self._failed("aggregate", error)
                return aggregation.status or None
            return status

        return guarded

    def _unfinished(self, unfinished: Callable[[Json, Json], list[str]]) -> Callable[[Json, Json], list[str]]:
        def guarded(desired: Json, copy: Json) -> list[str]:
            try:
                return [str(each)[:_LONGEST] for each in unfinished(desired, copy)]
            except Exception as error:
                self._failed("unfinished", error)
                return [f"{self._origin} cannot tell whether it is finished: {_text(error)}"]

        return guarded

    def _references(self, references: Callable[[Json], Iterable[Reference]]) -> Callable[[Json], Iterable[Reference]]:
        def guarded(obj: Json) -> Iterator[Reference]:
            try:
                yield from references(obj)
            except Exception as error:
                self._failed("references", error)

        return guarded


def _origin(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_LONGEST]
