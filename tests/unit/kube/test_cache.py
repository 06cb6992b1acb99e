"""The cache's version rules: whatever order answers, events and lists come in, it ends where the server is."""

import tracemalloc
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.kube.cache import Cache, Change
from argosy.kube.objects import DecodeError, Metadata, Partial, weight


def raw(name: str, version: int, uid: str = "u", **labels: str) -> bytes:
    metadata = {"name": name, "namespace": "n", "uid": uid, "resourceVersion": str(version), "labels": labels}
    return orjson.dumps({"metadata": metadata})


def bookmark(version: int) -> bytes:
    return orjson.dumps({"metadata": {"resourceVersion": str(version)}})


def cache(**options: Any) -> tuple[Cache[Partial], list[tuple[str, str | None, str | None]]]:
    made: Cache[Partial] = Cache(Partial, **options)
    changes: list[tuple[str, str | None, str | None]] = []

    def note(change: Change[Partial]) -> None:
        old, new = change.old, change.new
        changes.append(
            (change.key, old and old.metadata.resource_version, new and new.metadata.resource_version),
        )

    made.add_handler(note)
    return made, changes


def listed(made: Cache[Any], version: int, *objects: bytes) -> None:
    relist = made.relist(str(version))
    for each in objects:
        relist.offer(each)
    relist.finish()


def versions(made: Cache[Partial]) -> dict[str, str]:
    return {key: obj.metadata.resource_version for key, obj in zip(made.keys(), made.values(), strict=True)}


def test_events_change_the_cache_and_tell_the_handlers() -> None:
    made, changes = cache(keep_raw=True)
    listed(made, 5, raw("a", 3))
    made.apply("MODIFIED", raw("a", 6))
    made.apply("ADDED", raw("b", 7))
    made.apply("DELETED", raw("a", 8))
    assert changes == [("n/a", None, "3"), ("n/a", "3", "6"), ("n/b", None, "7"), ("n/a", "6", None)]
    assert versions(made) == {"n/b": "7"}
    assert made.raw("n/b") == raw("b", 7)
    assert made.raw("n/a") is None
    assert made.version == "8"


def test_an_unchanged_object_tells_nobody() -> None:
    made, changes = cache()
    listed(made, 5, raw("a", 3))
    made.apply("MODIFIED", raw("a", 3))
    listed(made, 9, raw("a", 3))
    assert changes == [("n/a", None, "3")]


def test_a_relist_makes_up_for_deletions_that_were_missed() -> None:
    made, changes = cache()
    listed(made, 5, raw("a", 3), raw("b", 4))
    listed(made, 9, raw("b", 8))
    assert changes[2:] == [("n/b", "4", "8"), ("n/a", "3", None)]
    assert made.version == "9"


def test_a_recreated_object_goes_before_it_comes() -> None:
    made, changes = cache()
    listed(made, 5, raw("a", 3, uid="one"))
    listed(made, 9, raw("a", 8, uid="two"))
    assert changes[1:] == [("n/a", "3", None), ("n/a", None, "8")]


def test_own_writes_are_seen_at_once_and_older_events_ignored() -> None:
    made, changes = cache()
    listed(made, 5, raw("a", 3))
    made.remember(raw("a", 8))
    made.apply("MODIFIED", raw("a", 7))
    made.apply("MODIFIED", raw("a", 8))
    made.apply("MODIFIED", raw("a", 9))
    assert changes[1:] == [("n/a", "3", "8"), ("n/a", "8", "9")]


def test_a_late_answer_does_not_bring_a_deleted_object_back() -> None:
    made, _ = cache()
    listed(made, 5)
    made.apply("ADDED", raw("a", 6))
    made.apply("DELETED", raw("a", 7))
    made.remember(raw("a", 6))
    assert versions(made) == {}


def test_own_deletes_are_seen_at_once_and_older_events_ignored() -> None:
    made, changes = cache()
    listed(made, 5, raw("a", 3))
    made.forget("n/a", "8")
    made.apply("MODIFIED", raw("a", 7))
    made.apply("MODIFIED", raw("a", 8))
    made.apply("DELETED", raw("a", 9))
    made.apply("ADDED", raw("a", 10, uid="new"))
    assert changes[1:] == [("n/a", "3", None), ("n/a", None, "10")]


