"""Cluster IPs and node ports: nothing is handed out twice, and what is given back can be had again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.server.kinds.services.ips import Exhausted, Refused, ServiceAllocator, held_by

Object = dict[str, Any]


def service(**spec: Any) -> Object:
    return {
        "metadata": {"name": "a"},
        "spec": {"type": "ClusterIP", "ports": [{"port": 80, "protocol": "TCP"}], **spec},
    }


def allocated(allocator: ServiceAllocator, **spec: Any) -> Object:
    obj = service(**spec)
    assert set(allocator.allocate(obj)) == set(held_by(obj))
    return obj


def refused(allocator: ServiceAllocator, obj: Object) -> str:
    with pytest.raises(Refused) as info:
        allocator.allocate(obj)
    return str(info.value)


def small() -> ServiceAllocator:
    return ServiceAllocator(("10.0.0.0/29",), range(30000, 30003))


def test_every_service_gets_an_address_of_its_own() -> None:
    allocator = small()
    ips = [allocated(allocator)["spec"]["clusterIP"] for _ in range(6)]
    assert sorted(ips) == [f"10.0.0.{i}" for i in range(1, 7)]


def test_a_full_range_is_said_to_be_full() -> None:
    allocator = small()
    for _ in range(6):
        allocated(allocator)
    with pytest.raises(Exhausted, match="range is full"):
        allocator.allocate(service())


def test_a_released_address_can_be_asked_for_again() -> None:
    allocator = small()
    taken = allocated(allocator, clusterIP="10.0.0.3", clusterIPs=["10.0.0.3"])
    assert refused(allocator, service(clusterIP="10.0.0.3", clusterIPs=["10.0.0.3"])) == (
        'spec.clusterIPs: Invalid value: ["10.0.0.3"]: failed to allocate IP 10.0.0.3: provided IP is already allocated'
    )
    allocator.release(taken)
    allocated(allocator, clusterIP="10.0.0.3", clusterIPs=["10.0.0.3"])


def test_an_update_keeps_its_address_and_gives_back_only_what_it_dropped() -> None:
    allocator = small()
    old = allocated(allocator, type="NodePort")
    new = service(clusterIP=old["spec"]["clusterIP"], clusterIPs=old["spec"]["clusterIPs"])
    assert allocator.allocate(new, old) == []
    assert new["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    allocator.release(old, kept=new)
    port = old["spec"]["ports"][0]["nodePort"]
    allocated(allocator, type="NodePort", ports=[{"port": 1, "protocol": "TCP", "nodePort": port}])
    assert refused(allocator, service(clusterIP=new["spec"]["clusterIP"], clusterIPs=new["spec"]["clusterIPs"]))


def test_an_address_that_may_not_change_is_not_taken_from_its_owner() -> None:
    allocator = small()
    old, other = allocated(allocator), allocated(allocator)
    new = service(clusterIP=other["spec"]["clusterIP"], clusterIPs=other["spec"]["clusterIPs"])
    assert allocator.allocate(new, old) == []
    assert refused(allocator, service(clusterIP=other["spec"]["clusterIP"], clusterIPs=other["spec"]["clusterIPs"]))


def test_a_service_that_was_an_external_name_gets_an_address() -> None:
    old: Object = {"metadata": {"name": "a"}, "spec": {"type": "ExternalName", "externalName": "x.example.com"}}
    new = service()
    assert small().allocate(new, old) == new["spec"]["clusterIPs"]


def test_a_service_without_a_name_takes_no_address() -> None:
    allocator = small()
    nameless = service(clusterIP="10.0.0.1", clusterIPs=["10.0.0.1"]) | {"metadata": {}}
    assert refused(allocator, nameless) == (
        'spec.clusterIPs: Invalid value: ["10.0.0.1"]: failed to allocate IP 10.0.0.1: '
        'IPAddress.networking.k8s.io "10.0.0.1" is invalid: spec.parentRef.name: Required value'
    )
    allocator.give_back(allocator.allocate(nameless, dry_run=True))
    allocated(allocator, clusterIP="10.0.0.1", clusterIPs=["10.0.0.1"])


def test_a_refused_port_gives_the_address_back() -> None:
    allocator = ServiceAllocator(("10.0.0.0/30",), range(30000, 30003))
    wrong = service(type="NodePort", ports=[{"port": 1, "protocol": "TCP", "nodePort": 80}])
    assert refused(allocator, wrong) == (
        "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. "
        "The range of valid ports is 30000-30002"
    )
    assert {allocated(allocator)["spec"]["clusterIP"] for _ in range(2)} == {"10.0.0.1", "10.0.0.2"}


def test_protocols_of_one_port_share_a_node_port() -> None:
    ports = [{"port": 53, "protocol": "UDP", "name": "u"}, {"port": 53, "protocol": "TCP", "name": "t"}]
    spec = allocated(small(), type="NodePort", ports=ports)["spec"]
    assert spec["ports"][0]["nodePort"] == spec["ports"][1]["nodePort"]


def test_a_headless_service_takes_no_address() -> None:
    allocator = ServiceAllocator(("10.0.0.0/30",))
    for _ in range(5):
        headless = allocated(allocator, clusterIP="None", clusterIPs=["None"], selector={"a": "b"})
        assert headless["spec"]["ipFamilies"] == ["IPv4"]


def test_two_families_give_two_addresses_to_those_that_ask() -> None:
    allocator = ServiceAllocator(("10.0.0.0/24", "fd00::/112"))
    both = allocated(allocator, ipFamilyPolicy="PreferDualStack")["spec"]
    assert both["ipFamilies"] == ["IPv4", "IPv6"]
    assert both["clusterIP"] == both["clusterIPs"][0]
    assert both["clusterIPs"][1].startswith("fd00::")
    assert allocated(allocator)["spec"]["ipFamilies"] == ["IPv4"]
    only_six = allocated(allocator, ipFamilies=["IPv6"])["spec"]
    assert only_six["clusterIP"].startswith("fd00::")


def test_what_stored_services_hold_is_taken() -> None:
    first = small()
    stored = [allocated(first, type="NodePort") for _ in range(3)]
    second = small()
    for obj in stored:
        second.take(obj)
    ips = {allocated(second)["spec"]["clusterIP"] for _ in range(2)}
    assert ips.isdisjoint(obj["spec"]["clusterIP"] for obj in stored)
    with pytest.raises(Exhausted, match="nodePort"):
        second.allocate(service(type="NodePort"))


@given(st.lists(st.booleans(), max_size=60))
def test_no_address_or_port_is_ever_held_twice(steps: list[bool]) -> None:
    allocator = ServiceAllocator(("10.0.0.0/27",), range(30000, 30020))
    held: list[Object] = []
    for create in steps:
        if create:
            new = service(type="NodePort")
            try:
                allocator.allocate(new)
            except Exhausted:
                assert len(held) == 20
                continue
            held.append(new)
        elif held:
            allocator.release(held.pop(0))
        ips = [obj["spec"]["clusterIP"] for obj in held]
        ports = [obj["spec"]["ports"][0]["nodePort"] for obj in held]
        assert len(set(ips)) == len(ips)
        assert len(set(ports)) == len(ports)
