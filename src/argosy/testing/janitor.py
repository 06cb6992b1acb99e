"""Remove a folder once the process that made this one is gone, however it ended. Run as a script by `cluster`.

    python -I -S janitor.py FOLDER

Standard input is a pipe whose other end only the parent holds; its end of file is the parent's end. The components have been
killed by their parent-death signal by then, but may take a moment to be gone and write meanwhile.
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
