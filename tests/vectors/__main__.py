"""The command: `python -m tests.vectors DIR`. Exit code 1 when a case failed, 2 when there is nothing to run."""

import sys
from pathlib import Path

from tests.vectors.runner import Usage, run


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tests.vectors DIR", file=sys.stderr)
        return 2
    try:
        totals = run(Path(arguments[0]), print)
    except Usage as error:
        print(error, file=sys.stderr)
        return 2
    return 1 if totals.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
