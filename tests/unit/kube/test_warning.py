import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from argosy.kube import warning


def test_texts_are_told_once_in_their_order():
    assert warning.texts(warning.header(["b", "a", "b", ""])) == ("b", "a")


def test_quotes_and_backslashes_come_through():
    assert warning.header(['a "b" \\']) == '299 - "a \\"b\\" \\\\"'
    assert warning.texts(warning.header(['a "b", 299 - "c" \\'])) == ('a "b", 299 - "c" \\',)


def test_a_text_ends_no_line():
    assert warning.texts(warning.header(["a\r\nb\x00\x7f\x85c"])) == ("a b c",)


def test_long_texts_are_whole_while_there_is_room():
    texts = ["a" * 2048, "b" * 2048]
    assert list(warning.texts(warning.header(texts))) == texts


def test_where_there_is_too_much_each_is_cut():
    assert warning.texts(warning.header(["a" * 2048, "b" * 2049])) == ("a" * 256, "b" * 256)


def test_what_is_too_much_even_then_is_left_out():
    texts = [f"{number:03}" + "x" * 300 for number in range(138)]
    assert warning.texts(warning.header(texts)) == tuple(text[:256] for text in texts[:16])


def test_many_short_ones_share_lines():
    texts = [f'unknown field "a{number}"' for number in range(100)]
    lines = warning.lines(warning.header(texts))
    assert len(lines) <= 32
    assert [text for line in lines for text in warning.texts(line)] == texts


def test_few_have_a_line_each():
    assert warning.lines(warning.header(["a", "b"])) == ['299 - "a"', '299 - "b"']


@given(st.lists(st.text(max_size=600), max_size=60))
def test_any_texts_make_a_header_within_bounds(texts):
    header = warning.header(texts)
    assert not any(unicodedata.category(char) in ("Cc", "Cs") for char in header)
    told = warning.texts(header)
    assert sum(map(len, told)) <= warning.MAX_TOTAL + warning.MAX_CUT
    if header:
        assert tuple(text for line in warning.lines(header) for text in warning.texts(line)) == told
