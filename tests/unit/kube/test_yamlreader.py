"""What Kubernetes makes of YAML. The expected values are those of sigs.k8s.io/yaml 1.6, asked once for each of these texts."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kube.yamlreader import YamlError, documents, read

SCALARS = {
    "yes": True, "Yes": True, "y": True, "Y": True, "on": True, "ON": True, "true": True, "TRUE": True,
    "no": False, "n": False, "N": False, "off": False, "Off": False, "False": False,
    "yEs": "yEs", "tRUE": "tRUE", "~": None, "null": None, "NULL": None, "": None, "nUll": "nUll",
    "12:30": "12:30", "1:59:59": "1:59:59", "190:20:30.15": "190:20:30.15",
    "2001-01-01": "2001-01-01", "2001-12-14t21:59:43.10-05:00": "2001-12-14t21:59:43.10-05:00",
    "010": 8, "0o10": 8, "0O10": 8, "0x1F": 31, "-0x1f": -31, "0b11": 3, "-0b1": -1, "0b-1": -1, "08": 8, "09.5": 9.5,
    "0x": "0x", "0o8": "0o8", "0b2": "0b2", "00": 0, "+1": 1, "-0": 0, "1_000": 1000, "1__0": 10, "-_1": -1, "_1": "_1",
    "0x_1f": 31, "1e3": 1000, "1E3": 1000, "1.": 1, "1.5": 1.5, ".5": 0.5, "-.5": -0.5, "1.e3": 1000, ".1_0": 0.1,
    "._1": "._1", "1e": "1e", ".": ".", "+": "+", "e1": "e1", "1e-320": 1e-320, "1e-999": 0,
    "1e20": 1e20, "1e999": "1e999", "-1e999": "-1e999", "9" * 30: 1e30, "9" * 400: "9" * 400,
    "9223372036854775807": 2**63 - 1, "9223372036854775808": 2.0**63, "18446744073709551615": 2.0**64,
    "-9223372036854775808": -(2**63), "-9223372036854775809": -(2.0**63), "+18446744073709551615": 2.0**64,
    "0xFFFFFFFFFFFFFFFF": 2.0**64, "0xFFFFFFFFFFFFFFFFF": "0xFFFFFFFFFFFFFFFFF",
    "1152921504606846976.0": 1152921504606847000, "9223372036854775807.0": 2.0**63,
    '"1"': "1", "'yes'": "yes", "!!str 1": "1", "!!str": "", "!!int '5'": 5, "!!float 1": 1, "!!bool 'no'": False,
    "!!null ''": None, "!!binary aGk=": "hi", "!!binary '/w=='": "\ufffd", "!!timestamp 2001-01-01": "2001-01-01",
    "!other 1": "1", "! '12'": "12", "<<": "<<", "=": "=", "\u0663": "\u0663", "1 2": "1 2",
}  # fmt: skip

KEYS = {
    "1": "1", "010": "8", "0x10": "16", "yes": "true", "N": "false", "1.5": "1.5", "1e3": "1000", "1000000.0": "1e+06",
    "16777217.0": "1.6777216e+07", "0.1": "0.1", "1e-7": "1e-07", "1e-5": "1e-05", "0.0001": "0.0001", ".inf": ".inf",
    "-.Inf": "-.inf", ".nan": ".nan", "3.4e39": ".inf", "123456.7": "123456.7", "2001-01-01": "2001-01-01",
    "12:30": "12:30", '"<<"': "<<", "!!str 1": "1", "'~'": "~",
}  # fmt: skip


def same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("text", SCALARS)
def test_a_scalar_is_what_kubernetes_says(text):
    found = read(f"v: {text}".encode()).value["v"]
    assert same(found, SCALARS[text]), found


@pytest.mark.parametrize("text", KEYS)
def test_names_of_fields_are_texts(text):
    assert list(read(f"{text}: x".encode()).value) == [KEYS[text]]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("v: .inf", "json: unsupported value: +Inf"),
        ("v: -.INF", "json: unsupported value: -Inf"),
        ("- .nan", "json: unsupported value: NaN"),
        ("~: x", "unsupported map key"),
        ("18446744073709551615: x", "unsupported map key"),
        ("[a]: x", "invalid map key"),
        ("{a: b}: x", "invalid map key"),
        ("a: &a [1]\n*a : x", "invalid map key"),
        ("v: !!int x", "cannot decode !!str `x` as a !!int"),
        ("v: !!int 1.5", "cannot decode !!float `1.5` as a !!int"),
        ("v: !!float 18446744073709551615", "cannot decode !!int `18446744073709551615` as a !!float"),
        ("v: !!null x", "cannot decode !!str `x` as a !!null"),
        ("v: !!timestamp x", "cannot decode !!str `x` as a !!timestamp"),
        ("v: !!binary x", "!!binary value contains invalid base64 data"),
        ("v: *a", "unknown anchor 'a' referenced"),
        ("v: &a [*a]", "anchor 'a' value contains itself"),
        ("a: &a 1\nv: &a [*a]", "anchor 'a' value contains itself"),
        ("a: {<<: 1}", "map merge requires map or sequence of maps as the value"),
        ("a: {<<: [{a: b}, 1]}", "map merge requires map or sequence of maps as the value"),
        ("a: [", "did not find expected node content"),
        ("a: b: c", "mapping values are not allowed in this context"),
        ("a: @b", "found character that cannot start any token"),
        ("a: \x00", "control characters are not allowed"),
        ("a: \x1b", "control characters are not allowed"),
        ("[" * 201 + "]" * 201, "nested deeper than 200 levels"),
        ("- " * 201, "nested deeper than 200 levels"),
        ("a: &a " + "[" * 150 + "]" * 150 + "\nb: " + "[" * 60 + "*a" + "]" * 60, "nested deeper than 200 levels"),
    ],
)
def test_what_kubernetes_refuses_is_refused(text, problem):
    with pytest.raises(YamlError) as caught:
        read(text.encode())
    assert problem in str(caught.value)


def test_text_that_is_not_utf_8_is_refused():
    with pytest.raises(YamlError, match="yaml: "):
        read(b"a: \xff")


def test_an_alias_is_a_copy():
    value = read(b"a: &a {x: [1]}\nb: *a\nc: [*a, *a]\nk: &k name\n*k : v").value
    assert value == {"a": {"x": [1]}, "b": {"x": [1]}, "c": [{"x": [1]}, {"x": [1]}], "k": "name", "name": "v"}
    value["b"]["x"].append(2)
    assert value["a"] == value["c"][0] == {"x": [1]}


def test_merges():
    text = b"a: &a {x: 1, w: 2}\nb: &b {x: 3}\nc: {<<: *a, z: 0}\nd: {<<: [*b, *a]}\ne: {<<: {q: 1}}\nf: {<<: *a, x: 9}"
    document = read(text)
    value = document.value
    assert value["c"] == {"x": 1, "w": 2, "z": 0}
    assert value["d"] == {"x": 3, "w": 2}  # the earlier one counts
    assert value["e"] == {"q": 1}
    assert value["f"] == {"x": 9, "w": 2}
    assert [(twice.line, twice.name, twice.merged) for twice in document.duplicates] == [(4, "x", True), (6, "x", True)]


def test_a_few_lines_do_not_become_gigabytes():
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(YamlError, match="excessive aliasing"):
        read("\n".join(lines).encode())
    long = f"a: &a {'x' * 1_000_000}\nb: [{','.join(['*a'] * 100)}]"
    with pytest.raises(YamlError, match="excessive aliasing"):
        read(long.encode())


def merged_into_itself(levels: int, fields: int) -> bytes:
    inside = "{" + ",".join(f"k{number}: 1" for number in range(fields)) + "}"
    return ("a: " + "{<<: " * levels + inside + "}" * levels).encode()


def test_merges_in_merges_do_not_cost_their_depth():
    """Each level takes in all fields of those inside it, though the text has them once."""
    assert len(read(merged_into_itself(150, 20)).value["a"]) == 20
    assert len(read(merged_into_itself(1, 200_000)).value["a"]) == 200_000, "what is merged once costs what it has"
    started = time.process_time()
    with pytest.raises(YamlError, match="document contains excessive merging"):
        read(merged_into_itself(150, 60_000))
    assert time.process_time() - started < 4 * _time_of(merged_into_itself(1, 60_000))
    several = (
        f"a: &a {{{', '.join(f'k{number}: 1' for number in range(2_000))}}}\nb: {{<<: [{', '.join(['*a'] * 500)}]}}"
    )
    with pytest.raises(YamlError, match="excessive aliasing"):
        read(several.encode())


def _time_of(text: bytes) -> float:
    started = time.process_time()
    read(text)
    return time.process_time() - started


def test_fields_given_twice_are_told_with_their_lines():
    document = read(b"a: 1\nb:\n  c: 1\n  c: 2\na:\n- 3\n")
    assert document.value == {"a": [3], "b": {"c": 2}}
    assert [(twice.line, twice.name, twice.merged) for twice in document.duplicates] == [
        (4, "c", False),
        (6, "a", False),
    ]


def test_of_many_documents_a_body_is_the_first_and_a_file_all():
    text = b"# nothing\n---\na: 1\n---\n---\nb: 2\n...\n"
    assert read(text).value == {"a": 1}
    assert [(document.value, document.line) for document in documents(text)] == [
        ({"a": 1}, 3),
        (None, 5),
        ({"b": 2}, 6),
    ]
    assert read(b"").value is None
    assert read(b"a: 1\n---\n[").value == {"a": 1}
    with pytest.raises(YamlError):
        list(documents(b"a: 1\n---\n["))


FRAGMENTS = st.sampled_from(
    [*SCALARS, *KEYS, "a: ", "- ", "\n", "\n  ", "\n    ", "[", "]", "{", "}", ", ", "? ", ": ", "&a ", "*a", "<<: ", "|", ">",
     "#", "%YAML 1.1\n", "---\n", "...\n", "!!", "!", "\t", '"', "'", "\\", "\u0085", "\u2028", "\ufeff", "\x07"]
)  # fmt: skip


@given(st.one_of(st.binary(max_size=200), st.lists(FRAGMENTS, max_size=30).map(lambda parts: "".join(parts).encode())))
def test_any_bytes_are_a_value_or_an_error(text):
    try:
        found = list(documents(text))
    except YamlError:
        return
    for document in found:
        assert_json(document.value)


def assert_json(value: object) -> None:
    if isinstance(value, dict):
        assert all(type(key) is str for key in value)
        for inner in value.values():
            assert_json(inner)
    elif isinstance(value, list):
        for inner in value:
            assert_json(inner)
    else:
        assert value is None or type(value) in (str, bool, int, float)
        assert not isinstance(value, int) or -(2**63) <= value < 2**63
        assert not isinstance(value, float) or math.isfinite(value)
