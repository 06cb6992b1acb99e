"""What an image does when it runs, by its tag, so that failures can be tried with a plain manifest:

`bad` and `fail` cannot be pulled, `crash` ends right after its start again and again, `slow` takes ten times as long to
start. Every other image, tagged or not, just runs.
"""

from enum import Enum

__all__ = ["SLOWNESS", "Fate", "fate"]

SLOWNESS = 10.0


class Fate(Enum):
    RUNS = "runs"
    UNPULLABLE = "unpullable"
    CRASHES = "crashes"
    SLOW = "slow"


_BY_TAG = {"bad": Fate.UNPULLABLE, "fail": Fate.UNPULLABLE, "crash": Fate.CRASHES, "slow": Fate.SLOW}


def fate(image: str) -> Fate:
    name = image.partition("@")[0].rpartition("/")[2]
    return _BY_TAG.get(name.partition(":")[2], Fate.RUNS)
