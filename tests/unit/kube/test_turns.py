"""Work is done a piece at a time, and nobody who waits for a turn is forgotten."""

import asyncio

import pytest

from argosy.kube.turns import Turns


async def test_many_who_work_do_not_hold_up_who_only_needs_a_few_rounds() -> None:
    turns, done = Turns(), 0

    async def work() -> None:
        nonlocal done
        for _ in range(10):
            await turns.begin()
            done += 1
            await asyncio.sleep(0)

    workers = [asyncio.create_task(work()) for _ in range(32)]
    for _ in range(20):
        await asyncio.sleep(0)
    assert done <= 20, "one in each round"
    await asyncio.gather(*workers)
    assert done == 320


async def test_who_gives_up_waiting_takes_nobodys_turn() -> None:
    turns = Turns()
    waiting = [asyncio.create_task(turns.begin()) for _ in range(50)]
    await asyncio.sleep(0)
    for task in waiting[::2]:
        task.cancel()
    async with asyncio.timeout(10):
        results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [result is None for result in results[1::2]] == [True] * 25
    await turns.begin()


@pytest.mark.parametrize("crowd", [1, 7, 100])
async def test_turns_are_taken_in_the_order_of_asking(crowd: int) -> None:
    turns, order = Turns(), []

    async def work(number: int) -> None:
        await turns.begin()
        order.append(number)

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        for number in range(crowd):
            group.create_task(work(number))
    assert order == sorted(order)
