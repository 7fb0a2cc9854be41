"""How the simulated reader judges hand-made rollouts: whom it blames, for what, and what it says was missing."""

from dataclasses import replace
from typing import Any

import pytest
from simulated_cases import (
    ASKS,
    BIRTH,
    BORN,
    BURNT,
    GOOD,
    HOTPOTQA,
    LOCOMO,
    MILL,
    MISSED,
    PUPPY,
    RAN,
    TELLS,
    WHEN,
    group,
    judge,
    libraries,
    only_diagnosis,
    read,
    search,
    skill,
    values,
)

from skill_evolution.skills import SkillLibrary
from skill_evolution.teams.team import Execution, Role, Step, Team
from skill_evolution.testbed.reader.directives import recognise
from skill_evolution.testbed.reader.judging import CAPABILITIES, holds_answer

# --- blame ---


@pytest.mark.parametrize(
    ("bad", "blame"),
    [
        (MISSED, ("agent_1", "retrieval_miss", "widen_adjacent")),
        (search(("puppy", f"{ASKS}\n{TELLS}"), handed=ASKS), ("agent_1", "evidence_dropped", "quote_all")),
        (search(("puppy", ASKS), handed=TELLS, answer=""), ("agent_2", "wrong_abstention", "commit_likely")),
        (
            search(("puppy", ASKS), handed=TELLS, answer="Ann said: Pepper, after long debates"),
            ("agent_2", "answer_format", "shortest_span"),
        ),
        (search(("puppy", ASKS), handed=TELLS, answer="Ben"), ("agent_2", "reasoning_error", "conclude")),
    ],
)
def test_blame_goes_to_the_agent_at_fault(bad, blame):
    agent, failure_type, key = blame
    found = only_diagnosis(LOCOMO, group(PUPPY, (1.0, GOOD), (0.1, bad)), libraries())
    assert found == (agent, failure_type, CAPABILITIES[key])


@pytest.mark.parametrize(
    ("pattern", "key"),
    [
        (r"\bpupp", "stem_search"),  # a word's beginning that the other run searched in full
        (r"\bpuppy\b|\bcalled\b", "each_hop"),
        (r"\[(D3:(6|8))\]", "widen_adjacent"),
    ],
)
def test_what_a_search_lacked_is_read_off_the_better_run(pattern, key):
    better = search((r"\bpuppy\b" if key == "widen_adjacent" else pattern, ASKS), (pattern, TELLS), handed=TELLS)
    worse = search((r"\bpuppy\b", ASKS), handed=ASKS)
    found = only_diagnosis(LOCOMO, group(PUPPY, (0.9, better), (0.0, worse)), libraries())
    assert found == ("agent_1", "retrieval_miss", CAPABILITIES[key])


def test_without_a_better_run_the_lack_is_a_guess_that_the_question_settles():
    guesses = set()
    for number in range(30):
        question = replace(PUPPY, text=f"What is puppy {number} of Ann called?")
        guesses.add(found := only_diagnosis(LOCOMO, group(question, (0.0, MISSED)), libraries()))
        assert found == only_diagnosis(LOCOMO, group(question, (0.0, MISSED), (0.0, MISSED)), libraries())
    assert {guess[2] for guess in guesses} == {CAPABILITIES[k] for k in ("widen_adjacent", "each_hop", "stem_search")}


@pytest.mark.parametrize(
    ("question", "good", "bad", "key"),
    [
        (BORN, f"{MILL}\n{BIRTH}", BURNT, "follow_bridge"),
        (replace(BORN, answer="built by Ann Ray"), MILL, BURNT, "whole_context"),
        (replace(BORN, text="Are Esk and Dor both towns?", answer="yes"), f"{MILL}\n{BIRTH}", MILL, "both_entities"),
    ],
)
def test_what_a_reader_lacked_is_read_off_the_better_run_or_the_passages(question, good, bad, key):
    runs = ((1.0, read(good, question.answer)), (0.0, read(bad, "no idea")))
    agent, failure_type, capability = only_diagnosis(HOTPOTQA, group(question, *runs), libraries())
    assert (agent, failure_type, capability) == ("agent_1", "evidence_dropped", CAPABILITIES[key])
    if key != "both_entities":  # whether a lone run had enough can't be told for "yes"
        assert only_diagnosis(HOTPOTQA, group(question, runs[1]), libraries())[2] == CAPABILITIES[key]


@pytest.mark.parametrize(
    ("handed", "answer", "blame"),
    [
        (RAN, "yesterday", ("agent_2", "reasoning_error", "resolve_dates")),
        (RAN, "I ran it on 1 May 2023", ("agent_2", "answer_format", "shortest_span")),
        ("[D4:1] (1:00 pm on 9 June, 2023) Ann: This marathon is next to us.", "next", ("agent_1", "retrieval_miss")),
    ],
)
def test_a_date_may_be_told_by_the_session_and_a_relative_expression(handed, answer, blame):
    bad = search(("marathon", handed), handed=handed, answer=answer)
    agent, failure_type, capability = only_diagnosis(LOCOMO, group(WHEN, (0.2, bad)), libraries())
    assert (agent, failure_type) == blame[:2]
    assert agent == "agent_1" or capability == CAPABILITIES[blame[2]]


