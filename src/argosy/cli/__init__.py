"""The command line: the only room that prints. `main` is the console script `argosy` and the kubectl plugin `kubectl argosy`.

Exit codes: 0 done, 1 it failed (one line on stderr says why, a second one what to do), 2 the command was misused,
130 interrupted. ARGOSY_DEBUG=1 shows the traceback behind a failure. What a command needs is imported when it runs:
`--help` must not wait for a server to be loaded.
"""

import os
import sys

__all__ = ["main"]


def main() -> None:
    from argosy.cli.app import app

    name = "kubectl argosy" if os.path.basename(sys.argv[0]).startswith("kubectl-") else "argosy"
    try:
        app(prog_name=name)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output left; what would be flushed at exit has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if os.environ.get("ARGOSY_DEBUG"):
            raise
        from argosy.cli.output.failures import explained

        failure = explained(error)
        print(f"error: {failure.message}", file=sys.stderr)
        if failure.hint:
            print(f"hint: {failure.hint}", file=sys.stderr)
        sys.exit(failure.code)
