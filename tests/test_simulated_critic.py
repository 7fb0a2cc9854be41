"""The simulated reader as a critic, over the real prompts, payload and checks: what it credits and how it replies."""

import asyncio
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_cases import (
    ASKS,
    BORN,
    GOOD,
    HOTPOTQA,
    LOCOMO,
    MISSED,
    PASSAGES,
    PUPPY,
    RAN,
    TELLS,
    Recording,
    group,
    judge,
    libraries,
    only_diagnosis,
    search,
    skill,
    values,
)

from skill_evolution.benchmarks.base import Question
from skill_evolution.critic import GroupCritic
from skill_evolution.methods.maskills import TrajectoryCritic
from skill_evolution.models.base import Message, ModelError, Request, Sampling
from skill_evolution.models.simulated import SimulatedReader
from skill_evolution.models.simulated.directives import DIRECTIVES
from skill_evolution.models.simulated.judging import CAPABILITIES
from skill_evolution.teams import Execution, Step

# --- credit ---


def test_credit_is_the_contrast_of_an_agents_own_part():
    shelf = libraries(
        [skill("wide", "widen_adjacent"), skill("idle", body="Be kind.")], [skill("short", "shortest_span")]
    )
    wide = replace(GOOD, used={"agent_1": ("wide", "idle"), "agent_2": ("short",)})
    worded = replace(GOOD, answer="it is Pepper", used={"agent_1": ("wide", "idle"), "agent_2": ()})
    missed = replace(MISSED, used={"agent_1": ("idle",), "agent_2": ("short",)})
    feedback = judge(LOCOMO, group(PUPPY, (1.0, wide), (0.4, worded), (0.0, missed)), shelf)
    # agent_1: enough handed over in both runs with "wide", not without; "idle" was there throughout.
    # agent_2: the run without evidence doesn't count; 1.0 with "short" against 0.4 without.
    assert values(feedback) == {("agent_1", "wide"): 1.0, ("agent_2", "short"): pytest.approx(0.6)}


def test_sign_follows_the_outcome_whatever_name_and_text_say():
    for body in (DIRECTIVES["shortest_span"].text, DIRECTIVES["full_sentence"].text):
        shelf = libraries(second=[skill("helper", body=body)])
        for sign in (1, -1):
            runs = [(0.5 + 0.5 * sign, ("helper",)), (0.5 - 0.5 * sign, ())]
            made = [(reward, replace(GOOD, used={"agent_1": (), "agent_2": used})) for reward, used in runs]
            assert values(judge(LOCOMO, group(PUPPY, *made), shelf))["agent_2", "helper"] == sign


def test_a_skill_had_no_occasion_where_nothing_was_found():
    """By hand, agent_1's outcomes: 1, 0, 0 and (nothing found) 0."""
    shelf = libraries([skill("late", "latest_session_only"), skill("early", "stem_search")])
    dropped = search(("puppy", f"{ASKS}\n{TELLS}"), handed=ASKS)
    nothing = search(("pets", "No line matches."), handed="")
    runs = [
        (1.0, replace(GOOD, used={"agent_1": ("late",), "agent_2": ()})),
        (0.0, replace(dropped, used={"agent_1": ("late",), "agent_2": ()})),
        (0.0, replace(dropped, used={"agent_1": ("early",), "agent_2": ()})),
        (0.0, replace(nothing, used={"agent_1": (), "agent_2": ()})),
    ]
    # "late": 1/2 against 0 either way. "early" was in use where something was found, so 0 against 1/2, not against 1/3.
    assert values(judge(LOCOMO, group(PUPPY, *runs), shelf)) == {("agent_1", "late"): 0.5, ("agent_1", "early"): -0.5}
    # "late" only harms where it has an occasion: without the third run there is nothing to compare it with.
    assert values(judge(LOCOMO, group(PUPPY, runs[0], runs[3]), shelf)) == {}
    # Followed where nothing was found it needs no occasion: 0 against 1 with all runs compared.
    early = (0.0, replace(nothing, used={"agent_1": ("early",), "agent_2": ()}))
    assert values(judge(LOCOMO, group(PUPPY, runs[0], early), shelf)) == {("agent_1", "early"): -1.0}


@pytest.mark.parametrize("key", list(DIRECTIVES))
def test_no_contrast_no_credit_whatever_the_text_says(key):
    shelf = libraries([skill("rule", key)], [skill("rule", key)])
    used = {agent: ("rule",) for agent in shelf}
    for bad in (MISSED, replace(GOOD, answer="it is Pepper")):
        feedback = judge(LOCOMO, group(PUPPY, (0.2, replace(bad, used=used)), (0.2, replace(bad, used=used))), shelf)
        assert [credit.value for credit in feedback.credits if credit.value is not None] == []
        assert all(diagnosis.action != "prune" for diagnosis in feedback.diagnoses)


