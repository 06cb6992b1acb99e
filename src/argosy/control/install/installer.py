"""Install: what a control plane must have before the controllers can work: CRDs, the system namespace, the stock type configs,
the controllers' rights, the policy that keeps others from writing federated objects, and the one that warns of what does nothing.

Safe to run at every start and with every version: what is up to date is not written, type configs that users changed or deleted
stay so (the others are brought up to date), and a newer CRD is kept. Before a stock type config is created, the existing objects
of its kind are marked as not to be federated; once it exists, nothing is ever marked again.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from argosy.api import crds, installation, keys, resources, rights, typeconfigs
from argosy.api.admission import caveats, guard, protection
from argosy.api.crds.upgrade import REVISION, revision, upgraded
from argosy.api.types import FederatedTypeConfig
from argosy.control.install import existing
from argosy.kube.client import Client
from argosy.kube.discovery import Discovery
from argosy.kube.errors import AlreadyExists, BadRequest, Conflict, Forbidden, Invalid, NotFound
from argosy.kube.objects import join_key
from argosy.kube.resource import Resource

__all__ = ["InstallError", "Installation", "install", "is_installed", "preview", "subjects_of", "type_configs"]

Manifest = dict[str, Any]
Progress = Callable[[str], None]

_ADMISSION = "admissionregistration.k8s.io"
_RESOURCES = {
    resource.kind: resource
    for resource in (
        Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False),
        Resource("", "v1", "namespaces", "Namespace", False),
        Resource("", "v1", "serviceaccounts", "ServiceAccount"),
        Resource(rights.GROUP, "v1", "clusterroles", "ClusterRole", False),
        Resource(rights.GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", False),
        Resource(rights.GROUP, "v1", "roles", "Role"),
        Resource(rights.GROUP, "v1", "rolebindings", "RoleBinding"),
        Resource(_ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False),
        Resource(_ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False),
        resources.FEDERATED_TYPE_CONFIGS,
    )
}
_CRDS = _RESOURCES["CustomResourceDefinition"]
_NAMESPACES = _RESOURCES["Namespace"]
_POLL = 0.1
_ESTABLISHED = 60.0
_TRIES = 5
#: Give up after so many objects that could not be marked.
_REFUSALS = 20


class InstallError(Exception):
    """Installation is impossible; the message is one line that says why."""


class Installation(msgspec.Struct, frozen=True):
    """The operator's choices."""

    #: The subjects that run the controllers; subjects that were bound before stay bound.
    controllers: tuple[dict[str, str], ...] = (rights.SERVICE_ACCOUNT,)
    #: Whether the controllers may read and mark objects of every kind, so that a new type config needs no new rights.
    any_source: bool = False
    #: Whether objects that existed before are marked.
    mark_existing: bool = True
    #: Whether CRDs newer than ours are replaced.
    downgrade: bool = False


async def install(client: Client, progress: Progress = lambda line: None, chosen: Installation = Installation()) -> int:
    """Create what is missing and upgrade the rest to this version. Returns how many objects were written."""
    return await _Installer(_unwarned(client), progress, chosen, _write).run()


async def preview(client: Client, progress: Progress, chosen: Installation) -> int:
    """Reports what `install` would write, without writing."""
    return await _Installer(_unwarned(client), progress, chosen, _refrain).run()


async def is_installed(client: Client) -> bool:
    """Whether any version is installed: the CRDs exist, and type configs."""
    try:
        return bool((await client.list(resources.FEDERATED_TYPE_CONFIGS)).items)
    except NotFound:
        return False


async def type_configs(client: Client) -> list[FederatedTypeConfig]:
    """The stored type configs, except unreadable ones; none if their CRD does not exist."""
    try:
        stored = (await client.list(resources.FEDERATED_TYPE_CONFIGS)).items
    except NotFound:
        return []
    found = []
    for each in stored:
        try:
            found.append(msgspec.convert(each, FederatedTypeConfig))
        except msgspec.ValidationError:
            continue
    return found


async def subjects_of(
    client: Client, ours: Sequence[dict[str, str]] = (rights.SERVICE_ACCOUNT,)
) -> list[dict[str, str]]:
    """The subjects that run the controllers: those bound before, then ours."""
    try:
        binding = await client.get(_RESOURCES["ClusterRoleBinding"], rights.CONTROLLERS)
    except NotFound:
        return list(ours)
    bound = list(binding.get("subjects") or ())
    return bound + [each for each in ours if each not in bound]


def _unwarned(client: Client) -> Client:
    """What is installed is as it has to be: the stock type configs have fields for others than Argosy."""
    return Client(client.transport, field_manager=client.field_manager, on_warning=lambda text: None)


async def _write(send: Callable[[], Awaitable[Any]]) -> None:
    await send()


async def _refrain(send: Callable[[], Awaitable[Any]]) -> None:
    return


