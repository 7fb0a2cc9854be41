"""Aggregation against values computed by hand."""

import random
from typing import Any

import pytest
import toy
from hypothesis import given
from hypothesis import strategies as st

from skill_evolution.aggregation import Aggregate, aggregate, group_needs, rule_verdict
from skill_evolution.feedback import Credit, Feedback, Need, collapse
from skill_evolution.models.base import ModelError

LIBRARIES = toy.libraries((toy.skill("a"), toy.skill("b", body="B.")), (toy.skill("a", body="Other."),))


def feedback(*credits: Credit, question: str = "q1", category: str = "even", needs: Any = ()) -> Feedback:
    return Feedback(question, category, credits=credits, needs=tuple(needs))


def need(question: str, capability: str, agent: str = "agent_1", failure_type: str = "retrieval_miss") -> Need:
    return Need(question, agent, failure_type, capability)


async def aggregated(*feedbacks: Feedback, replies: Any = (), **options: Any) -> tuple[Aggregate, list[Any]]:
    caller, model = toy.caller(*replies)
    return await aggregate(feedbacks, LIBRARIES, caller, **options), model.requests


def test_credits_of_one_group_collapse_to_their_mean():
    # (0.5 + 0.1 - 0.3) / 3 = 0.1
    (one,) = collapse([toy.credit(0.5), toy.credit(0.1), toy.credit(-0.3)])
    assert one.value == pytest.approx(0.1, abs=1e-12)
    assert one.contribution == "helped"


def test_collapsing_keeps_questions_agents_and_skills_apart():
    credits = [
        toy.credit(0.5),
        toy.credit(0.5, question="q2"),
        toy.credit(0.5, skill="b"),
        toy.credit(0.5, agent="agent_2"),
    ]
    assert len(collapse(credits)) == 4


def test_collapsing_joins_edits_and_partners_and_takes_the_label_of_the_mean():
    (one,) = collapse(
        [
            toy.credit(0.4, edit="be brief", redundant_with=("b",)),
            toy.credit(-0.4, edit="be brief"),
            toy.credit(0.02, edit="cite", redundant_with=("c", "b"), contribution="redundant"),
        ]
    )
    assert (one.edit, one.redundant_with, one.contribution) == ("be brief cite", ("b", "c"), "neutral")
    (twins,) = collapse([toy.credit(0.4, contribution="redundant")] * 2)
    assert twins.contribution == "redundant"


async def test_a_repeated_question_counts_once():
    # q1 twice: (0.8 + 0.4) / 2 = 0.6; q2: 0.0; support 2, mean 0.3, score 0.6 / 3 = 0.2
    result, _ = await aggregated(
        feedback(toy.credit(0.8)),
        feedback(toy.credit(0.4)),
        feedback(toy.credit(0.0, question="q2"), question="q2"),
        replies=[{"verdict": "keep"}],
    )
    (verdict,) = result.verdicts
    assert (verdict.support, verdict.questions) == (2, ("q1", "q2"))
    assert verdict.mean == pytest.approx(0.3, abs=1e-12)
    assert verdict.score == pytest.approx(0.2, abs=1e-12)


@pytest.mark.parametrize(
    ("values", "score"),
    [([-1.0], -0.5), ([-1.0, -1.0], -2 / 3), ([0.9], 0.45), ([1.0, -1.0], 0.0), ([-0.6], -0.3)],
)
def test_the_score_is_the_sum_over_one_more_than_the_questions(values: list[float], score: float):
    verdict = rule_verdict([toy.credit(v, question=f"q{i}") for i, v in enumerate(values)])
    assert verdict.score == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize(
    ("contribution", "edit", "value", "verdict"),
    [
        ("helped", None, 0.5, "keep"),
        ("helped", "cite", 0.5, "refine"),
        ("neutral", None, 0.0, "keep"),
        ("neutral", "cite", 0.0, "refine"),
        ("redundant", "cite", 0.5, "redundant"),
        ("harmful", "cite", -0.5, "low_utility"),
        ("harmful", None, 0.0, "low_utility"),  # the label decides, whatever the number says
        ("harmful", None, 0.2, "low_utility"),
    ],
)
async def test_one_credit_maps_by_the_rule_without_a_call(contribution: Any, edit: str | None, value: float, verdict):
    result, requests = await aggregated(feedback(toy.credit(value, contribution=contribution, edit=edit)))
    assert result.verdicts[0].verdict == verdict
    assert requests == []


async def test_two_credits_are_merged_by_a_call():
    reply = {"verdict": "redundant", "summary": "same as b", "suggested_edit": None, "redundant_with": ["b", "a", "x"]}
    result, requests = await aggregated(
        feedback(toy.credit(0.2, edit="cite")), feedback(toy.credit(0.6, question="q2"), question="q2"), replies=[reply]
    )
    (verdict,) = result.verdicts
    assert (verdict.verdict, verdict.summary, verdict.edit) == ("redundant", "same as b", "cite")
    assert verdict.redundant_with == ("b",)  # neither itself nor a skill that isn't there
    assert verdict.score == pytest.approx(0.8 / 3, abs=1e-12)  # scores never come from the model
    assert [r.purpose for r in requests] == ["optimizer/aggregate"]
    assert '"mean_credit": 0.4' in requests[0].messages[1].content


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ModelError("gone"), "call_failed"),
        ("nonsense", "not_json"),
        ({"verdict": "destroy"}, "schema"),
        ({"verdict": "keep", "score": 1}, "schema"),
    ],
)
async def test_without_a_merge_the_mean_decides_and_the_failure_is_kept(reply: Any, reason: str):
    result, _ = await aggregated(
        feedback(toy.credit(-0.2)), feedback(toy.credit(-0.6, question="q2"), question="q2"), replies=[reply]
    )
    assert [r.reason for r in result.rejections] == [reason]
    assert (result.verdicts[0].verdict, result.verdicts[0].mean) == ("low_utility", pytest.approx(-0.4))


