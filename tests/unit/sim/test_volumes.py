"""Volumes and claims: which class, which volume, and what a pod waits for."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from argosy.sim import volumes


def claim(
    name: str = "data", size: str = "1Gi", storage_class: str | None = "manual", phase: str = "Pending", **spec: Any
) -> Any:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    if storage_class is not None:
        wanted["storageClassName"] = storage_class
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": wanted, "status": {"phase": phase}}


def volume(name: str, size: str = "1Gi", storage_class: str = "manual", **spec: Any) -> Any:
    given = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "storageClassName": storage_class, **spec}
    return {"metadata": {"name": name, "labels": {"disk": name}}, "spec": given}


def storage_class(
    name: str, default: bool = False, binding: str = "Immediate", made: str = "2026-01-01T00:00:00Z"
) -> Any:
    annotations = {volumes.DEFAULT_CLASS: "true"} if default else {}
    metadata = {"name": name, "annotations": annotations, "creationTimestamp": made}
    return {"metadata": metadata, "provisioner": "example.com/disk", "volumeBindingMode": binding}


def chosen(wanted: Any, *there: Any) -> str | None:
    found = volumes.best_volume(wanted, there)
    return found["metadata"]["name"] if found is not None else None


def test_a_claim_gets_the_smallest_volume_that_suits_it() -> None:
    there = (volume("small", "500Mi"), volume("large", "9Gi"), volume("fitting", "2Gi"), volume("other", "1Gi", "ssd"))
    assert chosen(claim(), *there) == "fitting"
    assert chosen(claim(size="10Gi"), *there) is None
    assert chosen(claim(accessModes=["ReadWriteMany"]), *there) is None
    assert chosen(claim(volumeMode="Block"), *there) is None
    assert chosen(claim(selector={"matchLabels": {"disk": "large"}}), *there) == "large"


def test_what_is_reserved_is_for_its_claim_alone() -> None:
    mine = volume("mine", "9Gi", claimRef={"namespace": "shop", "name": "data"})
    assert chosen(claim(), volume("free"), mine) == "mine"
    assert chosen(claim("other"), mine) is None
    former = volume("former", claimRef={"namespace": "shop", "name": "data", "uid": "another"})
    assert chosen(claim(), former) is None


def test_the_newest_default_class_counts() -> None:
    classes = [storage_class("a", True), storage_class("b", True, made="2026-02-01T00:00:00Z"), storage_class("c")]
    assert volumes.default_class(classes) == "b"
    assert volumes.default_class(classes[2:]) is None


def test_what_pods_wait_for() -> None:
    classes = {"late": storage_class("late", binding="WaitForFirstConsumer"), "manual": storage_class("manual")}

    def of(found: Any, default: str | None = "late") -> volumes.Standing:
        return volumes.standing(["data"], {"data": found}, classes, default)

    unbound = "pod has unbound immediate PersistentVolumeClaims"
    assert of(claim(phase="Bound")) == volumes.Standing()
    assert of(None).problem == 'persistentvolumeclaim "data" not found'
    assert of(claim(storage_class="late")) == volumes.Standing(undecided=("data",))
    assert of(claim(storage_class=None)) == volumes.Standing(soon=True)
    assert (
        of(claim(storage_class=None), None).problem
        == of(claim()).problem
        == of(claim(storage_class="no")).problem
        == unbound
    )


@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from(["manual", "ssd"])), max_size=6), st.integers(1, 9))
def test_no_volume_is_smaller_than_its_claim_or_larger_than_needed(there: list[tuple[int, str]], size: int) -> None:
    made = [volume(f"v{number}", f"{gib}Gi", kind) for number, (gib, kind) in enumerate(there)]
    found = volumes.best_volume(claim(size=f"{size}Gi"), made)
    suited = [gib for gib, kind in there if kind == "manual" and gib >= size]
    assert (found is None) == (not suited)
    assert found is None or found["spec"]["capacity"]["storage"] == f"{min(suited)}Gi"
