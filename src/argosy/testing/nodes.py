"""Nodes that kwok manages: how they are created, and when pods may run there."""

from collections.abc import Mapping
from typing import Any

from argosy.kube.resource import Resource
from argosy.testing.binaries import VERSION

__all__ = ["NODES", "is_ready", "node"]

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


def node(
    name: str, capacity: Mapping[str, str], labels: Mapping[str, str] | None = None, version: str = VERSION
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                **(labels or {}),
            },
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "status": {
            "capacity": dict(capacity),
            "allocatable": dict(capacity),
            "nodeInfo": {"kubeletVersion": version, "operatingSystem": "linux", "architecture": "amd64"},
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
        },
    }


def is_ready(node: Mapping[str, Any]) -> bool:
    """Make it Ready, and remove the taint of new nodes, so that pods are scheduled there."""
    conditions = node.get("status", {}).get("conditions") or []
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and not node.get("spec", {}).get("taints")
