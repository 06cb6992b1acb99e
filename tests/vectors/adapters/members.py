"""What is known of member clusters: capacity and credentials."""

from typing import Any

from argosy.fleet.capacity import Capacity, NodeView, PodView
from argosy.fleet.credentials import CredentialsError, credentials_from_secret
from argosy.kube import quantity
from argosy.kube.selectors import parse_label_selector
from tests.vectors.adapters import units


def resources(vector: dict[str, Any]) -> dict[str, Any]:
    capacity = Capacity(parse_label_selector(text) for text in vector["node_filter_selectors"])
    for number, node in enumerate(vector["nodes"]):
        capacity.set_node(str(number), units.read(node, NodeView))
    for number, pod in enumerate(vector["pods"]):
        capacity.set_pod(str(number), units.read(pod, PodView))
    totals = capacity.resources()
    return {"allocatable": totals.allocatable, "available": totals.available}


def same_amounts(expected: dict[str, Any], actual: dict[str, Any]) -> bool:
    return all(
        {name: quantity.parse(amount) for name, amount in expected[part].items()}
        == {name: quantity.parse(amount) for name, amount in actual[part].items()}
        for part in ("allocatable", "available")
    )


def auth_from_secret(vector: dict[str, Any]) -> dict[str, Any]:
    data = {key: value.encode() for key, value in vector["secret_data"].items()}
    try:
        connection = credentials_from_secret(data, insecure=vector["insecure"], bootstrap=vector["use_bootstrap"])
    except CredentialsError as error:
        return {"error": str(error)}
    return {
        "error": None,
        "insecure": connection.insecure,
        "cert_data": connection.cert_data.decode(),
        "key_data": connection.key_data.decode(),
        "ca_data": connection.ca_data.decode(),
        "bearer_token": connection.token.decode(),
    }


ADAPTERS = {"cluster_resources": resources, "cluster_auth_from_secret": auth_from_secret}
SAME = {"cluster_resources": same_amounts}
