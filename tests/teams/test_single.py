"""Single-model baselines: what they send, how they vote, stop and cut, and that their runs are like the others'."""

import re
from pathlib import Path

import pytest
import toy
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import ScriptedModel

from skill_evolution.base.settings import ConfigError
from skill_evolution.benchmarks.base import Question, QuestionSet
from skill_evolution.grse.loop import Models
from skill_evolution.grse.rollouts import run_once
from skill_evolution.models.base import Completion, Message, ModelError, Request, Sampling
from skill_evolution.runs.config import Config, load_config
from skill_evolution.runs.experiments import atrain, main_grid, predictions, usage
from skill_evolution.runs.folder import read_jsonl
from skill_evolution.teams.single import BASELINES, majority, newest_sessions
from skill_evolution.teams.team import Call, Execution
from skill_evolution.testbed.reader import SimulatedReader

PASSAGES = Question("q1", "What colour is the box?", "red", "bridge", context="[Box:0] The box is red.")
TURNS = tuple(
    f"[D{day}:{turn}] (May {day}, 2023) Ann: I gave my word {day}{turn} times in May."
    for day in (1, 2, 3)
    for turn in (1, 2)
)
TALK = Question("q2", "What did Ann say?", "word", "single_hop", document=TURNS, group="conv-1")
GREEDY = Sampling(temperature=0)


def replies(*texts: str | Completion | Exception) -> ScriptedModel:
    """A model that gives these replies in the order of its calls' names, and none after the last."""
    left = list(texts)
    return ScriptedModel(lambda request: left.pop(0) if left else None)


async def execute(method: str, model: ScriptedModel, question: Question = PASSAGES) -> Execution:
    return await BASELINES[method].execute(question, {}, Call(model, GREEDY, "test/seed0/q1/0"))


@pytest.mark.parametrize("method", list(BASELINES))
async def test_a_call_is_one_user_message_with_the_source_and_the_question(method: str) -> None:
    model = ScriptedModel(lambda request: "<answer>red</answer> NO_CHANGE")
    await execute(method, model)
    for request in model.requests:
        (message,) = request.messages
        assert message.role == "user"
        assert message.content.startswith("# Passages\n[Box:0] The box is red.\n\n# ")  # shared by all methods
        assert "\n\n# Question\nWhat colour is the box?" in message.content
        assert request.schema is None
        assert request.purpose == "actor/single"
        assert request.sample_id.startswith("test/seed0/q1/0/single/")
    assert len({request.sample_id for request in model.requests}) == len(model.requests)


@pytest.mark.parametrize(
    ("method", "calls", "temperature", "max_tokens"),
    [
        ("direct", 1, 0, 1024),
        ("cot", 1, 0, 1024),
        ("cot_sc", 5, 0.7, 1024),
        ("self_refine", 2, 0, 1024),
        ("full_context", 1, 0, 32),
    ],
)
async def test_sampling_is_the_papers(method: str, calls: int, temperature: float, max_tokens: int) -> None:
    """FACTS A "baselines": five samples at 0.7, all others greedy, full context at most 32 tokens."""
    model = ScriptedModel(lambda request: "<answer>red</answer> NO_CHANGE")
    await execute(method, model, TALK)
    assert [r.sampling for r in model.requests] == [Sampling(temperature=temperature, max_tokens=max_tokens)] * calls


# --- replies ---


@pytest.mark.parametrize(
    ("reply", "answer", "problems"),
    [
        ("I think <answer>red</answer>", "red", ()),
        ("<answer>blue</answer> no, <answer>red</answer>", "red", ("ambiguous_reply",)),
        ("It is red.", "It is red.", ("untagged_answer",)),
        ("<answer>red", "red", ("broken_tags",)),
        ("<answer>NO_ANSWER</answer>", None, ()),
        ("", None, ("untagged_answer", "empty_answer")),
        (Completion("<answer>re", finish_reason="length"), "re", ("broken_tags", "cut_off")),
    ],
)
async def test_replies_are_read_and_counted_as_the_teams_are(reply, answer, problems) -> None:
    execution = await execute("cot", replies(reply))
    assert (execution.answer, execution.problems) == (answer, problems)


