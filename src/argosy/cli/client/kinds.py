"""Kinds by the names people use: `deployment/web`, `deploy/web`, `deployments.apps/web`, `fcluster/m1`."""

from argosy.api import keys
from argosy.cli.output.failures import Failure
from argosy.kube.client import Client
from argosy.kube.discovery import Discovery
from argosy.kube.resource import Resource

__all__ = ["of_object", "resolve", "split"]

#: The federation's own words, also where another group has kinds of these names: `argosy taint cluster m1`.
_OURS = {"cluster": "federatedclusters", "clusters": "federatedclusters"}


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
    """The resource a word means, in the server's preferred version of it. Raises Failure if it means none, or several."""
    return _meant(await client.discover(), kind)


def _meant(found: Discovery, kind: str) -> Resource:
    """As kubectl understands it: the plural, a short name, the singular or the kind; alone, with the group, or with version and
    group.

    Of several groups, Kubernetes' own and the federation's are meant before others, and earlier ones before later ones, as the
    server lists them. Between others there is no guess.
    """
    word, _, rest = kind.lower().partition(".")
    candidates = [each for each in found.resources if rest in ("", each.group, f"{each.version}.{each.group}")]
    word = word if rest else _OURS.get(word, word)
    for names in (_plural, found.aliases.__getitem__, _kind):
        matches: dict[str, Resource] = {}
        for each in candidates:
            if word in names(each):
                matches.setdefault(each.group, each)
        first = next((each for each in matches.values() if _goes_first(each.group)), None)
        if first is not None or len(matches) == 1:
            return first or next(iter(matches.values()))
        if matches:
            several = ", ".join(map(str, matches.values()))
            raise Failure(f"{kind!r} may mean any of {several}", "give one of these names")
    unknown = f"; not readable now: {', '.join(sorted(found.failures))}" if found.failures else ""
    raise Failure(f"the server has no kind {kind!r}{unknown}", "`kubectl api-resources` lists the kinds it has")


def _plural(resource: Resource) -> tuple[str, ...]:
    return (resource.plural,)


def _kind(resource: Resource) -> tuple[str, ...]:
    return (resource.kind.lower(),)


def _goes_first(group: str) -> bool:
    """Names without a dot, and those of k8s.io, are reserved for Kubernetes."""
    return "." not in group or group.endswith(".k8s.io") or group == keys.GROUP


async def of_object(client: Client, api_version: str, kind: str) -> Resource:
    """The resource of an object that names its own apiVersion and kind."""
    found = await client.discover()
    for resource in found.resources:
        if resource.kind == kind and resource.api_version == api_version:
            return resource
    ours = api_version == keys.API_VERSION and not any(each.group == keys.GROUP for each in found.resources)
    hint = "`argosy install` installs the federation's kinds" if ours else "check apiVersion and kind for typing errors"
    raise Failure(f"the server has no kind {kind} in {api_version}", hint)
