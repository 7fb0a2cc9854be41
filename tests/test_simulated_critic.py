"""The simulated reader as a critic, over the real prompts, payload and checks: whom it blames and what it credits."""

import asyncio
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skill_evolution.benchmarks.base import Question
from skill_evolution.config import Config
from skill_evolution.critic import GroupCritic
from skill_evolution.feedback import Feedback
from skill_evolution.methods.maskills import TrajectoryCritic
from skill_evolution.models.base import Message, ModelError, Request, Sampling
from skill_evolution.models.simulated import SimulatedReader
from skill_evolution.models.simulated.directives import DIRECTIVES, recognise
from skill_evolution.models.simulated.judging import CAPABILITIES, holds_answer
from skill_evolution.replies import Caller
from skill_evolution.rollouts import Group, Trajectory, advantages
from skill_evolution.skills import Skill, SkillLibrary
from skill_evolution.teams import Execution, Role, Step, Team, hotpotqa_team, locomo_team

LOCOMO, HOTPOTQA = locomo_team(), hotpotqa_team()
ASKS = "[D3:7] (1:00 pm on 2 May, 2023) Ben: What is the puppy called?"
TELLS = "[D3:8] (1:00 pm on 2 May, 2023) Ann: Pepper, after long debates."
PUPPY = Question("q1", "What is the puppy of Ann called?", "Pepper", "single_hop", group="conv-1")
WHEN = Question("q2", "When did Ann run the marathon?", "1 May 2023", "temporal", group="conv-1")
RAN = "[D3:2] (1:00 pm on 2 May, 2023) Ann: I ran the marathon yesterday."
MILL, BURNT = "[The Mill:0] The mill was built by Ann Ray.", "[The Mill:1] It burnt down."
BIRTH = "[Ann Ray:0] Ann Ray was born in Esk."
PASSAGES = f"{MILL}\n{BURNT}\n\n{BIRTH}"
BORN = Question("q3", "Where was the builder of the mill born?", "Esk", "bridge", context=PASSAGES)


class Recording:
    """The simulated reader, keeping requests and completions."""

    def __init__(self, context_length=65_536):
        self.model, self.name, self.context_length, self.calls = SimulatedReader(), "s", context_length, []

    async def generate(self, request):
        completion = await self.model.generate(request)
        self.calls.append((request, completion))
        return completion


def skill(name, *keys, body=""):
    return Skill(name, "A habit.", "\n".join([*(DIRECTIVES[key].text for key in keys), body]).strip(), f"id-{name}")


def search(*turns, handed="", answer: str | None = "", first=(), second=()):
    """A rollout of the LoCoMo team; `turns` are (pattern, lines found), `first` and `second` the skills used."""
    steps = []
    for pattern, found in turns:
        steps += [("agent_1", "call", f"<grep>{pattern}</grep>"), ("agent_1", "result", f"# Search result\n{found}")]
    return rollout(steps, handed, answer, first, second)


def read(handed, answer: str | None, first=(), second=()):
    """A rollout of the HotpotQA team."""
    return rollout([], handed, answer, first, second)


def rollout(steps, handed, answer, first, second):
    steps = [
        *steps,
        ("agent_1", "handover", f"<handover>{handed or 'NO_EVIDENCE'}</handover>"),
        ("agent_2", "answer", f"<answer>{answer or 'NO_ANSWER'}</answer>"),
    ]
    numbered = tuple(Step(i, *step) for i, step in enumerate(steps, start=1))
    return Execution(answer or None, numbered, {"agent_1": tuple(first), "agent_2": tuple(second)})


def group(question, *runs):
    """A group from (reward, execution) pairs."""
    trajectories = tuple(Trajectory(question, i, execution, reward) for i, (reward, execution) in enumerate(runs))
    return Group(question, trajectories, advantages([t.reward for t in trajectories]))


def libraries(first=(), second=()):
    return {"agent_1": SkillLibrary("agent_1", tuple(first)), "agent_2": SkillLibrary("agent_2", tuple(second))}


def judge(team, group, libraries, *, critic: Any = GroupCritic, model: Any = None, **options) -> Feedback:
    model = model or Recording()
    caller = Caller(model, Config().critic_sampling.sampling(), "critic")
    feedback = asyncio.run(critic(team, **options)(group, libraries, caller))
    assert feedback.rejections == ()
    assert all(completion.finish_reason == "stop" for _, completion in model.calls)
    return feedback


def only_diagnosis(*args, **options):
    (diagnosis,) = judge(*args, **options).diagnoses
    return diagnosis.agent, diagnosis.failure_type, diagnosis.suggestion


GOOD = search(("puppy", ASKS), (r"\[(D3:(6|8))\]", TELLS), handed=f"{ASKS}\n{TELLS}", answer="Pepper")
MISSED = search(("puppy", ASKS), handed=ASKS, answer="")

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


# --- credit ---


def values(feedback):
    return {(credit.agent, credit.skill): credit.value for credit in feedback.credits}


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


def test_no_contrast_no_credit_but_what_narrows_a_failure_is_suspected():
    shelf = libraries([skill("first", "first_match_only"), skill("idle", body="Be kind.")])
    bad = replace(MISSED, used={"agent_1": ("first", "idle"), "agent_2": ()})
    feedback = judge(LOCOMO, group(PUPPY, (0.0, bad), (0.0, bad)), shelf)
    assert values(feedback) == {("agent_1", "first"): -0.5}
    assert [(d.skill, d.action) for d in feedback.diagnoses] in ([("first", "refine")], [("first", "prune")])


def test_a_skill_that_stands_against_what_was_missing_is_to_be_refined():
    shelf = libraries(second=[skill("wordy", "full_sentence")])
    worded = replace(GOOD, answer="it is Pepper", used={"agent_1": (), "agent_2": ("wordy",)})
    feedback = judge(LOCOMO, group(PUPPY, (1.0, GOOD), (0.4, worded)), shelf)
    (diagnosis,) = feedback.diagnoses
    assert (diagnosis.skill, diagnosis.action) == ("wordy", "refine")
    assert [c.edit for c in feedback.credits] == [CAPABILITIES["shortest_span"]]


def test_a_skill_that_the_comparison_speaks_for_is_not_diagnosed():
    """In use in the failed run too, and narrow by its words; but the runs with it went better than the one without."""
    shelf = libraries(second=[skill("only", body="Give only what is asked for.")])
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


def test_capabilities_name_their_behaviour_and_nothing_else():
    for key, text in CAPABILITIES.items():
        assert [d.key for d, _ in recognise(text)] == ([key] if key != "conclude" else [])
        assert 3 <= len(text.split()) <= 9


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


# --- odd cases ---

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


def test_a_cut_payload_gives_no_wrong_quotation():
    long = " ".join(f"[D3:{n}] (1:00 pm on 2 May, 2023) Ann: word{n} spoken once." for n in range(2000))
    runs = group(PUPPY, (0.0, search(("puppy", long), handed=long)), (0.0, search(("pet", long), handed=long + " end")))
    feedback = judge(LOCOMO, runs, libraries(), model=Recording(context_length=8000))
    assert feedback.cuts > 0
    assert feedback.diagnoses


def test_a_step_too_short_to_quote_is_blamed_without_a_diagnosis():
    short = Execution(
        "7", (Step(1, "agent_1", "handover", "Esk"), Step(2, "agent_2", "answer", "7")), {"agent_1": (), "agent_2": ()}
    )
    feedback = judge(HOTPOTQA, group(BORN, (0.0, short)), libraries())
    assert (feedback.diagnoses, [need.agent for need in feedback.needs]) == ((), ["agent_2"])


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
