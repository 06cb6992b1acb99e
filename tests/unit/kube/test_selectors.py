from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.selectors import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    SelectorError,
    from_expressions,
    from_label_selector,
    from_map,
    from_match,
    parse_field_selector,
    parse_label_selector,
)

LABEL = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("a=b", "a=b"),
        ("a==b,c!=d", "a==b,c!=d"),
        ("b=1,a=2", "a=2,b=1"),
        ("a", "a"),
        ("! a", "!a"),
        ("a in (y, x)", "a in (x,y)"),
        ("a notin (x,,y)", "a notin (,x,y)"),
        ("a in ()", "a in ()"),
        ("a in (x,x)", "a in (x)"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("a=,b", "a=,b"),
        ("a>1,a<5", "a>1,a<5"),
        ("a=in", "a=in"),
    ],
)
def test_text_is_parsed_and_written_canonically(text: str, canonical: str) -> None:
    assert str(parse_label_selector(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        ("a in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'"),
        ("a in ((x))", "unable to parse requirement: found '(', expected: ',', ')' or identifier"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a,", "found '', expected: identifier after ','"),
        ("!!a", "unable to parse requirement: found '!', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        (
            "a>b",
            'unable to parse requirement: values[0]: Invalid value: "b": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        ("a=-b", f'unable to parse requirement: values[0][a]: Invalid value: "-b": {LABEL}'),
    ],
)
def test_errors_are_kubernetes_own(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as error:
        parse_label_selector(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("a=b", {"a": "b"}, True),
        ("a=b", {}, False),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a in (x,y)", {"a": "y"}, True),
        ("a notin (x,y)", {"a": "y"}, False),
        ("a notin (x,y)", {}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a>5", {"a": "6"}, True),
        ("a>5", {"a": "5"}, False),
        ("a<5", {"a": "x"}, False),
        ("a<5", {}, False),
        ("a=", {"a": ""}, True),
        ("", {"x": "y"}, True),
        ("a=b,c", {"a": "b"}, False),
    ],
)
def test_matching(text: str, labels: dict[str, str], matches: bool) -> None:
    assert parse_label_selector(text).matches(labels) is matches


def test_absent_selector_selects_nothing_and_empty_everything() -> None:
    assert from_label_selector(None) is NOTHING
    assert not NOTHING.matches({})
    assert from_label_selector({}) == EVERYTHING
    assert EVERYTHING.matches(None)


def test_label_selector_objects() -> None:
    expressions: list[dict[str, Any]] = [
        {"key": "tier", "operator": "In", "values": ["b", "a"]},
        {"key": "x", "operator": "DoesNotExist"},
    ]
    selector = from_match({"app": "web"}, expressions)
    assert str(selector) == "app=web,tier in (a,b),!x"
    assert selector.matches({"app": "web", "tier": "a"})
    assert selector.exact() == {"app": "web"}
    assert from_map({"b": "1", "a": "2"}) == parse_label_selector("a=2,b=1")


@pytest.mark.parametrize(
    ("operator", "values", "of_five", "of_absent"),
    [
        ("In", ["5", "6"], True, False),
        ("In", ["6"], False, False),
        ("NotIn", ["5"], False, True),
        ("NotIn", ["6"], True, True),
        ("Exists", [], True, False),
        ("DoesNotExist", [], False, True),
        ("Gt", ["4"], True, False),
        ("Gt", ["5"], False, False),
        ("Lt", ["6"], True, False),
        ("Lt", ["five"], False, False),
        ("Lt", ["6", "7"], False, False),
        ("Lt", [], False, False),
        ("Eq", ["5"], False, False),
    ],
)
def test_terms_of_node_selectors(operator: str, values: list[str], of_five: bool, of_absent: bool) -> None:
    selector = from_expressions([{"key": "a", "operator": operator, "values": values}])
    assert (selector.matches({"a": "5"}), selector.matches({"b": "5"})) == (of_five, of_absent)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ({"key": "a", "operator": "Eq"}, '"Eq" is not a valid label selector operator'),
        (
            {"key": "a", "operator": "In"},
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            {"key": "a", "operator": "Exists", "values": ["x"]},
            'values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
        ),
    ],
)
def test_wrong_expressions_are_refused(expression: dict[str, Any], message: str) -> None:
    with pytest.raises(SelectorError) as error:
        from_match(None, [expression])
    assert str(error.value) == message


keys = st.from_regex(r"[a-z]([a-z0-9-]{0,5}[a-z0-9])?(\.[a-z0-9]{1,2}){0,2}(/[a-z])?", fullmatch=True)
values = st.from_regex(r"([a-z0-9]([a-z0-9._-]{0,4}[a-z0-9])?)?", fullmatch=True)
requirement = st.one_of(
    st.builds("{}={}".format, keys, values),
    st.builds("{}!={}".format, keys, values),
    st.builds("{}".format, keys),
    st.builds("!{}".format, keys),
    st.builds(lambda key, some: f"{key} in ({','.join(some)})", keys, st.lists(values, max_size=4)),
    st.builds(lambda key, some: f"{key} notin ({','.join(some)})", keys, st.lists(values, max_size=4)),
    st.builds("{}>{}".format, keys, st.integers(0, 99)),
)


@given(st.lists(requirement, max_size=4), st.dictionaries(keys, values, max_size=4))
def test_canonical_text_means_the_same(requirements: list[str], labels: dict[str, str]) -> None:
    selector = parse_label_selector(",".join(requirements))
    again = parse_label_selector(str(selector))
    assert str(again) == str(selector)
    assert again == selector
    assert selector.matches(labels) == all(parse_label_selector(r).matches(labels) for r in requirements)
    assert not selector.matches(labels) or selector.exact().items() <= labels.items()


@given(st.text("ab=!(),<> in", max_size=14))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        assert isinstance(parse_label_selector(text), LabelSelector)
    except SelectorError:
        return


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        ("a=b", [("a", "=", "b")]),
        ("c==d,a!=b", [("a", "!=", "b"), ("c", "=", "d")]),
        (r"a=b\,c\=d\\", [("a", "=", "b,c=d\\")]),
        ("metadata.name=x,,", [("metadata.name", "=", "x")]),
        ("=", []),
        ("", []),
    ],
)
def test_field_selectors(text: str, requirements: list[tuple[str, str, str]]) -> None:
    selector = parse_field_selector(text)
    assert list(selector) == requirements
    assert parse_field_selector(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_wrong_field_selectors(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as error:
        parse_field_selector(text)
    assert str(error.value) == message


def test_field_selector_matches_by_value_and_absent_is_empty() -> None:
    pod = {"spec.nodeName": "n1", "status.phase": "Running"}
    selector = parse_field_selector("spec.nodeName=n1,status.phase!=Failed,x=")
    assert selector.matches(lambda field: pod.get(field, ""))
    assert not parse_field_selector("spec.nodeName!=n1").matches(lambda field: pod.get(field, ""))
    assert selector.exact() == {"spec.nodeName": "n1", "x": ""}
