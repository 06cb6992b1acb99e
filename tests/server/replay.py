"""Replays request files (requests/README.md says their form) against any Kubernetes API server.

    python -m tests.server.replay [--kubeconfig FILE] [--show] [FILE…]

With a kubeconfig the files run against that server, and every expectation counts. Without one an embedded server is started
for each file, and steps marked `differs` are expected to fail there (and reported if they no longer do). Each file has a
namespace of its own, which goes when the file is done, with whatever its `cleanup` names.
"""

import argparse
import asyncio
import json
import re
import secrets
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
import yaml
from yarl import URL

from argosy.kube import config
from argosy.server.embedded import ADMIN, EmbeddedServer
from tests.server import matching

REQUESTS = Path(__file__).parent / "requests"
_STEP_KEYS = {
    "name", "request", "query", "headers", "type", "accept", "as", "body", "text", "expect", "save", "eventually",
    "watch", "open", "read", "events", "timeout", "ends", "differs",
}  # fmt: skip
_EXPECT_KEYS = {
    "code",
    "reason",
    "message",
    "details",
    "causes",
    "body",
    "absent",
    "equal",
    "headers",
    "text",
    "warnings",
}
_VARIABLE = re.compile(r"\{([A-Za-z][A-Za-z0-9_]*)\}")
# One header may hold several, separated by commas.
_WARNING = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')
_DEFAULT_TIMEOUT = 60.0
_SAFE = "/=&%:,;+-_.~!*'()$@?[]"


class FormatError(Exception):
    """A request file that is not one."""


class _Loader(yaml.CSafeLoader):
    """Plain YAML, but a time is a text, as in JSON, and so are `no`, `on` and the like."""


_NOT_IN_JSON = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _NOT_IN_JSON]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), ["t", "f"])


class Answer:
    def __init__(self, code: int, headers: Any, raw: bytes):
        self.code = code
        self.headers = headers
        self.text = raw.decode(errors="replace")
        try:
            self.body = json.loads(raw)
        except ValueError:
            self.body = None

    def __str__(self) -> str:
        return f"{self.code} {self.text[:3000].rstrip()}"


class Watch:
    """An open watch; a task reads its events, so that the connection is drained while other steps run."""

    def __init__(self, response: aiohttp.ClientResponse):
        self._response = response
        self._events: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        rest = b""
        try:
            async for chunk in self._response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._events.put_nowait(json.loads(line))
        finally:
            self._events.put_nowait(None)

    async def next(self, deadline: float) -> dict[str, Any] | None:
        """The next event; None where the stream ended; TimeoutError after the deadline."""
        return await asyncio.wait_for(self._events.get(), max(0.01, deadline - time.monotonic()))

    def close(self) -> None:
        self._task.cancel()
        self._response.close()


class Server:
    """One API server, reached as an administrator; other users are impersonated."""

    def __init__(self, session: aiohttp.ClientSession, url: str, embedded: bool):
        self._session = session
        self._url = url
        self.embedded = embedded

    async def send(self, method: str, target: str, headers: list[tuple[str, str]], data: bytes | None) -> Answer:
        async with self._session.request(method, self._full(target), data=data, headers=headers) as response:
            return Answer(response.status, response.headers, await response.read())

    async def watch(self, target: str, headers: list[tuple[str, str]]) -> Watch | Answer:
        response = await self._session.get(self._full(target), headers=headers)
        if response.status != 200:
            return Answer(response.status, response.headers, await response.read())
        return Watch(response)

    async def json(self, method: str, target: str, body: Any = None) -> Answer:
        data = None if body is None else json.dumps(body).encode()
        return await self.send(method, target, [("Content-Type", "application/json")] if data else [], data)

    def _full(self, target: str) -> URL:
        return URL(self._url.rstrip("/") + target, encoded=True)


