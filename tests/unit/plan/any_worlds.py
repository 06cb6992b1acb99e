"""Any small world: a unit and clusters in every combination of states, for properties that hold in all of them."""

from hypothesis import strategies as st

from argosy.plan.scheduling.unit import AutoMigrationInfo
from tests.unit.plan.scheduling import cluster, taint, unit


def rarely(seldom, mostly):
    """Most clusters are well, so that several are left to choose from."""
    return st.sampled_from([*[mostly] * 5, seldom])


# Made once: making strategies takes longer than drawing from them.
NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)
CPUS, FREE = st.integers(0, 50), st.integers(-5, 50)
SELDOM, MOSTLY = rarely(True, False), rarely(False, True)
NO_SCHEDULE, NO_EXECUTE = rarely([taint("x")], []), rarely([taint("y", "NoExecute")], [])
CURRENT = st.dictionaries(st.sampled_from("abcdefghxy"), st.one_of(st.none(), st.integers(0, 9)), max_size=4)
WEIGHTS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3), max_size=3)
MAX_CLUSTERS = st.one_of(st.none(), st.integers(1, 4))
PRIORITIES = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3), max_size=2)
MAX_REPLICAS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9), max_size=3)
ESTIMATES = st.dictionaries(st.sampled_from("abcd"), st.integers(-1, 9), max_size=2)
REPLICAS = st.one_of(st.none(), st.integers(0, 30))


@st.composite
def worlds(draw):
    members = [
        cluster(
            name,
            cpu=str(draw(CPUS)),
            free=str(draw(FREE)),
            ready=draw(MOSTLY),
            joined=draw(MOSTLY),
            terminating=draw(SELDOM),
            taints=draw(NO_SCHEDULE) + draw(NO_EXECUTE),
        )
        for name in draw(NAMES)
    ]
    fields = {
        "current": draw(CURRENT),
        "sticky": draw(st.booleans()),
        "avoid_disruption": draw(st.booleans()),
        "weights": draw(WEIGHTS),
        "max_clusters": draw(MAX_CLUSTERS),
        "priorities": draw(PRIORITIES),
        "max_replicas": draw(MAX_REPLICAS),
        "auto_migration": True,
        "migration_info": AutoMigrationInfo(draw(ESTIMATES)),
    }
    return unit(draw(REPLICAS), **fields), members