class _Installer:
    def __init__(
        self,
        client: Client,
        progress: Progress,
        chosen: Installation,
        write: Callable[[Callable[[], Awaitable[Any]]], Awaitable[None]],
    ):
        self._client = client
        self._progress = progress
        self._chosen = chosen
        self._write = write
        self._changes = 0

    async def run(self) -> int:
        served = await self._client.discover()
        await self._define()
        namespace = await self._read(_NAMESPACES, keys.SYSTEM_NAMESPACE)
        await self._ensure(installation.namespace())
        stored = await self._renewed(await type_configs(self._client))
        installed = _installed_before(namespace) | {config.name for config in stored}
        new = [manifest for manifest in typeconfigs.manifests() if manifest["metadata"]["name"] not in installed]
        # Rights first: running controllers see a type config as soon as it is created.
        configs = [*stored, *(msgspec.convert(manifest, FederatedTypeConfig) for manifest in new)]
        subjects = await subjects_of(self._client, self._chosen.controllers)
        await self._secure(configs, subjects)
        await self._admit(guard.manifests(subjects), served)
        await self._admit(protection.manifests(), served)
        for manifest in new:
            await self._add_type(manifest, served)
        await self._admit(caveats.manifests(configs, subjects), served)
        await self._record(namespace, {manifest["metadata"]["name"] for manifest in typeconfigs.manifests()})
        return self._changes

    async def _define(self) -> None:
        for manifest in crds.manifests():
            await self._ensure_crd(manifest)
        for manifest in crds.manifests():
            await self._established(manifest)

    async def _ensure_crd(self, ours: Manifest) -> None:
        name = ours["metadata"]["name"]

        async def attempt() -> None:
            found = await self._read(_CRDS, name)
            if found is None:
                await self._create(ours)
                return
            if found["metadata"].get("deletionTimestamp"):
                raise InstallError(f"the CRD {name} is being deleted, and all objects of its kind with it")
            if revision(found) > REVISION and not self._chosen.downgrade:
                self._progress(
                    f"kept {_reference(ours)}: it is newer (revision {revision(found)}) than this Argosy's ({REVISION})"
                )
                return
            wanted = upgraded(found, ours)
            if wanted != found:
                await self._update(wanted)

        await _settled(attempt)

    async def _established(self, manifest: Manifest) -> None:
        """Waits until the kind is served. A dry run created nothing to wait for."""
        name = manifest["metadata"]["name"]
        try:
            async with asyncio.timeout(_ESTABLISHED):
                while True:
                    found = await self._read(_CRDS, name)
                    if found is None:
                        return
                    conditions = {each["type"]: each for each in (found.get("status") or {}).get("conditions") or ()}
                    if conditions.get("Established", {}).get("status") == "True" and await self._is_served(manifest):
                        return
                    refused = conditions.get("NamesAccepted", {})
                    if refused.get("status") == "False":
                        raise InstallError(f"the CRD {name} is not served: {refused.get('message')}")
                    await asyncio.sleep(_POLL)
        except TimeoutError:
            raise InstallError(f"the CRD {name} was not established within {_ESTABLISHED:g} s") from None

    async def _is_served(self, manifest: Manifest) -> bool:
        """The server reports a CRD as established a little before it serves the kind."""
        path = f"/apis/{keys.API_VERSION}/{manifest['spec']['names']['plural']}"
        try:
            await self._client.request("GET", path, query=[("limit", "1")])
        except NotFound:
            return False
        return True

    async def _secure(self, configs: list[FederatedTypeConfig], subjects: list[dict[str, str]]) -> None:
        sources = None if self._chosen.any_source else configs
        for manifest in rights.manifests(sources, subjects):
            await self._ensure(manifest)

    async def _admit(self, policy: list[Manifest], served: Discovery) -> None:
        if not any(resource.kind == "ValidatingAdmissionPolicy" for resource in served.resources):
            name = policy[0]["metadata"]["name"]
            self._progress(f"no policy {name}: this control plane does not serve ValidatingAdmissionPolicies")
            return
        for manifest in policy:
            await self._ensure(manifest)

    async def _renewed(self, stored: list[FederatedTypeConfig]) -> list[FederatedTypeConfig]:
        """Stock type configs that say what an earlier edition said get this one's. What users changed stays."""
        found = {config.name: config for config in stored}
        for manifest in typeconfigs.manifests():
            name = manifest["metadata"]["name"]
            edition = typeconfigs.revision(manifest["metadata"])
            if not edition or name not in found:
                continue
            theirs, ours = found[name], msgspec.convert(manifest, FederatedTypeConfig)
            if typeconfigs.revision({"annotations": theirs.metadata.annotations}) >= edition:
                continue
            if theirs.spec == typeconfigs.earlier(manifest):
                await self._ensure(manifest)
                found[name] = ours
            elif theirs.spec != ours.spec:
                self._progress(f"kept {_reference(manifest)}: it was changed here, and is not brought up to date")
        return list(found.values())

    async def _add_type(self, manifest: Manifest, served: Discovery) -> None:
        resource = msgspec.convert(manifest, FederatedTypeConfig).resource
        if self._chosen.mark_existing and existing.may_exist(resource, served):
            await self._mark(resource)
        try:
            await self._create(manifest)
        except AlreadyExists:
            return

    async def _mark(self, resource: Resource) -> None:
        """Marks all existing objects: the type config is created only when nothing is left that would be federated by
        mistake."""
        marked, refused = 0, dict[str, str]()

        async def mark(name: str, namespace: str | None) -> None:
            nonlocal marked
            try:
                await self._write(lambda: existing.mark(self._client, resource, name, namespace))
            except (Forbidden, Invalid, BadRequest) as error:
                refused[join_key(namespace, name)] = str(error)
                if len(refused) >= _REFUSALS:
                    raise _unmarked(resource, refused) from None
                return
            marked += 1
            if marked % 1000 == 0:
                self._progress(f"marking {resource} that exist already: {marked} so far")

        await existing.visit_unmarked(self._client, resource, mark)
        if marked:
            self._changes += marked
            self._progress(f"marked {marked} {resource} that exist already: they are not federated")
        if refused:
            raise _unmarked(resource, refused)

    async def _record(self, namespace: Manifest | None, names: set[str]) -> None:
        before = _installed_before(namespace)
        if names <= before:
            return
        text = json.dumps(sorted(names | before))
        change = {"metadata": {"annotations": {keys.INSTALLED_TYPE_CONFIGS: text}}}
        await self._write(lambda: self._client.patch(_NAMESPACES, keys.SYSTEM_NAMESPACE, change))
        if namespace is not None:  # else its creation was just reported
            self._changes += 1
            self._progress(f"updated {_reference(installation.namespace())}")

    async def _ensure(self, manifest: Manifest) -> None:
        """Ensures that the object exists with the fields of the manifest; other fields are kept."""
        resource = _RESOURCES[manifest["kind"]]
        metadata = manifest["metadata"]

        async def attempt() -> None:
            found = await self._read(resource, metadata["name"], metadata.get("namespace"))
            if found is None:
                await self._create(manifest)
            elif not _covers(found, manifest):
                await self._update(_merged(found, manifest))

        await _settled(attempt)

    async def _read(self, resource: Resource, name: str, namespace: str | None = None) -> Manifest | None:
        try:
            return await self._client.get(resource, name, namespace)
        except NotFound:
            return None

    async def _create(self, manifest: Manifest) -> None:
        await self._write(lambda: self._client.create(_RESOURCES[manifest["kind"]], manifest))
        self._changes += 1
        self._progress(f"created {_reference(manifest)}")

    async def _update(self, manifest: Manifest) -> None:
        await self._write(lambda: self._client.update(_RESOURCES[manifest["kind"]], manifest))
        self._changes += 1
        self._progress(f"updated {_reference(manifest)}")


