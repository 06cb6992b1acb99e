"""The work queue's promises, and the workers'."""

import asyncio
import logging
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.backoff import Backoff
from argosy.kube.errors import Conflict
from argosy.kube.queue import Result, ShutDown, WorkQueue, run_workers
from tests.harness.eventually import PATIENCE

FAST = Backoff(base=0.001, cap=0.004, jitter=0.0)


async def test_a_key_added_twice_is_handed_out_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("a")
    assert await queue.get() == "a"
    assert len(queue) == 0


async def test_a_key_added_while_worked_on_runs_once_more_afterwards() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_lower_priority_numbers_go_first_and_equal_ones_in_order() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key, priority in [("a", 5), ("b", 1), ("c", 5), ("d", 1)]:
        queue.add(key, priority)
    assert [await queue.get() for _ in range(4)] == ["b", "d", "a", "c"]


async def test_nobody_waits_forever_while_more_urgent_keys_keep_coming() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("patient", 9)
    queue.add("other", 8)
    queue.add("other", 7)
    got = []
    while len(got) < 200 and not {"patient", "other"} <= set(got):
        queue.add(f"urgent-{len(got)}", 0)
        got.append(await queue.get())
        queue.done(got[-1])
    assert got.index("patient") < got.index("other") < 100
    assert len(queue._arrivals) < 100, "what is done is forgotten"


async def test_adding_again_can_raise_the_priority_but_not_lower_it() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("low", 9)
    queue.add("other", 5)
    queue.add("low", 1)
    queue.add("low", 9)
    assert [await queue.get() for _ in range(2)] == ["low", "other"]
    assert len(queue) == 0


async def test_the_earliest_of_several_delays_counts() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", after=30)
    queue.add("a", after=0.01)
    queue.add("a", after=60)
    assert queue.delayed == 1
    assert await asyncio.wait_for(queue.get(), PATIENCE) == "a"
    assert queue.delayed == 0


async def test_a_delayed_key_does_not_come_early() -> None:
    queue: WorkQueue[str] = WorkQueue()
    loop = asyncio.get_running_loop()
    start = loop.time()
    queue.add("late", after=0.06)
    queue.add("soon", after=0.02)
    assert await queue.get() == "soon"
    assert await queue.get() == "late"
    assert loop.time() - start >= 0.055


async def test_back_off_grows_per_key_until_forgotten() -> None:
    queue: WorkQueue[str] = WorkQueue(Backoff(base=1, cap=8, jitter=0))
    assert [queue.add_rate_limited("a") for _ in range(5)] == [1, 2, 4, 8, 8]
    assert queue.add_rate_limited("b") == 1
    queue.forget("a")
    assert queue.add_rate_limited("a") == 1
    queue.shut_down()


async def test_a_cancelled_getter_does_not_swallow_a_wake_up() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, PATIENCE) == "a"


async def test_shut_down_with_drain_hands_out_what_is_ready() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("later", after=10)
    queue.shut_down(drain=True)
    queue.add("too late")
    assert await queue.get() == "a"
    with pytest.raises(ShutDown):
        await queue.get()
    assert queue.delayed == 0


async def test_shut_down_wakes_whoever_waits() -> None:
    queue: WorkQueue[str] = WorkQueue()
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.shut_down(drain=False)
    results = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), PATIENCE)
    assert [type(result) for result in results] == [ShutDown] * 3


async def test_oldest_age_is_that_of_the_longest_ready_key() -> None:
    queue: WorkQueue[str] = WorkQueue()
    assert queue.oldest_age() == 0.0
    queue.add("a", 5)
    await asyncio.sleep(0.02)
    queue.add("b")
    queue.add("a", 0)
    assert 0.015 <= queue.oldest_age() < 5
    assert await queue.get() == "b"


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "get", "done"]), st.integers(0, 4), st.integers(0, 3)),
        min_size=1,
        max_size=60,
    )
)
def test_no_key_is_lost_or_worked_on_twice_at_once(steps: list[tuple[str, int, int]]) -> None:
    async def play() -> None:
        queue: WorkQueue[int] = WorkQueue()
        wanted: set[int] = set()
        working: set[int] = set()
        for step, key, priority in steps:
            if step == "add":
                queue.add(key, priority)
                wanted.add(key)
            elif step == "get" and len(queue):
                got = await queue.get()
                assert got not in working
                assert got in wanted
                working.add(got)
                wanted.discard(got)
            elif step == "done" and key in working:
                queue.done(key)
                working.discard(key)
        for key in list(working):
            queue.done(key)
        rest = [await queue.get() for _ in range(len(queue))]
        assert sorted(rest) == sorted(wanted)

    asyncio.run(play())


