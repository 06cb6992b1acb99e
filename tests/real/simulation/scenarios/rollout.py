"""Deployments roll out, within all kinds of bounds; they pause, time out, go back and forget.

Where several pods become ready at once the steps depend on time, so the pods wait at gates and are let through in turn.
"""

from functools import partial

from tests.real.simulation import view
from tests.real.simulation.build import (
    BAD,
    GOOD,
    NEXT,
    complete,
    condition,
    deployment,
    gated,
    rolling,
    sizes,
    with_image,
)
from tests.real.simulation.pair import Pair
from tests.real.simulation.record import DEPLOYMENTS

_PROGRESS = partial(view.reasons, kind="Deployment", name="web", condition="Progressing")
_AVAILABLE = partial(view.reasons, kind="Deployment", name="web", condition="Available")


async def first_rollout(pair: Pair) -> None:
    await pair.create(DEPLOYMENTS, deployment(5))
    await pair.agree("rolled out", complete())
    pair.same("steps", view.steps)
    pair.same("Available over time", _AVAILABLE)


async def roll_one_more_at_a_time(pair: Pair) -> None:
    await _roll_alone(pair, 4, 1, 0)


async def roll_one_less_at_a_time(pair: Pair) -> None:
    await _roll_alone(pair, 4, 0, 1)


async def roll_percentages_of_few(pair: Pair) -> None:
    # A quarter of three is one more and none less.
    await _roll_alone(pair, 3, "25%", "25%")


async def _roll_alone(pair: Pair, replicas: int, surge: int | str, unavailable: int | str) -> None:
    """Every step follows from the one before, however fast pods start, and availability keeps to its bound."""
    await pair.create(DEPLOYMENTS, deployment(replicas, strategy=rolling(surge, unavailable)))
    await pair.agree("rolled out", complete())
    await pair.patch(DEPLOYMENTS, "web", with_image(NEXT))
    await pair.agree("rolled over", complete())
    pair.same("steps", view.steps)
    pair.same("least available", view.least_available)


async def roll_by_quarters(pair: Pair) -> None:
    await _gated(pair, 8, "25%", "25%")
    await pair.agree("all steps that need no new pod", sizes(6, 4))
    await _through(pair, NEXT, (5, 5), (4, 6), (3, 7), (2, 8), (1, 8), (0, 8))
    await pair.open_gates(2, NEXT)
    await _end(pair)


async def roll_all_at_once(pair: Pair) -> None:
    await _gated(pair, 3, "100%", 0)
    await pair.agree("all of both", sizes(3, 3))
    await _through(pair, NEXT, (2, 3), (1, 3), (0, 3))
    await _end(pair)


async def roll_with_everything_unavailable(pair: Pair) -> None:
    await _gated(pair, 3, 0, "100%")
    await pair.agree("all replaced", sizes(0, 3))
    await pair.open_gates(3, NEXT)
    await _end(pair)


async def roll_three_and_two(pair: Pair) -> None:
    await _gated(pair, 10, 3, 2)
    await pair.agree("all steps that need no new pod", sizes(8, 5))
    await _through(pair, NEXT, (7, 6), (6, 7), (5, 8), (4, 9), (3, 10), (2, 10), (1, 10), (0, 10))
    await pair.open_gates(2, NEXT)
    await _end(pair)


async def _gated(pair: Pair, replicas: int, surge: int | str, unavailable: int | str) -> None:
    await pair.create(DEPLOYMENTS, deployment(replicas, strategy=rolling(surge, unavailable), template=gated()))
    await pair.agree("started", sizes(replicas))
    await pair.open_gates(replicas, GOOD)
    await pair.agree("rolled out", complete())
    await pair.patch(DEPLOYMENTS, "web", with_image(NEXT))


async def _through(pair: Pair, image: str, *wanted: tuple[int, ...]) -> None:
    """One pod after the other is ready, and the ReplicaSets get the sizes that follow from each."""
    for number, each in enumerate(wanted, 1):
        await pair.open_gates(1, image)
        await pair.agree(f"{number} through", sizes(*each))


async def _end(pair: Pair) -> None:
    await pair.agree("rolled over", complete())
    pair.same("steps", view.steps)
    pair.same("Progressing over time", _PROGRESS)
    pair.same("Available over time", _AVAILABLE)


async def recreate(pair: Pair) -> None:
    await pair.create(DEPLOYMENTS, deployment(3, strategy={"type": "Recreate"}))
    await pair.agree("rolled out", complete())
    await pair.patch(DEPLOYMENTS, "web", with_image(NEXT))
    await pair.agree("rolled over", complete())
    pair.same("steps", view.steps)