def _unmarked(resource: Resource, refused: Mapping[str, str]) -> InstallError:
    name, why = next(iter(refused.items()))
    others = f", and {len(refused) - 1} more" if len(refused) > 1 else ""
    return InstallError(
        f"{resource} {name}{others} exist already and cannot be marked as not to be federated: {why}; the kind is not"
        " federated yet: annotate them by hand and install again, or leave such objects alone with --skip-existing"
    )


async def _settled(attempt: Callable[[], Awaitable[None]]) -> None:
    """Two may install at once: the second one retries."""
    for tries_left in reversed(range(_TRIES)):
        try:
            await attempt()
            return
        except (AlreadyExists, Conflict):
            if not tries_left:
                raise
            await asyncio.sleep(_POLL)


def _covers(found: Any, wanted: Any) -> bool:
    """Whether the object has all wanted fields; servers add defaults."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(_covers(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        same = isinstance(found, list) and len(found) == len(wanted)
        return same and all(_covers(a, b) for a, b in zip(found, wanted, strict=True))
    return bool(found == wanted)


def _merged(found: Manifest, wanted: Manifest) -> Manifest:
    metadata = found["metadata"]
    annotations = {**(metadata.get("annotations") or {}), **wanted["metadata"].get("annotations", {})}
    return {**found, **wanted, "metadata": {**metadata, "annotations": annotations}}


def _installed_before(namespace: Manifest | None) -> set[str]:
    text = ((namespace or {}).get("metadata", {}).get("annotations") or {}).get(keys.INSTALLED_TYPE_CONFIGS)
    try:
        names = json.loads(text) if text else []
    except json.JSONDecodeError:
        return set()
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def _reference(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"{manifest['kind']} {join_key(metadata.get('namespace'), metadata['name'])}"
