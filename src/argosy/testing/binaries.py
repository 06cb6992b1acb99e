"""Finds the binaries of Kubernetes and verifies them. scripts/kubernetes/build.py builds them.

`KUBEBUILDER_ASSETS` (envtest's convention) names a folder that is used as it is. Otherwise they are in the cache folder, beside
a manifest with the SHA-256 of each, which is checked before use.
"""

import hashlib
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

__all__ = [
    "MANIFEST",
    "NAMES",
    "OLDEST",
    "VERSION",
    "Binaries",
    "BinariesMissing",
    "Manifest",
    "cache_folder",
    "digest",
    "find",
]

VERSION = "v1.36.3"
#: The oldest minor whose clusters may be members: `make test-skew` uses it.
OLDEST = "v1.30.14"
NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")
MANIFEST = "manifest.json"
_HOW = (
    "run `make kubernetes` in a checkout of Argosy (it needs Go), or set KUBEBUILDER_ASSETS to a folder that has them"
)
_HOW_OLDEST = "run `make test-skew` in a checkout of Argosy (it needs Go)"


class BinariesMissing(Exception):
    """No usable binaries; the message is one line that says how to get them."""


class Manifest(msgspec.Struct, frozen=True):
    """The content of a cache folder: the SHA-256 of each binary, and of everything that decided how it was built."""

    sources: dict[str, str] = {}
    binaries: dict[str, str] = {}


class Binaries(msgspec.Struct, frozen=True):
    """A folder that has all of NAMES."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / name


def cache_folder(environ: Mapping[str, str] = os.environ, version: str = VERSION) -> Path:
    """$ARGOSY_CACHE, else `.cache` of this package's checkout, else ~/.cache/argosy; one folder per version in it."""
    checkout = Path(__file__).parents[3]
    if named := environ.get("ARGOSY_CACHE"):
        base = Path(named)
    elif (checkout / "scripts" / "kubernetes").is_dir():
        base = checkout / ".cache"
    else:
        base = Path.home() / ".cache" / "argosy"
    return base / "kubernetes" / version


def find(environ: Mapping[str, str] = os.environ, version: str = VERSION) -> Binaries:
    """The binaries to use; KUBEBUILDER_ASSETS replaces those of VERSION. Raises BinariesMissing."""
    assets = environ.get("KUBEBUILDER_ASSETS")
    if assets and version == VERSION:
        return _named(Path(assets))
    return _cached(cache_folder(environ, version), _HOW if version == VERSION else _HOW_OLDEST)


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _named(folder: Path) -> Binaries:
    absent = [name for name in NAMES if not os.access(folder / name, os.X_OK)]
    if absent:
        raise BinariesMissing(f"KUBEBUILDER_ASSETS={folder} has no {', '.join(absent)}")
    return Binaries(folder)


def _cached(folder: Path, how: str) -> Binaries:
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        raise BinariesMissing(f"no Kubernetes binaries in {folder}: {how}") from None
    for name in NAMES:
        path = folder / name
        try:
            facts = path.stat()
        except OSError:
            raise BinariesMissing(f"no {name} in {folder}: {how}") from None
        if _digest_once(path, facts.st_ino, facts.st_size, facts.st_mtime_ns) != manifest.binaries.get(name):
            raise BinariesMissing(f"{path} is not what was built (its SHA-256 differs from the manifest): {how}")
    return Binaries(folder)


@lru_cache(maxsize=64)
def _digest_once(path: Path, _inode: int, _size: int, _modified: int) -> str:
    # Hashing 400 MB takes most of a second: once per run is enough, unless the file changed.
    return digest(path)
