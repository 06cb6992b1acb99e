"""Which shard owns what: always exactly one, for ever the same bucket, and a selector that misses nothing."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.api import keys
from argosy.api.shards import BUCKETS, MOST, WHOLE, Shard, bucket_of, lease_name, parse, shard_of_lease
from argosy.kube.selectors import parse_label_selector

NAMESPACES = st.from_regex(re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII), fullmatch=True)
COUNTS = st.integers(1, MOST)


@given(NAMESPACES, COUNTS)
def test_every_namespace_has_exactly_one_owner(namespace: str, count: int) -> None:
    assert sum(Shard(index, count).owns(namespace) for index in range(count)) == 1


@given(COUNTS)
def test_what_has_no_namespace_is_shard_0s(count: int) -> None:
    assert [Shard(index, count).owns_cluster_scoped for index in range(count)] == [True] + [False] * (count - 1)


@given(COUNTS)
def test_no_shard_has_much_more_than_its_part_of_the_buckets(count: int) -> None:
    parts = [sum(Shard(index, count).owns_bucket(bucket) for bucket in range(BUCKETS)) for index in range(count)]
    assert sum(parts) == BUCKETS
    assert max(parts) - min(parts) <= 1


def test_buckets_never_change() -> None:
    """They are written on objects in members."""
    known = {"": 0, "default": 254, "kube-system": 93, "team-a": 141, "team-b": 60}
    assert {namespace: bucket_of(namespace) for namespace in known} == known


def test_namespaces_that_differ_in_a_number_spread() -> None:
    buckets = {bucket_of(f"team-{number}") for number in range(1000)}
    assert len(buckets) > 240


@given(NAMESPACES, COUNTS, st.booleans(), st.data())
@settings(deadline=None)
def test_a_members_answer_has_all_that_is_owned_and_nothing_labelled_that_is_not(
    namespace: str, count: int, labelled: bool, data: st.DataObject
) -> None:
    labels = {keys.BUCKET_LABEL: str(bucket_of(namespace))} if labelled else {}
    shard = Shard(data.draw(st.integers(0, count - 1)), count)
    found = parse_label_selector(shard.member_selector()).matches(labels)
    assert found == (shard.owns(namespace) or not labelled)


@pytest.mark.parametrize("text", ["", "1", "1/", "/2", "2/2", "-1/2", "0/0", "0/65", "a/b", "0/2/3", "٠/٢", "00000/2"])
def test_what_is_no_shard_is_refused_with_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"shard"):
        parse(text)


@given(COUNTS, st.data())
def test_shards_and_their_leases_are_read_as_they_are_written(count: int, data: st.DataObject) -> None:
    shard = Shard(data.draw(st.integers(0, count - 1)), count)
    assert parse(str(shard)) == shard
    assert shard_of_lease(lease_name(shard)) == shard


def test_other_peoples_leases_are_not_ours() -> None:
    assert lease_name(WHOLE) == "argosy-controllers"
    assert lease_name(Shard(1, 3)) == "argosy-controllers-1-of-3"
    for name in (
        "kube-controller-manager",
        "argosy-controllers-1",
        "argosy-controllers-x-of-3",
        "my-argosy-controllers",
    ):
        assert shard_of_lease(name) is None
