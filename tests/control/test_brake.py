"""The brake: a mistake that hits many objects takes nothing away, and undoing it writes to no member."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import orjson
import pytest

from argosy.api import keys, resources
from argosy.cli.client.brake import held_objects, release
from argosy.cli.client.fleet import read_fleet
from argosy.cli.output.report import gather, report
from argosy.control.options import Options
from argosy.kube import clock, timestamps
from argosy.kube.client import Patch
from argosy.plan.brake.orders import Off, Order, Orders, plan_id
from tests.harness.eventually import eventually, holds
from tests.harness.federation import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, Federation

EVERYWHERE: dict[str, Any] = {"schedulingMode": "Duplicate"}
MANY = 12


@pytest.fixture
async def fed() -> AsyncIterator[Federation]:
    async with Federation(3, options=Options()) as federation:
        await federation.policy(**EVERYWHERE)
        for number in range(MANY):
            await federation.deploy(f"web-{number}", replicas=1)
        await eventually(lambda: is_everywhere(federation, MANY))
        yield federation


async def copies(fed: Federation) -> dict[tuple[str, str], tuple[str, str]]:
    """Each copy's uid and version."""
    found = {}
    for name in fed.names:
        for copy in (await fed.member(name).list(DEPLOYMENTS)).items:
            metadata = copy["metadata"]
            found[name, metadata["name"]] = (metadata["uid"], str(metadata["generation"]))
    return found


async def is_everywhere(fed: Federation, count: int) -> bool:
    return len(await copies(fed)) == count * len(fed.names) and await settled(fed)


async def settled(fed: Federation) -> bool:
    return all(
        [entry["status"] for entry in (each.get("status") or {}).get("clusters") or ()] == ["OK"] * len(fed.names)
        for each in (await fed.client.list(resources.FEDERATED_OBJECTS)).items
        if each["metadata"]["name"].startswith("web-")
    )


async def held(fed: Federation) -> list[str]:
    """The causes of all that say so in their condition."""
    return [
        condition["reason"]
        for each in (await fed.client.list(resources.FEDERATED_OBJECTS)).items
        for condition in (each.get("status") or {}).get("conditions") or ()
        if condition["type"] == "RemovalHeld" and condition["status"] == "True"
    ]


async def relabel(fed: Federation, value: str | None, count: int = MANY) -> None:
    for number in range(count):
        body = {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: value}}}
        await fed.client.patch(DEPLOYMENTS, f"web-{number}", body, "default", kind=Patch.MERGE)


async def order(fed: Federation, orders: Orders) -> None:
    text = orjson.dumps(msgspec.to_builtins(orders)).decode()
    body = {"metadata": {"annotations": {keys.BRAKE_ORDERS: text}}}
    await fed.client.patch(NAMESPACES, keys.SYSTEM_NAMESPACE, body, kind=Patch.MERGE)


async def narrowed(fed: Federation, *clusters: str) -> None:
    body = {"spec": {**EVERYWHERE, "placement": [{"cluster": name} for name in clusters] or None}}
    await fed.client.patch(resources.PROPAGATION_POLICIES, "policy", body, "default", kind=Patch.MERGE)


async def test_policy_labels_that_vanish_take_nothing_away_and_undoing_writes_nothing(fed):
    before = await copies(fed)
    await relabel(fed, None)

    async def all_held():
        return await held(fed) == ["PolicyNoLongerNamed"] * MANY

    await eventually(all_held)
    await asyncio.sleep(120)
    assert await copies(fed) == before
    await relabel(fed, "policy")

    async def none_held():
        return not await held(fed) and await settled(fed)

    await eventually(none_held)
    assert await copies(fed) == before


async def test_a_narrowed_policy_is_held_over_a_restart_until_it_is_confirmed(fed):
    before = await copies(fed)
    await narrowed(fed, "m1")

    async def all_held():
        return await held(fed) == ["PolicyChanged"] * MANY

    await eventually(all_held)
    await fed.stop_controllers()
    await fed.start_controllers()
    await asyncio.sleep(60)
    assert await copies(fed) == before
    await order(fed, Orders(confirmed=(Order("PolicyChanged", timestamps.now(), "ops"),)))

    async def only_there():
        return {cluster for cluster, _ in await copies(fed)} == {"m1"} and not await held(fed)

    await eventually(only_there)


