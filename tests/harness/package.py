"""A package with plugins for Argosy, as a user would install one: a module and its entry points, in a folder on the path.

The plugin `Theirs` behaves as the file `mode` beside the module says; the package may also misbehave while it is imported.
"""

from pathlib import Path

MODULE = '''\
import mmap
import os
import struct
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np

from argosy.plugins import Always, Division, Filter, PluginError, Ranked, Replicas, Score, Select

MODE = Path(__file__).with_name("mode")
IMPORT = "{imported}"
MODE.with_name("imported").touch()

if IMPORT == "sleep":
    time.sleep(3600)
elif IMPORT == "wait":
    while MODE.read_text() == "wait":
        time.sleep(0.05)
elif IMPORT == "thread":
    threading.Thread(target=time.sleep, args=(3600,)).start()
elif IMPORT == "memory":
    RESERVED = mmap.mmap(-1, 8 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # and not reserved
elif IMPORT == "exit":
    os._exit(7)


def first(unit, fleet):
    """Refuses all clusters but the first, unless it is told to misbehave."""
    mode = MODE.read_text()
    if mode == "sleep":
        time.sleep(3600)
    if mode == "child":
        child = subprocess.Popen(["sleep", "3600"])
        MODE.with_name("child").write_text(str(child.pid))
        time.sleep(3600)
    while mode == "spin":
        pass
    if mode == "exit":
        os._exit(3)
    if mode == "memory":
        return [bytearray(1 << 26) for _ in range(1 << 20)]
    if mode == "raise":
        raise KeyError("zone")
    if mode == "undecided":
        raise PluginError("nobody knows")
    if mode == "wordy":
        raise PluginError("x" * 400_000)
    if mode == "shout":  # past all that is between it and the control plane
        os.write(int(sys.argv[1]), struct.pack("!Q", 60_000_000))
        os.write(int(sys.argv[1]), bytes(60_000_000))
    if mode == "nonsense":
        return "yes, all of them"
    return np.arange(len(fleet)) < 1


def by_name(unit, fleet):
    return np.arange(len(fleet), dtype=np.int64)


def reversed_(unit, fleet, ranked):
    return Ranked(ranked.rows[::-1], ranked.scores[::-1] + 1)


def all_in_one(unit, fleet, rows):
    replicas = np.zeros(len(rows), dtype=np.int64)
    replicas[-1:] = unit.desired_replicas
    steps = ("ab" * 400,) * 1_000_000 if MODE.read_text() == "wordy" else ("all in the last",)
    return Division(replicas, np.zeros(len(rows), dtype=np.int64), steps)


def named(name, unit, fleet):
    return fleet.mask_of([name])


def configured(arguments):
    if not isinstance(arguments, dict) or "cluster" not in arguments:
        raise ValueError("args.cluster is needed")
    reason = "cluster(s) are not " + arguments["cluster"]
    return Filter("Named", partial(named, arguments["cluster"]), Always(reason), configured)


PLUGINS = [
    Filter("Theirs", first, lambda unit, fleet, row: "cluster(s) come after " + fleet.names[0]),
    Filter("Named", lambda unit, fleet: fleet.everyone, Always("none"), configured),
    Score("ByName", by_name),
    Select("Reversed", reversed_),
    Replicas("AllInOne", all_in_one),
]
'''


class Package:
    def __init__(self, folder: Path, imported: str = ""):
        """`imported` is what becomes of importing it: "sleep", "wait" (while its mode is that), "thread", "memory", "exit"."""
        self.folder = folder
        folder.mkdir(exist_ok=True)
        (folder / "argosy_theirs.py").write_text(MODULE.replace("{imported}", imported))
        self.behave("")
        metadata = folder / "argosy_theirs-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: argosy-theirs\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text("[argosy.plugins]\ntheirs = argosy_theirs:PLUGINS\n")

    def behave(self, mode: str) -> None:
        """From the next question on."""
        (self.folder / "mode").write_text(mode)
