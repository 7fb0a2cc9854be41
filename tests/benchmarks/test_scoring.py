"""Scores against the official code's figures (golden file) and against hand computations."""

import json
import math
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_evolution.benchmarks import scoring
from skill_evolution.benchmarks.locomo import CATEGORIES

CASES = os.environ.get("SKILL_EVOLUTION_METRIC_CASES")
LOCOMO = os.environ.get("SKILL_EVOLUTION_LOCOMO")
needs_cases = pytest.mark.skipif(not CASES, reason="SKILL_EVOLUTION_METRIC_CASES is not set")
needs_locomo = pytest.mark.skipif(not LOCOMO, reason="SKILL_EVOLUTION_LOCOMO is not set")


def golden(section):
    return json.loads(Path(str(CASES)).read_text(encoding="utf-8"))[section]


def approx(value):
    return pytest.approx(value, abs=1e-9, rel=0)


def answer_figures(scores):
    return {"em": scores.em, "f1": scores.f1, "precision": scores.precision, "recall": scores.recall}


# The official code's figures


@needs_cases
@pytest.mark.parametrize("section", ["hotpot_answer", "hotpot_real"])
def test_hotpot_answer_equals_official_code(section):
    cases = golden(section)
    cases = cases if isinstance(cases, list) else cases["cases"]
    assert cases
    for case in cases:
        found = answer_figures(scoring.hotpot_answer(case["prediction"], case["gold"]))
        assert found == approx({key: case[key] for key in found}), case


@needs_cases
def test_supporting_facts_equal_official_code():
    for case in golden("hotpot_supporting_facts"):
        predicted, gold = ([tuple(pair) for pair in case[key]] for key in ("prediction", "gold"))
        found = scoring.hotpot_supporting_facts(predicted, gold)
        expected = [case[key] for key in ("sp_em", "sp_f1", "sp_prec", "sp_recall")]
        assert [found.em, found.f1, found.precision, found.recall] == approx(expected), case


@needs_cases
def test_file_level_equals_official_code():
    case = golden("hotpot_file_level")
    sums = Counter()
    for gold in case["gold"]:
        answer = facts = None
        if (text := case["prediction"]["answer"].get(gold["_id"])) is not None:
            answer = scoring.hotpot_answer(text, gold["answer"])
        if (pairs := case["prediction"]["sp"].get(gold["_id"])) is not None:
            facts = scoring.hotpot_supporting_facts([*map(tuple, pairs)], [*map(tuple, gold["supporting_facts"])])
        joint = scoring.hotpot_joint(answer, facts) if answer and facts else None
        for prefix, scores in (("", answer), ("sp_", facts), ("joint_", joint)):  # a missing entry counts as 0
            for name, key in (("em", "em"), ("f1", "f1"), ("prec", "precision"), ("recall", "recall")):
                sums[prefix + name] += getattr(scores, key) if scores else 0
    assert {name: value / len(case["gold"]) for name, value in sums.items()} == approx(case["expected"])


@needs_cases
def test_locomo_f1_equals_official_code():
    for case in golden("locomo"):
        category = scoring.LOCOMO_CATEGORIES[case["category"]]
        found = scoring.locomo_f1(case["prediction"], str(case["answer"]), category)
        assert found == approx(case["score"]), case


@needs_cases
def test_locomo_recall_and_tokens_equal_official_code():
    for case in golden("locomo_recall"):
        assert scoring.evidence_recall(case["context"], case["evidence"]) == approx(case["recall"]), case
    for case in golden("locomo_normalize"):
        assert " ".join(scoring.locomo_tokens(case["text"])) == case["normalized"]


@needs_cases
def test_memory_scores_equal_official_code():
    for case in golden("amem_mem0"):
        prediction, reference = case["prediction"], case["reference"]
        found = scoring.memory_f1(prediction, reference), scoring.memory_bleu1(prediction, reference)
        assert found == approx((case["f1"], case["bleu1"]))


