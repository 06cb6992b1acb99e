"""Upgrade: a CustomResourceDefinition that is stored already, brought to this version without taking anything away.

Versions we do not know, the version objects are stored in, a conversion and names that were added stay as they are: objects
may depend on them. Which of two definitions is newer, their revision says.
"""

from typing import Any

from argosy.api import keys

__all__ = ["REVISION", "revision", "upgraded"]

#: Raised with every change of a schema; tests/unit/api/test_crd_upgrade.py notices when that was forgotten.
REVISION = 4

Manifest = dict[str, Any]


def revision(found: Manifest) -> int:
    """Which revision a stored definition has; 0 for KubeAdmiral's own and whatever cannot be read."""
    text = (found["metadata"].get("annotations") or {}).get(keys.REVISION, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def upgraded(found: Manifest, ours: Manifest) -> Manifest:
    """What is to be stored in place of `found`; equal to it when nothing is to be done."""
    metadata = found["metadata"]
    annotations = {**(metadata.get("annotations") or {}), **ours["metadata"]["annotations"]}
    spec = found["spec"]
    names = {**spec["names"], **ours["spec"]["names"]}
    versions = _versions(spec.get("versions") or [], ours["spec"]["versions"])
    wanted = {**spec, "names": names, "versions": versions}
    return {**found, "metadata": {**metadata, "annotations": annotations}, "spec": wanted}


def _versions(found: list[Manifest], ours: list[Manifest]) -> list[Manifest]:
    """Ours in place of their older selves, behind them those we do not know; one and the same is stored as before."""
    known = {version["name"]: version for version in ours}
    stored = next((version["name"] for version in found if version.get("storage")), None)
    merged = [known.pop(version["name"], version) for version in found]
    merged += known.values()
    if stored is None:
        return merged
    return [{**version, "storage": version["name"] == stored} for version in merged]