async def test_a_restart_while_it_settles_forgets_nothing(fed):
    before = await copies(fed)
    await narrowed(fed, "m1")
    await asyncio.sleep(1)
    await fed.stop_controllers()
    await fed.start_controllers()

    async def all_held():
        return await held(fed) == ["PolicyChanged"] * MANY

    await eventually(all_held)
    assert await copies(fed) == before


async def test_a_template_that_changes_meanwhile_reaches_the_copies_that_stay(fed):
    await narrowed(fed, "m1")

    async def all_held():
        return len(await held(fed)) == MANY

    await eventually(all_held)
    image = {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "other:2"}
    await fed.client.patch(DEPLOYMENTS, "web-0", [image], "default", kind=Patch.JSON)

    async def arrived():
        found = [await fed.member(name).get(DEPLOYMENTS, "web-0", "default") for name in fed.names]
        return {each["spec"]["template"]["spec"]["containers"][0]["image"] for each in found} == {"other:2"}

    await eventually(arrived)


async def test_one_object_that_moves_is_done_within_ten_seconds(fed):
    began = clock.monotonic()
    body = {"metadata": {"annotations": {}, "labels": {keys.PROPAGATION_POLICY_LABEL: "other"}}}
    policy = {"apiVersion": keys.API_VERSION, "kind": "PropagationPolicy", "metadata": {"name": "other"}}
    spec = {**EVERYWHERE, "placement": [{"cluster": "m1"}, {"cluster": "m2"}]}
    await fed.client.create(resources.PROPAGATION_POLICIES, {**policy, "spec": spec}, "default")
    await fed.client.patch(DEPLOYMENTS, "web-0", body, "default", kind=Patch.MERGE)

    async def moved():
        return ("m3", "web-0") not in await copies(fed)

    await eventually(moved)
    assert clock.monotonic() - began < 10
    assert not await held(fed)


async def test_a_quarter_of_a_cluster_is_not_too_much(fed):
    policy = {"apiVersion": keys.API_VERSION, "kind": "PropagationPolicy", "metadata": {"name": "other"}}
    spec = {**EVERYWHERE, "placement": [{"cluster": "m1"}, {"cluster": "m2"}]}
    await fed.client.create(resources.PROPAGATION_POLICIES, {**policy, "spec": spec}, "default")
    await relabel(fed, "other", count=3)

    async def moved():
        return len([each for each in await copies(fed) if each[0] == "m3"]) == MANY - 3

    await eventually(moved)
    assert not await held(fed)


async def test_a_label_that_vanishes_from_one_object_is_told_at_once_and_done_after_a_minute(fed):
    await relabel(fed, None, count=1)

    async def told():
        return any("in a minute" in each["message"] for each in await fed.events("RemovalHeld"))

    await eventually(told)
    await asyncio.sleep(50)
    assert ("m1", "web-0") in await copies(fed)

    async def gone():
        return not any(name == "web-0" for _, name in await copies(fed))

    await eventually(gone)


async def test_what_was_left_in_a_copy_stays_while_it_waits_whether_its_policy_is_named_again(fed):
    await fed.policy("careful", **EVERYWHERE, driftCorrection="Report")
    body = {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: "careful"}}}
    await fed.client.patch(DEPLOYMENTS, "web-0", body, "default", kind=Patch.MERGE)
    await eventually(fed.quiet)
    await fed.member("m1").patch(DEPLOYMENTS, "web-0", {"spec": {"replicas": 7}}, "default")
    await asyncio.sleep(10)
    before = await copies(fed)
    await relabel(fed, None, count=1)

    async def told():
        return any("in a minute" in each["message"] for each in await fed.events("RemovalHeld"))

    await eventually(told)
    await asyncio.sleep(40)
    assert await copies(fed) == before
    body["metadata"]["labels"] = {keys.PROPAGATION_POLICY_LABEL: "careful"}
    await fed.client.patch(DEPLOYMENTS, "web-0", body, "default", kind=Patch.MERGE)
    await asyncio.sleep(100)
    assert await copies(fed) == before
    assert (await fed.member("m1").get(DEPLOYMENTS, "web-0", "default"))["spec"]["replicas"] == 7


