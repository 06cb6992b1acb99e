"""Large objects, whose work is done in threads: the same answers as for small ones, and the same promises."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from argosy.server import embedded
from argosy.server.admission.chain import AdmissionPlugin
from argosy.server.auth.token_requests import TokenRequests
from argosy.server.embedded import EmbeddedServer
from argosy.server.http.limits import Limits
from argosy.server.http.request import Call
from argosy.server.registry import Object
from tests.harness.definitions import large_definition
from tests.harness.eventually import eventually
from tests.server.conftest import TOKENS, HttpClient

MAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LARGES = "/apis/large.example.com/v1/namespaces/default/larges"
RBAC = "rbac.authorization.k8s.io"
ACCESS = f"/apis/{RBAC}/v1/namespaces/default"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
DATA = {f"key-{number}": "12:30" for number in range(5000)}


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {**DATA, **data}}


async def test_a_large_object_lives_as_a_small_one_does(server: EmbeddedServer, client: HttpClient) -> None:
    made = await client.post(MAPS, config_map("large"))
    assert (made.code, made.body["data"]) == (201, DATA)
    assert (await client.post(MAPS, config_map("large"))).code == 409
    patched = await client.patch(f"{MAPS}/large", {"data": {"key-0": None, "new": "v"}})
    assert patched.code == 200
    wanted = {key: value for key, value in {**DATA, "new": "v"}.items() if key != "key-0"}
    assert patched.body["data"] == wanted
    again = await client.patch(f"{MAPS}/large", {"data": {"new": "v"}})
    assert again.version == patched.version
    assert (await client.put(f"{MAPS}/large", made.body)).code == 409
    read = await client.get(f"{MAPS}/large", headers={"accept": "application/yaml"})
    assert yaml.safe_load(read.raw)["data"]["new"] == "v"
    table = await client.get(f"{MAPS}/large", headers=TABLE)
    assert table.body["rows"][0]["cells"][:2] == ["large", 5000]
    listed = await client.get(MAPS, headers={"accept": "application/yaml"})
    assert [item["data"] for item in yaml.safe_load(listed.raw)["items"] if item["metadata"]["name"] == "large"] == [
        wanted
    ]
    assert (await client.delete(f"{MAPS}/large")).code == 200
    assert (await client.get(f"{MAPS}/large")).code == 404


async def test_writers_of_one_large_object_lose_nothing(server: EmbeddedServer, client: HttpClient) -> None:
    await client.post(MAPS, config_map("shared"))
    patches = [{"data": {f"from-{number}": "x"}} for number in range(8)]
    answers = await asyncio.gather(*(client.patch(f"{MAPS}/shared", patch) for patch in patches))
    assert {answer.code for answer in answers} == {200}
    data = (await client.get(f"{MAPS}/shared")).body["data"]
    assert data == {**DATA, **{f"from-{number}": "x" for number in range(8)}}


class Pause(AdmissionPlugin):
    """Keeps all threads busy from the moment a large object was admitted, until it is told to let them go."""

    def __init__(self, limits: Limits):
        self.server = EmbeddedServer(tokens=TOKENS, limits=limits, admission=(lambda store, authorizer: self,))
        self._server = self.server.server
        self.admitted = asyncio.Event()
        self.let_go = threading.Event()
        self._kept: list[asyncio.Future[Any]] = []

    def prepare(self, call: Call, new: Object, old: Object | None) -> list[Any]:
        if new["metadata"].get("name") == "paused" and not self.admitted.is_set():
            for _ in range(self._server.limits.offload_threads):
                work = self._server.offload.run("somebody", lambda: self.let_go.wait(60))
                self._kept.append(asyncio.ensure_future(work))
            self.admitted.set()
        return []


@contextlib.asynccontextmanager
async def pausing(limits: Limits | None = None) -> AsyncIterator[Pause]:
    pause = Pause(limits or Limits())
    await pause.server.start()
    yield pause
    await pause.server.stop()


async def test_nothing_is_created_in_a_namespace_that_went_meanwhile() -> None:
    async with pausing() as pause, HttpClient(pause.server) as client:
        store = pause.server.server.store
        await client.post("/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": "going"}})
        path = "/api/v1/namespaces/going/configmaps"
        creating = asyncio.create_task(client.post(path, config_map("paused")))
        await asyncio.wait_for(pause.admitted.wait(), 30)
        await client.delete("/api/v1/namespaces/going")
        await eventually(lambda: store.get("core/namespaces/going") is None)
        pause.let_go.set()
        answer = await creating
        assert (answer.code, answer.body["reason"]) == (404, "NotFound")
        assert store.get("core/configmaps/going/paused") is None


@pytest.mark.parametrize("anew", [False, True])
async def test_nothing_is_created_of_a_definition_that_went_meanwhile(anew: bool) -> None:
    definition, key = large_definition("large", 0), "apiextensions.k8s.io/customresourcedefinitions/"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = anything
    async with pausing() as pause, HttpClient(pause.server) as client:
        store = pause.server.server.store
        assert (await client.post(CRDS, definition)).code == 201
        spec = {"free": {f"k{number}": "v" * 10 for number in range(2000)}}
        named = {"apiVersion": "large.example.com/v1", "kind": "Large", "metadata": {"name": "paused"}}
        creating = asyncio.create_task(client.post(LARGES, {**named, "spec": spec}))
        await asyncio.wait_for(pause.admitted.wait(), 30)
        await client.delete(f"{CRDS}/larges.large.example.com")
        await eventually(lambda: store.get(f"{key}larges.large.example.com") is None)
        if anew:
            assert (await client.post(CRDS, definition)).code == 201
        pause.let_go.set()
        answer = await creating
        assert (answer.code, answer.body["message"]) == (404, "the server could not find the requested resource")
        assert store.get("large.example.com/larges/default/paused") is None
        if anew:
            assert (await client.post(LARGES, {**named, "spec": spec})).code == 201


async def test_a_request_that_takes_too_long_is_answered_and_others_are_served() -> None:
    async with pausing(Limits(request_seconds=0.5)) as pause, HttpClient(pause.server) as client:
        server = pause.server.server
        answer = await client.post(MAPS, config_map("paused"))
        assert (answer.code, answer.body["reason"]) == (504, "Timeout")
        small = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "small"}}
        assert (await client.post(MAPS, small)).code == 201
        assert server.offload.running == server.limits.offload_threads
        pause.let_go.set()
        await eventually(lambda: server.offload.running == 0 and server.offload.waiting == 0)
        assert (await client.get(f"{MAPS}/paused")).code == 404
        text = (await client.get("/metrics")).raw.decode()
        assert "apiserver_offload_duration_seconds_count" in text
        assert "apiserver_request_loop_hold_seconds_bucket" in text


async def test_a_large_definition_is_served_when_it_is_acknowledged(server: EmbeddedServer, client: HttpClient) -> None:
    crd = large_definition("large", 300_000, versions=2)
    assert (await client.post(CRDS, crd)).code == 201
    kind = server.server.registry.find("large.example.com", "v1", "larges")
    assert kind is not None
    assert not kind.strategy.ready  # nobody has needed the schema yet
    assert (await client.get(LARGES, headers=TABLE)).code == 200
    assert not kind.strategy.ready

    def large(name: str, **spec: Any) -> Object:
        return {"apiVersion": "large.example.com/v1", "kind": "Large", "metadata": {"name": name}, "spec": spec}

    answers = await asyncio.gather(*(client.post(LARGES, large(f"l-{number}", text="t")) for number in range(5)))
    assert {answer.code for answer in answers} == {201}
    assert kind.strategy.ready
    assert (await client.post(LARGES, large("wrong", text=1))).code == 422
    other = (await client.get(LARGES.replace("v1", "v2", 1))).body["items"]
    assert {item["apiVersion"] for item in other} == {"large.example.com/v2"}


async def test_small_bodies_do_not_become_huge_by_their_defaults(memory_server: EmbeddedServer) -> None:
    crd = large_definition("large", 1000)
    long = {"type": "object", "properties": {"text": {"type": "string", "default": "x" * 100_000}}}
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    schema["properties"]["list"] = {"type": "array", "items": long}
    async with HttpClient(memory_server) as client:
        assert (await client.post(CRDS, crd)).code == 201
        for count, code in ((3, 201), (10_000, 413)):
            spec = {"list": [{}] * count}
            name = f"l-{count}"
            obj = {"apiVersion": "large.example.com/v1", "kind": "Large", "metadata": {"name": name}, "spec": spec}
            assert (await client.post(LARGES, obj)).code == code


async def test_what_nobody_needs_is_refused(memory_server: EmbeddedServer) -> None:
    async with HttpClient(memory_server) as client:
        many = ",".join(f"!l{number}" for number in range(1001))
        answer = await client.get(f"{MAPS}?labelSelector={many}")
        assert (answer.code, answer.body["message"]) == (400, "a selector may have at most 1000 requirements")
        assert (await client.get(f"{MAPS}?labelSelector={'a' * 100_000}")).code == 431
        labels = {f"l{number}": "" for number in range(5_001)}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "labels": labels}}
        refused = await client.post(MAPS, body)
        assert refused.code == 422
        assert "metadata.labels: Too many: 5001: must have at most 5000 items" in refused.body["message"]
        wrong = {f"-{number}": "" for number in range(4000)}
        body["metadata"]["labels"] = wrong
        assert len((await client.post(MAPS, body)).body["details"]["causes"]) == 1001  # the last one counts the others
        crd = large_definition("large", 1000)
        version = {"served": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        crd["spec"]["versions"] = [{**version, "name": f"v{n}", "storage": n == 1} for n in range(1, 102)]
        refused = await client.post(CRDS, crd)
        assert "spec.versions: Too many: 101: must have at most 100 items" in refused.body["message"]


async def test_braces_within_texts_are_no_objects(memory_server: EmbeddedServer) -> None:
    async with HttpClient(memory_server) as client:
        text = '{"a": [\\"{[' * 60_000 + "\\"
        answer = await client.post(
            MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "t"}, "data": {"t": text}}
        )
        assert (answer.code, answer.body["data"]["t"]) == (201, text)
        body = orjson.dumps(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "u"}, "data": [{}] * 200_000}
        )
        refused = await client.post(MAPS, body)
        assert (refused.code, "more than 200000 objects and arrays" in refused.body["message"]) == (400, True)


def threaded(server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by the user's name with each piece of work that goes to a thread."""
    users: list[str] = []
    run = server.server.offload.run

    async def noted(user: str, work: Any) -> Any:
        users.append(user)
        return await run(user, work)

    monkeypatch.setattr(server.server.offload, "run", noted)
    return users


