"""Who follows whom, and where that places a follower."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.selectors import from_map
from argosy.plan.followers.graph import NOBODY, Graph, Leader, ObjectRef, Where
from argosy.plan.followers.needs import NOTHING, Name, Need, Needs


def ref(name, kind="Deployment"):
    return ObjectRef("shop", "apps" if kind == "Deployment" else "", kind, name)


def needing(*names, only=None, kind="ConfigMap", **fields):
    need = Need(frozenset(only) if only is not None else None)
    return Leader(needs=Needs({Name("", kind, name): need for name in names}), **fields)


CONFIG = ref("settings", "ConfigMap")


class Known:
    """A graph, and where its leaders are."""

    def __init__(self):
        self.where = {}
        self.behind = {}
        self.pods = {}
        self.graph = Graph(self.where.get, lambda leader: self.behind.get(leader, frozenset()), self.pods.get)

    def lead(self, name, leader, placed="", leaving="", behind="", kind="Deployment"):
        self.where[ref(name, kind)] = Where(frozenset(placed.split()), frozenset(leaving.split()))
        self.behind[ref(name, kind)] = frozenset(behind.split())
        return self.graph.set_leader(ref(name, kind), leader, moved=True)

    def stored(self, *leaders, follower=CONFIG):
        self.graph.set_stored(follower, [ref(each).reference for each in leaders])

    def following(self, follower=CONFIG):
        return self.graph.following(follower)

    def leaders(self, follower=CONFIG):
        return [each.name for each in self.following(follower).leaders]


@pytest.fixture
def known():
    return Known()


def test_a_follower_goes_where_all_its_leaders_go(known):
    assert known.lead("a", needing("settings"), "m1 m2") == {CONFIG}
    known.lead("b", needing("settings", only=["m3"]), "m2 m3 m4")
    assert known.following().clusters == {"m1", "m2", "m3"}
    assert known.leaders() == ["a", "b"]
    assert known.graph.is_led(CONFIG)
    assert known.following(ref("other", "ConfigMap")) == NOBODY


def test_a_leader_tells_of_a_change_only(known):
    known.lead("a", needing("settings"), "m1")
    assert known.graph.set_leader(ref("a"), needing("settings")) == set()
    assert known.graph.set_leader(ref("a"), needing("settings"), moved=True) == {CONFIG}
    assert known.graph.set_leader(ref("a"), needing("other")) == {CONFIG, ref("other", "ConfigMap")}


def test_who_does_not_lead_places_nobody(known):
    known.lead("a", needing("settings", leads=False), "m1")
    assert known.following() == NOBODY
    assert not known.graph.is_led(CONFIG)


def test_it_stays_where_a_leader_may_still_have_a_copy(known):
    known.lead("a", needing("settings"), "m1", leaving="m2")
    following = known.following()
    assert (following.clusters, following.staying) == ({"m1"}, {"m2"})
    known.lead("a", needing("settings", leaving=True), "m1", leaving="m2")
    following = known.following()
    assert (following.clusters, following.staying, following.leaders) == (set(), {"m1", "m2"}, ())


def test_a_leader_that_was_deleted_is_followed_no_more_and_a_lost_one_is(known):
    known.lead("a", needing("settings"), "m1")
    known.stored("a")
    known.lead("a", needing("settings", leaving=True), "m1")
    assert known.graph.drop_leader(ref("a")) == {CONFIG}
    assert known.following() == NOBODY
    known.lead("a", needing("settings"), "m1")
    known.graph.drop_leader(ref("a"))
    assert [each.name for each in known.following().unknown] == ["a"]
    assert known.leaders() == ["a"]
    known.lead("a", needing("settings"), "m1")
    assert known.following().unknown == ()


def test_a_leader_that_is_not_known_yet_keeps_what_it_had(known):
    known.stored("a")
    assert [each.name for each in known.following().unknown] == ["a"]


def test_what_is_needed_no_more_stays_until_the_leader_has_its_newest_change(known):
    known.stored("a")
    known.lead("a", NOTHING_NEEDED, "m1 m2", behind="m2")
    following = known.following()
    assert (following.clusters, following.staying) == (set(), {"m2"})
    assert known.leaders() == ["a"]
    assert known.graph.has_stale_followers(ref("a"))
    known.lead("a", NOTHING_NEEDED, "m1 m2")
    assert known.following() == NOBODY


NOTHING_NEEDED = Leader(needs=NOTHING)


@pytest.mark.parametrize(
    "leader",
    [needing("settings", frozen=True), Leader(needs=Needs(unclear="odd")), Leader(frozen=True)],
    ids=["frozen", "unreadable", "frozen and changed"],
)
def test_a_leader_that_is_frozen_or_unreadable_keeps_its_followers_and_gets_none(known, leader):
    known.stored("a")
    known.lead("a", leader, "m1", leaving="m2")
    following = known.following()
    assert (following.clusters, following.staying) == (set(), {"m1", "m2"})
    assert known.leaders() == ["a"]


def test_what_a_follower_needs_follows_with_it(known):
    known.lead("web", needing("app", kind="ServiceAccount"), "m1", leaving="m2")
    known.lead("app", needing("registry", kind="Secret"), kind="ServiceAccount")
    secret = ref("registry", "Secret")
    following = known.following(secret)
    assert (following.clusters, following.staying) == ({"m1"}, {"m2"})
    assert known.leaders(secret) == ["app"]
    moved = known.lead("web", needing("app", kind="ServiceAccount"), "m3")
    assert moved == {ref("app", "ServiceAccount"), secret}


def test_who_follows_nobody_leads_only_with_places_of_its_own(known):
    known.lead("web", needing("app", kind="ServiceAccount"), "m1")
    known.lead("app", needing("registry", kind="Secret", alone=True), "m2", kind="ServiceAccount")
    assert known.following(ref("registry", "Secret")).clusters == {"m2"}


def test_two_that_need_each_other_do_not_keep_each_other_in_place(known):
    known.lead("a", Leader(needs=Needs({Name("apps", "Deployment", "b"): Need()})), "m1")
    known.lead("b", Leader(needs=Needs({Name("apps", "Deployment", "a"): Need()})), "m2")
    assert known.following(ref("a")).clusters == {"m2"}
    assert known.following(ref("b")).clusters == {"m1"}
    known.lead("a", Leader(needs=Needs({Name("apps", "Deployment", "b"): Need()})), "m3")
    assert known.following(ref("b")).clusters == {"m3"}


def test_an_autoscaler_follows_its_target(known):
    scaler = ref("scaler", "Scaler")
    known.graph.set_target(scaler, ref("web"))
    assert known.following(scaler).target is None
    assert known.lead("web", Leader(retains=True), "m1") == {scaler}
    following = known.following(scaler)
    assert following.clusters == {"m1"}
    assert following.target is not None
    assert following.target.retains
    known.graph.set_target(scaler, None)
    assert known.following(scaler) == NOBODY


def test_a_budget_follows_the_workloads_it_selects(known):
    budget = ref("budget", "Budget")
    known.graph.set_selector(budget, from_map({"app": "web"}))
    assert known.lead("web", Leader(pod_labels={"app": "web"}), "m1") == {budget}
    assert known.lead("shop", Leader(pod_labels={"app": "shop"}), "m2") == set()
    assert known.following(budget).clusters == {"m1"}
    assert known.lead("shop", Leader(pod_labels={"app": "web"}), "m2") == {budget}
    assert known.following(budget).clusters == {"m1", "m2"}
    assert known.lead("shop", Leader(pod_labels={"app": "shop"}), "m2") == {budget}, (
        "whom it selected before hears of it"
    )
    known.graph.set_selector(budget, None)
    assert known.following(budget) == NOBODY


def test_nothing_is_kept_of_objects_that_nobody_follows(known):
    assert known.lead("web", NOTHING_NEEDED, "m1") == set()
    assert len(known.graph) == 0
    known.lead("web", needing("settings"), "m1")
    assert known.lead("web", NOTHING_NEEDED, "m1") == {CONFIG}
    assert len(known.graph) == 0
    assert known.graph.needing(CONFIG) == []


# Properties.

CLUSTERS = ["m1", "m2", "m3", "m4"]
SETS = st.frozensets(st.sampled_from(CLUSTERS), max_size=3)
LEADERS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.tuples(SETS, SETS, st.none() | SETS, st.booleans(), st.booleans()),
    max_size=4,
)


def graph_of(leaders):
    known = Known()
    for name, (placed, held, only, leads, leaving) in leaders.items():
        known.lead(
            name,
            needing("settings", only=only, leads=leads, leaving=leaving),
            " ".join(sorted(placed)),
            " ".join(sorted(held - placed)),
        )
    return known


@given(LEADERS, st.randoms())
def test_the_order_of_leaders_does_not_matter(leaders, chance):
    names = list(leaders)
    chance.shuffle(names)
    assert graph_of(leaders).following() == graph_of({name: leaders[name] for name in names}).following()


@given(LEADERS)
def test_placed_is_the_union_of_what_leaders_ask_for(leaders):
    union = set()
    for placed, _, only, leads, leaving in leaders.values():
        if leads and not leaving:
            union |= placed if only is None else placed & only
    assert graph_of(leaders).following().clusters == union


@given(LEADERS, st.sampled_from(["a", "b", "c", "d"]))
def test_a_leader_less_takes_away_only_what_it_alone_asked_for(leaders, gone):
    before = graph_of(leaders).following()
    rest = {name: leader for name, leader in leaders.items() if name != gone}
    after = graph_of(rest).following()
    asked = leaders[gone][0] if gone in leaders else frozenset()
    assert after.clusters <= before.clusters
    assert before.clusters - after.clusters <= asked


@given(LEADERS)
def test_what_was_taken_out_again_leaves_nothing_behind(leaders):
    known = graph_of(leaders)
    known.stored(*leaders)
    for name in leaders:
        known.graph.set_leader(ref(name), needing("settings", leaving=True))
        known.graph.drop_leader(ref(name))
    assert known.following() == NOBODY
    known.stored()
    empty = Known().graph
    for field in vars(empty):
        if field not in ("_where", "_behind", "_pods"):
            assert getattr(known.graph, field) == getattr(empty, field), field


def test_values_of_the_graph_are_values():
    assert msgspec.structs.replace(needing("a"), leads=False) != needing("a")


# Followers of followers: a Deployment needs a ServiceAccount, which needs a Secret.

ACCOUNT, SECRET = ref("account", "ServiceAccount"), ref("pull", "Secret")


@pytest.fixture
def chain(known):
    known.lead("a", needing("account", kind="ServiceAccount"), "m1 m2")
    known.lead("account", needing("pull", kind="Secret"), kind="ServiceAccount")
    known.graph.set_stored(ACCOUNT, [ref("a").reference])
    known.graph.set_stored(SECRET, [ACCOUNT.reference])
    return known


def stays(known, follower):
    """In the clusters where it was."""
    following, before = known.following(follower), {"m1", "m2"}
    return before if following.unknown else (before & (following.clusters | following.staying))


def test_what_a_follower_needs_goes_where_it_goes(chain):
    assert chain.following(SECRET).clusters == {"m1", "m2"}


@pytest.mark.parametrize("follower", [ACCOUNT, SECRET])
def test_what_keeps_a_follower_keeps_what_it_needs(chain, follower):
    chain.lead("a", needing("account", kind="ServiceAccount", frozen=True), "m1 m2")
    assert stays(chain, follower) == {"m1", "m2"}
    chain.lead("a", Leader(needs=Needs(unclear="its annotation")), "m1 m2")
    assert stays(chain, follower) == {"m1", "m2"}
    chain.lead("a", needing("other", kind="ServiceAccount"), "m1 m2", behind="m2")
    assert stays(chain, follower) == {"m2"}


@pytest.mark.parametrize("follower", [ACCOUNT, SECRET])
def test_a_leader_that_is_lost_keeps_all_below_it(chain, follower):
    assert chain.graph.drop_leader(ref("a")) == {ACCOUNT, SECRET}
    assert stays(chain, follower) == {"m1", "m2"}
    assert chain.following(SECRET).leaders == (ACCOUNT.reference,)


@pytest.mark.parametrize("follower", [ACCOUNT, SECRET])
def test_a_leader_of_which_nobody_knows_where_it_is_keeps_all_below_it(chain, follower):
    """Its type is not federated any more."""
    del chain.where[ref("a")]
    assert stays(chain, follower) == {"m1", "m2"}


def test_what_is_needed_in_fewer_clusters_stays_until_the_others_have_the_change(known):
    known.stored("a")
    known.lead("a", needing("settings", only=["m1"]), "m1 m2", behind="m2")
    assert known.following().staying == {"m2"}
    assert known.graph.has_stale_followers(ref("a"))
    known.lead("a", needing("settings", only=["m1"]), "m1 m2")
    assert known.following().staying == set()
    known.lead("a", needing("settings"), "m1 m2")
    assert not known.graph.has_stale_followers(ref("a"))