@pytest.mark.parametrize(
    ("credits", "verdict"),
    [
        ([(-0.2, "harmful"), (0.6, "helped")], "keep"),
        ([(-0.6, "harmful"), (0.2, "helped")], "low_utility"),
        ([(-0.6, "harmful"), (0.2, "helped"), (0.1, "helped")], "keep"),  # one voice of three
        ([(0.2, "redundant"), (0.3, "redundant"), (-0.9, "harmful")], "redundant"),
    ],
)
def test_the_rule_for_several_credits(credits: list[tuple[float, Any]], verdict: str):
    found = rule_verdict([toy.credit(v, question=f"q{i}", contribution=c) for i, (v, c) in enumerate(credits)])
    assert found.verdict == verdict


async def test_skills_of_one_name_and_two_agents_are_two_skills():
    result, _ = await aggregated(feedback(toy.credit(0.5), toy.credit(-0.5, agent="agent_2")))
    assert [(v.agent, v.mean) for v in result.verdicts] == [("agent_1", 0.5), ("agent_2", -0.5)]


values = st.lists(st.floats(-1, 1), min_size=1, max_size=12)


@given(values, st.randoms(use_true_random=False), st.data())
def test_the_order_of_feedback_changes_neither_mean_nor_score_nor_support(
    numbers: list[float], rng: random.Random, data: st.DataObject
):
    questions = [data.draw(st.sampled_from(["q1", "q2", "q3", "q4"])) for _ in numbers]
    credits = [toy.credit(v, question=q) for v, q in zip(numbers, questions, strict=True)]
    shuffled = rng.sample(credits, len(credits))
    one, other = rule_verdict(collapse(credits)), rule_verdict(collapse(shuffled))
    assert (one.mean, one.score, one.support) == (other.mean, other.score, other.support)
    assert one.support == len(set(questions))
    assert -1 <= one.score <= 1


CAPABILITIES = ("search each name apart", "search the names apart", "resolve relative dates", "dates", "resolve names")


@given(st.lists(st.tuples(st.sampled_from("12345"), st.sampled_from(CAPABILITIES)), max_size=12), st.randoms())
def test_the_order_of_needs_does_not_change_the_patterns(items: list[tuple[str, str]], rng: random.Random):
    needs = [need(question, capability) for question, capability in items]
    assert group_needs(needs) == group_needs(rng.sample(needs, len(needs)))
    assert sum(p.support for p in group_needs(needs)) <= len(needs)


def test_support_counts_questions_and_the_suggestion_given_most_often_comes_first():
    needs = [need(q, text) for q, text in (("q2", "cite dates"), ("q1", "cite dates"), *[("q1", "search twice")] * 2)]
    (pattern,) = group_needs(needs)
    assert (pattern.support, pattern.questions) == (2, ("q1", "q2"))
    assert pattern.suggestions == ("cite dates",)
    assert group_needs([need("q1", f"rule {i}") for i in range(9)])[0].suggestions == ("rule 0",)
    assert len(group_needs([need(f"q{i}", f"rule {i // 2}") for i in range(18)])[0].suggestions) == 6


def test_agents_and_failure_types_are_kept_apart():
    needs = [need("q1", "cite dates"), need("q2", "cite dates", agent="agent_2")]
    needs += [need("q3", "cite dates", failure_type="reasoning_error")]
    assert [p.support for p in group_needs(needs)] == [1, 1, 1]


async def test_conditioned_on_labels_the_category_with_most_support_speaks_for_a_skill():
    feedbacks = [
        feedback(toy.credit(-1.0), question="q1", category="odd"),
        feedback(toy.credit(0.4, question="q2"), question="q2", category="even"),
        feedback(toy.credit(0.8, question="q3"), question="q3", category="even"),
    ]
    replies = [{"verdict": "keep"}] * 2
    plain, _ = await aggregated(*feedbacks, replies=replies)
    conditioned, _ = await aggregated(*feedbacks, replies=replies, label_conditioned=True)
    assert (plain.verdicts[0].support, plain.verdicts[0].mean) == (3, pytest.approx(0.2 / 3))
    assert (conditioned.verdicts[0].support, conditioned.verdicts[0].mean) == (2, pytest.approx(0.6))


async def test_conditioned_on_labels_patterns_do_not_reach_across_categories():
    feedbacks = [
        feedback(question="q1", category="odd", needs=[need("q1", "cite dates")]),
        feedback(question="q2", category="even", needs=[need("q2", "cite dates")]),
    ]
    plain, _ = await aggregated(*feedbacks)
    conditioned, _ = await aggregated(*feedbacks, label_conditioned=True)
    assert [(p.support, p.category) for p in plain.patterns] == [(2, None)]
    assert [(p.support, p.category) for p in conditioned.patterns] == [(1, "odd"), (1, "even")]


async def test_needs_that_are_not_grouped_are_passed_on_one_by_one_as_they_come():
    feedbacks = [feedback(question=q, needs=[need(q, "cite dates")]) for q in ("q2", "q1")]
    alone, _ = await aggregated(*feedbacks, group_patterns=False)
    assert [(p.questions, p.suggestions, p.support) for p in alone.patterns] == [
        (("q2",), ("cite dates",), 1),
        (("q1",), ("cite dates",), 1),
    ]