@pytest.mark.parametrize("op", ["copy", "\\u0063opy"])
async def test_a_patch_that_copies_much_is_applied_in_a_thread(
    memory_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, op: str
) -> None:
    async with HttpClient(memory_server) as client:
        await client.post(MAPS, {"metadata": {"name": "small"}, "data": {"k": "v" * 4000}})
        ran = threaded(memory_server, monkeypatch)
        steps = [f'{{"op":"{op}","from":"/data/k","path":"/data/again"}}' for _ in range(8)]
        patched = await client.patch(f"{MAPS}/small", f"[{','.join(steps)}]".encode(), "json-patch")
    assert len(patched.body["data"]) == 2
    assert ran


async def test_what_defaults_make_of_many_items_is_done_in_a_thread_and_bounded(
    memory_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = {"type": "object", "properties": {"text": {"type": "string", "default": "x" * 1000}}}
    spec = {"type": "object", "properties": {"items": {"type": "array", "items": item}}}
    definition = large_definition("large", 100)
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "object", "properties": {"spec": spec}}

    def large(name: str, items: int) -> Object:
        named = {"apiVersion": "large.example.com/v1", "kind": "Large", "metadata": {"name": name}}
        return {**named, "spec": {"items": [{} for _ in range(items)]}}

    async with HttpClient(memory_server) as client:
        assert (await client.post(CRDS, definition)).code == 201
        await client.post(LARGES, large("first", 1))
        ran = threaded(memory_server, monkeypatch)
        assert (await client.post(LARGES, large("many", 100))).code == 201
        assert ran
        answer = await client.post(LARGES, large("huge", 3110))
        assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")
        seen = (await client.get(f"{LARGES}/many")).body
        seen["spec"]["items"] = large("", 3110)["spec"]["items"]
        assert (await client.put(f"{LARGES}/many", seen)).code == 413