class Replay:
    """One file's run: variables, open watches, and what went wrong (one text a step)."""

    def __init__(self, server: Server, document: dict[str, Any], show: bool = False):
        self._server = server
        self._document = document
        self._show = show
        identity = secrets.token_hex(4)
        self.variables: dict[str, Any] = {"id": identity, "ns": f"requests-{identity}"}
        self.watches: dict[str, Watch] = {}
        self.failures: list[str] = []
        self.differences: list[str] = []
        self.passed = 0

    async def run(self) -> None:
        await self._make_namespace()
        try:
            for number, step in enumerate(self._document["steps"], 1):
                await self._step(number, step)
        finally:
            for watch in self.watches.values():
                watch.close()
            await self._clean()

    async def _make_namespace(self) -> None:
        name = self.variables["ns"]
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        answer = await self._server.json("POST", "/api/v1/namespaces", namespace)
        if answer.code != 201:
            raise RuntimeError(f"namespace {name}: {answer}")
        # Pods are refused until a controller has made the namespace's service account.
        deadline = time.monotonic() + _DEFAULT_TIMEOUT
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        while time.monotonic() < deadline:
            if (await self._server.json("GET", account)).code == 200:
                return
            await asyncio.sleep(0.02)
        raise RuntimeError(f"namespace {name}: no service account was made in it")

    async def _clean(self) -> None:
        # A dropped finalizer lets go of what a file meant to hold on to; its own namespace goes last.
        for path in self._document.get("cleanup", []):
            await self._server.json("DELETE", self._filled(path), {"propagationPolicy": "Background"})
        options = {"gracePeriodSeconds": 0}
        await self._server.json("DELETE", f"/api/v1/namespaces/{self.variables['ns']}", options)

    async def _step(self, number: int, step: dict[str, Any]) -> None:
        differs = step.get("differs") if self._server.embedded else None
        differences, answer = await self._attempt(step)
        deadline = time.monotonic() + step.get("eventually", 0)
        while differences and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
            differences, answer = await self._attempt(step)
        label = f"step {number}, {step['name']}"
        if self._show:
            print(f"--- {label}\n{answer}")
        if differs and not differences:
            self.failures.append(f"{label}: no longer differs ({differs}): drop the mark")
        elif differs:
            self.differences.append(f"{label}: {differs}")
        elif differences:
            self.failures.append(f"{label}:\n  " + "\n  ".join(differences) + f"\n  answer: {answer}")
        else:
            self.passed += 1

    async def _attempt(self, step: dict[str, Any]) -> tuple[list[str], Any]:
        try:
            if "request" in step:
                return await self._request(step)
            return await self._watch(step)
        except (TimeoutError, aiohttp.ClientError) as error:
            return [f"{type(error).__name__}: {error}"], None

    async def _request(self, step: dict[str, Any]) -> tuple[list[str], Answer]:
        method, target = self._filled(step["request"]).split(" ", 1)
        data = None
        if "text" in step:
            data = self._filled(step["text"]).encode()
        elif "body" in step:
            data = json.dumps(self._filled(step["body"])).encode()
        answer = await self._server.send(method, self._target(step, target), self._headers(step, data), data)
        differences = _check(self._filled(step.get("expect", {})), answer)
        for variable, path in step.get("save", {}).items():
            value = matching.at(answer.body, path)
            if value is matching.ABSENT:
                differences.append(f"save {variable}: {path} is absent")
            else:
                self.variables[variable] = value
        return differences, answer

    async def _watch(self, step: dict[str, Any]) -> tuple[list[str], Any]:
        seen: list[dict[str, Any]] = []
        if "watch" in step:
            opened = await self._server.watch(
                self._target(step, self._filled(step["watch"])), self._headers(step, None)
            )
            if isinstance(opened, Answer):
                return ["the watch was refused"], opened
            if "open" in step:
                self.watches[step["open"]] = opened
                return [], "open"
            watch = opened
        else:
            watch = self.watches[step["read"]]
        differences = await self._events(watch, step, seen)
        if "watch" in step:
            watch.close()
        return differences, json.dumps(seen)

    async def _events(self, watch: Watch, step: dict[str, Any], seen: list[dict[str, Any]]) -> list[str]:
        deadline = time.monotonic() + step.get("timeout", _DEFAULT_TIMEOUT)
        differences: list[str] = []
        for number, wanted in enumerate(self._filled(step.get("events", [])), 1):
            try:
                event = await watch.next(deadline)
                # When bookmarks come is the server's own affair, unless one is asked for.
                while event is not None and event["type"] == "BOOKMARK" and wanted.get("type") != "BOOKMARK":
                    event = await watch.next(deadline)
            except TimeoutError:
                return [*differences, f"event {number} did not come: {wanted!r}"]
            if event is None:
                return [*differences, f"the stream ended before event {number}: {wanted!r}"]
            seen.append(event)
            expected = {key: value for key, value in wanted.items() if key not in ("absent", "save")}
            differences += [f"event {number}{line}" for line in matching.subset(expected, event)]
            differences += [f"event {number}: {line}" for line in _absent(wanted.get("absent", []), event["object"])]
            for variable, path in wanted.get("save", {}).items():
                self.variables[variable] = matching.at(event["object"], path)
        if step.get("ends"):
            while (event := await watch.next(deadline)) is not None:
                if event["type"] != "BOOKMARK":
                    differences.append(f"one event more: {event!r}")
        return differences

    def _headers(self, step: dict[str, Any], data: bytes | None) -> list[tuple[str, str]]:
        headers = [("Accept", step.get("accept", "application/json"))]
        if data is not None:
            headers.append(("Content-Type", step.get("type", "application/json")))
        identity = self._filled(step.get("as", {}))
        headers += [("Impersonate-User", identity["user"])] if "user" in identity else []
        headers += [("Impersonate-Group", group) for group in identity.get("groups", [])]
        for name, value in self._filled(step.get("headers", {})).items():
            headers += [(name, one) for one in (value if isinstance(value, list) else [value])]
        return headers

    def _target(self, step: dict[str, Any], target: str) -> str:
        path, _, query = target.partition("?")
        query = quote(query, safe=_SAFE)
        more = urlencode(self._filled(step.get("query", {})), quote_via=quote)
        return path + "".join(
            f"{'?' if not index else '&'}{part}" for index, part in enumerate(filter(None, (query, more)))
        )

    def _filled(self, value: Any) -> Any:
        """The value with variables in place; a text that is one variable alone becomes its value, of whatever type."""
        if isinstance(value, dict) and value.keys() == {"$repeat", "times"}:
            return value["$repeat"] * value["times"]
        if isinstance(value, dict):
            return {self._filled(key): self._filled(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._filled(one) for one in value]
        if not isinstance(value, str):
            return value
        alone = _VARIABLE.fullmatch(value)
        if alone and alone[1] in self.variables:
            return self.variables[alone[1]]
        return _VARIABLE.sub(lambda found: str(self.variables.get(found[1], found[0])), value)


def _check(expect: dict[str, Any], answer: Answer) -> list[str]:
    differences = []
    if answer.code != expect.get("code", 200):
        differences.append(f"code {answer.code} instead of {expect.get('code', 200)}")
    body = answer.body if isinstance(answer.body, dict) else {}
    if answer.code >= 400 and "text" not in expect:
        shape = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": answer.code}
        differences += matching.subset(shape, body)
    for field in ("reason", "message", "details"):
        if field in expect:
            differences += matching.subset(expect[field], body.get(field), field)
    if "causes" in expect:
        differences += matching.causes(expect["causes"], (body.get("details") or {}).get("causes") or [])
    if "body" in expect:
        differences += matching.subset(expect["body"], answer.body)
    if "equal" in expect:
        differences += matching.whole(expect["equal"], answer.body)
    if "text" in expect:
        differences += matching.subset(expect["text"], answer.text, "text")
    for name, value in expect.get("headers", {}).items():
        differences += matching.subset(value, answer.headers.get(name), name)
    if "warnings" in expect:
        differences += matching.subset(expect["warnings"], warnings(answer), "warnings")
    return differences + _absent(expect.get("absent", []), answer.body)


def warnings(answer: Answer) -> list[str]:
    """The texts of the Warning headers, in order."""
    given = [text for value in answer.headers.getall("Warning", []) for text in _WARNING.findall(value)]
    return [re.sub(r"\\(.)", r"\1", text) for text in given]


def _absent(paths: list[str], body: Any) -> list[str]:
    return [f"{path}: is there" for path in paths if matching.at(body, path) is not matching.ABSENT]


def load(path: Path) -> dict[str, Any]:
    """The file's document; FormatError where a key is misspelt, so that no expectation is silently skipped."""
    try:
        document = yaml.load(path.read_text(), Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        place = error.problem_mark
        raise FormatError(f"{path.name}, line {place.line + 1 if place else '?'}: {error.problem}") from None
    if not isinstance(document, dict) or not isinstance(document.get("steps"), list):
        raise FormatError(f"{path.name}: needs a name and a list of steps")
    for number, step in enumerate(document["steps"], 1):
        unknown = (step.keys() - _STEP_KEYS) | (step.get("expect", {}).keys() - _EXPECT_KEYS)
        if unknown:
            raise FormatError(f"{path.name}, step {number}: unknown key {', '.join(sorted(unknown))}")
        if "name" not in step or sum(key in step for key in ("request", "watch", "read")) != 1:
            raise FormatError(f"{path.name}, step {number}: needs a name and one of request, watch, read")
    return document


@asynccontextmanager
async def connected(connection: config.Connection, embedded: bool) -> AsyncIterator[Server]:
    trust = ssl.create_default_context(cadata=connection.ca_data.decode())
    if connection.client_certificate:
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(connection.client_certificate + b"\n" + connection.client_key)
            pair.flush()
            trust.load_cert_chain(pair.name)
    headers = {"Authorization": f"Bearer {connection.token}"} if connection.token else {}
    timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
    connector = aiohttp.TCPConnector(ssl=trust)
    async with aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout) as session:
        yield Server(session, connection.server, embedded)


async def against_embedded(document: dict[str, Any], show: bool = False) -> Replay:
    """The file's run against a fresh embedded server."""
    token = secrets.token_urlsafe()
    embedded = EmbeddedServer(tokens={token: ADMIN})
    await embedded.start()
    try:
        connection = config.Connection(embedded.url, embedded.authority.certificate, token=token)
        async with connected(connection, embedded=True) as server:
            replay = Replay(server, document, show)
            await replay.run()
            return replay
    finally:
        await embedded.stop()


async def against(connection: config.Connection, document: dict[str, Any], show: bool = False) -> Replay:
    async with connected(connection, embedded=False) as server:
        replay = Replay(server, document, show)
        await replay.run()
        return replay


async def _main(arguments: argparse.Namespace) -> int:
    totals = [0, 0, 0]
    connection = config.load(arguments.kubeconfig) if arguments.kubeconfig else None
    for path in arguments.files or sorted(REQUESTS.glob("*.yaml")):
        document = load(path)
        if connection is None:
            replay = await against_embedded(document, arguments.show)
        else:
            replay = await against(connection, document, arguments.show)
        counts = (replay.passed, len(replay.failures), len(replay.differences))
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        print(f"{path.name} {counts[0]}/{sum(counts)}")
        for line in replay.failures:
            print(f"  FAILED {line}")
        for line in replay.differences:
            print(f"  differs {line}")
    print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} known differences")
    return 1 if totals[1] else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--kubeconfig", help="the server to ask; without one, an embedded server is started for each file"
    )
    parser.add_argument("--show", action="store_true", help="print every answer")
    parser.add_argument("files", nargs="*", type=Path)
    try:
        sys.exit(asyncio.run(_main(parser.parse_args())))
    except (FormatError, config.ConfigError) as error:
        sys.exit(str(error))
