"""Watch framing: any cut of the stream gives the same events; bad lines are errors."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.errors import Gone, TransportError
from argosy.kube.framing import Lines, event
from argosy.kube.transport import Event


@given(st.lists(st.binary(min_size=1).filter(lambda b: b"\n" not in b and b.strip()), max_size=8), st.data())
def test_lines_do_not_depend_on_how_the_stream_is_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines) + b"incomplete"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    collector = Lines()
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += collector.feed(stream[start:end])
    assert found == lines


def test_empty_lines_are_skipped() -> None:
    assert Lines().feed(b"\n\r\n a\n\n") == [b" a"]


@pytest.mark.parametrize("chunks", [[b"x" * 11], [b"x" * 6, b"x" * 6], [b"ok\n" + b"x" * 6, b"x" * 6 + b"\n"]])
def test_a_line_above_the_limit_is_refused_before_it_is_whole(chunks: list[bytes]) -> None:
    lines = Lines(limit=10)
    for chunk in chunks[:-1]:
        lines.feed(chunk)
    with pytest.raises(TransportError, match="longer than 10"):
        lines.feed(chunks[-1])


def test_the_objects_bytes_are_kept_as_they_are() -> None:
    assert event(b'{"type":"ADDED","object":{"b" : 1, "a":2}}') == Event("ADDED", b'{"b" : 1, "a":2}')


def test_an_error_event_is_raised_as_its_status() -> None:
    with pytest.raises(Gone, match="too old"):
        event(b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}')


@pytest.mark.parametrize(
    "line",
    [
        b"<html>",
        b"{}",
        b'{"type":"ADDED"}',
        b'{"type":"WHAT","object":{}}',
        b'{"type":"ERROR","object":[]}',
        b'{"type":1}',
    ],
)
def test_anything_else_is_a_transport_error(line: bytes) -> None:
    with pytest.raises(TransportError):
        event(line)


@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])
@pytest.mark.parametrize(
    "line",
    ['{"type":"%s","object":{"a":{}}}', '{ "type" : "%s", "object" : {"a":{}} }', '{"object":{"a":{}},"type":"%s"}'],
)
def test_an_event_may_be_written_as_json_allows(line: str, type_: str) -> None:
    assert event((line % type_).encode()) == Event(type_, b'{"a":{}}')


def test_what_follows_the_object_is_no_part_of_it() -> None:
    assert event(b'{"type":"ADDED","object":{"a":{}},"more":1}') == Event("ADDED", b'{"a":{}}')


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)


@given(
    st.lists(st.tuples(st.sampled_from(["type", "object", "more"]), _VALUES), max_size=4),
    st.booleans(),
    st.binary(max_size=3),
)
def test_what_is_cut_out_is_the_object_or_no_json(fields: list[tuple[str, object]], typed: bool, tail: bytes) -> None:
    """However a server writes its events, none is read as something that it does not say."""
    pairs = [("type", "ADDED"), *fields] if typed else fields
    line = b"{" + b",".join(orjson.dumps(name) + b":" + orjson.dumps(value) for name, value in pairs) + b"}" + tail
    try:
        found = event(line)
    except TransportError:
        return
    try:
        cut = orjson.loads(found.object)
    except orjson.JSONDecodeError:
        return
    whole = orjson.loads(line)
    assert (whole["type"], whole["object"]) == (found.type, cut)
