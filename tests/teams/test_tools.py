"""grep: what matches, what comes back as a message, and that no pattern takes long or raises."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_evolution.teams.tools import MAX_PATTERN, grep

DOCUMENT = (
    "[D1:1] (8 May 2023) Ann: I went to a Painting class",
    "[D1:2] (8 May 2023) Bob: great",
    "",
    "[D2:1] (9 June 2023) Ann: the class was at the café [photo: a red door]",
    "[D2:2] (9 June 2023) Bob: ÉCLAIR",
)


def found(pattern: str, document: tuple[str, ...] = DOCUMENT, limit: int = 20) -> list[int]:
    """Numbers (from 0) of the lines that a pattern finds."""
    result = grep(pattern, document, limit=limit)
    assert result.error is None
    return [document.index(line) for line in result.lines]


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("painting", [0]),
        ("CLASS", [0, 3]),
        ("CAFÉ", [3]),
        ("éclair", [4]),
        ("^class", []),
        (r"^\[D2", [3, 4]),
        ("great$", [1]),
        ("^$", [2]),
        ("(?-i)Class", []),
        ("class|great", [0, 1, 3]),
        (r"\bred\b", [3]),
        ("class.*great", []),
        ("(?s)class.*great", []),
        ("class[^x]*great", []),
        (r"class\n", []),
        (r"great\s", []),
        (r"\Qclass", [0, 3]),  # an open quotation is a pattern too
        ("x*", [0, 1, 2, 3, 4]),
        ("|", [0, 1, 2, 3, 4]),
        ("zebra", []),
    ],
)
def test_a_pattern_is_matched_line_by_line_without_regard_to_case(pattern: str, lines: list[int]) -> None:
    assert found(pattern) == lines


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(?=a)b", "(?="),
        ("(?<!a)b", "(?<"),
        (r"(a)\1", r"\1"),
        ("(unclosed", "(unclosed"),
        (")(", ")"),
        ("[a-", "]"),
        ("*", "*"),
        ("\\", "\\"),
        ("(a{1000}){1000}", "{1000}"),
        ("a{2000}", "{2000}"),
        ("x" * 10_000, "10000 characters"),
        ("", "empty"),
        (" \t", "empty"),
        ("\n", "empty"),
        ("one\ntwo", "line break"),
        ("\ud800", "?"),
        (r"\p{Klingon}", "Klingon"),
    ],
)
def test_a_pattern_that_is_not_accepted_comes_back_as_a_message(pattern: str, said: str) -> None:
    result = grep(pattern, DOCUMENT, limit=20)
    assert result.error is not None
    assert said in result.error
    assert "(?m)" not in result.error  # our own prefix is no concern of the agent
    assert (result.lines, result.more) == ((), 0)


def test_the_limit_holds_and_what_is_beyond_it_is_counted() -> None:
    document = tuple(f"line {number}" for number in range(50))
    result = grep("line", document, limit=20)
    assert result.lines == document[:20]
    assert result.more == 30
    exact = grep("line", document[:20], limit=20)
    assert (len(exact.lines), exact.more) == (20, 0)


def test_a_line_that_matches_twice_comes_back_once() -> None:
    assert grep("a", ("banana", "kiwi"), limit=20).lines == ("banana",)


def test_an_empty_document_has_no_lines() -> None:
    assert grep("x*", (), limit=20).lines == ()
    assert grep("^$", ("",), limit=20).lines == ("",)


def test_a_pattern_of_the_greatest_length_is_accepted_and_one_more_is_not() -> None:
    assert grep("x" * MAX_PATTERN, DOCUMENT, limit=1).error is None
    assert grep("x" * (MAX_PATTERN + 1), DOCUMENT, limit=1).error is not None


def test_odd_characters_in_document_and_pattern_do_no_harm() -> None:
    document = ("nul \x00 here", "half \ud83d here", "separator \u2028 inside", "carriage\rreturn")
    assert grep("here", document, limit=20).lines[0] == document[0]
    assert len(grep("here", document, limit=20).lines) == 2
    assert grep("\x00", document, limit=20).lines == document[:1]
    assert grep("separator.*inside", document, limit=20).lines == (document[2],)
    assert grep("carriage", document, limit=20).lines == (document[3],)


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a|aa)+z", "(a*)*b", "(.*a){12}z", "(a|b)*a(a|b){400}z", "(a?){50}a{50}z", "((a{1,50}){1,20})z"],
)
def test_a_pattern_that_would_stop_a_backtracking_engine_is_fast(pattern: str) -> None:
    document = tuple("ab" * 60 + "a" * 60 + f" {number}" for number in range(700))
    start = time.process_time()
    grep(pattern, document, limit=20)
    assert time.process_time() - start < 2.0  # a backtracking engine needs longer than the universe is old


SIMPLE = st.text(alphabet="ab.*|^$()?[]+ ", max_size=8)


@given(pattern=SIMPLE, document=st.lists(st.text(alphabet="abAB ", max_size=6), max_size=5).map(tuple))
def test_simple_patterns_find_the_lines_that_python_finds(pattern: str, document: tuple[str, ...]) -> None:
    result = grep(pattern, document, limit=3)
    if result.error is not None:
        return
    try:
        expected = [line for line in document if re.search(pattern, line, re.IGNORECASE)]
    except re.error:
        return
    assert list(result.lines) == expected[:3]
    assert result.more == max(0, len(expected) - 3)


@given(pattern=st.text(max_size=40))
def test_no_pattern_raises(pattern: str) -> None:
    result = grep(pattern, DOCUMENT, limit=2)
    assert set(result.lines) <= set(DOCUMENT)
    assert len(result.lines) <= 2
