"""Become a component that dies with its parent. Run as a script by `component`, without site-packages.

    python -I -S launch.py PARENT_PID DESCRIPTOR PROGRAM ARGUMENT…

The parent-death signal survives exec. It is SIGKILL: a paused component must end as well, and nothing in it need be kept. The
descriptor is a pipe, closed by exec: so the parent knows that the signal is set.
"""

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, ready: int, command: list[str]) -> None:
    os.set_inheritable(ready, False)
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have died before the line above, and then nobody sends the signal.
    if os.getppid() != parent:
        sys.exit("the parent is gone")
    os.execv(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