async def test_a_large_token_request_reads_the_store_on_the_loop(
    memory_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()
    answer = TokenRequests.answer

    def noted(self: TokenRequests, call: Call, review: Object) -> Object:
        threads.add(threading.get_ident())
        return answer(self, call, review)

    monkeypatch.setattr(TokenRequests, "answer", noted)
    async with HttpClient(memory_server) as client:
        await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "large"}})
        spec = {"audiences": ["a" * 20_000]}
        made = await client.post("/api/v1/namespaces/default/serviceaccounts/large/token", {"spec": spec})
    assert made.code == 201, made.raw
    assert threads == {threading.get_ident()}


async def test_looking_for_what_is_not_there_leaves_no_trace(memory_server: EmbeddedServer) -> None:
    store = memory_server.server.store
    before = set(store.tables())
    assert store.get("example.com/strangers/default/x") is None
    assert set(store.tables()) == before


async def test_documents_are_made_in_nobodys_queue_and_once(
    memory_server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = threaded(memory_server, monkeypatch)
    async with HttpClient(memory_server) as first, HttpClient(memory_server) as second:
        answers = await asyncio.gather(first.get("/openapi/v2"), second.get("/openapi/v2"))
    assert [answer.code for answer in answers] == [200, 200]
    assert ran == [""]


def test_a_signing_key_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError("no space left on device")

    (tmp_path / "pki").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(embedded.os, "fsync", fail)
        with pytest.raises(OSError, match="no space"):
            embedded._signing_key(tmp_path)
    assert not (tmp_path / "pki" / "service-accounts.key").exists()
    made = embedded._signing_key(tmp_path)
    assert made == embedded._signing_key(tmp_path)
    assert (tmp_path / "pki" / "service-accounts.key").stat().st_mode & 0o777 == 0o600


async def test_a_kind_whose_defaults_are_large_is_watched_from_now_on(memory_server: EmbeddedServer) -> None:
    text = {"type": "string", "default": "x" * 20_000}
    spec = {"type": "object", "default": {}, "properties": {"text": text}}
    definition = large_definition("large", 100)
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "object", "properties": {"spec": spec}}
    async with HttpClient(memory_server) as client:
        assert (await client.post(CRDS, definition)).code == 201
        named = {"apiVersion": "large.example.com/v1", "kind": "Large", "metadata": {"name": "first"}}
        made = await client.post(LARGES, named)
        assert made.code == 201
        assert await client.watch(LARGES, resourceVersion=made.version, timeoutSeconds="1") == []