async def drained(queue: WorkQueue[str], condition: asyncio.Event, workers: "asyncio.Task[None]") -> None:
    await asyncio.wait_for(condition.wait(), PATIENCE)
    queue.shut_down()
    await asyncio.wait_for(workers, PATIENCE)


async def test_a_failing_key_is_tried_again_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    queue: WorkQueue[str] = WorkQueue(FAST)
    runs: Counter[str] = Counter()
    errors: list[str] = []
    fine = asyncio.Event()

    async def reconcile(key: str) -> None:
        runs[key] += 1
        if runs[key] < 4:
            raise RuntimeError("no such thing")
        fine.set()

    queue.add("a")
    with caplog.at_level(logging.ERROR):
        workers = asyncio.create_task(
            run_workers(queue, reconcile, 2, lambda key, error: errors.append(f"{key} {error}"))
        )
        await drained(queue, fine, workers)
    assert runs["a"] == 4
    assert errors == ["a no such thing"] * 3
    assert [record.getMessage().split(" (")[0] for record in caplog.records] == ["a: RuntimeError: no such thing"]
    assert queue.failures("a") == 0


async def test_a_conflict_comes_back_without_growing_the_back_off(caplog: pytest.LogCaptureFixture) -> None:
    queue: WorkQueue[str] = WorkQueue(FAST)
    runs = 0
    fine = asyncio.Event()

    async def reconcile(key: str) -> None:
        nonlocal runs
        runs += 1
        assert queue.failures(key) == 0
        if runs < 3:
            raise Conflict(409, "Conflict", "changed", {})
        fine.set()

    queue.add("a")
    workers = asyncio.create_task(run_workers(queue, reconcile, 1, conflict_delay=0.001))
    await drained(queue, fine, workers)
    assert runs == 3
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_results_requeue_or_fail() -> None:
    queue: WorkQueue[str] = WorkQueue(FAST)
    results = iter([Result(error="not yet"), Result(requeue_after=0.001), None])
    seen: list[int] = []
    fine = asyncio.Event()

    async def reconcile(key: str) -> Result | None:
        seen.append(queue.failures(key))
        result = next(results)
        if result is None:
            fine.set()
        return result

    queue.add("a")
    await drained(queue, fine, asyncio.create_task(run_workers(queue, reconcile, 1)))
    assert seen == [0, 1, 0]


async def test_cancelled_workers_finish_what_they_have_begun_and_begin_nothing_new() -> None:
    queue: WorkQueue[str] = WorkQueue()
    begun, may_finish = asyncio.Event(), asyncio.Event()
    finished: list[str] = []

    async def reconcile(key: str) -> None:
        begun.set()
        await may_finish.wait()
        finished.append(key)

    queue.add("a")
    queue.add("b")
    workers = asyncio.create_task(run_workers(queue, reconcile, 1))
    await begun.wait()
    workers.cancel()
    await asyncio.sleep(0)
    may_finish.set()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(workers, PATIENCE)
    assert finished == ["a"]


async def test_workers_that_do_not_finish_in_time_are_cancelled() -> None:
    queue: WorkQueue[str] = WorkQueue()
    begun = asyncio.Event()
    ended: list[str] = []

    async def reconcile(key: str) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(key)

    queue.add("a")
    workers = asyncio.create_task(run_workers(queue, reconcile, 1, grace=0.01))
    await begun.wait()
    workers.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(workers, PATIENCE)
    assert ended == ["a"]
