"""What a pod asks for: Kubernetes' rule, side-cars and pod-level resources included."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.podresources import InitContainer, aggregate, container_total, pod_requests
from argosy.kube.quantity import parse


def asks(restart: str | None = None, **requests: str) -> dict[str, object]:
    return {"resources": {"requests": requests}} | ({"restartPolicy": restart} if restart else {})


def sidecar(**requests: str) -> dict[str, object]:
    return asks("Always", **requests)


@pytest.mark.parametrize(
    ("containers", "init", "cpu"),
    [
        ([asks(cpu="1"), asks(cpu="2")], [], "3"),
        # An init container runs before the containers do.
        ([asks(cpu="1")], [asks(cpu="5"), asks(cpu="2")], "5"),
        ([asks(cpu="4"), asks(cpu="4")], [asks(cpu="5")], "8"),
        # A side-car runs beside them, and beside the init containers behind it.
        ([asks(cpu="1")], [sidecar(cpu="2")], "3"),
        ([asks(cpu="1")], [sidecar(cpu="2"), asks(cpu="5")], "7"),
        ([asks(cpu="1")], [asks(cpu="5"), sidecar(cpu="2")], "5"),
        ([asks(cpu="1")], [sidecar(cpu="2"), asks(cpu="5"), sidecar(cpu="3")], "7"),
        ([asks(cpu="1")], [sidecar(cpu="2"), sidecar(cpu="3"), asks(cpu="1")], "6"),
        ([], [sidecar(cpu="2"), sidecar(cpu="3")], "5"),
        # Only restartPolicy Always makes a side-car.
        ([asks(cpu="1")], [asks("Never", cpu="2")], "2"),
    ],
)
def test_sidecars_run_beside_the_containers_and_init_containers_do_not(containers, init, cpu):
    assert pod_requests({"containers": containers, "initContainers": init}) == {"cpu": parse(cpu)}


def test_each_resource_counts_for_itself():
    spec = {"containers": [asks(cpu="1", memory="1Gi")], "initContainers": [asks(cpu="2", gpu="1")]}
    assert pod_requests(spec) == {"cpu": parse("2"), "memory": parse("1Gi"), "gpu": parse("1")}


def test_what_the_pod_asks_for_as_a_whole_stands_for_its_containers_where_a_pod_may_ask():
    spec = {
        "resources": {"requests": {"cpu": "5", "example.com/gpu": "9"}},
        "containers": [asks(cpu="1", memory="1Gi", **{"example.com/gpu": "1"})],
        "overhead": {"cpu": "250m"},
    }
    assert {name: str(amount) for name, amount in pod_requests(spec).items()} == {
        "cpu": "5250m",
        "memory": "1Gi",
        "example.com/gpu": "1",
    }
    assert container_total(spec, "requests")["cpu"] == parse("1")


def test_what_cannot_be_read_counts_as_nothing():
    spec = {"containers": [asks(cpu="many"), {"resources": None}, {}], "initContainers": None, "overhead": None}
    assert pod_requests(spec) == {"cpu": parse("0")}


def test_a_sum_is_written_in_the_format_of_the_first_container_as_in_kubernetes():
    spec = {"containers": [asks(memory="1Gi")], "initContainers": [sidecar(memory="1024")]}
    assert str(pod_requests(spec)["memory"]) == "1048577Ki"


amounts = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 9))


@given(st.lists(amounts), st.lists(st.tuples(amounts, st.booleans())))
def test_the_sum_is_what_the_fullest_moment_needs(containers, init):
    """Told by walking through the moments of a pod's life, resource by resource."""
    found = aggregate(containers, [InitContainer(*each) for each in init])
    for resource in ("cpu", "memory"):
        running, most = 0, 0
        for needs, stays in init:
            most = max(most, running + needs.get(resource, 0))
            running += needs.get(resource, 0) if stays else 0
        most = max(most, running + sum(needs.get(resource, 0) for needs in containers))
        assert found.get(resource, 0) == most