def role(name: str, *rules: Object) -> Object:
    return {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": name}, "rules": list(rules)}


def bound(name: str, to: str, kind: str = "Role") -> Object:
    """A binding of the guest to a role."""
    subject = {"kind": "User", "name": "guest", "apiGroup": RBAC}
    return {"metadata": {"name": name}, "roleRef": {"apiGroup": RBAC, "kind": kind, "name": to}, "subjects": [subject]}


def reads(*resources: str, verbs: tuple[str, ...] = ("get",)) -> Object:
    return {"apiGroups": [""], "resources": list(resources), "verbs": list(verbs)}


async def test_what_a_role_names_is_bounded(memory_server: EmbeddedServer) -> None:
    async with HttpClient(memory_server) as client, HttpClient(memory_server, "guest-token") as guest:
        assert (await client.post(f"{ACCESS}/rolebindings", bound("own", "admin", "ClusterRole"))).code == 201
        for sender in (client, guest):
            refused = await sender.post(f"{ACCESS}/roles", role("many", reads("pods", verbs=("get",) * 400_000)))
            assert (refused.code, refused.body["reason"]) == (422, "Invalid")
            told = "rules: Too many: 400002: must name at most 50000 verbs, groups, resources, names and URLs together"
            assert told in refused.body["message"]
        made = await guest.post(f"{ACCESS}/roles", role("most", reads("pods", verbs=("get",) * 49_998)))
        assert made.code == 201
        grown = role("most", reads("pods", verbs=("get",) * 49_999))
        assert (await guest.put(f"{ACCESS}/roles/most", grown)).code == 422


async def test_rules_that_nobody_reads_are_not_told_without_end(memory_server: EmbeddedServer) -> None:
    async with HttpClient(memory_server) as client, HttpClient(memory_server, "guest-token") as guest:
        for number in range(3):
            named = [f"r{number}-{n}" for n in range(30_000)]
            assert (await client.post(f"{ACCESS}/roles", role(f"r{number}", reads(*named)))).code == 201
            assert (await client.post(f"{ACCESS}/rolebindings", bound(f"r{number}", f"r{number}", "Role"))).code == 201
        review = {"spec": {"namespace": "default"}}
        told = await guest.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review)
        assert (told.code, told.body["status"]["incomplete"]) == (201, True)
        assert len(told.raw) < 1_000_000


