"""Kinds by the words people type, as the embedded server's discovery tells them."""

from typing import Any

import pytest

from argosy.api.crds import manifests
from argosy.cli.client.kinds import resolve
from argosy.cli.output.failures import Failure
from argosy.kube.client import Client
from argosy.kube.resource import Resource
from argosy.server.embedded import EmbeddedServer
from tests.harness.eventually import eventually

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
#: All that `kubectl api-resources` shows of Kubernetes 1.36, less componentstatuses (docs/server.md).
SHORT_NAMES = {
    "configmaps": ["cm"],
    "endpoints": ["ep"],
    "events": ["ev"],
    "limitranges": ["limits"],
    "namespaces": ["ns"],
    "nodes": ["no"],
    "persistentvolumeclaims": ["pvc"],
    "persistentvolumes": ["pv"],
    "pods": ["po"],
    "replicationcontrollers": ["rc"],
    "resourcequotas": ["quota"],
    "serviceaccounts": ["sa"],
    "services": ["svc"],
    "customresourcedefinitions.apiextensions.k8s.io": ["crd", "crds"],
    "daemonsets.apps": ["ds"],
    "deployments.apps": ["deploy"],
    "replicasets.apps": ["rs"],
    "statefulsets.apps": ["sts"],
    "horizontalpodautoscalers.autoscaling": ["hpa"],
    "cronjobs.batch": ["cj"],
    "certificatesigningrequests.certificates.k8s.io": ["csr"],
    "events.events.k8s.io": ["ev"],
    "ingresses.networking.k8s.io": ["ing"],
    "ipaddresses.networking.k8s.io": ["ip"],
    "networkpolicies.networking.k8s.io": ["netpol"],
    "poddisruptionbudgets.policy": ["pdb"],
    "priorityclasses.scheduling.k8s.io": ["pc"],
    "storageclasses.storage.k8s.io": ["sc"],
    "volumeattributesclasses.storage.k8s.io": ["vac"],
}


def definition(group: str, plural: str, kind: str, *short: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "shortNames": list(short)},
            "versions": [
                {"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v1beta1")
            ],
        },
    }


async def serving(server: EmbeddedServer, *definitions: dict[str, Any]) -> Client:
    client = server.client()
    for each in definitions:
        await client.create(CRDS, each)
    wanted = {each["metadata"]["name"] for each in definitions}

    async def served() -> bool:
        return wanted <= {str(each) for each in (await client.discover()).resources}

    await eventually(served)
    return client


async def test_every_built_in_kind_has_kube_apiservers_short_names(memory_server: EmbeddedServer) -> None:
    found = await memory_server.client().discover()
    told = {str(each): list(found.aliases[each][1:]) for each in found.resources if len(found.aliases[each]) > 1}
    assert told == SHORT_NAMES


@pytest.mark.parametrize(
    ("words", "resource"),
    [
        ("pdb poddisruptionbudgets poddisruptionbudget PodDisruptionBudget pdb.policy", "poddisruptionbudgets.policy"),
        ("netpol NetworkPolicy networkpolicies.v1.networking.k8s.io", "networkpolicies.networking.k8s.io"),
        ("deploy deployments deployment Deployment deploy.apps deployment.apps", "deployments.apps"),
        ("ev events Event events.v1.", "events"),
        ("ev.events.k8s.io", "events.events.k8s.io"),
        ("fo federatedobject", "federatedobjects.core.kubeadmiral.io"),
        ("pp PropagationPolicy pp.core.kubeadmiral.io", "propagationpolicies.core.kubeadmiral.io"),
        ("fcluster cluster clusters", "federatedclusters.core.kubeadmiral.io"),
        ("sp", "schedulingprofiles.core.kubeadmiral.io"),
        ("sp.a.example", "spoons.a.example"),
        ("clusters.a.example", "clusters.a.example"),
        ("pods", "pods"),
        ("pods.a.example", "pods.a.example"),
        ("fork fk", "forks.a.example"),
    ],
)
async def test_a_word_means_what_it_means_to_kubectl(memory_server: EmbeddedServer, words: str, resource: str) -> None:
    theirs = [
        definition("a.example", "spoons", "Spoon", "sp"),
        definition("a.example", "forks", "Fork", "fk"),
        definition("a.example", "clusters", "Cluster"),
        definition("a.example", "pods", "Pod"),
    ]
    client = await serving(memory_server, *manifests(), *theirs)
    assert {word: str(await resolve(client, word)) for word in words.split()} == dict.fromkeys(words.split(), resource)


async def test_a_word_means_the_preferred_version_unless_it_says_another(memory_server: EmbeddedServer) -> None:
    client = await serving(memory_server, definition("a.example", "forks", "Fork"))
    assert (await resolve(client, "fork")).version == "v1"
    assert (await resolve(client, "forks.v1beta1.a.example")).version == "v1beta1"


async def test_a_word_of_two_groups_is_not_guessed(memory_server: EmbeddedServer) -> None:
    client = await serving(
        memory_server, definition("a.example", "forks", "Fork", "f"), definition("b.example", "forks", "Fork")
    )
    for word in ("fork", "forks"):
        with pytest.raises(Failure, match=f"'{word}' may mean any of forks\\.a\\.example, forks\\.b"):
            await resolve(client, word)
    assert str(await resolve(client, "f")) == "forks.a.example"


async def test_an_unknown_word_is_told_in_one_line(memory_server: EmbeddedServer) -> None:
    with pytest.raises(Failure, match="the server has no kind 'depoly'"):
        await resolve(memory_server.client(), "depoly")