def test_the_skill_that_the_comparison_speaks_against_most_is_to_go():
    shelf = libraries([skill("idle", body="Be kind."), skill("odd", body="Be quick.")])
    bad = replace(MISSED, used={"agent_1": ("idle", "odd"), "agent_2": ()})
    fair = replace(MISSED, used={"agent_1": ("idle",), "agent_2": ()})
    runs = group(PUPPY, (1.0, replace(GOOD, used={"agent_1": ("idle",), "agent_2": ()})), (0.0, bad), (0.0, fair))
    feedback = judge(LOCOMO, runs, shelf)
    assert values(feedback) == {("agent_1", "odd"): -0.5}  # 0 against the mean of 1 and 0; "idle" was there throughout
    assert [(d.skill, d.action) for d in feedback.diagnoses] == [("odd", "prune"), (None, "induce")]


def test_a_skill_that_stands_against_what_was_missing_is_to_be_refined():
    shelf = libraries(second=[skill("wordy", "full_sentence")])
    worded = replace(GOOD, answer="it is Pepper", used={"agent_1": (), "agent_2": ("wordy",)})
    feedback = judge(LOCOMO, group(PUPPY, (1.0, GOOD), (0.4, worded)), shelf)
    assert [(d.skill, d.action) for d in feedback.diagnoses] == [("wordy", "refine"), (None, "induce")]
    assert [c.edit for c in feedback.credits] == [CAPABILITIES["shortest_span"]]


def test_a_skill_that_the_comparison_speaks_for_is_not_diagnosed():
    """In use in the failed run too, and contrary to what was missing there; yet runs with it did better."""
    shelf = libraries(second=[skill("only", "full_sentence")])
    used = [replace(GOOD, used={"agent_1": (), "agent_2": names}) for names in (("only",), ("only",), ())]
    feedback = judge(LOCOMO, group(PUPPY, (1.0, used[0]), (0.5, used[1]), (0.0, used[2])), shelf)
    assert values(feedback)["agent_2", "only"] == 0.75
    assert all(d.skill is None for d in feedback.diagnoses)


def test_needs_are_what_no_skill_covers():
    runs = group(PUPPY, (1.0, GOOD), (0.0, MISSED))
    assert [need.capability for need in judge(LOCOMO, runs, libraries()).needs] == [CAPABILITIES["widen_adjacent"]]
    assert judge(LOCOMO, runs, libraries([skill("wide", "widen_adjacent")])).needs == ()
    plain = judge(LOCOMO, runs, libraries(), structured_diagnosis=False)
    assert [(need.capability, need.failure_type) for need in plain.needs] == [
        (CAPABILITIES["widen_adjacent"], "unspecified")
    ]
    assert plain.diagnoses == ()


def test_a_skill_that_speaks_of_diagnoses_does_not_change_the_form_of_the_reply():
    shelf = libraries([skill("doctor", body='Give "diagnoses".')])
    assert judge(LOCOMO, group(PUPPY, (0.0, MISSED)), shelf, structured_diagnosis=False).diagnoses == ()


@pytest.mark.parametrize("reward", [0.0, 0.3, 0.5, 0.8, 1.0])
def test_a_single_trajectory_credits_what_was_present_by_the_reward(reward):
    shelf = libraries([skill("wide", "widen_adjacent"), skill("first", "first_match_only")], [])
    run = replace(GOOD, used={"agent_1": ("wide", "first"), "agent_2": ()})
    feedback = judge(LOCOMO, group(PUPPY, (reward, run)), shelf, critic=TrajectoryCritic)
    assert values(feedback) == {("agent_1", name): pytest.approx(2 * reward - 1) for name in ("wide", "first")}
    assert {credit.contribution for credit in feedback.credits} == {"helped" if reward > 0.5 else "harmful"}


def test_a_single_trajectory_is_blamed_by_the_same_rules():
    for bad in (MISSED, search(("puppy", f"{ASKS}\n{TELLS}"), handed=ASKS), replace(GOOD, answer="the pet")):
        runs = group(PUPPY, (0.2, bad))
        (need,) = judge(LOCOMO, runs, libraries(), critic=TrajectoryCritic).needs
        assert (need.agent, "", need.capability) == (lambda d: (d[0], "", d[2]))(
            only_diagnosis(LOCOMO, runs, libraries())
        )


def test_a_single_trajectory_names_twins_and_repairs():
    twin = DIRECTIVES["full_sentence"].text
    shelf = libraries(second=[skill("wordy", body=twin), skill("verbose", body=f"Mind: {twin}")])
    run = replace(GOOD, answer="it is Pepper", used={"agent_1": (), "agent_2": ("wordy",)})
    (credit,) = judge(LOCOMO, group(PUPPY, (0.4, run)), shelf, critic=TrajectoryCritic).credits
    assert (credit.contribution, credit.redundant_with, credit.edit) == (
        "redundant", ("verbose",), CAPABILITIES["shortest_span"]
    )  # fmt: skip


# --- what a reply may hold ---


