import orjson
import pytest

from argosy.server.crd import CustomResources, accept_names
from argosy.server.discovery import Discovery, version_rank
from argosy.server.kinds import builtin_kinds
from argosy.server.registry import Registry
from tests.unit.server.crd.builders import definition

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


@pytest.fixture
def registry():
    result = Registry()
    for kind in builtin_kinds():
        result.add(kind)
    return result


def body(discovery, path, **headers):
    answer = discovery.respond(path, headers)
    assert answer is not None
    assert answer.status == 200
    return orjson.loads(answer.body)


def test_groups_come_in_kube_apiservers_order(registry):
    groups = body(Discovery(registry), "/apis")["groups"]
    names = [group["name"] for group in groups]
    assert names[:3] == ["apiregistration.k8s.io", "apps", "events.k8s.io"]
    assert names.index("autoscaling") < names.index("batch") < names.index("flowcontrol.apiserver.k8s.io")
    autoscaling = next(group for group in groups if group["name"] == "autoscaling")
    assert [version["version"] for version in autoscaling["versions"]] == ["v2", "v1"]
    assert autoscaling["preferredVersion"] == {"groupVersion": "autoscaling/v2", "version": "v2"}
    assert body(Discovery(registry), "/api")["versions"] == ["v1"]


def test_versions_are_ranked_as_kubernetes_ranks_them():
    shuffled = ["foo", "v1alpha1", "v1", "v10", "v2beta1", "v2", "v11alpha2", "v1beta2"]
    assert sorted(shuffled, key=version_rank) == [
        "v10", "v2", "v1", "v2beta1", "v1beta2", "v11alpha2", "v1alpha1", "foo",
    ]  # fmt: skip


def test_subresources_tell_the_kind_they_answer_with(registry):
    resources = {r["name"]: r for r in body(Discovery(registry), "/api/v1")["resources"]}
    assert resources["pods"]["shortNames"] == ["po"]
    assert resources["pods/eviction"] == {
        "name": "pods/eviction", "singularName": "", "namespaced": True, "group": "policy", "version": "v1",
        "kind": "Eviction", "verbs": ["create"],
    }  # fmt: skip
    assert resources["namespaces/finalize"]["verbs"] == ["update"]
    assert "deletecollection" not in resources["namespaces"]["verbs"]
    scale = next(r for r in body(Discovery(registry), "/apis/apps/v1")["resources"] if r["name"] == "deployments/scale")
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


def test_the_aggregated_form_holds_everything_in_one_answer(registry):
    found = body(Discovery(registry), "/apis", accept=AGGREGATED)
    assert found["apiVersion"] == "apidiscovery.k8s.io/v2"
    apps = next(item for item in found["items"] if item["metadata"]["name"] == "apps")
    deployments = next(r for r in apps["versions"][0]["resources"] if r["resource"] == "deployments")
    assert deployments["scope"] == "Namespaced"
    assert {s["subresource"]: s["responseKind"]["kind"] for s in deployments["subresources"]} == {
        "scale": "Scale",
        "status": "Deployment",
    }
    core = body(Discovery(registry), "/api", accept=AGGREGATED)
    assert [item["versions"][0]["version"] for item in core["items"]] == ["v1"]
    older = AGGREGATED.replace("v=v2", "v=v2beta1")
    assert body(Discovery(registry), "/apis", accept=older)["apiVersion"] == "apidiscovery.k8s.io/v2beta1"


def test_an_unchanged_answer_is_not_sent_again(registry):
    discovery = Discovery(registry)
    first = discovery.respond("/apis", {"accept": AGGREGATED})
    assert first is not None
    tag = first.headers["etag"]
    again = discovery.respond("/apis", {"accept": AGGREGATED, "if-none-match": tag})
    assert again is not None
    assert (again.status, again.body) == (304, b"")
    crd = definition()
    CustomResources(registry).observe(orjson.dumps({**crd, "status": accept_names(crd, [])}), None)
    changed = discovery.respond("/apis", {"accept": AGGREGATED, "if-none-match": tag})
    assert changed is not None
    assert changed.status == 200
    assert body(discovery, "/apis/example.com")["preferredVersion"]["version"] == "v1"


@pytest.mark.parametrize("path", ["/apis/none.example.com", "/apis/apps/v9", "/api/v2", "/apis/apps/v1/x", "/other"])
def test_what_is_not_served_is_not_answered(registry, path):
    assert Discovery(registry).respond(path, {}) is None


def test_the_root_lists_every_path_that_is_served(registry):
    paths = orjson.loads(Discovery(registry).respond("/", {}).body)["paths"]
    assert {"/api/v1", "/apis/apps/v1", "/openapi/v3", "/version"} <= set(paths)
    assert paths == sorted(paths)


def test_the_core_versions_say_where_the_server_was_reached(registry):
    answer = orjson.loads(Discovery(registry).respond("/api", {"host": "example.com:6443"}).body)
    assert answer["serverAddressByClientCIDRs"] == [{"clientCIDR": "0.0.0.0/0", "serverAddress": "example.com:6443"}]