async def test_scaling_to_zero_and_deleting_one_is_no_mistake(fed):
    body = {"spec": {"replicas": 0}}
    for number in range(MANY):
        await fed.client.patch(DEPLOYMENTS, f"web-{number}", body, "default", kind=Patch.MERGE)
    await fed.client.delete(DEPLOYMENTS, "web-0", "default")

    async def gone():
        return not any(name == "web-0" for _, name in await copies(fed))

    await eventually(gone)
    assert not await held(fed)


async def taint(fed: Federation, name: str, taints: list[dict[str, str]] | None) -> None:
    body = {"spec": {"taints": taints}}
    await fed.client.patch(resources.FEDERATED_CLUSTERS, name, body, kind=Patch.MERGE)


NO_EXECUTE = [{"key": "maintenance", "effect": "NoExecute"}]


async def test_one_tainted_cluster_is_emptied_and_taints_in_a_loop_are_held(fed):
    await taint(fed, "m3", NO_EXECUTE)

    async def emptied():
        return {cluster for cluster, _ in await copies(fed)} == {"m1", "m2"}

    await eventually(emptied)
    before = await copies(fed)
    await taint(fed, "m2", NO_EXECUTE)

    async def all_held():
        return await held(fed) == ["ClusterChanged"] * MANY

    await eventually(all_held)
    assert await copies(fed) == before
    await taint(fed, "m2", None)

    async def none_held():
        return not await held(fed)

    await eventually(none_held)
    assert await copies(fed) == before


async def test_taints_set_in_a_fast_loop_empty_nothing(fed):
    before = await copies(fed)
    for name in ("m1", "m2"):
        await taint(fed, name, NO_EXECUTE)

    async def all_held():
        return await held(fed) == ["ClusterChanged"] * MANY

    await eventually(all_held)
    assert await copies(fed) == before


async def test_while_the_brake_is_off_nothing_is_held(fed):
    until = timestamps.timestamp(clock.now() + timedelta(hours=1))
    await order(fed, Orders(off=Off(until, "ops", "moving house")))
    await narrowed(fed, "m1")

    async def only_there():
        return {cluster for cluster, _ in await copies(fed)} == {"m1"}

    await eventually(only_there)
    assert not await held(fed)


async def test_a_protected_policy_wants_every_removal_confirmed(fed):
    body = {"spec": {"removalProtection": "Confirm"}}
    await fed.client.patch(resources.PROPAGATION_POLICIES, "policy", body, "default", kind=Patch.MERGE)
    await relabel(fed, None, count=1)

    async def one_held():
        return await held(fed) == ["PolicyNoLongerNamed"]

    await eventually(one_held)
    before = await copies(fed)
    await holds(lambda: True, 90)
    assert await copies(fed) == before


async def test_a_placement_that_another_controller_takes_away_is_noted_before_it_is_removed(fed):
    """Dispatch removes nothing that is not noted."""
    raw = await fed.client.get(resources.FEDERATED_OBJECTS, "web-0-deployments.apps", "default")
    mine = {"controller": "example.com/mine", "placement": [{"cluster": "m1"}]}
    raw["spec"]["placements"] = [*raw["spec"]["placements"], mine]
    await fed.client.update(resources.FEDERATED_OBJECTS, raw, "default")
    raw = await fed.client.get(resources.FEDERATED_OBJECTS, "web-0-deployments.apps", "default")
    raw["spec"]["placements"] = [mine]
    await fed.client.update(resources.FEDERATED_OBJECTS, raw, "default")
    await holds(lambda: True, 5)
    assert len([each for each in await copies(fed) if each[1] == "web-0"]) == 3