async def new_template_in_the_middle(pair: Pair) -> None:
    await _gated(pair, 4, 1, 1)
    await pair.agree("under way", sizes(3, 2))
    await pair.patch(DEPLOYMENTS, "web", with_image("app:3"))
    await pair.agree("over to the third", sizes(3, 0, 2))
    await _through(pair, "app:3", (2, 0, 3), (1, 0, 4), (0, 0, 4))
    await pair.open_gates(1, "app:3")
    await _end(pair)


async def pause_and_resume(pair: Pair) -> None:
    await pair.create(DEPLOYMENTS, deployment(2, strategy=rolling(1, 0)))
    await pair.agree("rolled out", complete())
    await pair.patch(DEPLOYMENTS, "web", {"spec": {"paused": True, **with_image(NEXT)["spec"]}})
    await pair.agree("paused", condition("Deployment", "web", "Progressing", "Unknown DeploymentPaused"))
    await pair.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 4}})
    await pair.agree("scaled while paused", sizes(4))
    await pair.patch(DEPLOYMENTS, "web", {"spec": {"paused": False}})
    await pair.agree("resumed", complete())


async def pause_in_the_middle(pair: Pair) -> None:
    await _gated(pair, 4, 1, 1)
    await pair.agree("under way", sizes(3, 2))
    await pair.patch(DEPLOYMENTS, "web", {"spec": {"paused": True}})
    await pair.agree("paused", condition("Deployment", "web", "Progressing", "Unknown DeploymentPaused"))
    await pair.open_gates(2, NEXT)
    await pair.agree(
        "more are ready, and nothing rolls",
        lambda side: side.one("Deployment", "web")["status"].get("availableReplicas") == 5,
    )
    await pair.patch(DEPLOYMENTS, "web", {"spec": {"paused": False}})
    await pair.agree("goes on", sizes(1, 4))
    await pair.open_gates(2, NEXT)
    await _end(pair)


async def min_ready_seconds(pair: Pair) -> None:
    await pair.create(DEPLOYMENTS, deployment(2, minReadySeconds=2, strategy=rolling(1, 0)))
    await pair.agree(
        "ready, not available", lambda side: side.one("Deployment", "web")["status"].get("readyReplicas") == 2
    )
    await pair.agree("available", complete())
    await pair.patch(DEPLOYMENTS, "web", with_image(NEXT))
    await pair.agree("rolled over", complete())
    pair.same("steps", view.steps)


async def progress_deadline_and_bad_image(pair: Pair) -> None:
    await pair.create(DEPLOYMENTS, deployment(4, progressDeadlineSeconds=3))
    await pair.agree("rolled out", complete())
    await pair.patch(DEPLOYMENTS, "web", with_image(BAD))
    await pair.agree("too late", condition("Deployment", "web", "Progressing", "False ProgressDeadlineExceeded"))
    pair.same("steps", view.steps)


async def from_bad_to_good(pair: Pair) -> None:
    await pair.create(DEPLOYMENTS, deployment(2, progressDeadlineSeconds=3, strategy=rolling(1, 0)))
    await pair.agree("rolled out", complete())
    await pair.patch(DEPLOYMENTS, "web", with_image(BAD))
    await pair.agree("too late", condition("Deployment", "web", "Progressing", "False ProgressDeadlineExceeded"))
    await pair.patch(DEPLOYMENTS, "web", with_image(NEXT))
    await pair.agree("rolled over all the same", complete())
    pair.same("steps", view.steps)


async def roll_back(pair: Pair) -> None:
    await pair.create(DEPLOYMENTS, deployment(2, revisionHistoryLimit=2, strategy=rolling(1, 0)))
    for image in (NEXT, "app:3", GOOD, "app:4", "app:5"):
        await pair.agree(f"before {image}", complete())
        await pair.patch(DEPLOYMENTS, "web", with_image(image))
    await pair.agree("after all", complete())
    await pair.agree("old ones forgotten", lambda side: len(side.all("ReplicaSet")) == 3)
    pair.same("steps", view.steps)


SCENARIOS = (
    min_ready_seconds,
    progress_deadline_and_bad_image,
    from_bad_to_good,
    roll_back,
    first_rollout,
    roll_one_more_at_a_time,
    roll_one_less_at_a_time,
    roll_percentages_of_few,
    roll_by_quarters,
    roll_all_at_once,
    roll_with_everything_unavailable,
    roll_three_and_two,
    recreate,
    new_template_in_the_middle,
    pause_and_resume,
    pause_in_the_middle,
)