async def test_a_failed_call_is_a_failed_row() -> None:
    model = replies(ModelError("out of order"))
    trajectory = await run_once(BASELINES["direct"], toy.benchmark(), PASSAGES, {}, Call(model, GREEDY, "s"))
    assert (trajectory.execution, trajectory.reward, trajectory.error) == (None, None, "out of order")


# --- self-consistency ---


def tag(answer: str) -> str:
    return f"So <answer>{answer}</answer>"


@pytest.mark.parametrize(
    ("samples", "answer"),
    [
        ([tag("A"), tag("A"), tag("A"), tag("B"), ""], "A"),
        ([tag("red"), tag("blue"), tag("The Blue."), tag("green"), tag("x")], "blue"),  # normalised they are equal
        ([tag("x"), tag("b"), tag("a"), tag("a"), tag("b")], "b"),  # two each: the one whose first sample came first
        ([tag("NO_ANSWER"), tag("no answer"), tag("x"), tag("y"), tag("z")], None),  # declining is an answer
        ([tag("A"), "B", "B", "B", "B"], "A"),  # without a tag there is no vote ...
        (["It is B", "C", "D", "it is b.", "E"], "It is B"),  # ... unless no sample has one
        (["", "", "<answer></answer>", "", ""], None),
    ],
)
async def test_self_consistency_takes_the_majority(samples: list[str], answer: str | None) -> None:
    execution = await execute("cot_sc", replies(*samples))
    assert execution.answer == answer
    assert [step.text for step in execution.steps] == samples
    assert execution.problems.count("untagged_answer") == sum("<answer>" not in sample for sample in samples)


async def test_five_unparsable_samples_are_a_declined_answer_with_five_problems() -> None:
    execution = await execute("cot_sc", replies(*[Completion("", finish_reason="length")] * 5))
    assert execution.answer is None
    assert execution.problems.count("cut_off") == execution.problems.count("empty_answer") == 5


async def test_samples_stand_in_their_own_order_whatever_order_they_come_in() -> None:
    model = ScriptedModel(lambda request: tag(f"answer {request.sample_id[-1]}"))
    ordered = await execute("cot_sc", model)
    for seed in range(3):
        reordered = toy.Reordered(model, seed=seed)
        execution = await BASELINES["cot_sc"].execute(PASSAGES, {}, Call(reordered, GREEDY, "test/seed0/q1/0"))
        assert execution == ordered


@given(st.lists(st.sampled_from(["a", "The a", "b", "c", "NO_ANSWER"]), max_size=7))
def test_majority_is_one_of_the_most_frequent_and_the_earliest_of_them(answers: list[str]) -> None:
    keys = [answer.lower().removeprefix("the ") for answer in answers]
    most = max((keys.count(key) for key in keys), default=0)
    expected = next((answer for answer, key in zip(answers, keys, strict=True) if keys.count(key) == most), "")
    assert majority(answers) == expected


# --- self-refine ---


async def test_self_refine_stops_when_the_feedback_finds_nothing() -> None:
    model = replies(tag("blue"), "The box is red, not blue.", tag("red"), "Right now: NO_CHANGE.")
    execution = await execute("self_refine", model)
    assert (execution.answer, execution.problems) == ("red", ())
    assert [step.kind for step in execution.steps] == ["answer", "feedback", "answer", "feedback"]
    revise = model.requests[2].messages[0].content
    assert "# Answer given\nblue\n\n# Feedback on it\nThe box is red, not blue.\n" in revise


async def test_self_refine_ends_after_three_rounds() -> None:
    model = replies(tag("1"), "wrong", tag("2"), "wrong", tag("3"), "wrong", tag("4"))
    assert (await execute("self_refine", model)).answer == "4"
    assert len(model.requests) == 7


async def test_self_refine_without_feedback_or_revision_keeps_the_answer_and_counts() -> None:
    execution = await execute("self_refine", replies(tag("red"), "too long", "", " "))
    assert execution.answer == "red"
    assert execution.problems == ("untagged_answer", "empty_answer", "empty_feedback")


