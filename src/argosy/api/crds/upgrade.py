"""Upgrade: brings a stored CustomResourceDefinition to this version without removing anything.

Unknown versions, the storage version, a conversion and added names stay as they are: objects may depend on them. The revision
tells which of two definitions is newer.
"""

from typing import Any

from argosy.api import keys

__all__ = ["REVISION", "revision", "upgraded"]

#: Raised with every change of a schema; tests/unit/api/test_crd_upgrade.py fails if that was forgotten.
REVISION = 10

Manifest = dict[str, Any]


def revision(found: Manifest) -> int:
    """The revision of a stored definition; 0 for KubeAdmiral's own and unreadable ones."""
    text = (found["metadata"].get("annotations") or {}).get(keys.REVISION, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def upgraded(found: Manifest, ours: Manifest) -> Manifest:
    """What to store instead of `found`; equal to it if nothing changes."""
    metadata = found["metadata"]
    annotations = {**(metadata.get("annotations") or {}), **ours["metadata"]["annotations"]}
    spec = found["spec"]
    names = {**spec["names"], **ours["spec"]["names"]}
    versions = _versions(spec.get("versions") or [], ours["spec"]["versions"])
    wanted = {**spec, "names": names, "versions": versions}
    return {**found, "metadata": {**metadata, "annotations": annotations}, "spec": wanted}


def _versions(found: list[Manifest], ours: list[Manifest]) -> list[Manifest]:
    """Our versions replace their older ones, then unknown ones follow; the storage version stays."""
    known = {version["name"]: version for version in ours}
    stored = next((version["name"] for version in found if version.get("storage")), None)
    merged = [known.pop(version["name"], version) for version in found]
    merged += known.values()
    if stored is None:
        return merged
    return [{**version, "storage": version["name"] == stored} for version in merged]