async def test_a_role_from_before_there_was_a_bound_goes_on(memory_server: EmbeddedServer) -> None:
    store = memory_server.server.store
    many = role("many", reads("pods", verbs=("get",) * 300_000))
    given = {"namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    many["metadata"] |= {**given, "finalizers": ["example.com/wait"]}

    def encode(version: int) -> bytes:
        many["metadata"]["resourceVersion"] = str(version)
        return orjson.dumps(many)

    await store.create(f"{RBAC}/roles/default/many", encode)
    async with HttpClient(memory_server) as client, HttpClient(memory_server, "guest-token") as guest:
        assert (await client.post(f"{ACCESS}/rolebindings", bound("many", "many"))).code == 201
        assert (await guest.get("/api/v1/namespaces/default/pods/none")).code == 404
        asked = {"spec": {"namespace": "default"}}
        review = await guest.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", asked)
        assert reads("pods") in review.body["status"]["resourceRules"]
        labelled = await client.patch(f"{ACCESS}/roles/many", {"metadata": {"labels": {"a": "b"}}})
        assert (labelled.code, len(labelled.body["rules"][0]["verbs"])) == (200, 300_000)
        grown = {"rules": [*many["rules"], reads("secrets")]}
        assert (await client.patch(f"{ACCESS}/roles/many", grown)).code == 422
        assert (await client.delete(f"{ACCESS}/roles/many")).code == 200
        freed = await client.patch(f"{ACCESS}/roles/many", {"metadata": {"finalizers": None}})
        assert freed.code == 200
        assert (await client.get(f"{ACCESS}/roles/many")).code == 404


async def test_a_refusal_tells_as_much_as_anybody_reads(memory_server: EmbeddedServer) -> None:
    async with HttpClient(memory_server) as client, HttpClient(memory_server, "guest-token") as guest:
        assert (await client.post(f"{ACCESS}/rolebindings", bound("own", "admin", "ClusterRole"))).code == 201
        few = [f"r{number}" for number in range(300)]
        for resources, verbs, more in (
            (few, ("get", "list"), ""),
            ([f"r{number}" for number in range(3000)], ("get", "list"), " more"),
            (["nodes"], tuple(f"verb-{number}" for number in range(40_000)), " more"),
            (["nodes"], ("x" * 1_000_000,), "..."),
        ):
            refused = await guest.post(f"{ACCESS}/roles", role("r", reads(*resources, verbs=verbs)))
            assert refused.code == 403
            message = refused.body["message"]
            assert len(message) < 100_000
            if more:
                assert more in message[-100:]
            else:
                lines = [f'{{APIGroups:[""], Resources:["{name}"], Verbs:["get" "list"]}}' for name in sorted(few)]
                assert message.endswith("not currently held:\n" + "\n".join(lines))