@pytest.mark.parametrize(
    ("gold", "answer", "blame"),
    [
        ("kettle, vase", "kettle", ("reasoning_error", "list_all")),
        ("kettle, vase", "kettle and vase", ("answer_format", "list_all")),
        ("yes", "Yes, they are the same", ("answer_format", "yes_no")),
        ("yes", "no", ("reasoning_error", "conclude")),
        ("Likely yes", "camping", ("reasoning_error", "commit_likely")),
    ],
)
def test_what_an_answer_lacked_is_read_off_the_gold_answer(gold, answer, blame):
    line = "[D1:1] (1:00 pm on 2 May, 2023) Ann: The kettle, the vase, the camping: all the same."
    bad = search(("kettle", line), handed=line, answer=answer)
    found = only_diagnosis(LOCOMO, group(replace(PUPPY, answer=gold), (0.3, bad)), libraries())
    assert found == ("agent_2", blame[0], CAPABILITIES[blame[1]])


def test_a_good_run_is_no_failure():
    feedback = judge(LOCOMO, group(PUPPY, (0.51, GOOD), (1.0, GOOD)), libraries())
    assert (feedback.diagnoses, feedback.needs) == ((), ())


def test_where_the_gold_words_do_not_tell_a_successful_runs_evidence_does():
    """ "Wealthy" stands nowhere; the run that concluded it shows which turn is needed."""
    question = replace(PUPPY, answer="Wealthy")
    good = search(("flat", TELLS), handed=TELLS, answer="Wealthy")
    same = search(("flat", TELLS), handed=TELLS, answer="")
    other = search(("flat", ASKS), handed=ASKS, answer="")
    assert only_diagnosis(LOCOMO, group(question, (1.0, good), (0.0, same)), libraries())[0] == "agent_2"
    assert only_diagnosis(LOCOMO, group(question, (1.0, good), (0.0, other)), libraries())[0] == "agent_1"


def test_every_line_of_a_successful_runs_evidence_is_needed_where_the_words_do_not_tell():
    """Both towns lie in Pell: what is told of one of them shares most of its words with what is told of the other."""
    question = replace(BORN, text="Are the mill and the Dor inn in the same region?", answer="yes")
    mill, inn = "[The Mill:1] The mill lies in the region of Pell.", "[Dor Inn:2] The inn lies in the region of Pell."
    more = f"{mill}\n[The Mill:2] The mill was built by two people of the region."
    good, bad = read(f"{mill}\n{inn}", "yes"), read(more, "no")
    assert only_diagnosis(HOTPOTQA, group(question, (1.0, good), (0.0, bad)), libraries())[0] == "agent_1"
    assert (
        only_diagnosis(HOTPOTQA, group(question, (1.0, good), (0.0, replace(good, answer="no"))), libraries())[0]
        == "agent_2"
    )


@pytest.mark.parametrize(
    ("text", "gold", "held"),
    [
        ("He bought a copper kettle.", "the copper kettle", True),
        ("He bought a kettle.", "copper kettle", False),
        ("anything", "", None),
        ("anything", "yes", None),
        ("anything", "No, she dislikes it", None),
        ("anything", "Likely no", None),
        ("No Country is a film.", "No Country", True),
        ("[D1:1] (1:00 pm on 8 May, 2023) Ann: Last week.", "The week before 8 May 2023", True),
        ("[D1:1] (1:00 pm on 8 May, 2023) Ann: Last month.", "April 2023", True),
        ("[D1:1] (1:00 pm on 8 May, 2023) Ann: Next month.", "April 2023", False),
        ("built in 1986", "1986", True),
    ],
)
def test_holding_the_answer(text, gold, held):
    assert holds_answer(text, gold) is held


ALONE = Team("alone", (Role("agent_1", "# Role: all", answers=True),))
THREE = Team(
    "three",
    (
        Role("agent_1", "# Role: reader\n# Team\n", sees_context=True),
        Role("agent_2", "# Role: reader"),
        Role("agent_3", "# Role: answerer", answers=True),
    ),
)


def three(first, second, answer, used=None):
    texts: list[Any] = [("agent_1", "handover", first), ("agent_2", "handover", second), ("agent_3", "answer", answer)]
    steps = tuple(Step(i, *text) for i, text in enumerate(texts, start=1))
    return Execution(answer, steps, {"agent_1": (), "agent_2": (), "agent_3": (), **(used or {})})


def test_a_team_of_one_is_to_blame_itself():
    run = Execution("in Dor", (Step(1, "agent_1", "answer", "<answer>in Dor</answer>"),), {"agent_1": ()})
    found = only_diagnosis(ALONE, group(BORN, (0.0, run)), {"agent_1": SkillLibrary("agent_1")})
    assert found == ("agent_1", "reasoning_error", CAPABILITIES["conclude"])


def test_of_three_agents_the_first_at_which_the_runs_part_is_blamed():
    mill, born = MILL, BIRTH
    shelf = {
        agent: SkillLibrary(agent, (skill(f"{agent.replace('_', '-')}-rule", body="Be kind."),))
        for agent in THREE.agents
    }
    used = {"agent_1": ("agent-1-rule",), "agent_2": ("agent-2-rule",)}
    for better, agent in (
        (three(f"{mill}\n{born}", mill, "Esk", used), "agent_1"),
        (three(mill, born, "Esk", used), "agent_2"),
    ):
        runs = group(BORN, (1.0, better), (0.0, three(mill, mill, "the mill")))
        feedback = judge(THREE, runs, shelf)
        assert [d.agent for d in feedback.diagnoses] == [agent]
        # whoever is not at fault in the worse run can't be judged by it
        assert values(feedback) == {(agent, f"{agent.replace('_', '-')}-rule"): 1.0}
    assert only_diagnosis(THREE, group(BORN, (0.0, three(mill, mill, "the mill"))), shelf)[0] == "agent_1"


def test_capabilities_name_their_behaviour_and_nothing_else():
    for key, text in CAPABILITIES.items():
        assert [d.key for d, _ in recognise(text)] == ([key] if key != "conclude" else [])
        assert 3 <= len(text.split()) <= 9
