"""`argosy backup` and `argosy restore`: the embedded control plane in one file, and back."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from argosy.cli.output.failures import Failure

if TYPE_CHECKING:
    from argosy.server.storage.backup import Manifest

__all__ = ["backup", "restore"]

Data = Annotated[Path, typer.Option(help="Data folder of `argosy up` or `argosy server`.")]


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    data: Data = Path(".argosy"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write the control plane into one file: all its objects, keys and certificates. It may be running.

    The file holds secrets; only you can read it. Simulated members are not in it.

    Example:

      argosy backup /backups/argosy-monday.tar.gz --data .argosy
    """
    from argosy.cli.output.progress import Ticker
    from argosy.server.storage.backup import pack

    folder = _server(data)
    if folder is None:
        raise Failure(f"{data} is no data folder: there is no store in it", "--data chooses another")
    file = file.absolute()
    if file.exists() and not force:
        raise Failure(f"{file} is there already", "choose another name, or replace it with --force")
    if not file.parent.is_dir():
        raise Failure(f"there is no folder {file.parent}", "make it first, or choose another")
    with Ticker() as ticker:
        made = pack(folder, file, ticker.at, replace=force)
    size = file.stat().st_size / 1e6
    print(f"{file}   {made.objects} objects at version {made.version}, {size:.1f} MB. It holds secrets: keep it safe.")


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `argosy backup` wrote.")],
    data: Data = Path(".argosy"),
) -> None:
    """Restore a backup into a data folder that no process uses. The files that are there now are kept beside it.

    Members keep running, and may be newer than the backup. So the fleet starts paused: nothing is written to any member until
    `argosy resume fleet`. Before that, run `argosy orphans`: it lists objects in members that the control plane does not know,
    and objects that it would create again.

    Example:

      argosy down; argosy restore /backups/argosy-monday.tar.gz; argosy up --detach; argosy orphans; argosy resume fleet
    """
    from argosy.cli.local.folder import RESTORE, DataFolder, check, claim
    from argosy.cli.output.progress import Ticker
    from argosy.server.storage.backup import unpack

    if not file.is_file():
        raise Failure(f"there is no file {file}", "`argosy backup` writes one")
    data = data.absolute()
    # Where there is nothing yet it becomes a folder of `argosy up`.
    folder = _server(data) or DataFolder(data).control_plane
    check(folder)
    claim(data, RESTORE)
    if folder != data:
        claim(folder, RESTORE)
    paused: list[bool] = []

    with Ticker() as ticker:
        restored = unpack(file.absolute(), folder, ticker.at, lambda store, made: paused.append(_pause(store, made)))
    made = restored.manifest
    print(f"restored {made.objects} objects of {made.made} to {folder}")
    for path in restored.kept:
        print(f"what was there is kept as {path}")
    print(f"versions go on after {restored.first}: whoever watched lists anew")
    if not any(paused):
        return
    print(
        "\nThe fleet is paused: members may be newer than this, and nothing is written to them before you have looked.\n\n"
        f"  argosy up --detach --data {data}\n"
        f"  argosy --kubeconfig {data}/kubeconfig orphans        what members hold that is not known, and what would come back\n"
        f"  argosy --kubeconfig {data}/kubeconfig resume fleet   members become what the control plane says"
    )


def _server(data: Path) -> Path | None:
    """Where in a data folder the API server's own is."""
    for folder in (data / "control-plane", data):
        if (folder / "store").is_dir() or any(folder.glob("store.before-*")):
            return folder
    return None


def _pause(store: Path, manifest: "Manifest") -> bool:
    """In the store of a federation: nothing is written to members from its first moment on. False where it is none."""
    import orjson

    from argosy.api import keys
    from argosy.server.storage.sqlite import SqliteStorage

    key = f"core/namespaces/{keys.SYSTEM_NAMESPACE}"

    async def work() -> bool:
        storage = SqliteStorage(store)
        await storage.open(lambda changes: None, lambda writes, seconds: None)
        try:
            record = await storage.get(key)
            if record is None:
                return False
            namespace = orjson.loads(record.value)
            metadata = namespace["metadata"]
            metadata["annotations"] = {
                **(metadata.get("annotations") or {}),
                keys.PAUSED: "true",
                keys.RESTORED: manifest.made,
            }

            def encode(version: int) -> bytes:
                metadata["resourceVersion"] = str(version)
                return orjson.dumps(namespace)

            await storage.replace(key, record.version, encode)
            return True
        finally:
            await storage.close()

    return asyncio.run(work())
