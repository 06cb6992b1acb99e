"""Any small world: a unit and clusters in every combination of states, for properties that hold in all of them."""

from hypothesis import strategies as st

from argosy.plan.scheduling.unit import AutoMigrationInfo
from tests.unit.plan.scheduling import cluster, taint, unit


def rarely(seldom, mostly):
    """Most clusters are well, so that several are left to choose from."""
    return st.sampled_from([*[mostly] * 5, seldom])


@st.composite
def worlds(draw):
    names = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8))
    members = [
        cluster(
            name,
            cpu=str(draw(st.integers(0, 50))),
            free=str(draw(st.integers(-5, 50))),
            ready=draw(rarely(False, True)),
            joined=draw(rarely(False, True)),
            terminating=draw(rarely(True, False)),
            taints=draw(rarely([taint("x")], [])) + draw(rarely([taint("y", "NoExecute")], [])),
        )
        for name in names
    ]
    current = draw(st.dictionaries(st.sampled_from("abcdefghxy"), st.one_of(st.none(), st.integers(0, 9)), max_size=4))
    fields = {
        "current": current,
        "sticky": draw(st.booleans()),
        "avoid_disruption": draw(st.booleans()),
        "weights": draw(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3), max_size=3)),
        "max_clusters": draw(st.one_of(st.none(), st.integers(1, 4))),
        "priorities": draw(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3), max_size=2)),
        "max_replicas": draw(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9), max_size=3)),
        "auto_migration": True,
        "migration_info": AutoMigrationInfo(
            draw(st.dictionaries(st.sampled_from("abcd"), st.integers(-1, 9), max_size=2))
        ),
    }
    return unit(draw(st.one_of(st.none(), st.integers(0, 30))), **fields), members