async def test_self_refine_shows_a_declined_answer_as_such() -> None:
    model = replies("", "Line 0 says red.", tag("red"), "NO_CHANGE")
    assert (await execute("self_refine", model)).answer == "red"
    assert "# Answer given\nNO_ANSWER\n" in model.requests[1].messages[0].content


# --- what doesn't fit ---


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=5),
    st.integers(-5, 400),
)
def test_newest_sessions_are_whole_and_as_many_as_fit(turns: list[int], room: int) -> None:
    lines = [f"[D{day}:{turn}] text {day * turn}" for day, n in enumerate(turns, 1) for turn in range(1, n + 1)]
    kept = newest_sessions(lines, room)
    assert list(kept) == lines[len(lines) - len(kept) :]
    assert not kept or sum(len(line) + 1 for line in kept) <= room
    last = [line for line in lines if line.startswith(f"[D{len(turns)}:")]
    if sum(len(line) + 1 for line in last) <= room:
        day = int(kept[0][2 : kept[0].index(":")])
        assert kept[0] == f"[D{day}:1] text {day}"  # a session's first turn
        longer = [line for line in lines if int(line[2 : line.index(":")]) >= day - 1]
        assert len(kept) == len(lines) or sum(len(line) + 1 for line in longer) > room
    else:
        longer = last[-len(kept) - 1 :]
        assert len(kept) < len(last)
        assert sum(len(line) + 1 for line in longer) > room


def talk_call(model: ScriptedModel, *, context_length: int) -> Call:
    model.context_length = context_length
    return Call(model, Sampling(temperature=0, max_tokens=10), "s")


@pytest.mark.parametrize("method", list(BASELINES))
async def test_oldest_sessions_are_cut_and_the_prompt_and_the_row_say_so(method: str) -> None:
    model = ScriptedModel(lambda request: "<answer>word</answer> NO_CHANGE")
    await BASELINES[method].execute(TALK, {}, talk_call(model, context_length=10_000))
    longest = max(len(r.messages[0].content) for r in model.requests)
    assert "left out" not in model.requests[0].messages[0].content
    cut = ScriptedModel(*model.rules)
    # Two and a half characters a token; some characters short of the whole.
    execution = await BASELINES[method].execute(TALK, {}, talk_call(cut, context_length=10 + int((longest - 10) / 2.5)))
    prompt = max((r.messages[0].content for r in cut.requests), key=len)
    assert len(prompt) <= longest - 10
    assert re.search(r"# Conversation\n\(The oldest 2 lines are left out[^\n]*\n\[D2:1\] ", prompt)
    assert execution.lines_cut == 2
    assert execution.problems == ("context_cut",)


async def test_where_not_even_a_turn_fits_the_model_is_asked_all_the_same() -> None:
    """It refuses, and the refusal is the row's error: nothing is lost in silence."""
    model = ScriptedModel(lambda request: ModelError("the prompt does not fit"))
    with pytest.raises(ModelError, match="does not fit"):
        await BASELINES["full_context"].execute(TALK, {}, talk_call(model, context_length=20))


async def test_passages_are_never_cut() -> None:
    model = ScriptedModel(lambda request: tag("red"))
    execution = await BASELINES["direct"].execute(PASSAGES, {}, talk_call(model, context_length=20))
    assert execution.lines_cut == 0
    assert PASSAGES.context in model.requests[0].messages[0].content


# --- runs ---


