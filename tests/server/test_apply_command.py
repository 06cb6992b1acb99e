"""`argosy apply` on an embedded server: what published folders ask of it."""

from argosy.cli.client.manifests import Manifest
from argosy.cli.commands.apply import apply_all
from argosy.kube.resource import Resource
from argosy.server.embedded import EmbeddedServer

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")


def config_map(name: str, namespace: str = "shop", **data: str) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return Manifest({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, name)


async def test_namespaces_and_kinds_come_before_what_needs_them(memory_server: EmbeddedServer) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    names = {"plural": "toys", "singular": "toy", "kind": "Toy", "listKind": "ToyList"}
    kind = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "toys.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
    }
    toy = {"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "bear", "namespace": "shop"}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    said: list[str] = []
    manifests = [config_map("first"), Manifest(toy, "toy"), Manifest(kind, "kind"), Manifest(namespace, "namespace")]
    await apply_all(memory_server.client(), manifests, "default", said.append)
    assert said == [
        "namespace/shop created",
        "customresourcedefinition.apiextensions.k8s.io/toys.example.com created",
        "configmap/first created",
        "toy.example.com/bear created",
    ]


async def test_what_is_too_large_to_be_remembered_is_applied_all_the_same(memory_server: EmbeddedServer) -> None:
    client, said = memory_server.client(), list[str]()
    await apply_all(client, [config_map("large", "default", a="x" * 300_000)], "default", said.append)
    await apply_all(client, [config_map("large", "default", a="x" * 300_000)], "default", said.append)
    await apply_all(client, [config_map("large", "default", a="y" * 300_000)], "default", said.append)
    assert said == ["configmap/large created", "configmap/large unchanged", "configmap/large configured"]
    found = await client.get(CONFIGMAPS, "large", "default")
    assert found["data"] == {"a": "y" * 300_000}
    await apply_all(client, [config_map("large", "default", a="small")], "default", said.append)
    assert (await client.get(CONFIGMAPS, "large", "default"))["data"] == {"a": "small"}