def test_nothing_of_the_gold_answer_stands_outside_the_quotations():
    for bad in (MISSED, replace(GOOD, answer="it is Pepper"), search(("x", TELLS), handed=ASKS)):
        for critic, options in (
            (GroupCritic, {}),
            (GroupCritic, {"structured_diagnosis": False}),
            (TrajectoryCritic, {}),
        ):
            model = Recording()
            runs = group(PUPPY, (0.1, bad)) if critic is TrajectoryCritic else group(PUPPY, (1.0, GOOD), (0.1, bad))
            judge(LOCOMO, runs, libraries(), critic=critic, model=model, **options)
            reply = json.loads(model.calls[0][1].text)
            for diagnosis in reply.get("diagnoses", ()):
                del diagnosis["citations"]
            assert "pepper" not in json.dumps(reply).lower()
            assert len(reply) >= 2


# --- odd cases ---


def test_a_cut_payload_gives_no_wrong_quotation():
    long = " ".join(f"[D3:{n}] (1:00 pm on 2 May, 2023) Ann: word{n} spoken once." for n in range(2000))
    runs = group(PUPPY, (0.0, search(("puppy", long), handed=long)), (0.0, search(("pet", long), handed=long + " end")))
    feedback = judge(LOCOMO, runs, libraries(), model=Recording(context_length=8000))
    assert feedback.cuts > 0
    assert feedback.diagnoses


def test_a_step_too_short_to_quote_proves_nothing():
    short = Execution(
        "7", (Step(1, "agent_1", "handover", "Esk"), Step(2, "agent_2", "answer", "7")), {"agent_1": (), "agent_2": ()}
    )
    feedback = judge(HOTPOTQA, group(BORN, (0.0, short)), libraries())
    assert (feedback.diagnoses, feedback.needs) == ((), ())


def test_more_credits_than_a_reply_holds():
    names = [f"rule-{n}" for n in range(20)]
    shelf = libraries([skill(name, body=f"Be kind {name}.") for name in names])
    runs = [(1.0, replace(GOOD, used={"agent_1": names, "agent_2": ()})), (0.0, MISSED)]
    assert len(judge(LOCOMO, group(PUPPY, *runs), shelf).credits) == 16
    assert len(judge(LOCOMO, group(PUPPY, runs[0]), shelf, critic=TrajectoryCritic).credits) == 16


TEXTS = st.text(alphabet=st.characters(codec="utf-8"), max_size=60) | st.sampled_from(
    ["", "NO_EVIDENCE", ASKS, TELLS, RAN, PASSAGES, "<handover>", "[... 50 characters cut ...]", "yes", "a, b"]
)
RUNS = st.tuples(
    st.floats(0, 1),
    st.lists(st.tuples(TEXTS, TEXTS), max_size=2),
    TEXTS,
    TEXTS | st.none(),
    st.booleans(),
    st.booleans(),
)


@settings(max_examples=60)
@given(st.lists(RUNS, min_size=1, max_size=4), TEXTS, TEXTS, TEXTS, st.sampled_from(list(DIRECTIVES)))
def test_any_group_gets_a_reply_that_passes_every_check(runs, question, gold, context, key):
    asked = Question("q", question, gold, "any", context=context)
    made = [
        (round(reward, 3), search(*turns, handed=handed, answer=answer, first=("a",) * one, second=("b",) * two))
        for reward, turns, handed, answer, one, two in runs
    ]
    shelf = libraries([skill("a", key)], [skill("b", key), skill("c", key, body="Also be kind.")])
    for critic, options in ((GroupCritic, {}), (GroupCritic, {"structured_diagnosis": False}), (TrajectoryCritic, {})):
        judge(LOCOMO, group(asked, *made), shelf, critic=critic, **options)


def _requests():
    for critic, runs in ((GroupCritic, ((1.0, GOOD), (0.0, MISSED))), (TrajectoryCritic, ((0.0, MISSED),))):
        model = Recording()
        judge(LOCOMO, group(PUPPY, *runs), libraries(), critic=critic, model=model)
        yield [message.content for message in model.calls[0][0].messages]


@pytest.mark.parametrize(
    ("place", "pattern", "text", "message"),
    [
        ("system", r"# Team\n", "# Crew\n", "no section '# Team'"),
        ("system", r'"answers": true', '"answers": false', "exactly one agent"),
        ("system", r'"skills": ', '"skills": 1, "x": ', "agents.0.skills"),
        ("system", r"\}\s*\Z", "", "JSON"),
        ("user", r'"gold_answer"', '"gold"', "field gold_answer"),
        ("user", r'"rollouts": \[.*\]', '"rollouts": []', "field rollouts"),
        ("user", r'"reward": [\d.]+', '"reward": "high"', "field rollouts.0.reward"),
        ("user", r'"text": "[^"]*"', '"see": "T99"', "'T99'"),
        ("user", r"\A.*\Z", "", "JSON"),
    ],
)
def test_an_invalid_request_is_an_error_that_names_the_place(place, pattern, text, message):
    for system, user in _requests():
        texts = {"system": system, "user": user}
        texts[place] = re.sub(pattern, lambda _: text, texts[place], flags=re.DOTALL)
        assert texts != {"system": system, "user": user}
        messages = (Message("system", texts["system"]), Message("user", texts["user"]))
        with pytest.raises(ModelError, match=re.escape(message)):
            asyncio.run(SimulatedReader().generate(Request(messages, Sampling(), "critic", "s")))
