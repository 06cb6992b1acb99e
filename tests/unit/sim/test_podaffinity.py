"""Affinity between pods: which nodes remain, and which are preferred."""

from typing import Any

from argosy.sim.podaffinity import APART_FROM_ALL, PodAffinity, Running, terms_of

NODES = {
    "a1": {"zone": "a", "host": "a1"},
    "a2": {"zone": "a", "host": "a2"},
    "b1": {"zone": "b", "host": "b1"},
    "bare": {"host": "bare"},
}
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def term(app: str, key: str = "zone", **rest: Any) -> Any:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **rest}


def pod(app: str, node: str = "", namespace: str = "shop", **affinity: Any) -> Running:
    return Running(namespace, {"app": app}, node, terms_of({"affinity": affinity}))


def open_to(one: Running, *others: Running) -> list[str]:
    affinity = PodAffinity(one, others, NODES, lambda name: {"team": name})
    return [name for name, labels in NODES.items() if not affinity.refuses(labels)]


def test_without_terms_every_node_will_do() -> None:
    assert open_to(pod("web"), pod("db", "a1")) == list(NODES)


def test_pods_go_where_those_are_they_want_to_be_with() -> None:
    web = pod("web", podAffinity={REQUIRED: [term("db")]})
    assert open_to(web, pod("db", "a1")) == ["a1", "a2"]
    assert open_to(web, pod("db", "a1"), pod("db", "b1")) == ["a1", "a2", "b1"]
    assert open_to(web) == []
    assert PodAffinity(web, (), NODES, lambda name: {}).refuses(NODES["a1"]) == APART_FROM_ALL


def test_the_first_of_pods_that_want_to_be_together_may_start_anywhere() -> None:
    web = pod("web", podAffinity={REQUIRED: [term("web")]})
    assert open_to(web) == ["a1", "a2", "b1"]
    assert open_to(web, web._replace(node="b1")) == ["b1"]


def test_pods_stay_away_from_each_other_whoever_says_so() -> None:
    alone = pod("db", podAntiAffinity={REQUIRED: [term("db", "host")]})
    assert open_to(alone, pod("db", "a1")) == ["a2", "b1", "bare"]
    shy = pod("db", "a1", podAntiAffinity={REQUIRED: [term("web")]})
    assert open_to(pod("web"), shy) == ["b1", "bare"]


def test_terms_concern_the_namespaces_they_name_or_select() -> None:
    def away(**where: Any) -> Running:
        return pod("web", podAntiAffinity={REQUIRED: [term("db", **where)]})

    other = pod("db", "a1", namespace="other")
    assert open_to(away(), other) == list(NODES)
    assert open_to(away(namespaces=["other"]), other) == ["b1", "bare"]
    assert open_to(away(namespaceSelector={}), other) == ["b1", "bare"]
    assert open_to(away(namespaceSelector={"matchLabels": {"team": "other"}}), other) == ["b1", "bare"]
    assert open_to(away(namespaceSelector={"matchLabels": {"team": "x"}}), other) == list(NODES)


def test_preferences_add_up() -> None:
    wishes = {
        "podAffinity": {PREFERRED: [{"weight": 10, "podAffinityTerm": term("cache")}]},
        "podAntiAffinity": {PREFERRED: [{"weight": 3, "podAffinityTerm": term("web", "host")}]},
    }
    affinity = PodAffinity(pod("web", **wishes), [pod("cache", "a1"), pod("web", "a1")], NODES, lambda name: {})
    assert {name: affinity.score(labels) for name, labels in NODES.items()} == {"a1": 7, "a2": 10, "b1": 0, "bare": 0}
    assert not any(affinity.refuses(labels) for labels in NODES.values())
