import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy.kube import apply3way, mergepatch, schema, strategic
from argosy.kube.strategic import StrategicPatchError

DEPLOYMENT = schema.load().kind("apps", "v1", "Deployment")


def pod_spec(**fields: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": fields}}}


def containers(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "image": f"{name}:1"} for name in names]


@pytest.mark.parametrize(
    ("doc", "patch", "result"),
    [
        pytest.param(
            pod_spec(containers=containers("a", "b")),
            pod_spec(containers=[{"name": "b", "image": "b:2"}]),
            pod_spec(containers=[{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]),
            id="list of objects merges by key",
        ),
        pytest.param(
            pod_spec(containers=containers("a", "b")),
            pod_spec(containers=[{"name": "b", "$patch": "delete"}, {"name": "c", "image": "c:1"}]),
            pod_spec(containers=[{"name": "c", "image": "c:1"}, {"name": "a", "image": "a:1"}]),
            id="an item is deleted and one added",
        ),
        pytest.param(
            pod_spec(containers=containers("a", "b")),
            pod_spec(containers=[{"$patch": "replace"}, {"name": "z"}]),
            pod_spec(containers=[{"name": "z"}]),
            id="a list is replaced",
        ),
        pytest.param(
            pod_spec(tolerations=[{"key": "a"}]),
            pod_spec(tolerations=[{"key": "b"}]),
            pod_spec(tolerations=[{"key": "b"}]),
            id="an atomic list is replaced",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}},
            {"metadata": {"finalizers": ["c", "b"]}},
            id="a set of strings merges and loses",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": "1", "b": "2"}}},
            {"metadata": {"labels": {"a": None, "c": "3"}}},
            {"metadata": {"labels": {"b": "2", "c": "3"}}},
            id="null removes",
        ),
        pytest.param(
            {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}},
            {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
            {"spec": {"strategy": {"type": "Recreate"}}},
            id="retainKeys clears the rest",
        ),
        pytest.param(
            {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}},
            {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}},
            {"spec": {"strategy": {"type": "Recreate"}}},
            id="an object is replaced",
        ),
        pytest.param(
            pod_spec(containers=containers("a", "b", "c")),
            pod_spec(**{"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}),
            pod_spec(containers=containers("b", "c", "a")),
            id="order is set and the others keep theirs",
        ),
        pytest.param(
            {},
            pod_spec(containers=[{"name": "a", "image": None}, {"name": "b", "$patch": "delete"}]),
            pod_spec(containers=[{"name": "a"}]),
            id="directives and nulls mean nothing in what is new",
        ),
    ],
)
def test_patch_gives_what_kubernetes_gives(doc: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]) -> None:
    before, sent = copy.deepcopy(doc), copy.deepcopy(patch)
    assert strategic.apply(doc, patch, DEPLOYMENT) == result
    assert (doc, patch) == (before, sent)


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (pod_spec(containers=[{"image": "x"}]), "map: map[image:x] does not contain declared merge key: name"),
        (pod_spec(containers=[{"name": "a", "$patch": "bogus"}]), "unknown patch type: bogus in map"),
        (pod_spec(containers=[{"name": "a", "$patch": "merge"}]), "merging lists cannot yet be specified in the patch"),
        (pod_spec(containers=["a"]), "list element types are not identical"),
        (pod_spec(containers=[{"name": {"x": 1}}]), "invalid merge key"),
        ([], "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ({"spec": {"$patch": "bogus"}}, "unknown patch type: bogus in map"),
        ({"spec": {"$retainKeys": "x"}}, "invalid patch format of retainKeys"),
        ({"spec": {"$retainKeys": ["x"], "y": 1}}, "invalid patch format of retainKeys"),
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}}, "invalid patch format of primitive list"),
        ({"metadata": {"$setElementOrder": []}}, "invalid patch format of setElementOrder list"),
        (
            pod_spec(**{"containers": [{"name": "b"}], "$setElementOrder/containers": [{"name": "a"}]}),
            "doesn't match $setElementOrder list",
        ),
        (pod_spec(**{"volumes": [], "$setElementOrder/volumes": []}), "no elements in any of the given slices"),
    ],
)
def test_malformed_patches_are_refused(patch: Any, message: str) -> None:
    with pytest.raises(StrategicPatchError) as error:
        strategic.apply({"metadata": {}, **pod_spec(containers=containers("a"))}, patch, DEPLOYMENT)
    assert message in str(error.value)