def test_forgetting_an_old_version_leaves_a_newer_object() -> None:
    made, _ = cache()
    listed(made, 5, raw("a", 5))
    made.forget("n/a", "4")
    assert versions(made) == {"n/a": "5"}


def test_an_object_our_own_write_moved_out_of_the_selection_goes() -> None:
    made, _ = cache()
    listed(made, 5, raw("a", 3))
    made.remember(raw("a", 8))
    made.apply("DELETED", raw("a", 8))
    assert versions(made) == {}


def test_a_list_read_before_our_own_write_does_not_undo_it() -> None:
    made, _ = cache()
    listed(made, 5, raw("a", 3))
    made.remember(raw("a", 9))
    made.remember(raw("b", 10))
    listed(made, 8, raw("a", 3))
    assert versions(made) == {"n/a": "9", "n/b": "10"}


def test_a_server_restored_from_a_backup_is_believed() -> None:
    made, _ = cache()
    listed(made, 50, raw("a", 40), raw("gone", 45))
    made.remember(raw("own", 60))
    made.forget("n/b", "61")
    listed(made, 20, raw("a", 10), raw("b", 11))
    assert versions(made) == {"n/a": "10", "n/b": "11"}
    made.apply("MODIFIED", raw("a", 21))
    assert versions(made)["n/a"] == "21"


def test_a_server_restored_from_a_backup_whose_versions_go_on_is_believed() -> None:
    """As with `etcdutl snapshot restore --bump-revision`."""
    made, _ = cache()
    listed(made, 50, raw("a", 40))
    made.remember(raw("a", 60))
    made.forget("n/b", "61")
    listed(made, 1000, raw("a", 10), raw("b", 11))
    assert versions(made) == {"n/a": "10", "n/b": "11"}


def test_bookmarks_move_the_version_forward_only() -> None:
    made, changes = cache()
    listed(made, 5)
    made.apply("BOOKMARK", bookmark(9))
    made.apply("BOOKMARK", bookmark(7))
    assert (made.version, changes) == ("9", [])


def test_indexes_follow_the_objects() -> None:
    made, _ = cache(
        indexers={"app": lambda obj: [obj.metadata.labels[k] for k in ("app", "also") if k in obj.metadata.labels]}
    )
    listed(made, 5, raw("a", 3, app="x"), raw("b", 4, app="x", also="y"))
    assert [obj.metadata.name for obj in made.by_index("app", "x")] == ["a", "b"]
    made.apply("MODIFIED", raw("a", 6, app="y"))
    assert [obj.metadata.name for obj in made.by_index("app", "x")] == ["b"]
    assert [obj.metadata.name for obj in made.by_index("app", "y")] == ["b", "a"]
    made.apply("DELETED", raw("b", 7))
    made.apply("DELETED", raw("a", 8))
    assert made.by_index("app", "y") == []
    assert made.index_values("app") == []


def test_a_handler_added_late_is_told_what_is_there() -> None:
    made, _ = cache()
    listed(made, 5, raw("a", 3))
    told: list[str] = []
    made.add_handler(lambda change: told.append(change.key))
    made.apply("ADDED", raw("b", 6))
    assert told == ["n/a", "n/b"]


def test_a_handler_that_raises_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    made: Cache[Partial] = Cache(Partial)
    told: list[str] = []

    def broken(change: Change[Partial]) -> None:
        raise RuntimeError("handler broke")

    made.add_handler(broken)
    made.add_handler(lambda change: told.append(change.key))
    listed(made, 5, raw("a", 3))
    assert told == ["n/a"]
    assert "a handler failed on n/a" in caplog.text


def test_a_change_made_by_a_handler_is_told_after_the_one_it_came_from() -> None:
    made: Cache[Partial] = Cache(Partial)
    told: list[tuple[str, str | None]] = []

    def writer(change: Change[Partial]) -> None:
        if change.new is not None and change.new.metadata.resource_version == "3":
            made.remember(raw("a", 9))

    made.add_handler(writer)
    made.add_handler(lambda change: told.append((change.key, change.new and change.new.metadata.resource_version)))
    listed(made, 5, raw("a", 3))
    assert told == [("n/a", "3"), ("n/a", "9")]


class Counted(msgspec.Struct, frozen=True):
    metadata: Metadata
    count: int = 0


