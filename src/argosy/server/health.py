"""Health: /livez, /readyz and /healthz with their single checks, as in kube-apiserver.

The reason of a failed check is logged, once for each reason; the client only sees that it fails.
"""

import logging
from collections.abc import Callable, Mapping

from argosy.kube.transport import Response

__all__ = ["Check", "Health"]

log = logging.getLogger(__name__)

#: None if healthy, else what is wrong (for the log; no secrets).
Check = Callable[[], str | None]
_TEXT = {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"}


class Health:
    def __init__(self) -> None:
        self._live: dict[str, Check] = {"ping": lambda: None}
        self._ready: dict[str, Check] = {}
        self._notes: dict[str, Callable[[], str]] = {}
        self._told: dict[str, str | None] = {}

    def add(
        self, name: str, *, live: Check | None = None, ready: Check | None = None, note: Callable[[], str] | None = None
    ) -> None:
        """Add a check: `live` for all paths, `ready` for /readyz only.

        A `note` describes a problem that is no failure; it appears in the verbose response.
        """
        for checks, check in ((self._live, live), (self._ready, ready)):
            if check is not None:
                checks[name] = check
        if note is not None:
            self._notes[name] = note

    def respond(self, path: str, query: Mapping[str, str], excluded: frozenset[str] = frozenset()) -> Response | None:
        """None if the path is not a health path."""
        root, _, single = path.strip("/").partition("/")
        if root not in ("livez", "readyz", "healthz"):
            return None
        checks = self._live | self._ready if root == "readyz" else self._live
        if single:
            if single not in checks:
                return None
            checks = {single: checks[single]}
        results = {name: check() for name, check in checks.items() if name not in excluded}
        self._tell(root, results)
        failed = [name for name, problem in results.items() if problem is not None]
        if not failed and "verbose" not in query:
            return Response(200, _TEXT, b"ok")
        lines = [
            f"[+]{name} ok{self._note(name)}" if problem is None else f"[-]{name} failed: reason withheld"
            for name, problem in results.items()
        ]
        lines.append(f"{root} check {'failed' if failed else 'passed'}")
        return Response(500 if failed else 200, _TEXT, ("\n".join(lines) + "\n").encode())

    def _note(self, name: str) -> str:
        note = self._notes[name]() if name in self._notes else ""
        return f": {note}" if note else ""

    def _tell(self, root: str, results: Mapping[str, str | None]) -> None:
        for name, problem in results.items():
            before = self._told.get(name)
            # Numbers in a reason change from one check to the next.
            if _words(problem) == _words(before):
                continue
            self._told[name] = problem
            if problem is None:
                log.info("%s: the check %s passes again", root, name)
            else:
                log.error("%s: the check %s fails: %s", root, name, problem)


def _words(problem: str | None) -> str | None:
    return problem if problem is None else "".join(letter for letter in problem if not letter.isdigit())
