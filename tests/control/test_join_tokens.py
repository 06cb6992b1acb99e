"""Service accounts in members: their tokens are made, renewed, replaced, and missed with a word on what to do."""

import msgspec
import pytest

from argosy.api import keys
from argosy.api.types import FederatedCluster
from argosy.fleet.tokens import life_of
from argosy.kube.errors import Forbidden
from tests.harness.eventually import holds
from tests.harness.federation import QUICK, SECRETS
from tests.harness.membership import ACCOUNTS, Party
from tests.harness.user import exists

#: Every token is due for renewal as soon as it is there.
RESTLESS = msgspec.structs.replace(QUICK, token_renewal=0)


async def test_an_account_gets_a_token_that_ends_and_needs_nothing_else(party):
    life = life_of(await party.account_token())
    assert life is not None
    assert life.expires - life.issued == QUICK.token_lifetime
    assert not await exists(party.member("m1"), SECRETS, keys.MEMBER_SERVICE_ACCOUNT, keys.SYSTEM_NAMESPACE)
    await party.forget_user()
    in_use = party.inside.access.in_use("m1")
    assert in_use.token == await party.account_token()
    assert not in_use.cert_data
    await party.propagates()
    assert await party.condition() == ("", "", "")


async def test_a_token_is_left_alone_until_it_is_due(party):
    before = await party.client.get(SECRETS, "m1", keys.SYSTEM_NAMESPACE)

    async def same() -> bool:
        return await party.client.get(SECRETS, "m1", keys.SYSTEM_NAMESPACE) == before

    await holds(same, 4 * QUICK.health_period)
    await party.stop_controllers()
    await party.start_controllers()
    await holds(same, 2 * QUICK.health_period)


async def test_an_account_renews_its_token_by_itself_and_uses_the_new_one():
    async with Party(timings=RESTLESS) as fed:
        await fed.policy()
        await fed.forget_user()
        member, first = fed.inside.members.get("m1"), await fed.account_token()

        async def renewed() -> bool:
            return await fed.account_token() != first and fed.inside.access.in_use("m1").token != first

        await fed.eventually(renewed)
        assert fed.inside.members.get("m1") is member
        await fed.propagates()


#: Whether it happens while controllers run, or while there are none.
while_away = pytest.mark.parametrize("away", [False, True], ids=["at once", "while away"])


async def _lose_account(party: Party, away: bool) -> None:
    if away:
        await party.stop_controllers()
    await party.member("m1").delete(ACCOUNTS, keys.MEMBER_SERVICE_ACCOUNT, keys.SYSTEM_NAMESPACE)
    if away:
        await party.start_controllers()


@while_away
async def test_a_token_that_is_refused_is_replaced_with_the_users_credentials(party, away):
    before = await party.account_token()
    await _lose_account(party, away)

    async def replaced() -> bool:
        return await party.account_token() != before

    await party.eventually(replaced)
    await party.propagates()


@while_away
async def test_a_token_that_is_refused_for_good_is_told_with_the_way_out(party, away):
    await party.forget_user()
    await party.propagates()
    await _lose_account(party, away)
    message = await party.told("CredentialsRejected", "401", "argosy join m1 --kubeconfig")
    assert "eyJ" not in message
    assert await party.replicas() == {"m1": 1}


async def test_a_token_that_cannot_be_kept_is_told_and_the_member_is_looked_after_all_the_same(monkeypatch):
    async with Party(timings=RESTLESS) as fed:
        asked = 0

        async def refuse(cluster: FederatedCluster, token: bytes | None) -> None:
            nonlocal asked
            asked += 1
            raise Forbidden(403, "Forbidden", "secrets is forbidden", {})

        monkeypatch.setattr(fed.inside.secrets, "keep_token", refuse)
        await fed.told("TokenNotRenewed", "secrets is forbidden")
        before = asked
        probed = (await fed.cluster()).condition("Ready").last_probe_time

        async def probed_again() -> bool:
            return (await fed.cluster()).condition("Ready").last_probe_time != probed

        await fed.eventually(probed_again)
        assert asked - before <= 4, "one a health period"


async def test_a_legacy_token_goes_on_working(party):
    """As a secret that KubeAdmiral wrote holds one."""
    legacy = await party.legacy_token()
    await party.put(**{keys.SECRET_SERVICE_ACCOUNT_TOKEN: legacy})
    await party.eventually(lambda: party.inside.access.in_use("m1").token == legacy)
    await party.propagates()
    assert await party.account_token() == legacy
