"""What a member answers is looked into at once, not when it is looked at next; see `test_wakes.py`."""

import msgspec

from argosy.api import keys
from tests.control.test_identity import ADMIN, REASON, TIMINGS, TOKEN, Routed, _prepared, routes
from tests.harness.federation import QUICK
from tests.harness.membership import ACCOUNTS, Double, Party

SELDOM = {"health_period": 30.0, "identity_recheck": 30.0}


async def test_a_token_is_replaced_as_soon_as_it_is_refused():
    async with Party(timings=msgspec.structs.replace(QUICK, **SELDOM)) as party:
        await party.policy()
        await party.propagates("before")
        before = await party.account_token()
        await party.member("m1").delete(ACCOUNTS, keys.MEMBER_SERVICE_ACCOUNT, keys.SYSTEM_NAMESPACE)
        await party.deploy("after", replicas=1)

        async def replaced():
            return await party.account_token() != before

        await party.eventually(replaced)


@routes
async def test_another_cluster_is_told_as_soon_as_it_answers():
    timings = msgspec.structs.replace(TIMINGS, identity_period=0.0, **SELDOM)
    async with Routed(timings=timings) as fed:
        double = Double(fed.servers["m1"], {TOKEN: ADMIN})
        async with double as other:
            await _prepared(double, other)
            await fed.policy()
            await fed.propagates("before")
            fed.router.target = other
            await fed.set_image("nginx:2", "before")
            await fed.told(REASON, "is not the one that joined")
            fed.router.target = fed.servers["m1"]