async def test_members_that_hold_copies_do_not_leave_in_bulk(fed):
    before = await copies(fed)
    for name in fed.names:
        await fed.client.delete(resources.FEDERATED_CLUSTERS, name)

    async def left():
        clusters = (await fed.client.list(resources.FEDERATED_CLUSTERS)).items
        return [each["metadata"]["name"] for each in clusters]

    await eventually(lambda: _is(left(), ["m2", "m3"]))
    await asyncio.sleep(60)
    assert await left() == ["m2", "m3"]
    released = [
        condition
        for each in (await fed.client.list(resources.FEDERATED_CLUSTERS)).items
        for condition in each["status"]["conditions"]
        if condition["type"] == "Released"
    ]
    assert all("argosy confirm ClustersDeleted" in each["message"] for each in released)
    assert len(released) == 2
    assert await copies(fed) == before
    await order(fed, Orders(confirmed=(Order("ClustersDeleted", timestamps.now(), "ops"),)))
    await eventually(lambda: _is(left(), []))
    assert await copies(fed) == before


async def _is(found, wanted):
    return await found == wanted


async def test_a_drained_cluster_is_an_order_and_a_second_one_is_another(fed):
    for name in ("m2", "m3"):
        await taint(fed, name, [{"key": keys.DRAINED_TAINT, "effect": "NoExecute"}])

    async def only_there():
        return {cluster for cluster, _ in await copies(fed)} == {"m1"}

    await eventually(only_there)
    assert not await held(fed)


async def test_what_a_policy_removes_as_planned_is_not_held(fed):
    removals = [("deployments.apps", f"default/web-{number}", name) for number in range(MANY) for name in ("m2", "m3")]
    spec = {**EVERYWHERE, "placement": [{"cluster": "m1"}]}
    body = {"metadata": {"annotations": {keys.PLAN: plan_id(removals)}}, "spec": spec}
    await fed.client.patch(resources.PROPAGATION_POLICIES, "policy", body, "default", kind=Patch.MERGE)

    async def only_there():
        return {cluster for cluster, _ in await copies(fed)} == {"m1"}

    await eventually(only_there)
    assert not await held(fed)


async def test_another_outcome_than_the_planned_one_is_held(fed):
    planned = plan_id([("deployments.apps", "default/web-0", "m3")])
    await order(fed, Orders(planned=(Order(planned, timestamps.now(), "ops"),)))
    await narrowed(fed, "m1")

    async def all_held():
        return await held(fed) == ["PolicyChanged"] * MANY

    await eventually(all_held)


async def waiting(fed: Federation, name: str) -> list[str]:
    """What `argosy status` says it waits for."""
    return list(report(await gather(fed.client, CONFIGMAPS, name, "default")).waiting)


async def test_status_does_not_call_it_well_while_a_removal_waits(fed):
    maps = ("map-0", "map-1")
    for name in maps:
        await fed.configure(name, {"key": "value"})
        await eventually(lambda name=name: _is(waiting(fed, name), []))
    policy = {"apiVersion": keys.API_VERSION, "kind": "PropagationPolicy", "metadata": {"name": "other"}}
    spec = {**EVERYWHERE, "placement": [{"cluster": "m1"}, {"cluster": "m2"}]}
    await fed.client.create(resources.PROPAGATION_POLICIES, {**policy, "spec": spec}, "default")
    for name, label in zip(maps, ("other", None), strict=True):
        body = {"metadata": {"labels": {keys.PROPAGATION_POLICY_LABEL: label}}}
        await fed.client.patch(CONFIGMAPS, name, body, "default", kind=Patch.MERGE)
    later = "since it was placed: it is not scheduled anew yet"
    await eventually(lambda: _is(waiting(fed, "map-0"), [f"its policy changed {later}"]), 3)
    await eventually(lambda: _is(waiting(fed, "map-1"), [f"its policy was taken away {later}"]), 3)
    await eventually(lambda: _is(waiting(fed, "map-0"), []))


async def test_an_old_confirmation_covers_no_other_mistake(fed):
    await narrowed(fed, "m1", "m2")

    async def held_because_of(cause):
        return await held(fed) == [cause] * MANY

    await eventually(lambda: held_because_of("PolicyChanged"))
    before = await copies(fed)
    await order(fed, Orders(confirmed=(Order("PolicyNoLongerNamed", timestamps.now(), "ops"),)))
    await asyncio.sleep(600)
    await relabel(fed, None)
    await eventually(lambda: held_because_of("PolicyNoLongerNamed"))
    await relabel(fed, None)
    await asyncio.sleep(120)
    assert await copies(fed) == before


