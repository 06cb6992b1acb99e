"""Build the binaries of stock Kubernetes that tests run against, from the Go module proxy, into the cache folder.

    python scripts/kubernetes/build.py             (or: make kubernetes)
    python scripts/kubernetes/build.py --oldest    the oldest version that members may have (part of make test-skew)

What is built is pinned: the module versions and their sums are in the go.mod and go.sum of the folders beside this file,
and Go verifies them. A binary that is there, whole and built from the same pins is kept, so an interrupted build goes on where
it was. `KUBEBUILDER_ASSETS` wins: where it is set there is nothing to do.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from argosy.testing.binaries import (
    MANIFEST,
    NAMES,
    OLDEST,
    VERSION,
    BinariesMissing,
    Manifest,
    cache_folder,
    digest,
    find,
)

HERE = Path(__file__).parent
_STAMPED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")


def major_and_minor(version: str) -> list[str]:
    return version.removeprefix("v").split(".")[:2]


def kubernetes_flags(version: str) -> str:
    major, minor = major_and_minor(version)
    stamp = {
        "gitVersion": version,
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": "unknown",
        "gitTreeState": "clean",
        # A fixed day: the same sources give the same bytes.
        "buildDate": "2026-01-01T00:00:00Z",
    }
    stamps = (f"-X {package}.{name}={value}" for package in _STAMPED for name, value in stamp.items())
    return " ".join(["-s -w", *stamps])


_MAJOR, _MINOR = major_and_minor(VERSION)
_HELM = "helm.sh/helm/v3"
_HELM_STAMP = {
    "internal/version.version": "v3.22.0",
    "pkg/lint/rules.k8sVersionMajor": _MAJOR,
    "pkg/lint/rules.k8sVersionMinor": _MINOR,
    "pkg/chartutil.k8sVersionMajor": _MAJOR,
    "pkg/chartutil.k8sVersionMinor": _MINOR,
}
_HELM_FLAGS = " ".join(["-s -w", *(f"-X {_HELM}/{name}={value}" for name, value in _HELM_STAMP.items())])
_HELM4_FLAGS = "-s -w -X helm.sh/helm/v4/internal/version.version=v4.3.1"


class Unit(NamedTuple):
    """One `go build`: all commands of one module, so that what they share is compiled once."""

    module: str
    packages: dict[str, str]
    ldflags: str = "-s -w"

    def sources(self) -> str:
        """The SHA-256 of all that decides the result but the compiler."""
        pins = b"".join((HERE / self.module / name).read_bytes() for name in ("go.mod", "go.sum"))
        return hashlib.sha256(pins + repr(self).encode()).hexdigest()


_ETCD = Unit("etcd", {"etcd": "go.etcd.io/etcd/server/v3"})
_COMMANDS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
_KUBERNETES = {name: f"k8s.io/kubernetes/cmd/{name}" for name in _COMMANDS}
_KWOK = Unit("kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}, "-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=v0.8.0")
UNITS = {
    VERSION: (
        _ETCD,
        Unit("kubernetes", _KUBERNETES, kubernetes_flags(VERSION)),
        _KWOK,
        # Of no use to a cluster, so not among NAMES: the chart in deploy/ is rendered and installed with it.
        Unit("helm", {"helm": "helm.sh/helm/v3/cmd/helm"}, _HELM_FLAGS),
        # The one that waits by statuses: applications are installed with it.
        Unit("helm4", {"helm4": "helm.sh/helm/v4/cmd/helm"}, _HELM4_FLAGS),
    ),
    OLDEST: (_ETCD, Unit("oldest", _KUBERNETES, kubernetes_flags(OLDEST)), _KWOK),
}


def main(version: str) -> None:
    if os.environ.get("KUBEBUILDER_ASSETS") and version == VERSION:
        try:
            print(f"Kubernetes binaries: {find().folder} (KUBEBUILDER_ASSETS)")
        except BinariesMissing as error:
            sys.exit(str(error))
        return
    folder = cache_folder(version=version)
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder):
        manifest = read(folder)
        missing = [unit for unit in UNITS[version] if not is_built(unit, folder, manifest)]
        go = compiler() if missing else ""
        for unit in missing:
            manifest = build(go, unit, folder, manifest)
    names = [name for unit in UNITS[version] for name in unit.packages]
    print(f"Kubernetes binaries: {folder} ({version}; {', '.join(names)})")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One builder at a time; another one waits for what it would build itself."""
    # Python opens it close-on-exec, so a compiler left behind does not hold the lock.
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another build is under way; waiting for it ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def read(folder: Path) -> Manifest:
    try:
        return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        return Manifest()


def is_built(unit: Unit, folder: Path, manifest: Manifest) -> bool:
    if manifest.sources.get(unit.module) != unit.sources():
        return False
    return all(
        (folder / name).is_file() and digest(folder / name) == manifest.binaries.get(name) for name in unit.packages
    )


def compiler() -> str:
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not os.access(go, os.X_OK):
        sys.exit(
            "Go is needed to build Kubernetes: install Go 1.26 or newer (https://go.dev/dl), or set KUBEBUILDER_ASSETS to a "
            f"folder that has {', '.join(NAMES)}."
        )
    return go


def build(go: str, unit: Unit, folder: Path, manifest: Manifest) -> Manifest:
    """Build into a folder of its own, and move over: a binary is there whole or not at all."""
    print(f"Building {', '.join(unit.packages)} ...", flush=True)
    began = time.monotonic()
    fresh = folder / f".{unit.module}"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    # GOFLAGS and a workspace of the user's must not change what is built.
    environ = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    command = [go, "build", "-trimpath", "-buildvcs=false", "-ldflags", unit.ldflags, "-o"]
    # `-o FOLDER/` names a binary after its package's folder; where that is not the name wanted, one at a time.
    if all(package.endswith(f"/{name}") for name, package in unit.packages.items()):
        runs = [[*command, f"{fresh}/", *unit.packages.values()]]
    else:
        runs = [[*command, str(fresh / name), package] for name, package in unit.packages.items()]
    for run in runs:
        done = subprocess.run(run, cwd=HERE / unit.module, env=environ, check=False, preexec_fn=lambda: os.nice(10))
        if done.returncode:
            sys.exit(
                f"`go build` of {', '.join(unit.packages)} failed (its own words are above); what was built is kept."
            )
    built = {name: digest(fresh / name) for name in unit.packages}
    for name in unit.packages:
        (fresh / name).replace(folder / name)
    fresh.rmdir()
    updated = Manifest(manifest.sources | {unit.module: unit.sources()}, manifest.binaries | built)
    write(folder, updated)
    print(f"  done in {time.monotonic() - began:.0f} s", flush=True)
    return updated


def write(folder: Path, manifest: Manifest) -> None:
    temporary = folder / f".{MANIFEST}"
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
    temporary.replace(folder / MANIFEST)


if __name__ == "__main__":
    try:
        main(OLDEST if sys.argv[1:] == ["--oldest"] else VERSION)
    except KeyboardInterrupt:
        sys.exit("interrupted; what was built is kept")
