"""Removes a folder once the parent process is gone, however it ended. Run as a script by `cluster`.

    python -I -S janitor.py FOLDER

Standard input is a pipe whose other end only the parent holds: end of file means that the parent is gone. By then the
parent-death signal has killed the components, but they may take a moment to end and still write.
"""

import shutil
import sys
import time
from pathlib import Path

_PATIENCE = 5.0


def main(folder: Path) -> None:
    sys.stdin.buffer.read()
    deadline = time.monotonic() + _PATIENCE
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