async def test_what_was_confirmed_is_not_more_than_was_held(fed):
    await narrowed(fed, "m1", "m2")

    async def all_held():
        return await held(fed) == ["PolicyChanged"] * MANY

    await eventually(all_held)
    since = timestamps.now()
    await asyncio.sleep(120)
    await narrowed(fed, "m1")
    await asyncio.sleep(30)
    before = await copies(fed)
    await order(fed, Orders(confirmed=(Order("PolicyChanged", since, "ops"),)))
    await asyncio.sleep(60)
    assert await copies(fed) == before
    assert await all_held()


async def test_an_order_of_the_future_is_ignored(fed):
    at = timestamps.timestamp(clock.now() + timedelta(hours=2))
    await order(fed, Orders(confirmed=(Order("PolicyNoLongerNamed", at, "ops"),)))
    await asyncio.sleep(300)
    before = await copies(fed)
    await relabel(fed, None)

    async def all_held():
        return await held(fed) == ["PolicyNoLongerNamed"] * MANY

    await eventually(all_held)
    assert await copies(fed) == before


@pytest.mark.parametrize("taint_key", [keys.UNREADY_TAINT, keys.DRAINED_TAINT])
async def test_a_cluster_that_failed_or_is_drained_hides_no_mistake(taint_key):
    async with Federation(3, options=Options()) as fed:
        await fed.policy(schedulingMode="Duplicate", placement=[{"cluster": "m1"}])
        for number in range(MANY):
            await fed.deploy(f"web-{number}", replicas=1)

        async def arrived():
            return len(await copies(fed)) == MANY

        await eventually(arrived)
        await taint(fed, "m1", [{"key": taint_key, "effect": "NoExecute"}])
        await asyncio.sleep(5)
        await relabel(fed, None)

        async def all_held():
            return await held(fed) == ["PolicyNoLongerNamed"] * MANY

        await eventually(all_held)
        await asyncio.sleep(120)
        assert await arrived()


async def test_what_comes_late_belongs_to_what_is_held_also_after_a_restart(fed):
    before = await copies(fed)
    await relabel(fed, None, count=9)

    async def nine_held():
        return len(await held(fed)) == 9

    await eventually(nine_held)
    await fed.stop_controllers()
    await fed.start_controllers()
    await asyncio.sleep(5)
    await relabel(fed, None)
    await asyncio.sleep(120)
    assert len(await held(fed)) == MANY
    assert await copies(fed) == before


async def test_of_few_objects_too_a_second_cluster_in_a_row_is_not_emptied():
    async with Federation(4, options=Options()) as fed:
        await fed.policy(**EVERYWHERE)
        for number in range(2):
            await fed.deploy(f"web-{number}", replicas=1)
        await eventually(lambda: is_everywhere(fed, 2))
        for name in ("m1", "m2", "m3"):
            await taint(fed, name, NO_EXECUTE)
            await asyncio.sleep(20)
        assert {cluster for cluster, _ in await copies(fed)} == {"m2", "m3", "m4"}
        assert await held(fed) == ["ClusterChanged"] * 2


async def test_a_leave_that_is_held_is_shown_and_can_be_confirmed():
    async with Federation(3, options=Options()) as fed:
        await fed.policy(**EVERYWHERE)
        await fed.deploy("web-0", replicas=1)
        await eventually(lambda: is_everywhere(fed, 1))
        for name in fed.names:
            await fed.client.delete(resources.FEDERATED_CLUSTERS, name)

        async def waits():
            return [each.name for each in await held_objects(fed.client) if each.kind == "FederatedCluster"] == [
                "m2",
                "m3",
            ]

        await eventually(waits)
        assert not (await read_fleet(fed.client)).well
        await release(fed.client, "confirmed", await held_objects(fed.client))

        async def gone():
            return not (await fed.client.list(resources.FEDERATED_CLUSTERS)).items

        await eventually(gone)
