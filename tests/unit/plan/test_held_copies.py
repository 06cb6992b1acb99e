"""Which clusters keep their copy as it is, as it is stored."""

from hypothesis import given
from hypothesis import strategies as st

from argosy.api import keys
from argosy.plan.copies.held_copies import Refusal, held_copies, with_held_copies

REFUSALS = st.dictionaries(
    st.from_regex(r"[a-z]{1,4}[0-9]{0,3}", fullmatch=True),
    st.builds(Refusal, st.sampled_from(["OverridePolicy a", "ClusterOverridePolicy b"]), st.integers(0, 30), st.text()),
    max_size=30,
)


@given(REFUSALS)
def test_every_cluster_that_is_refused_is_held_and_no_other(refusals):
    annotations = with_held_copies({"other": "x", keys.HELD_COPIES: "old"}, refusals)
    held = held_copies(annotations)
    assert bool(held) == bool(refusals)
    assert {name for name in [*refusals, "ZZ"] if held.why(name)} == set(refusals)
    assert annotations["other"] == "x"
    assert with_held_copies(annotations, dict(reversed(refusals.items()))) == annotations


def test_what_is_told_names_policy_rule_cluster_and_why():
    held = held_copies(with_held_copies({}, {"m2": Refusal("OverridePolicy mirror", 3, "no such field")}))
    assert held.why("m2") == "OverridePolicy mirror, overrideRules[3], cluster m2: no such field"
    assert held.message == held.why("m2")
    assert not held_copies({})


def test_a_large_fleet_fits():
    refusals = {
        f"cluster-with-a-long-name-{number:03}": Refusal("OverridePolicy mirror", number, f"{number} " + "x" * 5000)
        for number in range(500)
    }
    annotations = with_held_copies({}, refusals)
    assert len(annotations[keys.HELD_COPIES]) < 32_000
    assert len(held_copies(annotations).message) < 5_000
    assert all(held_copies(annotations).why(name) for name in refusals)


def test_if_it_cannot_be_read_nothing_is_sent_anywhere():
    for text in ("", "{", "[1]", '{"m1": "x"}'):
        assert held_copies({keys.HELD_COPIES: text}).why("m1") == f"the annotation {keys.HELD_COPIES} cannot be read"