def predicted_from(kind, items, index):
    """The golden file's rules for predictions derived from the real data."""
    answer = str(items[index]["answer"])
    if kind == "gold":
        return answer
    if kind == "half":
        words = answer.split()
        return " ".join(words[: (len(words) + 1) // 2]).lower()
    assert kind == "next"
    kept = [i for i, item in enumerate(items) if item["category"] != 5]
    return str(items[kept[(kept.index(index) + 1) % len(kept)]]["answer"])


@needs_cases
@needs_locomo
def test_real_locomo_answers_equal_official_code():
    samples = {s["sample_id"]: s["qa"] for s in json.loads(Path(str(LOCOMO)).read_text(encoding="utf-8"))}
    cases = golden("locomo10_real")["cases"]
    assert len(cases) > 100
    for case in cases:
        items, index = samples[case["sample_id"]], case["qa_index"]
        prediction, answer = predicted_from(case["kind"], items, index), str(items[index]["answer"])
        category = scoring.LOCOMO_CATEGORIES[case["category"]]
        assert scoring.locomo_f1(prediction, answer, category) == approx(case["locomo_f1"]), case
        assert scoring.memory_f1(prediction, answer) == approx(case["amem_f1"]), case
        assert scoring.memory_bleu1(prediction, answer) == approx(case["bleu1"]), case


# Hand computations


def test_hotpot_answer_by_hand():
    # tokens: "chief of protocol" against "chief of protocol of united states" (articles gone): 3/3 and 3/6
    found = scoring.hotpot_answer("The chief, of protocol!", "Chief of Protocol of the United States")
    assert answer_figures(found) == approx({"em": 0.0, "f1": 2 / 3, "precision": 1.0, "recall": 0.5})


def test_yes_no_answers_score_all_or_nothing():
    assert scoring.hotpot_answer("yes, they were", "yes").f1 == 0
    assert scoring.hotpot_answer("No", "yes").f1 == 0
    assert scoring.hotpot_answer("Yes.", "yes") == scoring.Scores(1, 1, 1, 1)


def test_joint_is_the_product_of_answer_and_facts():
    joint = scoring.hotpot_joint(scoring.Scores(0, 0.75, 0.6, 1), scoring.Scores(0, 2 / 3, 1, 0.5))
    assert answer_figures(joint) == approx({"em": 0, "f1": 2 * 0.6 * 0.5 / 1.1, "precision": 0.6, "recall": 0.5})
    nothing = scoring.Scores(0, 0, 0, 0)
    assert scoring.hotpot_joint(nothing, scoring.Scores(1, 1, 1, 1)) == nothing


def test_locomo_rules_differ_by_category():
    # multi-hop: parts "pottery" and "camping" are matched one by one: (1 + 0) / 2
    assert scoring.locomo_f1("potteries", "pottery, camping", "multi_hop") == 0.5
    # single-hop: one token of one, one of two: 2/3
    assert scoring.locomo_f1("potteries", "pottery, camping", "single_hop") == approx(2 / 3)
    assert scoring.locomo_f1("likely no", "Likely no; she wants to be a counselor", "open_domain") == 1
    assert scoring.locomo_f1("It was Not Mentioned.", "x", "adversarial") == 1
    with pytest.raises(ValueError, match="unknown LoCoMo category 'multihop'; known: multi_hop"):
        scoring.locomo_f1("x", "x", "multihop")


def test_locomo_drops_and_but_keeps_accented_letters():
    # An "a" that carries a combining accent is a word, not an article: `re` would strip its letter.
    assert scoring.locomo_tokens("a\u0301") == ("a\u0301",)
    assert scoring.locomo_tokens("The cat, and a dog.") == ("cat", "dog")
    assert scoring.tokens("The cat, and a dog.") == ("cat", "and", "dog")


def test_smoothed_bleu_by_hand():
    # order min(4, 2, 3) = 2; unigrams 2/2, bigrams 1/1, brevity penalty exp(1 - 3/2)
    assert scoring.smoothed_bleu(["x", "y"], ["x", "y", "z"]) == approx(math.exp(-0.5))
    # unigrams 2/2, bigrams 0/1 smoothed to 0.1/1: sqrt(0.1)
    assert scoring.smoothed_bleu(["y", "x"], ["x", "y"]) == approx(math.sqrt(0.1))
    assert scoring.smoothed_bleu(["x"], ["x"]) == 1
    assert scoring.smoothed_bleu([], ["x"]) == scoring.smoothed_bleu(["x"], []) == 0
    assert scoring.hotpot_bleu("The Eiffel tower!", "eiffel tower") == 1


def test_locomo_bleu_routes_like_f1():
    assert scoring.locomo_bleu("potteries", "pottery, camping", "multi_hop") == 0.5
    assert scoring.locomo_bleu("likely no", "Likely no; she has plans", "open_domain") == 1


def test_sentence_split_matters_for_bleu1():
    # Split, the full stops are tokens of their own; unsplit, only the last one is: "left." and "stayed." would miss.
    assert scoring.memory_bleu1("He left. She stayed.", "She stayed. He left.") == 1


def test_evidence_recall():
    assert scoring.evidence_recall(["D1:3", "D2:4"], ["D1:3", "D9:9"]) == 0.5
    assert scoring.evidence_recall([], ["D1:3"]) == 0
    assert scoring.evidence_recall([], []) == 1


def test_evidence_recall_by_sessions_is_the_official_codes():
    assert scoring.evidence_recall(["S1", "S2"], ["D1:3", "D4:2"]) == 0.5
    assert scoring.evidence_recall(["S1", "S2"], ["D1:3", "D1:4", "D2:1"]) == 1
    assert scoring.evidence_recall(["S10"], ["D1:3"]) == 0


# Properties

texts = st.text(max_size=40) | st.sampled_from(["", " , ", "yes", "no", "a", "x; y", "the cat, a dog", "12 May, 2023"])


@given(texts, texts)
def test_any_answer_gives_scores_in_range(prediction, gold):
    scores = [*answer_figures(scoring.hotpot_answer(prediction, gold)).values()]
    scores += [scoring.hotpot_bleu(prediction, gold), scoring.memory_f1(prediction, gold)]
    scores.append(scoring.memory_bleu1(prediction, gold))
    for category in CATEGORIES:
        scores += [scoring.locomo_f1(prediction, gold, category), scoring.locomo_bleu(prediction, gold, category)]
    assert all(0 <= score <= 1 for score in scores)


@given(texts, texts)
def test_f1_is_symmetric_where_the_rule_is(prediction, gold):
    assert scoring.hotpot_answer(prediction, gold).f1 == approx(scoring.hotpot_answer(gold, prediction).f1)
    forth, back = (scoring.locomo_f1(*pair, "single_hop") for pair in ((prediction, gold), (gold, prediction)))
    assert forth == approx(back)


@given(texts)
def test_the_gold_answer_scores_one_if_it_has_tokens(gold):
    if scoring.tokens(gold):
        assert scoring.hotpot_answer(gold, gold).f1 == approx(1)
        assert scoring.hotpot_bleu(gold, gold) == approx(1)
    if scoring.locomo_tokens(gold):
        assert scoring.locomo_f1(gold, gold, "single_hop") == approx(1)
