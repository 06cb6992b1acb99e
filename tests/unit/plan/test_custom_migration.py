"""Custom migration: the user's wish, what of it is in force, and when that changes."""

import datetime

import pytest

from argosy.api import keys
from argosy.plan.failover.custom_migration import (
    MigrationConfigError,
    applied_migration,
    applied_to,
    next_expiry,
    text_of,
)

NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
TEMPLATE = {"spec": {"replicas": 3}}
WISH = (
    '{"replicasMigrations":[{"cluster":"b","limitedCapacity":2}],'
    '"workloadMigrations":[{"cluster":"d","validUntil":"2026-01-01T13:00:00Z"},'
    '{"cluster":"c","validUntil":"2026-01-01T13:30:00+01:00"}]}'
)


def applied(text: str) -> str:
    return text_of(applied_migration(text, TEMPLATE, "spec.replicas"))


def in_annotations(
    wish: str | None, now: datetime.datetime | None, before: str | None = None
) -> tuple[str | None, str]:
    annotations = {"other": "stays"}
    if wish is not None:
        annotations[keys.MIGRATION_CONFIGURATION] = wish
    if before is not None:
        annotations[keys.APPLIED_MIGRATION_CONFIGURATION] = before
    found, complaint = applied_to(annotations, TEMPLATE, "spec.replicas", now)
    assert found["other"] == "stays"
    return found.get(keys.APPLIED_MIGRATION_CONFIGURATION), complaint


def test_times_are_written_as_kubernetes_writes_them_and_clusters_in_order() -> None:
    assert applied(WISH) == (
        '{"limitedCapacity":{"b":2},"unavailableClusters":[{"cluster":"c","validUntil":"2026-01-01T12:30:00Z"},'
        '{"cluster":"d","validUntil":"2026-01-01T13:00:00Z"}]}'
    )


def test_what_has_expired_is_not_applied_any_more() -> None:
    hour = datetime.timedelta(hours=1)
    assert in_annotations(WISH, None)[0] == in_annotations(WISH, NOW)[0] == applied(WISH)
    assert in_annotations(WISH, NOW + hour / 2)[0] == (
        '{"limitedCapacity":{"b":2},"unavailableClusters":[{"cluster":"d","validUntil":"2026-01-01T13:00:00Z"}]}'
    )
    assert in_annotations(WISH, NOW + hour)[0] == '{"limitedCapacity":{"b":2}}'


def test_the_next_time_to_look_is_when_the_first_wish_ends() -> None:
    text = applied(WISH)
    assert next_expiry(text, NOW) == NOW + datetime.timedelta(minutes=30)
    assert next_expiry(text, NOW + datetime.timedelta(minutes=30)) == NOW + datetime.timedelta(hours=1)
    assert next_expiry(text, NOW + datetime.timedelta(hours=1)) is None
    assert next_expiry(None, NOW) is next_expiry("[", NOW) is None


def test_a_wish_that_cannot_be_read_leaves_the_last_one_in_force_until_it_ends() -> None:
    before = applied(WISH)
    text, complaint = in_annotations("{", NOW, before)
    assert text == before
    assert complaint.startswith(f"{keys.MIGRATION_CONFIGURATION} is not applied: ")
    assert in_annotations("{", NOW + datetime.timedelta(hours=1), before)[0] == '{"limitedCapacity":{"b":2}}'
    assert in_annotations("{", NOW)[0] is None
    assert in_annotations("{", NOW, "nonsense")[0] is None


def test_without_a_wish_nothing_is_applied() -> None:
    assert in_annotations(None, NOW, applied(WISH)) == (None, "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '{"replicasMigrations":[null]}',
        '{"replicasMigrations":[{"cluster":"a","limitedCapacity":1.5}]}',
        '{"replicasMigrations":[{"cluster":"a","limitedCapacity":99999999999999999999}]}',
        '{"workloadMigrations":[{"cluster":"a"}]}',
        '{"workloadMigrations":[{"cluster":"a","validUntil":"tomorrow"}]}',
        '{"workloadMigrations":[{"cluster":"a","validUntil":"2026-01-01"}]}',
        '{"workloadMigrations":[{"cluster":"a","validUntil":"2026-01-01T00:00:00"}]}',
        '{"workloadMigrations":[{"cluster":"a","validUntil":"0001-01-01T00:00:00+23:00"}]}',
        '{"workloadMigrations":' + "[" * 2000,
    ],
)
def test_bad_input_is_told_in_a_sentence(text: str) -> None:
    with pytest.raises(MigrationConfigError, match=r".+"):
        applied_migration(text, TEMPLATE, "spec.replicas")
