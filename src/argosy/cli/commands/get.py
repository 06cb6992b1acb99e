"""`argosy get`: the fleet, the policies, where everything is placed, and objects of any kind, as tables."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from argosy.cli.client.connection import with_client
from argosy.cli.output.terminal import Output, age, print_objects, table

if TYPE_CHECKING:
    from argosy.cli.client.tables import Shown
    from argosy.kube.client import Client

__all__ = ["get"]


class What(StrEnum):
    """What has a table of its own here; everything else is shown as the server shows it."""

    CLUSTERS = "clusters"
    POLICIES = "policies"
    PLACEMENTS = "placements"


_SINGULAR = {"cluster": What.CLUSTERS, "policy": What.POLICIES, "placement": What.PLACEMENTS}


class Listing(NamedTuple):
    """What was found of one word; the objects only if they are to be printed as such."""

    shown: "Shown"
    objects: list[dict[str, Any]]
    #: What names are prefixed with where several kinds are shown, as kubectl does.
    kind: str = ""


def get(
    context: typer.Context,
    what: Annotated[
        str, typer.Argument(help="clusters, policies, placements, or kinds as kubectl names them: deploy, fo,pp.")
    ],
    name: Annotated[str | None, typer.Argument(help="Only the one of this name.")] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only this namespace; default: all.")
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="table, json, yaml or name.")] = Output.TABLE,
) -> None:
    """List members, policies, where each object is placed, or objects of any kind.

    Examples:

      argosy get clusters

      argosy get policies -n shop

      argosy get placements -o json

      argosy get deploy,pdb -n shop
    """
    from argosy.cli.client.kinds import split
    from argosy.cli.output.failures import Failure

    if "/" in what:
        what, name = split(what, name)
    words = [word for word in what.split(",") if word]

    async def work(client: "Client", default: str) -> list[Listing]:
        return [await _listing(client, word, name, namespace, output) for word in words]

    listings = with_client(context, work)
    if output is not Output.TABLE:
        objects = [each for listing in listings for each in listing.objects]
        if name is None or objects:
            print_objects(objects, output, single=name is not None)
            return
    filled = [listing for listing in listings if listing.shown.rows]
    if name is not None and not filled:
        raise Failure(f"there is no {name!r} among the {what}", f"`argosy get {what}` lists them")
    if not filled:
        print(f"no {what}")
    for number, listing in enumerate(filled):
        if number:
            print()
        columns, rows = listing.shown
        if listing.kind and len(words) > 1:
            at = columns.index("NAME") if "NAME" in columns else 0
            rows = [[*cells[:at], f"{listing.kind}/{cells[at]}", *cells[at + 1 :]] for cells in rows]
        table(columns, rows)


async def _listing(client: "Client", word: str, name: str | None, namespace: str | None, output: Output) -> Listing:
    from argosy.cli.client import tables
    from argosy.cli.client.kinds import resolve

    special = _SINGULAR.get(word) or (What(word) if word in list(What) else None)
    if special is What.POLICIES:
        return await _policies(client, name, namespace)
    if special is not None:
        objects = await _objects(client, special, namespace)
        if name is not None:
            objects = [each for each in objects if name in (each["metadata"]["name"], _source_name(each))]
        columns, row = _TABLES[special]
        rows = [row(each) for each in objects]
        if not any(cells[-1] for cells in rows):  # nothing is wrong with any of them
            columns, rows = columns[:-1], [cells[:-1] for cells in rows]
        return Listing(tables.Shown(columns, rows), objects)
    resource = await resolve(client, word)
    if output is Output.TABLE:
        kind = f"{resource.kind.lower()}.{resource.group}".rstrip(".")
        return Listing(await tables.read(client, resource, namespace, name), [], kind)
    found = (await client.list(resource, namespace, field_selector=tables.named(name))).items
    own = {"apiVersion": resource.api_version, "kind": resource.kind}  # which items of a list need not say
    return Listing(tables.Shown([], []), [own | each for each in found])


async def _policies(client: "Client", name: str | None, namespace: str | None) -> Listing:
    import msgspec

    from argosy.cli.client import tables
    from argosy.cli.client.policies import read_policies

    found = await read_policies(client, namespace)
    objects, rows = [], []
    for report, policy in found:
        if name not in (None, report.name):
            continue
        mode, clusters = _content(policy)
        rows.append(
            [
                report.namespace,
                report.name,
                report.kind,
                mode,
                "-" if report.priority is None else str(report.priority),
                ", ".join(report.selects) or "-",
                clusters,
                str(report.objects),
                age(policy["metadata"].get("creationTimestamp")) if policy else "-",
                "; ".join(report.trouble),
            ]
        )
        own = policy or {"kind": report.kind, "metadata": {"name": report.name, "namespace": report.namespace}}
        objects.append({**own, "argosy": msgspec.to_builtins(report)})
    columns = ["NAMESPACE", "NAME", "KIND", "MODE", "PRIORITY", "SELECTS", "CLUSTERS", "OBJECTS", "AGE", "TROUBLE"]
    if not any(cells[-1] for cells in rows):  # nothing is wrong with any of them
        columns, rows = columns[:-1], [cells[:-1] for cells in rows]
    return Listing(tables.Shown(columns, rows), objects)


async def _objects(client: "Client", what: What, namespace: str | None) -> list[dict[str, Any]]:
    from argosy.api import resources

    if what is What.CLUSTERS:
        return (await client.list(resources.FEDERATED_CLUSTERS)).items
    found = (await client.list(resources.FEDERATED_OBJECTS, namespace)).items
    if namespace is None:
        found += (await client.list(resources.CLUSTER_FEDERATED_OBJECTS)).items
    return found


def _cluster_row(obj: dict[str, Any]) -> list[str]:
    from argosy.api import keys

    status = obj.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    ready, joined = (conditions.get(type, {}).get("status", "Unknown") for type in ("Ready", "Joined"))
    resources = status.get("resources") or {}
    allocatable, available = resources.get("allocatable") or {}, resources.get("available") or {}
    taints = obj["spec"].get("taints") or ()
    paused = (obj["metadata"].get("annotations") or {}).get(keys.PAUSED) == "true"
    return [
        obj["metadata"]["name"],
        "Paused" if paused and ready == "True" else ready,
        joined,
        str(resources.get("schedulableNodes", "-")),
        _free(available.get("cpu"), allocatable.get("cpu"), 1, ""),
        _free(available.get("memory"), allocatable.get("memory"), 2**30, "Gi"),
        ",".join(_taint(taint) for taint in taints) or "-",
        age(obj["metadata"].get("creationTimestamp")),
        _problem(conditions),
    ]


def _free(available: str | None, allocatable: str | None, unit: int, suffix: str) -> str:
    """Both in the same unit, so that they can be compared at a glance; "-" where the member has told nothing yet."""
    from argosy.kube.quantity import QuantityError, parse

    if not available or not allocatable:
        return "-"
    try:
        amounts = [parse(str(text)).nanos for text in (available, allocatable)]
    except QuantityError:
        return f"{available} of {allocatable}"
    return " of ".join(f"{nanos // (unit * 10**7) / 100:g}{suffix}" for nanos in amounts)


def _problem(conditions: dict[str, dict[str, Any]]) -> str:
    """Why a member has not joined, is not ready, or is not heard of."""
    for type in ("Joined", "Ready", "Responding"):
        condition = conditions.get(type, {})
        if condition.get("status", "True") != "True":
            return str(condition.get("message") or condition.get("reason") or "")
    return ""


def _content(policy: dict[str, Any] | None) -> tuple[str, str]:
    """The mode of a policy, or how many rules it has, and its clusters."""
    if policy is None:
        return "-", "-"
    spec = policy.get("spec") or {}
    if policy["kind"].endswith("OverridePolicy"):
        return f"{len(spec.get('overrideRules') or ())} rules", "-"
    where = [each.get("cluster", "") for each in spec.get("placement") or ()]
    selector = [f"{key}={value}" for key, value in (spec.get("clusterSelector") or {}).items()]
    affinity = ["by affinity"] if spec.get("clusterAffinity") else []
    return spec.get("schedulingMode", ""), ",".join([*where, *selector, *affinity]) or "all"


def _placement_row(obj: dict[str, Any]) -> list[str]:
    import msgspec

    from argosy.api.types import FederatedObject
    from argosy.cli.output.report import replicas_wanted
    from argosy.plan.explain.summary import placement_text
    from argosy.plan.pipeline.held import held_of

    federated = msgspec.convert(obj, FederatedObject)
    template = federated.spec.template
    propagated = next((each.status for each in federated.status.conditions if each.type == "Propagated"), "Unknown")
    held = held_of(federated.metadata.annotations)
    return [
        obj["metadata"].get("namespace", ""),
        f"{template.get('kind', '').lower()}/{_source_name(obj)}",
        placement_text(replicas_wanted(federated)),
        propagated,
        held.reason if held is not None else "-",
        age(obj["metadata"].get("creationTimestamp")),
    ]


def _source_name(obj: dict[str, Any]) -> str:
    """The name of what a federated object carries; "" for everything else."""
    template = (obj.get("spec") or {}).get("template") or {}
    return str((template.get("metadata") or {}).get("name") or "")


def _taint(taint: dict[str, Any]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key', '')}{value}:{taint.get('effect', '')}"


_TABLES = {
    What.CLUSTERS: (
        ["NAME", "READY", "JOINED", "NODES", "CPU FREE", "MEMORY FREE", "TAINTS", "AGE", "PROBLEM"],
        _cluster_row,
    ),
    What.PLACEMENTS: (["NAMESPACE", "OBJECT", "PLACEMENT", "PROPAGATED", "HELD", "AGE"], _placement_row),
}