def test_an_object_that_does_not_fit_keeps_its_last_good_state(caplog: pytest.LogCaptureFixture) -> None:
    made: Cache[Counted] = Cache(Counted)
    good, bad = raw("a", 3)[:-1] + b',"count":1}', raw("a", 6)[:-1] + b',"count":"many"}'
    listed(made, 5, good)
    made.apply("MODIFIED", bad)
    listed(made, 7, bad)
    found = made.get("n/a")
    assert found is not None
    assert (found.count, found.metadata.resource_version, made.version) == (1, "3", "7")
    assert "Counted n/a cannot be read" in caplog.text
    made.apply("DELETED", raw("a", 8)[:-1] + b',"count":"many"}')
    assert made.get("n/a") is None


class Free(msgspec.Struct, frozen=True):
    metadata: Metadata
    status: Any = None


def odd(**metadata: Any) -> bytes:
    identity = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "6"}
    return orjson.dumps({"metadata": {**identity, **metadata}})


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (odd(annotations={"a": "x" * 300_000}), "metadata.annotations: more than 262144 bytes"),
        (odd(annotations={f"a{n}": "x" * 100 for n in range(3000)}), "metadata.annotations: more than 262144 bytes"),
        (odd(labels={f"a{n}": "x" * 60 for n in range(5000)}), "metadata.labels: more than 262144 bytes"),
        (odd(finalizers=["x" * 100] * 3000), "metadata.finalizers: more than 262144 bytes"),
        (odd(ownerReferences=[{"name": "x" * 300_000}]), "metadata.ownerReferences: more than 262144 bytes"),
        (raw("a", 6)[:-1] + b',"status":' + b"[" * 300 + b"]" * 300 + b"}", "nested deeper than 200 levels"),
        (raw("a", 6)[:-1] + b',"status":' + b'{"a":' * 900 + b"1" + b"}" * 901, "nested deeper than 200 levels"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_larger_or_deeper_than_objects_are_is_passed_over(bad: bytes, why: str) -> None:
    made: Cache[Free] = Cache(Free)
    listed(made, 5, raw("a", 3))
    made.apply("MODIFIED", bad)
    assert made.unreadable == {"n/a": why}
    listed(made, 7, bad, raw("b", 4))
    made.remember(bad)
    assert made.unreadable == {"n/a": why}
    assert {obj.metadata.resource_version for obj in made.values()} == {"3", "4"}
    made.apply("MODIFIED", raw("a", 8))
    assert made.unreadable == {}


def test_what_kubernetes_takes_is_kept() -> None:
    made: Cache[Free] = Cache(Free)
    listed(
        made,
        5,
        odd(annotations={"a": "é" * 131_000, "b": "\n" * 131_000}, labels={f"a{n}": "x" * 60 for n in range(4000)}),
        raw("b", 3)[:-1] + b',"status":' + b"[" * 190 + b"]" * 190 + b"}",
        raw("c", 3)[:-1] + b',"status":[' + b"{}," * 10_000 + b"{}]}",
    )
    assert made.unreadable == {}
    assert len(made) == 3


def test_what_is_held_is_known_whatever_comes_and_goes() -> None:
    made: Cache[Free] = Cache(Free, keep=lambda metadata: metadata.name != "c")
    assert made.held == 0
    listed(made, 5, raw("a", 3), raw("b", 4, text="x" * 1000), raw("c", 4))
    one = weight(made.get("n/a"))
    assert made.held == one + weight(made.get("n/b")) > 1000
    made.apply("MODIFIED", raw("b", 6))
    assert made.held == 2 * one
    made.remember(raw("b", 7, text="y" * 5000))
    assert made.held > 5000
    made.apply("ADDED", raw("b", 8, uid="another"))
    made.apply("DELETED", raw("a", 9))
    assert made.held == weight(made.get("n/b"))
    made.forget("n/b", "8")
    assert (made.held, len(made)) == (0, 0)


def test_what_came_by_lists_without_an_end_can_be_given_up() -> None:
    made, changes = cache()
    listed(made, 5, raw("a", 3), raw("b", 3))
    for version in (6, 7):
        relist = made.relist(str(version))
        relist.offer(raw("b", version))
        relist.offer(raw(f"new-{version}", version))
    made.remember(raw("new-7", 8))
    made.give_up()
    assert versions(made) == {"n/a": "3", "n/b": "7", "n/new-7": "8"}
    assert changes[-1] == ("n/new-6", "6", None)
    listed(made, 9, raw("c", 9))
    made.give_up()
    assert versions(made) == {"n/c": "9"}
    assert made.held == weight(made.get("n/c"))


@pytest.mark.parametrize(
    "status",
    [[[]] * 5000, [{}] * 5000, [{"a": 1}] * 5000, {str(n): n for n in range(10_000)}, [f"{n}" for n in range(10_000)]],
    ids=["lists", "objects", "objects of one", "fields", "texts"],
)
def test_a_weight_is_not_far_from_what_is_taken(status: Any) -> None:
    text = orjson.dumps(status)
    tracemalloc.start()
    kept = msgspec.json.decode(text)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken / 2.5 < weight(kept) < taken * 2.5


def test_bytes_that_are_no_object_are_an_error() -> None:
    made, changes = cache()
    with pytest.raises(DecodeError):
        made.apply("MODIFIED", b'{"metadata":[]}')
    assert changes == []


NAMES = ["a", "b", "c"]


@settings(max_examples=300)
@given(st.data())
def test_the_cache_ends_where_the_server_is(data: st.DataObject) -> None:
    """A server's history, our own writes' answers at any later time, events in order, lists at any time."""
    made: Cache[Partial] = Cache(Partial)
    mirror: dict[str, str] = {}

    def follow(change: Change[Partial]) -> None:
        assert mirror.get(change.key) == (change.old and change.old.metadata.resource_version)
        if change.new is None:
            del mirror[change.key]
            return
        if change.old is not None:
            assert int(change.new.metadata.resource_version) > int(change.old.metadata.resource_version)
        mirror[change.key] = change.new.metadata.resource_version

    made.add_handler(follow)
    live: dict[str, tuple[int, bytes]] = {}
    events: list[tuple[int, str, bytes]] = []
    answers: list[tuple[str, str, int, bytes]] = []
    version, delivered = 1, 0
    listed(made, 1)
    for _ in range(data.draw(st.integers(1, 25))):
        step = data.draw(st.sampled_from(["write", "write", "delete", "deliver", "answer", "relist", "bookmark"]))
        name = data.draw(st.sampled_from(NAMES))
        if step == "write":
            version += 1
            uid = orjson.loads(live[name][1])["metadata"]["uid"] if name in live else str(version)
            body = raw(name, version, uid)
            events.append((version, "MODIFIED" if name in live else "ADDED", body))
            live[name] = (version, body)
            answers.append(("write", name, version, body))
        elif step == "delete" and name in live:
            last, body = live.pop(name)
            version += 1
            gone = orjson.loads(body)
            gone["metadata"]["resourceVersion"] = str(version)
            events.append((version, "DELETED", orjson.dumps(gone)))
            answers.append(("delete", name, last, body))
        elif step == "deliver" and delivered < len(events):
            _, type_, body = events[delivered]
            made.apply(type_, body)
            delivered += 1
        elif step == "answer" and answers:
            # Ours are only some of the writes, and answers may come late and out of order.
            kind, name, number, body = answers.pop(data.draw(st.integers(0, len(answers) - 1)))
            if kind == "write":
                made.remember(body)
            else:
                made.forget(f"n/{name}", str(number))
        elif step == "relist":
            listed(made, version, *(body for _, body in live.values()))
            delivered = len(events)
        elif step == "bookmark" and delivered == len(events):
            made.apply("BOOKMARK", bookmark(version))
        assert mirror == versions(made)
    for _, type_, body in events[delivered:]:
        made.apply(type_, body)
    assert versions(made) == {f"n/{name}": str(number) for name, (number, _) in live.items()}
    assert mirror == versions(made)


def test_objects_that_are_not_kept_are_as_absent() -> None:
    made, changes = cache(keep=lambda metadata: metadata.name != "theirs")
    listed(made, 5, raw("theirs", 1), raw("ours", 2))
    made.apply("MODIFIED", raw("theirs", 6))
    made.remember(raw("theirs", 9))
    made.apply("DELETED", raw("theirs", 10))
    assert made.keys() == ["n/ours"]
    assert changes == [("n/ours", None, "2")]
    assert made.version == "10", "their events still move the version on"


def test_an_object_replaced_by_one_that_is_not_kept_is_gone_after_a_list() -> None:
    made, _ = cache(keep=lambda metadata: metadata.uid != "theirs")
    listed(made, 5, raw("a", 1, uid="ours"))
    listed(made, 9, raw("a", 8, uid="theirs"))
    assert made.keys() == []
