"""Holding: how long a request blocks the event loop, measured for the request itself."""

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

from argosy.kube import clock

__all__ = ["Steps"]

T = TypeVar("T")


class Steps(Generic[T]):
    """`await Steps(work)` is `await work`; afterwards `longest` is the computing time of its longest step, in seconds.

    A step is what runs between two awaits. Processor time is counted, not wall time: the time of a busy machine or of other
    threads does not count.
    """

    __slots__ = ("_work", "longest")

    def __init__(self, work: Coroutine[Any, Any, T]):
        self._work = work
        self.longest = 0.0

    def __await__(self) -> Generator[Any, None, T]:
        work, computed = self._work, clock.thread_time
        error: BaseException | None = None
        while True:
            began = computed()
            try:
                awaited = work.send(None) if error is None else work.throw(error)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self.longest = max(self.longest, computed() - began)
                error = None  # raised here, it would refer to this frame
            try:
                yield awaited
            except BaseException as thrown:
                error = thrown
            finally:
                del awaited  # so would what it waited for
