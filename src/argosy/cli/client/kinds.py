"""Kinds by the names people use: `deployment/web`, `deploy/web`, `deployments.apps/web`, `fcluster/m1`."""

from argosy.api import keys
from argosy.cli.output.failures import Failure
from argosy.kube.client import Client
from argosy.kube.resource import Resource

__all__ = ["of_object", "resolve", "split"]

#: Short names of the kinds people type most; all others go by their kind, plural, or plural.group.
_SHORT = {
    "cj": "cronjobs",
    "cm": "configmaps",
    "crd": "customresourcedefinitions",
    "deploy": "deployments",
    "ds": "daemonsets",
    "hpa": "horizontalpodautoscalers",
    "ing": "ingresses",
    "no": "nodes",
    "ns": "namespaces",
    "po": "pods",
    "pv": "persistentvolumes",
    "pvc": "persistentvolumeclaims",
    "rs": "replicasets",
    "sa": "serviceaccounts",
    "sts": "statefulsets",
    "svc": "services",
    "cluster": "federatedclusters",
    "clusters": "federatedclusters",
    "fcluster": "federatedclusters",
    "fo": "federatedobjects",
    "cfo": "clusterfederatedobjects",
    "pp": "propagationpolicies",
    "cpp": "clusterpropagationpolicies",
    "op": "overridepolicies",
    "cop": "clusteroverridepolicies",
    "ftc": "federatedtypeconfigs",
}


def split(text: str, name: str | None = None) -> tuple[str, str]:
    """`KIND/NAME`, or the two as separate words."""
    kind, slash, inline = text.partition("/")
    if slash and name is not None:
        raise Failure(f"{text!r} already names an object; {name!r} is one too many", code=2)
    found = inline if slash else name or ""
    if not kind or not found or "/" in found:
        raise Failure(f"{text!r} is not KIND/NAME", "for example: deployment/web", code=2)
    return kind, found


async def resolve(client: Client, kind: str) -> Resource:
    """The resource a word means, the server's preferred version of it."""
    word = kind.lower()
    word = _SHORT.get(word, word)
    found = await client.discover()
    for resource in found.resources:
        if word in (resource.plural, str(resource), resource.kind.lower(), f"{resource.kind.lower()}.{resource.group}"):
            return resource
    unknown = f"; not readable now: {', '.join(sorted(found.failures))}" if found.failures else ""
    raise Failure(f"the server has no kind {kind!r}{unknown}", "`kubectl api-resources` lists the kinds it has")


async def of_object(client: Client, api_version: str, kind: str) -> Resource:
    """The resource of an object that names its own apiVersion and kind."""
    found = await client.discover()
    for resource in found.resources:
        if resource.kind == kind and resource.api_version == api_version:
            return resource
    ours = api_version == keys.API_VERSION and not any(each.group == keys.GROUP for each in found.resources)
    hint = "`argosy install` installs the federation's kinds" if ours else "check apiVersion and kind for typing errors"
    raise Failure(f"the server has no kind {kind} in {api_version}", hint)
