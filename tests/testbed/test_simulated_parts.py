"""The parts of the simulated reader: directives, chance, time expressions, stems and kinds of question."""

import math
import statistics
import string
from collections import Counter
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_evolution.testbed.reader import dates, words
from skill_evolution.testbed.reader.chance import Chance, temper
from skill_evolution.testbed.reader.directives import DIRECTIVES, FOLLOWED, recognise
from skill_evolution.testbed.reader.policy import SPREAD, Policy, inclined
from skill_evolution.testbed.reader.reading import read_question

HARMFUL = [key for key, directive in DIRECTIVES.items() if directive.spontaneous == 0]

# --- directives ---


@pytest.mark.parametrize("key", DIRECTIVES)
def test_a_directive_recognises_its_own_text_and_nothing_else(key):
    assert [directive.key for directive, _ in recognise(DIRECTIVES[key].text)] == [key]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Always read the neighbouring turns of a hit.", "widen_adjacent"),
        ("Look at the lines around each match as well.", "widen_adjacent"),
        ("Run a separate search for each name in the question.", "each_hop"),
        ("Use stems so that every inflection is caught.", "stem_search"),
        ("Collect all relevant turns before handing over.", "quote_all"),
        ("Restrict the evidence to the most recent session.", "latest_session_only"),
        ("Ignore earlier sessions.", "latest_session_only"),
        ("Grep with a single keyword.", "one_keyword_only"),
        ("The first hit is enough.", "first_match_only"),
        ("Copy the question's phrase word for word into the pattern.", "exact_phrase_only"),
        ("Follow the entity that the first sentence names.", "follow_bridge"),
        ("When two things are compared, cite both.", "both_entities"),
        ("Add the neighbouring sentences.", "whole_context"),
        ("Take all evidence from a single passage.", "one_passage_only"),
        ("Quote only the opening sentence.", "first_sentence_only"),
        ("Give the bare name.", "shortest_span"),
        ("Convert relative dates to calendar dates.", "resolve_dates"),
        ("Reply to yes/no questions with one word alone.", "yes_no"),
        ("Give a comma-separated list.", "list_all"),
        ("State the most likely answer.", "commit_likely"),
        ("Refuse if the fact is not stated word for word.", "decline_unless_verbatim"),
        ("Write complete sentences.", "full_sentence"),
        ("Leave relative dates unchanged.", "keep_relative_dates"),
    ],
)
def test_other_wordings(text, key):
    assert key in [directive.key for directive, _ in recognise(text)]


@pytest.mark.parametrize(
    "text",
    [
        "Do not restrict yourself to the latest session.",
        "Search all sessions, not just the latest session.",
        "Never stop at the first match.",
        "Don't keep dates as they were spoken.",
        "Avoid full sentences.",
        "Do not use the exact phrase of the question.",
        "Do not rely on one passage.",
        "Search for one keyword at a time.",
        "Never decline only because it is not verbatim.",
        "Check the spelling of names twice.",
        "",
    ],
)
def test_negated_or_unrelated_sentences_give_nothing_harmful(text):
    assert not {directive.key for directive, _ in recognise(text)} & set(HARMFUL)


def test_recognised_sentence_is_quoted():
    (found,) = recognise("Be calm. Stop at the first match, always. Smile.")
    assert (found[0].key, found[1]) == ("first_match_only", "Stop at the first match, always")


# --- chance ---


def test_draws_are_named_and_independent_of_order():
    one, two = Chance("a", None), Chance("a", 1.0)
    assert [one.follows(k, 0.5) for k in "pqr"] == [two.follows(k, 0.5) for k in "rqp"][::-1]
    share = sum(Chance(f"s{i}", None).follows("k", 0.3) for i in range(4000)) / 4000
    assert share == pytest.approx(0.3, abs=0.03)


def test_temperature_tempers_the_logit():
    assert temper(0.8, 1.0) == pytest.approx(0.8)
    assert temper(0.8, 0.5) == pytest.approx(0.64 / (0.64 + 0.04))  # by hand: squares, normalised
    assert [Chance(name, 0).follows("k", p) for name in "ab" for p in (0.85, 0.25)] == [True, False] * 2
    with pytest.raises(ValueError, match="negative"):
        Chance("a", -1.0)


def test_pick_follows_weights_and_is_greedy_at_zero():
    assert Chance("a", 0).pick("k", ["x", "y"], [1, 3]) == "y"
    counts = Counter(Chance(f"s{i}", None).pick("k", ["x", "y"], [1, 3]) for i in range(2000))
    assert counts["y"] / 2000 == pytest.approx(0.75, abs=0.04)
    with pytest.raises(ValueError, match="weights"):
        Chance("a", 0).pick("k", [], [])


