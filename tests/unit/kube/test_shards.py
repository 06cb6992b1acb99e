"""Shards of a collection: every object is in exactly one, and the text is one kube-apiserver takes."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.shards import SPACE, Shard, ShardError


@given(st.uuids(), st.integers(1, 300))
def test_an_object_is_in_exactly_one_shard(uid: object, count: int) -> None:
    assert [Shard(index, count).covers(str(uid)) for index in range(count)].count(True) == 1


@given(st.integers(1, 1000))
def test_shards_lie_side_by_side_and_are_about_equal(count: int) -> None:
    shards = [Shard(index, count) for index in range(count)]
    assert (shards[0].start, shards[-1].end) == (0, SPACE)
    assert all(one.end == other.start for one, other in pairwise(shards))
    sizes = [shard.end - shard.start for shard in shards]
    assert max(sizes) - min(sizes) <= 1


def test_the_selector_is_written_as_the_server_wants_it() -> None:
    assert Shard(0, 2).selector == "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
    assert Shard(1, 2).selector == "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
    digits = re.findall(r"'0x([0-9a-f]+)'", Shard(3, 7).selector)
    assert [len(each) for each in digits] == [16, 16]


@pytest.mark.parametrize(("index", "count"), [(0, 0), (1, 1), (-1, 2), (2, 2)])
def test_there_is_no_such_shard(index: int, count: int) -> None:
    with pytest.raises(ShardError, match=f"there is no shard {index} of {count}"):
        Shard(index, count)