@pytest.mark.parametrize("method", list(BASELINES))
async def test_a_run_leaves_rows_and_summary_and_resumes_what_failed(method: str, tmp_path: Path) -> None:
    settings = toy.config(tmp_path, method=method, benchmark="locomo")
    failing = {"test-2"}

    def rule(request: Request) -> Completion | ModelError:
        if any(name in request.sample_id for name in failing):
            return ModelError("out of order")
        colour = re.search(r"is (\w+)\.", request.messages[0].content)
        assert colour
        return Completion(f"<answer>{colour[1]}</answer> NO_CHANGE", prompt_tokens=7)

    model = ScriptedModel(rule)
    questions = QuestionSet("toy", {**toy.benchmark().splits, "train": (), "validation": ()}, toy.benchmark().score)

    async def run() -> dict:
        models = Models(model, model, model)
        return await atrain(settings, benchmark=questions, team=toy.TEAM, models=models, root=tmp_path / "runs")

    summary = await run()
    calls = len(model.requests)
    assert summary["failures"] == {
        "rollouts": 0, "critic_calls": 0, "optimizer_calls": 0, "validation_rows": 0, "test_rows": 1, "total": 1,
    }  # fmt: skip
    assert (summary["test"], summary["test_rows"]) == ({"score": 1.0}, 4)
    assert (summary["libraries"], summary["iterations"]) == ({}, [])
    failing.clear()
    assert (await run())["failures"]["total"] == 0
    a_question = {"cot_sc": 5, "self_refine": 2}.get(method, 1)
    assert len(model.requests) - calls == a_question  # what was answered before is replayed
    rows = read_jsonl(toy.only_folder(tmp_path / "runs") / "predictions.jsonl")
    assert [row["answer"] for row in rows] == [q.answer for q in questions.splits["test"]]


def test_real_grid_and_frames_hold_the_baselines(tmp_path: Path) -> None:
    """The bundled data and the simulated reader, one category."""
    grid = main_grid(methods=["empty", "direct", "full_context"], seeds=[1, 2], overrides={"n_test": 3})
    configs = [c for c in grid if c.category == "temporal"]
    assert [(c.method, c.seed) for c in configs] == [("empty", 1), ("empty", 2), ("direct", 1), ("full_context", 1)]
    from skill_evolution.runs.experiments import train

    summaries = [train(config, root=tmp_path) for config in configs]
    assert all(s["failures"]["total"] == 0 for s in summaries)
    frame = predictions(configs, root=tmp_path)
    assert set(frame["method"]) == {"empty", "direct", "full_context"}
    assert frame["f1"].notna().to_list() == [True] * len(frame)
    costs = usage(configs, root=tmp_path)
    assert set(costs.query("method == 'direct'")["purpose"]) == {"actor/single"}


def test_main_grid_runs_baselines_once_and_where_they_apply() -> None:
    grid = main_grid(methods=["grse", *BASELINES], seeds=[0, 1, 2])
    tasks = {m: [(c.benchmark, c.category, c.seed) for c in grid if c.method == m] for m in ("grse", *BASELINES)}
    categories = ["multi_hop", "temporal", "open_domain", "single_hop"]
    assert len(tasks["grse"]) == 18
    locomo = {("locomo", category, 0) for category in categories}
    assert set(tasks["full_context"]) == locomo
    for method in BASELINES.keys() - {"full_context"}:
        assert set(tasks[method]) == locomo | {("hotpotqa", None, 0)}
        assert len(tasks[method]) == 5


async def test_full_context_is_refused_on_hotpotqa(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="full_context is not applicable to hotpotqa"):
        await atrain(load_config("demo", method="full_context"), root=tmp_path)


def test_every_method_of_the_config_exists() -> None:
    from typing import get_args

    from skill_evolution.runs.methods import METHODS

    assert get_args(Config.model_fields["method"].annotation) == tuple(METHODS)


# --- the simulated reader alone ---


async def alone(content: str) -> str:
    message = Message("user", content)
    return (await SimulatedReader().generate(Request((message,), GREEDY, "actor/single", "s"))).text


async def test_the_reader_answers_and_checks_alone() -> None:
    source = "# Passages\n[Mill:0] The mill was built by Ann Ray.\n\n# Question\nWho built the mill?\n\n"
    answer = "# Form of your reply\nGive <answer>your answer</answer>."
    check = "\n\n# Form of your reply\nReply with NO_CHANGE or what is wrong."
    assert "Ann Ray" in await alone(source + answer)
    given = re.sub(r"</?answer>", "", await alone(source + answer))
    assert await alone(f"{source}# Answer given\n{given}{check}") == "NO_CHANGE"
    assert "Ann Ray" in await alone(f"{source}# Answer given\nBob{check}")


async def test_the_reader_alone_needs_a_form_and_a_question() -> None:
    with pytest.raises(ModelError, match="system message"):
        await alone("# Question\nWho built the mill?")
    with pytest.raises(ModelError, match="# Question"):
        await alone("# Form of your reply\nGive <answer>your answer</answer>.")