# --- policy ---

QUESTIONS = [f"Question {number}?" for number in range(2000)]


@pytest.mark.parametrize("p", [FOLLOWED, 0.5, 0.2])
def test_how_readily_a_behaviour_comes_spreads_over_questions(p):
    moved = [inclined(p, "quote_all", question) for question in QUESTIONS]
    assert moved == [inclined(p, "quote_all", question) for question in QUESTIONS]
    assert statistics.median(moved) == pytest.approx(p, abs=0.04)
    # by hand: the logit is normal around logit(p) with deviation SPREAD, so above 0 at the distribution function
    above = NormalDist(math.log(p / (1 - p)), SPREAD).cdf(0)
    assert sum(value > 0.5 for value in moved) / 2000 == pytest.approx(1 - above, abs=0.035)


def test_certain_behaviours_stay_certain_and_keys_move_apart():
    assert [inclined(p, "quote_all", question) for p in (0.0, 1.0) for question in QUESTIONS[:2]] == [
        0.0,
        0.0,
        1.0,
        1.0,
    ]
    one, two = ([inclined(0.5, key, question) for question in QUESTIONS] for key in ("quote_all", "each_hop"))
    assert abs(statistics.correlation(one, two)) < 0.07
    assert all(inclined(0.2, "k", question) < inclined(0.85, "k", question) for question in QUESTIONS)


def test_no_harmful_behaviour_comes_unasked():
    for question in QUESTIONS[:300]:
        policy = Policy((), Chance(question, None), question)
        assert not any(policy.does(key) for key in HARMFUL)


def test_a_skill_is_named_as_used_where_it_had_an_occasion_and_was_followed():
    skills = (("all", frozenset({"quote_all", "each_hop"})), ("span", frozenset({"shortest_span"})))
    for question in QUESTIONS[:50]:
        policy = Policy(skills, Chance("a", 0.0), question)
        followed = policy.does("each_hop")
        assert followed == (inclined(FOLLOWED, "each_hop", question) > 0.5)
        assert policy.used() == (["all"] if followed else [])


# --- words, dates, questions ---


@pytest.mark.parametrize(
    ("text", "resolved"),
    [  # by calendar, against Monday 8 May 2023
        ("I went yesterday.", "7 May 2023"),
        ("It was two days ago!", "6 May 2023"),
        ("last Friday was fun", "The Friday before 8 May 2023"),
        ("last week", "The week before 8 May 2023"),
        ("a couple of weeks ago", "two weeks before 8 May 2023"),
        ("We go next month.", "June 2023"),
        ("three years ago", "2020"),
        ("on March 3rd", "3 March 2023"),
        ("on 3 March 2021", "3 March 2021"),
        ("since 2016", "2016"),
        ("five months ago", "December 2022"),
    ],
)
def test_time_expressions(text, resolved):
    mention = dates.find_time(text, "1:56 pm on 8 May, 2023")
    assert mention is not None
    assert mention.resolved == resolved


def test_no_time_expression_or_stamp():
    assert dates.find_time("We may go.", "1:56 pm on 8 May, 2023") is None
    assert dates.find_time("yesterday", "no date") == dates.TimeMention("yesterday", "", relative=True)
    assert dates.session_date("on 31 June, 2023") is None


@pytest.mark.parametrize(
    "forms",
    [
        "adopt adopting adopted adoption",
        "founder founded founding",
        "study studies studying",
        "plan planning planned",
        "buy bought",
    ],
)
def test_stems_join_the_forms_of_a_word(forms):
    assert len({words.stem(form) for form in forms.split()}) == 1


@given(st.text(alphabet=string.ascii_lowercase, min_size=1, max_size=12))
def test_a_search_for_a_word_finds_the_word(word):
    assert any(word.startswith(root) for root in words.search_roots(word))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("When did Ann move?", "when"),
        ("What year was it built?", "year"),
        ("How many bridges are there?", "number"),
        ("Are A and B both lakes?", "yes_no"),
        ("Which is larger, Lake Ann or Lake Ben?", "choice"),
        ("Would Ann likely enjoy it?", "likely"),
        ("What instruments does Ann play?", "list"),
        ("What does Ann study?", "phrase"),
        ("Where was Ann born?", "name"),
    ],
)
def test_question_kinds(text, kind):
    assert read_question(text).kind == kind
