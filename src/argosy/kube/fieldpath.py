"""Field paths, as `spec.list[0].name`: where in an object something lies.

Whoever walks an object carries a chain of pieces along and writes it out only where there is something to tell: written out at
each step, the path to ten thousand values below a long name would be long ten thousand times.
"""

from typing import Any

__all__ = ["MAX_PIECE", "Path", "written"]

#: A longer name is shown by its beginning.
MAX_PIECE = 1024
#: The path of what a value lies in, and one more piece, with its own dot or brackets; None is the object itself.
Path = tuple[Any, str] | None


def written(path: Path) -> str:
    pieces = []
    while path is not None:
        path, piece = path
        pieces.append(piece if len(piece) <= MAX_PIECE else f"{piece[:MAX_PIECE]}...")
    return "".join(reversed(pieces)).removeprefix(".")
