"""Health: /livez, /readyz and /healthz with their single checks, as kube-apiserver answers them."""

from collections.abc import Callable, Mapping

from argosy.kube.transport import Response

__all__ = ["Check", "Health"]

#: None when all is well, else what is wrong (for the log and the verbose answer; no secrets).
Check = Callable[[], str | None]
_TEXT = {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"}


class Health:
    def __init__(self) -> None:
        #: Checks of life; those in `ready` are asked by /readyz only.
        self.live: dict[str, Check] = {"ping": lambda: None}
        self.ready: dict[str, Check] = {}

    def respond(self, path: str, query: Mapping[str, str], excluded: frozenset[str] = frozenset()) -> Response | None:
        """None when the path is not one of ours."""
        root, _, single = path.strip("/").partition("/")
        if root not in ("livez", "readyz", "healthz"):
            return None
        checks = self.live | self.ready if root == "readyz" else self.live
        if single:
            if single not in checks:
                return None
            checks = {single: checks[single]}
        results = {name: check() for name, check in checks.items() if name not in excluded}
        failed = [name for name, problem in results.items() if problem is not None]
        if not failed and "verbose" not in query:
            return Response(200, _TEXT, b"ok")
        lines = [
            f"[+]{name} ok" if problem is None else f"[-]{name} failed: reason withheld"
            for name, problem in results.items()
        ]
        lines.append(f"{root} check {'failed' if failed else 'passed'}")
        return Response(500 if failed else 200, _TEXT, ("\n".join(lines) + "\n").encode())
