"""A member that answers nonsense: it is told about that member, nothing is deleted, the others go on, and it passes."""

import contextlib
import itertools
import logging
import re
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from argosy.api import resources
from argosy.control.options import Options
from argosy.kube.answers import AnswerLimits
from tests.control.lies import LIES, LIST, Lie, nested, news
from tests.harness.eventually import eventually
from tests.harness.federation import CONFIGMAPS, DEPLOYMENTS, WATCHFUL, Federation
from tests.harness.liar import Liar, Tell

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real_time("lies are bytes on a socket")]

LIAR, HONEST = "m1", "m2"
#: Smaller than by default, so that an endless answer comes to its end sooner.
LIMITS = AnswerLimits(object=2**20, page=4 * 2**20)
#: Watches are short: what a member told with too high a version is found out after two of them without news.
TIMINGS = msgspec.structs.replace(
    WATCHFUL,
    health_period=0.3,
    retry_first=0.03,
    retry_most=0.1,
    member_write=5.0,
    member_silence=2.0,
    watch_liveness=5.0,
)


class Doubtful(Federation):
    """Two members, one of them behind a liar, and a workload in both."""

    def __init__(self) -> None:
        super().__init__(2, timings=TIMINGS, options=Options(answers=LIMITS))
        self.numbers = itertools.count(1)

    def endpoint(self, name: str) -> str:
        return self.liar.url if name == LIAR else super().endpoint(name)

    async def __aenter__(self) -> "Doubtful":
        self._stack = contextlib.AsyncExitStack()
        # Its port is needed before members join, and the member's address only when the liar is asked.
        self.liar = await self._stack.enter_async_context(Liar(self.servers[LIAR]))
        await super().__aenter__()
        await self.policy(schedulingMode="Duplicate")
        await self.deploy(replicas=2)
        await self.configure("settings", {"number": "0"})
        await self.annotate(DEPLOYMENTS, "web", self.namespace, number="0")
        await self.eventually(lambda: self.holds(HONEST, "0"))
        await self.eventually(lambda: self.holds(LIAR, "0"))
        return self

    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__()
        await self._stack.aclose()

    async def change(self) -> str:
        """Something new for every member: what it is to hold from now on."""
        number = str(next(self.numbers))
        await self.client.patch(CONFIGMAPS, "settings", {"data": {"number": number}}, self.namespace)
        await self.annotate(DEPLOYMENTS, "web", self.namespace, number=number)
        return number

    async def holds(self, member: str, number: str) -> bool:
        settings = await self.member(member).get(CONFIGMAPS, "settings", self.namespace)
        web = await self.member(member).get(DEPLOYMENTS, "web", self.namespace)
        return settings["data"]["number"] == number and web["metadata"]["annotations"]["number"] == number

    async def conditions(self) -> list[str]:
        cluster = await self.client.get(resources.FEDERATED_CLUSTERS, LIAR)
        return [f"{each['type']}={each['status']} {each.get('message')}" for each in cluster["status"]["conditions"]]

    async def uids(self) -> dict[str, str]:
        found = {}
        for name, resource in (("web", DEPLOYMENTS), ("settings", CONFIGMAPS)):
            for member in self.names:
                copy = await self.member(member).get(resource, name, self.namespace)
                assert "deletionTimestamp" not in copy["metadata"]
                found[f"{name} in {member}"] = copy["metadata"]["uid"]
        return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fed() -> AsyncIterator[Doubtful]:
    async with Doubtful() as made:
        yield made


@pytest.mark.parametrize("about", LIES)
async def test_lies_are_told_about_their_member_and_hurt_nobody(
    fed: Doubtful, about: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = await fed.uids()
    number = ""
    for lie in LIES[about]:
        number = await _told(fed, lie)
        assert await fed.uids() == before, lie.name
        assert not _unhandled(caplog.records), lie.name
    await eventually(lambda: fed.holds(LIAR, number), why="what is new comes to the member when it lies no more")
    await eventually(lambda: _is_well(fed), 180, "the cluster is well again")
    assert await fed.uids() == before
    assert fed.manager is not None
    assert fed.inside.tasks.healthy()
    assert all(member.tasks.healthy() for member in fed.inside.members)
    assert not _unhandled(caplog.records)


@pytest.mark.parametrize(
    "tell",
    [nested(300), nested(900), news(status={"replicas": 2, "x": "y" * 3_300_000})],
    ids=["300 levels", "900 levels", "3.3 MB"],
)
async def test_a_status_that_cannot_be_written_costs_the_others_nothing(
    fed: Doubtful, tell: Tell, caplog: pytest.LogCaptureFixture
) -> None:
    with fed.liar.lying(LIST, tell):
        fed.liar.cut()
        await eventually(lambda: fed.liar.told >= 2)
        number = 1000 + int(next(fed.numbers))
        status = {"replicas": number, "observedGeneration": number}
        await fed.member(HONEST).patch(DEPLOYMENTS, "web", {"status": status}, fed.namespace, subresource="status")
        await eventually(lambda: _collected(fed, HONEST, number), why="what the honest member says is collected")
        await eventually(lambda: _says(fed, "AnswersReadable=False"), why="and whose fault it is")
    # What was told of an object counts until there is news of it, of a higher version than the lie's.
    for replicas in (1, 2):
        told = {"status": {"replicas": replicas, "observedGeneration": number}}
        await fed.member(LIAR).patch(DEPLOYMENTS, "web", told, fed.namespace, subresource="status")
    await eventually(lambda: _is_well(fed), 180, "the cluster is well again")
    assert not _unhandled(caplog.records)


async def _collected(fed: Doubtful, member: str, number: int) -> bool:
    found = await fed.client.get(resources.COLLECTED_STATUSES, "web-deployments.apps", fed.namespace)
    said = {each["cluster"]: each["collectedFields"].get("status", {}).get("replicas") for each in found["clusters"]}
    if said.get(member) != number:
        raise AssertionError(said)
    return True


async def _told(fed: Doubtful, lie: Lie) -> str:
    """The lie was told, told again, and told to users; and what the members are to hold by now."""
    with fed.liar.lying(lie.about, lie.tell):
        fed.liar.cut()
        number = await fed.change()
        await eventually(lambda: fed.liar.told >= lie.times, why=f"{lie.name}: it is asked again")
        await eventually(lambda: fed.holds(HONEST, number), why=f"{lie.name}: the other member goes on")
        if lie.shown:
            await eventually(lambda: _says(fed, lie.shown), why=f"{lie.name}: the cluster says {lie.shown}")
        return number


async def _says(fed: Doubtful, pattern: str) -> bool:
    conditions = await fed.conditions()
    if not any(re.match(pattern, each) for each in conditions):
        raise AssertionError(conditions)
    return True


async def _is_well(fed: Doubtful) -> bool:
    conditions = dict(each.split(" ", 1)[0].split("=") for each in await fed.conditions())
    wrong = {type for type, status in conditions.items() if status != ("False" if type == "Offline" else "True")}
    if wrong:
        raise AssertionError(await fed.conditions())
    return True


def _unhandled(records: list[logging.LogRecord]) -> list[Any]:
    """Lines with a traceback: exceptions that nobody expected."""
    return [record.getMessage() for record in records if record.exc_info]
