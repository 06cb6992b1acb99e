"""Policy: which propagation and override policies an object names. The caller looks them up."""

from collections.abc import Mapping

import msgspec

from argosy.api import keys

__all__ = ["PolicyRef", "override_refs", "propagation_ref"]


class PolicyRef(msgspec.Struct, frozen=True):
    """A policy as named by labels; without a namespace it is a cluster-scoped policy."""

    name: str
    namespace: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def kind(self) -> str:
        """Of a propagation policy."""
        return "PropagationPolicy" if self.namespace else "ClusterPropagationPolicy"

    @property
    def label(self) -> str:
        """Of a propagation policy: the label that names it."""
        return keys.PROPAGATION_POLICY_LABEL if self.namespace else keys.CLUSTER_PROPAGATION_POLICY_LABEL


def propagation_ref(labels: Mapping[str, str], namespace: str) -> PolicyRef | None:
    """The one policy in force: for a namespaced object the namespaced policy wins over the cluster-scoped one."""
    name = labels.get(keys.PROPAGATION_POLICY_LABEL)
    if namespace and name is not None:
        return PolicyRef(name, namespace)
    name = labels.get(keys.CLUSTER_PROPAGATION_POLICY_LABEL)
    return None if name is None else PolicyRef(name)


def override_refs(labels: Mapping[str, str], namespace: str) -> tuple[PolicyRef, ...]:
    """All override policies in force, in the order they apply: first the cluster-scoped one, then the namespaced one."""
    refs = []
    name = labels.get(keys.CLUSTER_OVERRIDE_POLICY_LABEL)
    if name is not None:
        refs.append(PolicyRef(name))
    name = labels.get(keys.OVERRIDE_POLICY_LABEL)
    if namespace and name is not None:
        refs.append(PolicyRef(name, namespace))
    return tuple(refs)
