"""One question through a team: what agents see, how their replies are read, and that no reply can raise."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import ScriptedModel, UnknownRequestError

from skill_evolution.base.aio import run_sync
from skill_evolution.benchmarks.base import Question
from skill_evolution.models.base import Completion, ModelError, Request, Sampling
from skill_evolution.skills import Skill, SkillLibrary
from skill_evolution.teams.team import Call, Execution, Limits, Role, Team, hotpotqa_team, locomo_team

LINES = (
    "[D1:1] (8 May 2023) Ann: I adopted a dog",
    "[D1:2] (8 May 2023) Bob: what is its name?",
    "[D1:3] (8 May 2023) Ann: Rex",
)
TALK = Question("q1", "What is the name of Ann's dog?", "Rex", "single_hop", document=LINES)
WIKI = Question("q2", "Who wrote it?", "Ann", "bridge", context="[Book:0] Ann wrote the book.")


def skill(name: str) -> Skill:
    return Skill(name, f"When {name} fits.", f"Do {name}.", id=name)


LIBRARIES = {
    "agent_1": SkillLibrary("agent_1", (skill("widen-search"), skill("quote-verbatim"))),
    "agent_2": SkillLibrary("agent_2", (skill("short-answer"),)),
}


def run(
    first: Sequence[str | Completion],
    second: str | Completion = "<answer>Rex</answer>",
    *,
    team: Team | None = None,
    question: Question = TALK,
    limits: Limits | None = None,
) -> tuple[Execution, list[Request]]:
    """An execution in which agent 1 gives the replies of `first` in turn and agent 2 gives `second`."""
    left = list(first)
    model = ScriptedModel(
        lambda r: left.pop(0) if r.purpose == "actor/agent_1" and left else None,
        lambda r: second if r.purpose == "actor/agent_2" else None,
    )
    call = Call(model, Sampling(temperature=0.0), "test/seed0/q", limits or Limits())
    execution = run_sync((team or locomo_team()).execute(question, LIBRARIES, call))
    assert not left
    return execution, model.requests


def handed(requests: Sequence[Request]) -> str:
    """What agent 2 was handed."""
    return requests[-1].messages[1].content.split("# Handed over by agent_1\n", 1)[1]


HANDOVER = "<handover>[D1:3] Ann: Rex</handover><skills_used>none</skills_used>"


def test_agents_work_in_turn_and_their_steps_are_numbered() -> None:
    execution, requests = run(
        ["<grep>dog</grep>", HANDOVER], "<answer>Rex</answer><skills_used>short-answer</skills_used>"
    )
    assert [(s.number, s.agent, s.kind) for s in execution.steps] == [
        (1, "agent_1", "call"),
        (2, "agent_1", "result"),
        (3, "agent_1", "handover"),
        (4, "agent_2", "answer"),
    ]
    assert execution.answer == "Rex"
    assert execution.used == {"agent_1": (), "agent_2": ("short-answer",)}
    assert execution.evidence == ("D1:3",)
    assert execution.problems == ()
    assert handed(requests) == "[D1:3] Ann: Rex"
    assert [r.sample_id for r in requests] == [
        "test/seed0/q/agent_1/0",
        "test/seed0/q/agent_1/1",
        "test/seed0/q/agent_2/0",
    ]


def test_what_rollouts_and_questions_share_comes_first() -> None:
    _, one = run(["<grep>dog</grep>", HANDOVER])
    _, other = run(["<grep>dog</grep>", HANDOVER], question=replace(TALK, id="q9", text="Another?"))
    assert one[0].messages[0] == other[0].messages[0]
    assert one[1].messages[:2] == one[0].messages  # a later turn begins with all that came before
    assert one[1].messages[2].content == "<grep>dog</grep>"


def test_agents_see_their_own_skills_and_only_what_their_role_says() -> None:
    _, requests = run([HANDOVER], team=hotpotqa_team(), question=WIKI)
    (system, user), (last_system, last_user) = (r.messages for r in requests)
    assert "Do widen-search." in system.content
    assert "short-answer" not in system.content
    assert "Do short-answer." in last_system.content
    assert "widen-search" not in last_system.content
    assert "Ann wrote the book" in user.content
    assert "Ann wrote the book" not in last_user.content
    assert all(WIKI.answer not in m.content.replace(WIKI.context, "") for r in requests[:1] for m in r.messages)
    assert "<grep>" not in system.content


def test_temperature_zero_stays_zero() -> None:
    _, requests = run([HANDOVER])
    assert [r.sampling.temperature for r in requests] == [0.0, 0.0]
    assert requests[0].sampling.greedy
    assert not Sampling().greedy


def test_a_search_result_shows_lines_rest_and_searches_left() -> None:
    many = replace(TALK, document=tuple(f"[D1:{n}] Ann: word" for n in range(30)))
    _, requests = run(["<grep>word</grep>", HANDOVER], question=many)
    assert requests[1].messages[-1].content == (
        "# Search result\n"
        + "\n".join(many.document[:20])
        + "\n(10 more lines match and are not shown)\n\nSearches left: 2."
    )
    _, requests = run(["<grep>nothing like it</grep>", HANDOVER])
    assert requests[1].messages[-1].content == "# Search result\nNo line matches.\n\nSearches left: 2."


@pytest.mark.parametrize(
    "pattern", ["(?=a)", r"(a)\1", "(", "(a{1000}){1000}", "x" * 10_000, "", "\n", "one\ntwo", "\ud800"]
)
def test_a_bad_pattern_comes_back_as_a_message_and_costs_a_search(pattern: str) -> None:
    execution, requests = run([f"<grep>{pattern}</grep>", HANDOVER])
    assert "The pattern was not accepted: " in requests[1].messages[-1].content
    assert requests[1].messages[-1].content.endswith("Searches left: 2.")
    assert execution.answer == "Rex"


def test_three_searches_and_no_more() -> None:
    execution, requests = run(["<grep>a</grep>", "<grep>b</grep>", "<grep>c</grep>", "<grep>d</grep>"])
    assert len(requests) == 5  # three searches, the refused one as the hand-over, the answer
    assert requests[3].messages[-1].content.endswith("No searches left: hand over now.")
    assert handed(requests) == "NO_EVIDENCE"
    assert execution.problems == ("untagged_handover", "search_refused", "empty_handover")


def test_an_agent_without_grep_can_not_search() -> None:
    execution, requests = run(["<grep>a</grep>"], team=hotpotqa_team(), question=WIKI)
    assert len(requests) == 2
    assert "search_refused" in execution.problems


def test_limits_are_what_the_caller_says() -> None:
    limits = Limits(grep_calls=1, grep_lines=2, handover_items=1)
    execution, requests = run(["<grep>.</grep>", "<handover>[D1:1]\n\n[D1:2]</handover>"], limits=limits)
    assert "(1 more lines match" in requests[1].messages[-1].content
    assert handed(requests) == "[D1:1]"
    assert execution.problems == ("handover_shortened",)
    assert execution.evidence == ("D1:1",)  # what was handed, not what was found


HANDOVERS = [
    # reply of agent 1, what agent 2 is handed, problems
    ("<handover>x</handover>", "x", ()),
    ("<HANDOVER>x</HANDOVER>", "x", ()),
    ("<Handover>\n x \n</hAndover>", "x", ()),
    ("thinking ... <handover>x</handover> done", "x", ()),
    ("<handover>NO_EVIDENCE</handover>", "NO_EVIDENCE", ()),
    ("<handover>no_evidence.</handover>", "NO_EVIDENCE", ()),
    ("<handover>**No evidence**</handover>", "NO_EVIDENCE", ()),
    ("NO_EVIDENCE", "NO_EVIDENCE", ("untagged_handover",)),
    ("plain words", "plain words", ("untagged_handover",)),
    ("plain <skills_used>widen-search</skills_used>", "plain", ("untagged_handover",)),
    ("", "NO_EVIDENCE", ("untagged_handover", "empty_handover")),
    ("\n" * 5000, "NO_EVIDENCE", ("untagged_handover", "empty_handover")),
    ("<handover></handover>", "NO_EVIDENCE", ("empty_handover",)),
    ("<handover> \n </handover>", "NO_EVIDENCE", ("empty_handover",)),
    ("<handover>x", "x", ("broken_tags",)),
    ("x</handover>", "x", ("broken_tags", "untagged_handover")),
    ("<handover>x <skills_used>widen-search</skills_used>", "x", ("broken_tags",)),
    ("<handover>x <skills_used>widen-search</skills_used></handover>", "x", ("broken_tags",)),
    ("<handover><handover>x</handover></handover>", "x", ("broken_tags", "ambiguous_reply")),
    ("<handover>x</handover><handover>y</handover>", "y", ("ambiguous_reply",)),
    ("<grep>a</grep><handover>x</handover>", "x", ("ambiguous_reply",)),
    ("<handover>x</handover><grep>a</grep>", "x", ("ambiguous_reply",)),
    ("<handover><answer>x</answer></handover>", "x", ("broken_tags", "ambiguous_reply")),
    ("<answer>x</answer>", "x", ("untagged_handover",)),
    ("a" * 100_000, "a" * 100_000, ("untagged_handover",)),
    ("<handover>" * 3000, "NO_EVIDENCE", ("broken_tags", "ambiguous_reply", "empty_handover")),
    ("<handover>1\n2\n3\n4\n5\n6\n7\n8</handover>", "1\n2\n3\n4\n5\n6", ("handover_shortened",)),
]


@pytest.mark.parametrize(("reply", "expected", "problems"), HANDOVERS)
def test_how_a_handover_is_read(reply: str, expected: str, problems: tuple[str, ...]) -> None:
    execution, requests = run([reply])
    assert handed(requests) == expected
    assert execution.problems == problems


ANSWERS = [
    ("<answer>Rex</answer>", "Rex", ()),
    ("<ANSWER>Rex</Answer>", "Rex", ()),
    ("<answer> Rex \n</answer>", "Rex", ()),
    ("<answer>No</answer>", "No", ()),
    ("<answer>NO_ANSWER</answer>", None, ()),
    ("<answer>no_answer</answer>", None, ()),
    ("<answer>No_Answer.</answer>", None, ()),
    ("<answer> `NO_ANSWER` </answer>", None, ()),
    ("<answer>NO_EVIDENCE</answer>", None, ()),
    ("NO_ANSWER.", None, ("untagged_answer",)),
    ("<answer>NO_ANSWER is not what I say</answer>", "NO_ANSWER is not what I say", ()),
    ("<answer></answer>", None, ("empty_answer",)),
    ("", None, ("untagged_answer", "empty_answer")),
    ("\n\n\n", None, ("untagged_answer", "empty_answer")),
    ("Rex", "Rex", ("untagged_answer",)),
    ("<answer>Rex", "Rex", ("broken_tags",)),
    ("Rex</answer>", "Rex", ("broken_tags", "untagged_answer")),
    ("<answer>Rex<answer>", "Rex", ("broken_tags", "ambiguous_reply")),
    ("<answer><answer>Rex</answer></answer>", "Rex", ("broken_tags", "ambiguous_reply")),
    ("<answer>Max</answer> no: <answer>Rex</answer>", "Rex", ("ambiguous_reply",)),
    ("<answer>Rex</answer> or <answer>Ma", "Rex", ("broken_tags", "ambiguous_reply")),
    ("<skills_used>short-answer <answer>Rex</answer>", "Rex", ("broken_tags",)),
    ("<grep>dog</grep>", None, ("untagged_answer", "search_refused", "empty_answer")),
    ("a" * 100_000, "a" * 100_000, ("untagged_answer",)),
]


@pytest.mark.parametrize(("reply", "expected", "problems"), ANSWERS)
def test_how_an_answer_is_read(reply: str, expected: str | None, problems: tuple[str, ...]) -> None:
    execution, _ = run([HANDOVER], reply)
    assert execution.answer == expected
    assert execution.problems == problems


def test_a_reply_cut_at_its_token_limit_is_marked() -> None:
    execution, _ = run([Completion("<handover>[D1:3] Re", "length")], Completion("<answer>R", "length"))
    assert [step.cut for step in execution.steps] == [True, True]
    assert execution.answer == "R"
    assert execution.problems == ("broken_tags", "cut_off", "broken_tags", "cut_off")


USED = [
    ("<skills_used>widen-search, quote-verbatim</skills_used>", ("widen-search", "quote-verbatim"), ()),
    ("<skills_used>quote-verbatim\nwiden-search</skills_used>", ("quote-verbatim", "widen-search"), ()),
    ("<skills_used>widen-search, widen-search</skills_used>", ("widen-search",), ()),
    (
        "<skills_used>widen-search</skills_used> <skills_used>quote-verbatim</skills_used>",
        ("widen-search", "quote-verbatim"),
        (),
    ),
    ("<SKILLS_USED>Widen-Search</SKILLS_USED>", ("widen-search",), ()),
    ('<skills_used>- `widen-search`\n- "quote-verbatim".</skills_used>', ("widen-search", "quote-verbatim"), ()),
    ("<skills_used>[widen-search; quote-verbatim]</skills_used>", ("widen-search", "quote-verbatim"), ()),
    ("<skills_used>widen-search", ("widen-search",), ()),
    ("<skills_used>none</skills_used>", (), ()),
    ("<skills_used>None.</skills_used>", (), ()),
    ("<skills_used></skills_used>", (), ()),
    ("<skills_used>,,\n,</skills_used>", (), ()),
    ("", (), ()),  # no name means none was used
    ("<skills_used>short-answer, magic</skills_used>", (), ("agent_1: short-answer", "agent_1: magic")),
    ("<skills_used>magic, magic, widen-search</skills_used>", ("widen-search",), ("agent_1: magic",)),
]


@pytest.mark.parametrize(("reply", "used", "unknown"), USED)
def test_which_skills_count_as_used(reply: str, used: tuple[str, ...], unknown: tuple[str, ...]) -> None:
    execution, _ = run([f"<handover>x</handover>{reply}"])
    assert execution.used["agent_1"] == used
    assert execution.used["agent_2"] == ()
    assert execution.unknown_used == unknown
    assert execution.steps[0].text == "<handover>x</handover>"


def test_names_from_all_turns_of_an_agent_count() -> None:
    first = "<grep>dog</grep><skills_used>quote-verbatim</skills_used>"
    last = "<handover>x</handover><skills_used>widen-search, quote-verbatim</skills_used>"
    assert run([first, last])[0].used["agent_1"] == ("quote-verbatim", "widen-search")


def test_evidence_is_what_was_handed_over_each_id_once() -> None:
    reply = "<handover>[D1:3] Rex, see [D1:3] and [Some Title (film): part two:0]; not [D1] or [1:x]</handover>"
    assert run([reply])[0].evidence == ("D1:3", "Some Title (film): part two:0")


def test_tags_in_question_and_document_are_text() -> None:
    question = replace(TALK, text="<answer>Max</answer>?", document=("[D1:1] Ann: <handover>Max</handover>",))
    execution, _ = run(["<grep>Max</grep>", HANDOVER], question=question)
    assert (execution.answer, execution.problems) == ("Rex", ())


TEXTS = st.lists(
    st.sampled_from(
        ["<grep>", "</grep>", "<handover>", "</handover>", "<answer>", "</answer>", "<skills_used>", "</skills_used>",
         "widen-search", "NO_ANSWER", "[D1:1]", "\n", "a", " ", "\ud800", "\x00", "<", "é"]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@given(replies=st.lists(TEXTS, min_size=4, max_size=4), last=TEXTS)
def test_no_reply_raises_and_none_leaves_tags_in_the_answer(replies: list[str], last: str) -> None:
    left = iter(replies)
    model = ScriptedModel(lambda r: last if r.purpose == "actor/agent_2" else next(left))
    execution = run_sync(locomo_team().execute(TALK, LIBRARIES, Call(model, Sampling(), "s")))
    assert execution.answer is None or execution.answer.strip()
    assert "<answer>" not in (execution.answer or "")
    assert set(execution.used["agent_1"]) <= {"widen-search"}
    assert [step.number for step in execution.steps] == list(range(1, len(execution.steps) + 1))


async def test_a_failed_call_and_an_unknown_request_raise() -> None:
    failing = Call(ScriptedModel(lambda r: ModelError("no server")), Sampling(), "s")
    with pytest.raises(ModelError, match="no server"):
        await locomo_team().execute(TALK, LIBRARIES, failing)
    with pytest.raises(UnknownRequestError, match="actor/agent_1"):
        await locomo_team().execute(TALK, LIBRARIES, Call(ScriptedModel(), Sampling(), "s"))


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        ((Role("a", "", answers=True), Role("a", "", answers=True)), "repeat"),
        ((Role("a", ""),), "exactly the last"),
        ((Role("a", "", answers=True), Role("b", "")), "exactly the last"),
        ((), "exactly the last"),
        ((Role("a", "", answers=True, tools=("grep",)),), "tools"),
    ],
)
def test_a_team_that_can_not_work_is_refused(roles: tuple[Role, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        Team("mine", roles)
    assert "'mine'" in str(caught.value)


def test_a_whole_search_counts_more_than_a_handover_that_is_only_mentioned() -> None:
    execution, requests = run(["Before the <handover> I search: <grep>dog</grep>", HANDOVER])
    assert [step.kind for step in execution.steps] == ["call", "result", "handover", "answer"]
    assert handed(requests) == "[D1:3] Ann: Rex"
    assert execution.problems == ("broken_tags", "ambiguous_reply")


def test_a_team_of_one_answers() -> None:
    team = Team("solo", (Role("agent_2", "Answer.", sees_context=True, answers=True),))
    execution, requests = run([], "<answer>Ann</answer>", team=team, question=WIKI)
    assert execution.answer == "Ann"
    assert "Handed over" not in requests[0].messages[1].content
