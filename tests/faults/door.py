"""An API server in a process of its own with little patience, for bad clients: `python -m tests.faults.door FOLDER PATIENCE`.

It tells its number of tasks, connections and watches at /counts. Where a token is needed it is "admin-token".
"""

import asyncio
import sys
from pathlib import Path

import orjson

from argosy.cli.local.loop import run, stop_on_signals
from argosy.kube.transport import Request, Response
from argosy.server import kubeconfig
from argosy.server.auth.identity import User
from argosy.server.embedded import ADMIN, EmbeddedServer
from argosy.server.http.limits import Limits


async def main(folder: Path, patience: float) -> None:
    limits = Limits(receive_seconds=patience, idle_seconds=60.0)
    served = EmbeddedServer(folder, tokens={"admin-token": ADMIN}, limits=limits)
    server = served.server

    async def counts(request: Request, user: User) -> Response | None:
        if request.path != "/counts":
            return None
        listener = served._listener
        body = {
            "tasks": len(asyncio.all_tasks()),
            "connections": len(listener.connections) if listener is not None else 0,
            "watches": len(server.watchers),
        }
        return Response(200, {"content-type": "application/json"}, orjson.dumps(body))

    server.responders.append(counts)
    await served.start()
    kubeconfig.write(folder / "kubeconfig", served.kubeconfig("argosy"))
    print(f"serving {served.url}", flush=True)
    await stop_on_signals().wait()
    await served.stop()


if __name__ == "__main__":
    run(main(Path(sys.argv[1]), float(sys.argv[2])))
