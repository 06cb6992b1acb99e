"""A load generator of its own process: plain HTTPS requests over kept connections, as fast as the server answers.

`python -m bench.load` is started by benchmarks, speaks JSON lines on its standard streams, and is cheap enough that the server
is what is measured: requests are prebuilt bytes over asyncio streams, answers are read by Content-Length or chunks.
"""

import asyncio
import contextlib
import json
import ssl
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop


def context(job: dict[str, Any]) -> ssl.SSLContext:
    made = ssl.create_default_context(cadata=job["ca"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pair.pem"
        path.touch(mode=0o600)
        path.write_text(job["certificate"] + job["key"])
        made.load_cert_chain(path)
    return made


class Connection:
    """One kept-alive HTTP/1.1 connection."""

    def __init__(self, job: dict[str, Any], tls: ssl.SSLContext):
        self.host, self.port = job["host"], job["port"]
        self.tls = tls

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port, ssl=self.tls, limit=1 << 26)

    def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nAccept: application/json\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return head.encode() + b"\r\n" + body

    async def exchange(self, request: bytes) -> tuple[int, int]:
        """Status code and size of the answer."""
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        code = int(head[9:12])
        lower = head.lower()
        if (at := lower.find(b"content-length:")) >= 0:
            size = int(lower[at + 15 : lower.index(b"\r\n", at)])
            await self.reader.readexactly(size)
            return code, size
        size = 0
        while True:
            line = await self.reader.readuntil(b"\r\n")
            length = int(line, 16)
            await self.reader.readexactly(length + 2)
            if not length:
                return code, size
            size += length


async def closed_loop(job: dict[str, Any]) -> dict[str, Any]:
    """Each of the connections sends its share of the requests, one after the other."""
    tls = context(job)
    connections = [Connection(job, tls) for _ in range(job["connections"])]
    for connection in connections:
        await connection.open()
    numbers = iter(range(job["count"]))
    latencies: list[float] = []
    codes: dict[int, int] = {}
    size = 0

    async def run(connection: Connection) -> None:
        nonlocal size
        for number in numbers:
            path = job["path"].replace("{n}", str(number))
            body = job.get("body", "").replace("{n}", str(number)).encode()
            started = time.perf_counter()
            code, length = await connection.exchange(connection.request(job["method"], path, body))
            latencies.append(time.perf_counter() - started)
            codes[code] = codes.get(code, 0) + 1
            size += length

    started = time.perf_counter()
    await asyncio.gather(*(run(connection) for connection in connections))
    seconds = time.perf_counter() - started
    for connection in connections:
        connection.writer.close()
    latencies.sort()
    return {
        "seconds": seconds,
        "codes": codes,
        "bytes": size,
        "p50": latencies[len(latencies) // 2],
        "p99": latencies[int(len(latencies) * 0.99)],
    }


async def watchers(job: dict[str, Any]) -> dict[str, Any]:
    """Open many watches, say so, and count events until all have seen the expected number."""
    tls = context(job)
    expected = job["events"]
    ready = asyncio.Semaphore(0)

    async def watch(connection: Connection) -> None:
        connection.writer.write(connection.request("GET", job["path"]))
        await connection.reader.readuntil(b"\r\n\r\n")
        ready.release()
        seen = 0
        while seen < expected:
            chunk = await connection.reader.read(1 << 16)
            if not chunk:
                raise RuntimeError("a watch ended early")
            seen += chunk.count(b'{"type":')

    connections = []
    for _ in range(job["connections"]):
        connection = Connection(job, tls)
        await connection.open()
        connections.append(connection)
    tasks = [asyncio.create_task(watch(connection)) for connection in connections]
    for _ in connections:
        await ready.acquire()
    print(json.dumps({"ready": True}), flush=True)
    started = time.perf_counter()
    await asyncio.gather(*tasks)
    seconds = time.perf_counter() - started
    for connection in connections:
        connection.writer.close()
    return {"seconds": seconds, "events": expected * len(connections)}


async def main() -> None:
    job = json.loads(sys.stdin.readline())
    kind = {"closed": closed_loop, "watch": watchers}[job["kind"]]
    print(json.dumps(await kind(job)), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(main())
