"""What `argosy up` says when it is ready: where it is, how the example does, and what to try next."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import argosy
from argosy.api import resources
from argosy.cli.client.kinds import of_object
from argosy.cli.client.manifests import Manifest, read
from argosy.cli.commands.apply import apply_all
from argosy.cli.commands.status import show
from argosy.cli.local.folder import DataFolder
from argosy.cli.output import report
from argosy.cli.output.failures import Failure
from argosy.cli.output.progress import Progress
from argosy.cli.output.terminal import say
from argosy.kube.client import Client
from argosy.kube.errors import NotFound
from argosy.kube.objects import Partial
from argosy.kube.resource import Resource

__all__ = ["examples", "welcome"]

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
EXAMPLE = "web"
NAMESPACE = "default"
EXAMPLE_READY = 60.0


def examples() -> Path:
    """The example manifests: beside the package where it was installed, else in the checkout it runs from."""
    package = Path(argosy.__file__).parent
    for folder in (package / "examples", package.parents[1] / "examples"):
        if folder.is_dir():
            return folder
    raise Failure("the example manifests are not installed", "run it from a checkout, or leave --example out")


async def welcome(client: Client, folder: DataFolder, example: bool, progress: Progress) -> None:
    made = await _example(client, progress) if example else None
    path = _shown(folder.kubeconfig)
    say("Argosy is up.", "bold green")
    say()
    if made is not None:
        show(made)
        say()
    say("Try next:", "bold")
    say(f"  export KUBECONFIG={path}")
    if shutil.which("argosy") is None:
        say(f'  export PATH="{Path(sys.executable).parent}:$PATH"')
    if made is not None:
        say(f"  kubectl get deploy,fcluster,fo                # or: argosy status deployment/{EXAMPLE}")
        say(
            f"  kubectl scale deployment/{EXAMPLE} --replicas 15    # or: argosy scale deployment/{EXAMPLE} --replicas 15"
        )
        say("  kubectl --context member-1 get pods           # a member, as its own users see it")
        say("  argosy taint cluster member-1 maintenance=now:NoExecute")
    say("  argosy get clusters")
    say(f"  argosy down --data {_shown(folder.path)}")


async def _example(client: Client, progress: Progress) -> report.Report:
    if not (await client.list(resources.FEDERATED_CLUSTERS, limit=1, into=Partial)).items:
        raise Failure(
            "the example has nowhere to run: no member has joined",
            "`argosy join` takes members in; for simulated ones: `argosy down`, then `argosy up --members 3 --example`",
        )
    progress.step("applying the example application")
    manifests = await asyncio.to_thread(read, [str(examples())])
    # What is there may have been changed since, and is its owner's: a second start takes nothing back.
    missing = [each for each in manifests if not await _exists(client, each)]
    await apply_all(client, missing, NAMESPACE, lambda line: None)
    progress.step("waiting until its replicas are ready")
    loop = asyncio.get_running_loop()
    deadline = loop.time() + EXAMPLE_READY
    while True:
        made = report.report(await report.gather(client, DEPLOYMENTS, EXAMPLE, NAMESPACE))
        if not made.waiting and made.ready == made.replicas:
            progress.ready()
            return made
        if loop.time() >= deadline:
            waiting = "; ".join(made.waiting) or f"{made.ready} of {made.replicas} replicas are ready"
            raise Failure(
                f"the example was not ready within {EXAMPLE_READY:g} s: {waiting}",
                f"Argosy is up; `argosy status deployment/{EXAMPLE}` shows how it goes on",
            )
        await asyncio.sleep(0.2)


async def _exists(client: Client, manifest: Manifest) -> bool:
    obj = manifest.object
    resource = await of_object(client, obj["apiVersion"], obj["kind"])
    namespace = (obj["metadata"].get("namespace") or NAMESPACE) if resource.namespaced else None
    try:
        await client.get(resource, obj["metadata"]["name"], namespace)
    except NotFound:
        return False
    return True


def _shown(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
