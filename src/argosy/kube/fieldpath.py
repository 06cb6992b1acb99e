"""Field paths, as `spec.list[0].name`: the place of a value in an object.

A walk over an object carries a chain of pieces and formats it only for a finding: formatted at each step, the paths of ten
thousand values below a long name would repeat that name ten thousand times.
"""

from typing import Any

__all__ = ["MAX_PIECE", "Path", "written"]

#: A longer name is shown by its beginning.
MAX_PIECE = 1024
#: The path of the parent, and one more piece, with its own dot or brackets; None is the object itself.
Path = tuple[Any, str] | None


def written(path: Path) -> str:
    pieces = []
    while path is not None:
        path, piece = path
        pieces.append(piece if len(piece) <= MAX_PIECE else f"{piece[:MAX_PIECE]}...")
    return "".join(reversed(pieces)).removeprefix(".")
