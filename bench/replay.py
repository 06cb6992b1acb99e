"""A server that replays a recording of Pods over loopback HTTP: `python -m bench.replay EVENTS OFFSETS`, its own process.

It says on its standard output, as one line of JSON, where it listens: at `watch` the list is empty and the watch brings all
Pods; at `list` the list has all of them, in pages, and the watch is silent. It ends with its standard input. Not an API server:
just enough of one for clients to start on.
"""

import functools
import json
import mmap
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bench.recording import FIRST_VERSION, Recording

_FIXED: dict[str, dict[str, Any]] = {
    "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.3"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {
                "name": "pods",
                "singularName": "pod",
                "namespaced": True,
                "kind": "Pod",
                "verbs": ["get", "list", "watch"],
                "shortNames": ["po"],
            }
        ],
    },
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A head and the first bytes of a body are two writes; without this the second waits for the first's acknowledgement.
    disable_nagle_algorithm = True

    def __init__(self, recording: Recording, content: mmap.mmap, listed: bool, *args: Any):
        self.recording = recording
        self.content = content
        self.listed = listed
        super().__init__(*args)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        path = url.path.rstrip("/")
        if path in _FIXED:
            self._answer(json.dumps(_FIXED[path]).encode())
        elif path != "/api/v1/pods":
            self._answer(b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not here","code":404}', 404)
        elif query.get("watch", "").lower() in ("true", "1"):
            self._watch()
        else:
            self._list(int(query.get("limit", 0)), int(query.get("continue", 0)))

    def _watch(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        try:
            if not self.listed:
                self.wfile.flush()
                with self.recording.events.open("rb") as events:
                    self.connection.sendfile(events)
            # Like a watch on which nothing happens any more, until the client has enough.
            self.connection.recv(1)
        except OSError:
            return

    def _list(self, limit: int, start: int) -> None:
        count = self.recording.count if self.listed else 0
        end = min(count, start + limit) if limit else count
        positions = self.recording.positions
        items = b",".join(self.content[positions[2 * n] : positions[2 * n + 1]] for n in range(start, end))
        version = FIRST_VERSION + self.recording.count if self.listed else FIRST_VERSION - 1
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if end < count:
            metadata |= {"continue": str(end), "remainingItemCount": count - end}
        head = f'{{"kind":"PodList","apiVersion":"v1","metadata":{json.dumps(metadata)},"items":['
        self._answer(head.encode() + items + b"]}")

    def _answer(self, body: bytes, code: int = 200) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


def main(events: str, offsets: str) -> None:
    recording = Recording(Path(events), Path(offsets))
    urls = {}
    with Path(events).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for name, listed in (("watch", False), ("list", True)):
            server = ThreadingHTTPServer(
                ("127.0.0.1", 0), functools.partial(Handler, recording, content, listed), bind_and_activate=True
            )
            server.daemon_threads = True
            urls[name] = f"http://127.0.0.1:{server.server_port}"
            threading.Thread(target=server.serve_forever, daemon=True).start()
        print(json.dumps(urls), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
