"""What events and owners name an object by."""

from argosy.kube.objects import Metadata, join_key, key_of, split_key
from argosy.kube.references import reference_of, reference_to
from argosy.kube.resource import Resource

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web", "uid": "1"}


def test_a_whole_object_and_a_projection_of_it_are_referred_to_alike():
    identity = {"namespace": "shop", "name": "web", "uid": "1"}
    whole = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {**identity, "labels": {}}, "spec": {}}
    assert reference_to(whole) == reference_of(DEPLOYMENTS, Metadata(**identity)) == WEB


def test_what_has_no_namespace_names_none():
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "2"}}
    assert reference_to(node) == {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "2"}


def test_what_is_not_stored_yet_has_no_uid():
    fresh = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}}
    assert reference_to(fresh) == {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "n"}


def test_a_key_is_the_namespace_and_the_name():
    assert join_key("shop", "web") == key_of(Metadata(name="web", namespace="shop")) == "shop/web"
    assert join_key("", "n") == join_key(None, "n") == key_of(Metadata(name="n")) == "n"
    assert split_key("shop/web") == ("shop", "web")
    assert split_key("n") == ("", "n")