def test_directives_where_nothing_is_merged_are_fields_like_others() -> None:
    """As in kube-apiserver, where whoever decodes the object does not know them."""
    new = {"name": "b", "resources": {"$patch": "replace", "limits": None}}
    merged = strategic.apply(pod_spec(containers=containers("a")), pod_spec(containers=[new]), DEPLOYMENT)
    assert merged == pod_spec(containers=[new, *containers("a")])
    labelled = strategic.apply(
        {"metadata": {}}, {"metadata": {"labels": {"$retainKeys": ["x"], "y": None}}}, DEPLOYMENT
    )
    assert labelled == {"metadata": {"labels": {"$retainKeys": ["x"]}}}


def test_three_way_removes_what_was_applied_and_leaves_what_others_set() -> None:
    last = pod_spec(containers=containers("web", "old"))
    current = pod_spec(containers=[*containers("web", "old"), {"name": "injected"}], nodeName="n1")
    modified = pod_spec(containers=[{"name": "web", "image": "web:2"}])
    patch = apply3way.three_way(last, current, modified, DEPLOYMENT)
    assert patch == pod_spec(
        **{
            "containers": [{"name": "web", "image": "web:2"}, {"$patch": "delete", "name": "old"}],
            "$setElementOrder/containers": [{"name": "web"}],
        }
    )
    assert strategic.apply(current, patch, DEPLOYMENT) == pod_spec(
        containers=[{"name": "web", "image": "web:2"}, {"name": "injected"}], nodeName="n1"
    )


def test_three_way_of_a_union_clears_the_member_a_default_had_set() -> None:
    current = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = apply3way.three_way(None, current, {"spec": {"strategy": {"type": "Recreate"}}}, DEPLOYMENT)
    assert patch == {"spec": {"strategy": {"type": "Recreate", "$retainKeys": ["type"]}}}


def test_three_way_without_a_type_is_a_merge_patch() -> None:
    last = {"spec": {"a": 1, "list": [{"name": "x"}]}}
    current = {"spec": {"a": 1, "b": 2, "list": [{"name": "x"}]}, "status": {"ok": True}}
    modified = {"spec": {"list": [{"name": "y"}]}}
    patch = apply3way.three_way(last, current, modified, None)
    assert patch == {"spec": {"a": None, "list": [{"name": "y"}]}}
    assert mergepatch.apply(current, patch) == {"spec": {"b": 2, "list": [{"name": "y"}]}, "status": {"ok": True}}


def test_applying_the_same_again_sends_nothing() -> None:
    doc = pod_spec(containers=containers("a", "b"))
    assert apply3way.three_way(doc, {**copy.deepcopy(doc), "status": {}}, doc, DEPLOYMENT) == {}


short = st.sampled_from(["a", "b", "c", "d"])


def keyed(key: str, names: st.SearchStrategy[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(names, unique=True, max_size=4).flatmap(
        lambda chosen: st.tuples(
            *(st.fixed_dictionaries({key: st.just(name)}, optional=fields) for name in chosen)
        ).map(list)
    )


container_lists = keyed(
    "name",
    short,
    image=short,
    env=keyed("name", short, value=short),
    ports=keyed("containerPort", st.integers(1, 4), protocol=short),
    args=st.lists(short, max_size=3),
)
volumes = keyed("name", short, emptyDir=st.just({}), secret=st.fixed_dictionaries({"secretName": short}))
deployments = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": st.dictionaries(short, short, max_size=3),
                "finalizers": st.lists(short, unique=True, max_size=4),
            },
        ),
        "spec": st.fixed_dictionaries(
            {
                "template": st.fixed_dictionaries(
                    {"spec": st.fixed_dictionaries({"containers": container_lists, "volumes": volumes})}
                )
            },
            optional={"replicas": st.integers(0, 5), "strategy": st.fixed_dictionaries({"type": short})},
        ),
    },
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(deployments, deployments)
def test_two_way_patch_leads_from_one_to_the_other(original: dict[str, Any], modified: dict[str, Any]) -> None:
    before = copy.deepcopy((original, modified))
    patch = apply3way.two_way(original, modified, DEPLOYMENT)
    assert strategic.apply(original, patch, DEPLOYMENT) == modified
    assert (original, modified) == before


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(deployments, deployments, deployments)
def test_after_a_three_way_patch_there_is_nothing_left_to_apply(last: Any, current: Any, modified: Any) -> None:
    patched = strategic.apply(current, apply3way.three_way(last, current, modified, DEPLOYMENT), DEPLOYMENT)
    again = apply3way.three_way(modified, patched, modified, DEPLOYMENT)
    assert strategic.apply(patched, again, DEPLOYMENT) == patched
