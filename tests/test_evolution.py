"""The loop: what reaches the summary, what an iteration changes, the run folder, and the ablation switches."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import toy
from test_critic import BAD_ITEMS

from skill_evolution.benchmarks.base import DataError
from skill_evolution.critic import question_key
from skill_evolution.evolution import Evolution, Models, worst_rollouts
from skill_evolution.feedback import Feedback
from skill_evolution.methods import make_evolution
from skill_evolution.models.base import Completion, ModelError, Request
from skill_evolution.models.ledger import Ledger
from skill_evolution.replies import Caller
from skill_evolution.runs import read_jsonl
from skill_evolution.skills import load_library, save_library

SKILLS = {"agent_1": (toy.skill("find"), toy.skill("look", toy.IDLE)), "agent_2": (toy.skill("short"),)}


def start(folder: Path) -> Path:
    """A folder of start libraries: find and look for agent_1, short for agent_2."""
    for library in toy.libraries(*SKILLS.values()).values():
        save_library(library, folder / library.agent)
    return folder


def evolution(folder: Path, model: Any = None, **fields: Any) -> Evolution:
    model = model or toy.ToyModel()
    return make_evolution(toy.config(folder, **fields), toy.benchmark(), toy.TEAM, Models(model, model, model))


def ledger_counts(root: Path) -> tuple[int, int, int]:
    """Calls, different calls, failures."""
    ledger = Ledger(toy.only_folder(root) / "calls.sqlite")
    try:
        return ledger.count(), ledger.count(distinct=True), ledger.count("failures")
    finally:
        ledger.close()


# Show 10: what a bad critic's reply does, through the whole loop


def quote(citation: dict[str, Any]) -> dict[str, str]:
    return {"quote": "box"} if citation.get("quote") == "Box 1 is blue" else {}


def convert(item: Any) -> Any:
    """The items of test_critic cite step 2 and 3 of its own trajectories; here agent_1 has step 1 and agent_2 2."""
    if not isinstance(item, dict) or not isinstance(item.get("citations"), list):
        return item
    steps = {1: 1, 2: 1, 3: 2, 8: 8}
    citations = [
        {**c, "rollout": {3: 2, 2: 9}.get(c["rollout"], c["rollout"]), "step": steps[c["step"]], **quote(c)}
        if isinstance(c, dict)
        else c
        for c in item["citations"]
    ]
    return {**item, "citations": citations}


async def test_no_bad_item_changes_anything_and_each_is_counted_by_its_reason(tmp_path):
    """Every bad item of test_critic in the replies to every group: libraries and utilities stay as they were."""
    halves: tuple[dict[str, list[Any]], dict[str, list[Any]]] = ({}, {})  # so that no list passes its bound
    expected: dict[str, int] = {}
    for index, (field, item, reason) in enumerate(BAD_ITEMS):
        halves[index % 2].setdefault(field, []).append(convert(item))
        expected[reason] = expected.get(reason, 0) + 2  # of four questions
    model = toy.ToyModel({"compare rollouts": lambda document, request: halves[int(request.sample_id[-1]) % 2]})
    folder = start(tmp_path / "start")
    config = toy.config(tmp_path, iterations=1, start_libraries=folder)
    summary = await toy.run(config, model, tmp_path / "runs")
    (iteration,) = summary["iterations"]
    assert iteration["critic_rejected"] == dict(sorted(expected.items()))
    assert (iteration["critic_accepted"], iteration["changes"], iteration["changes_refused"]) == (0, {}, {})
    assert iteration["utility"] == {"agent_1": {"find": 0.0, "look": 0.0}, "agent_2": {"short": 0.0}}
    for agent, skills in SKILLS.items():
        kept = load_library(toy.only_folder(tmp_path / "runs") / "libraries" / agent, agent)
        assert [(s.text, s.utility) for s in kept] == [(s.text, 0.0) for s in skills]


@pytest.mark.parametrize(
    ("reply", "reason", "failures"),
    [
        (Completion("{}", finish_reason="length"), "cut_off", 0),
        ("not JSON", "not_json", 0),
        ("[1, 2]", "not_json", 0),
        ("[" * 100_000, "not_json", 0),
        (json.dumps({"credits": [{"agent": "agent_1"}] * 1000}), "too_many_items", 0),
        (json.dumps({"credits": [[[[[]]]]]}), "schema", 0),
        (None, "call_failed", 4),
    ],
)
async def test_a_reply_that_cannot_be_read_changes_nothing_and_is_counted(
    tmp_path, reply: Any, reason: str, failures: int
):
    class Broken(toy.ToyModel):
        async def generate(self, request: Request) -> Completion:
            if request.purpose != "critic":
                return await super().generate(request)
            if reply is None:
                raise ModelError("gone")
            return reply if isinstance(reply, Completion) else Completion(reply)

    folder = start(tmp_path / "start")
    summary = await toy.run(toy.config(tmp_path, iterations=1, start_libraries=folder), Broken(), tmp_path / "runs")
    (iteration,) = summary["iterations"]
    assert iteration["critic_rejected"] == {reason: 4}
    assert (iteration["changes"], summary["failures"]["critic_calls"]) == ({}, failures)
    assert summary["libraries"] == {"agent_1": ["find", "look"], "agent_2": ["short"]}
    assert set(iteration["utility"]["agent_1"].values()) == {0.0}


# Failures: counted, never a 0, and tried again


class Failing(toy.ToyModel):
    """Fails the requests whose purpose and sample_id hold these texts, while `broken`."""

    def __init__(self, *texts: str, **options: Any) -> None:
        super().__init__(fail=self._fails, **options)
        self.texts, self.broken = texts, True

    def _fails(self, request: Request) -> bool:
        place = f"{request.purpose} {request.sample_id} "
        return self.broken and all(text in place for text in self.texts)


@pytest.mark.parametrize(
    ("texts", "kind", "count"),
    [
        (("actor/agent_2", "train/", "iteration1/train-0/1/"), "rollouts", 1),
        (("actor/agent_1", "train/", "iteration1/train-0/"), "rollouts", 4),
        (("critic", "iteration1/train-2 "), "critic_calls", 1),
        (("optimizer/induce", "iteration1/"), "optimizer_calls", 1),
        (("optimizer/aggregate", "iteration2/"), "optimizer_calls", 1),
        (("actor/agent_1", "validation/", "validation-3/"), "validation_rows", None),
        (("actor/agent_2", "test/", "test-1/"), "test_rows", 1),
    ],
)
async def test_a_failure_is_counted_by_its_kind_and_tried_again_on_resume(
    tmp_path, texts: tuple[str, ...], kind: str, count: int | None
):
    config, root, model = (
        toy.config(tmp_path, validation_sampling={"temperature": 0}),
        tmp_path / "runs",
        Failing(*texts),
    )
    broken = await toy.run(config, model, root)
    failures = dict(broken["failures"])
    assert failures.pop("total") == sum(failures.values()) == failures[kind]
    assert failures[kind] == count if count else failures[kind] > 0
    assert ledger_counts(root)[2] > 0
    model.broken, model.requests = False, []
    whole = await toy.run(config, model, root)
    calls, different, _ = ledger_counts(root)
    assert whole["failures"]["total"] == 0
    assert calls == different
    undisturbed = await toy.run(config, toy.ToyModel(), tmp_path / "undisturbed")
    assert whole == undisturbed
    assert toy.results(toy.only_folder(root)) == toy.results(toy.only_folder(tmp_path / "undisturbed"))


async def test_what_succeeded_before_a_failure_is_not_asked_again(tmp_path):
    model = Failing("actor/agent_2", "test/", "test-1/")
    await toy.run(toy.config(tmp_path), model, tmp_path / "runs")
    model.broken, model.requests = False, []
    summary = await toy.run(toy.config(tmp_path), model, tmp_path / "runs")
    assert [r.sample_id for r in model.requests] == ["test/seed0/test-1/0/agent_2/0"]
    model.requests = []
    assert await toy.run(toy.config(tmp_path), model, tmp_path / "runs") == summary
    assert model.requests == []  # a finished run is read


async def test_a_failed_rollout_leaves_a_group_of_the_others(tmp_path):
    model = Failing("actor/agent_2", "train/", "train-0/1/", skilled=(1.0, 1.0))
    summary = await toy.run(toy.config(tmp_path, iterations=1), model, tmp_path / "runs")
    rows = read_jsonl(toy.only_folder(tmp_path / "runs") / "iterations" / "1" / "trajectories.jsonl")
    failed, *others = sorted((r for r in rows if r["question_id"] == "train-0"), key=lambda r: r["error"] is None)
    assert (failed["rollout"], failed["reward"], failed["advantage"]) == (2, None, None)
    assert "out of order" in failed["error"]
    # as a reward of 0 it would have left the others with an advantage of 1 - 3/4
    assert [r["advantage"] for r in others] == [0.0] * 3
    assert summary["iterations"][0]["train_reward"] == 1.0
    critic = next(r for r in model.requests if r.purpose == "critic" and r.sample_id.endswith("train-0"))
    assert [r["rollout"] for r in json.loads(critic.messages[1].content)["rollouts"]] == [1, 3, 4]


async def test_a_group_without_a_finished_rollout_is_not_shown_to_the_critic(tmp_path):
    model = Failing("actor", "train/", "train-0/")
    summary = await toy.run(toy.config(tmp_path, iterations=1), model, tmp_path / "runs")
    assert len([r for r in model.requests if r.purpose == "critic"]) == 3
    assert summary["iterations"][0]["failed_rollouts"] == 4


async def test_failed_test_rows_are_rows_with_their_error_and_not_0(tmp_path):
    model = Failing("actor", "test/", "test-1/", skilled=(1.0, 1.0))
    summary = await toy.run(toy.config(tmp_path), model, tmp_path / "runs")
    rows = read_jsonl(toy.only_folder(tmp_path / "runs") / "predictions.jsonl")
    assert (summary["test"], summary["test_rows"], summary["failures"]["test_rows"]) == ({"score": 1.0}, 4, 1)
    assert [(r["error"], "score" in r) for r in rows] == [
        (None, True),
        ("out of order", False),
        (None, True),
        (None, True),
    ]


async def test_no_test_row_at_all_is_no_score(tmp_path):
    summary = await toy.run(toy.config(tmp_path, iterations=0), Failing("actor", "test/"), tmp_path / "runs")
    assert (summary["test"], summary["failures"]["test_rows"]) == ({}, 4)


# Utility, hard cases, order and schedule of the operators


def test_utility_is_smoothed_over_questions_and_invocations_are_counted(tmp_path):
    loop = evolution(tmp_path)
    old = toy.libraries((toy.skill("a", utility=0.5, invocations=2), toy.skill("b", "B.", utility=-0.4)))
    feedbacks = [
        Feedback("q1", "even", credits=(toy.credit(1.0, question="q1"), toy.credit(0.0, question="q1"))),
        Feedback("q2", "odd", credits=(toy.credit(-0.3, question="q2"),)),
    ]
    groups = [toy.group(1.0, None, 0.0, used={"agent_1": ("a",)}), toy.group(1.0)]
    new = loop.record_use(old, groups, feedbacks)["agent_1"]
    a, b = new
    # q1: (1 + 0) / 2 = 0.5; mean of 0.5 and -0.3 is 0.1; 0.6 x 0.5 + 0.4 x 0.1 = 0.34; used in two finished rollouts
    assert (a.utility, a.invocations) == (pytest.approx(0.34, abs=1e-12), 4)
    assert (b.utility, b.invocations) == (-0.4, 0)
    assert new.fingerprint == old["agent_1"].fingerprint


async def test_utility_survives_a_rejected_update(tmp_path):
    credits = [{"agent": "agent_2", "skill": "short", "credit": -0.5, "citations": [{"rollout": 1, "step": 2}]}]
    replies: Any = {
        "compare rollouts": lambda document, request: {"credits": credits},
        "merge credits": lambda document, request: {"verdict": "refine", "suggested_edit": "worse"},
        "refine a skill": lambda document, request: {
            "edits": [{"op": "replace", "anchor": toy.CAREFUL, "text": "Hurry"}]
        },
    }
    folder = tmp_path / "start"
    for library in toy.libraries((), (toy.skill("short", toy.CAREFUL, utility=0.5),)).values():
        save_library(library, folder / library.agent)
    model = toy.ToyModel(replies, skilled=(1.0, 0.0))
    config = toy.config(tmp_path, iterations=1, start_libraries=folder)
    summary = await toy.run(config, model, tmp_path / "runs")
    (iteration,) = summary["iterations"]
    assert iteration["changes"] == {"refine": 1}
    assert iteration["accepted"] == {"agent_1": False, "agent_2": False}
    assert iteration["validation"]["candidates"] == {"agent_2": 0.0}
    # 0.6 x 0.5 + 0.4 x -0.5 = 0.1
    (kept,) = load_library(toy.only_folder(tmp_path / "runs") / "libraries" / "agent_2", "agent_2")
    assert (kept.body, kept.utility, kept.history) == (toy.CAREFUL, pytest.approx(0.1), ())
    assert kept.invocations == 16  # 4 questions x 4 rollouts


def test_the_worst_rollouts_of_a_patterns_questions_come_first_then_those_of_hard_questions():
    rewards = [(1.0, 0.0), (0.0, None), (1.0, 1.0), (None,), (0.0, 0.6)]
    groups = [toy.group(*row, number=number) for number, row in enumerate(rewards)]
    key = question_key(groups[2].question)
    found = worst_rollouts([*groups, *groups], (key,), 0.5)  # a repeated question counts once
    assert [t.question for t in found] == [groups[i].question for i in (2, 1, 4, 0)]
    assert [t.reward for t in found] == [1.0, 0.0, 0.0, 0.0]


async def test_a_skill_diagnosed_without_a_credit_keeps_its_utility(tmp_path: Path):
    # 0.6 u + 0.4 mean over questions with a value: the question without one has no say
    libraries = toy.libraries((toy.skill("a", utility=-0.4),), ())
    found = [toy.credit(-0.4, question="q1"), replace(toy.credit(-1.0, question="q2"), value=None)]
    feedback = [Feedback(c.question, "c", credits=(c,)) for c in found]
    (skill,) = evolution(tmp_path).record_use(libraries, [], feedback)["agent_1"]
    assert skill.utility == pytest.approx(-0.4)


async def test_a_run_without_validation_questions_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match="validation"):
        await toy.run(toy.config(tmp_path), toy.ToyModel(), tmp_path, questions=toy.benchmark(validation=0))


async def test_own_parts_belong_to_a_runs_identity(tmp_path: Path):
    """A second run with other questions must not find the first one's results."""
    settings, root = toy.config(tmp_path), tmp_path / "runs"
    first = await toy.run(settings, toy.ToyModel(), root)
    second = await toy.run(settings, toy.ToyModel(), root, questions=toy.benchmark(test=2))
    assert first["run"] != second["run"]
    assert (first["test_rows"], second["test_rows"]) == (4, 2)


async def operators_called(folder: Path, number: int, **fields: Any) -> list[str]:
    """The operators of an iteration as agent_1's skills ask for all four of them, in order."""
    cited = [{"rollout": 1, "step": 1}]

    def compare(document: dict[str, Any], request: Request) -> dict[str, Any]:
        worst = min(document["rollouts"], key=lambda r: r["reward"])
        quoted = [{"rollout": worst["rollout"], "step": 1, "quote": "Box"}]
        return {
            "credits": [
                {"agent": "agent_1", "skill": name, "credit": value, "citations": cited}
                for name, value in (("find", 0.5), ("look", -1.0), ("one", 0.5), ("two", 0.5))
            ],
            "diagnoses": [
                {"failure_type": "evidence_dropped", "agent": "agent_1", "skill": "one", "citations": quoted,
                 "action": "consolidate", "suggestion": "merge them", "redundant_with": ["two"]},
                {"failure_type": "evidence_dropped", "agent": "agent_1", "citations": quoted, "action": "induce",
                 "suggestion": "hand over all"},
            ],
        }  # fmt: skip

    def merge(document: dict[str, Any], request: Request) -> dict[str, Any]:
        verdicts = {"find": "refine", "look": "low_utility", "one": "redundant", "two": "keep"}
        return {"verdict": verdicts[document["skill"]["name"]], "suggested_edit": "more"}

    model = toy.ToyModel({"compare rollouts": compare, "merge credits": merge})
    loop = evolution(folder, model, **fields)
    skills = (toy.skill("find"), toy.skill("look", "Look."), toy.skill("one", "One."), toy.skill("two", "Two."))
    iteration = await loop.iterate(number, toy.libraries(skills))
    return [change.operator for change in iteration.workshops[0].changes]


@pytest.mark.parametrize(
    ("number", "prune_every", "operators"),
    [
        (1, 2, ["refine", "induce"]),
        (2, 2, ["refine", "consolidate", "prune", "induce"]),
        (3, 2, ["refine", "induce"]),
        (4, 2, ["refine", "consolidate", "prune", "induce"]),
        (2, 3, ["refine", "consolidate", "induce"]),
        (3, 3, ["refine", "prune", "induce"]),
        (6, 3, ["refine", "consolidate", "prune", "induce"]),
    ],
)
async def test_order_and_schedule_of_the_operators(tmp_path, number: int, prune_every: int, operators: list[str]):
    assert await operators_called(tmp_path, number, prune_every=prune_every) == operators


async def test_a_full_library_induces_only_where_an_operator_made_room(tmp_path):
    assert await operators_called(tmp_path, 1, library_cap=4) == ["refine"]
    assert await operators_called(tmp_path, 2, library_cap=3) == ["refine", "consolidate", "prune", "induce"]


async def test_a_pattern_needs_its_support(tmp_path):
    failed = 2  # of 4 training questions
    assert "induce" in await operators_called(tmp_path, 1, induction_support=failed)
    assert "induce" not in await operators_called(tmp_path, 1, induction_support=5)


# The run folder


async def test_the_run_folder_holds_what_the_conventions_name(tmp_path):
    config = toy.config(tmp_path, iterations=4, consolidate_every=2, prune_every=2)
    summary = await toy.run(config, toy.ToyModel(skilled=(0.9, 0.3)), tmp_path / "runs")
    folder = toy.only_folder(tmp_path / "runs")
    assert summary["run"] == folder.name
    assert {p.name for p in folder.iterdir() if not p.name.startswith((".", "calls.sqlite-"))} == {
        "config.json", "calls.sqlite", "iterations", "libraries", "predictions.jsonl", "summary.json"
    }  # fmt: skip
    assert sorted(p.name for p in (folder / "iterations").iterdir()) == ["1", "2", "3", "4"]
    for number in "1234":
        place = folder / "iterations" / number
        names = {"trajectories.jsonl", "feedback.jsonl", "aggregation.json", "edits.jsonl", "gate.json", "libraries"}
        assert {p.name for p in place.iterdir()} == names
        assert len(read_jsonl(place / "trajectories.jsonl")) == 16
        assert len(read_jsonl(place / "feedback.jsonl")) == 4
        for agent in toy.TEAM.agents:
            load_library(place / "libraries" / agent, agent)
    assert json.loads((folder / "summary.json").read_text()) == summary
    last = {a: load_library(folder / "libraries" / a, a) for a in toy.TEAM.agents}
    assert {a: list(library.names()) for a, library in last.items()} == summary["libraries"]
    assert {a: len(library) for a, library in last.items()} == summary["iterations"][-1]["skills"]
    edits = [e for n in "1234" for e in read_jsonl(folder / "iterations" / n / "edits.jsonl")]
    assert {e["operator"] for e in edits} >= {"induce", "refine"}
    for library in last.values():
        for skill in library:
            assert skill.history[-1].after == skill.text
            assert all(a.after == b.before for a, b in zip(skill.history, skill.history[1:], strict=False))
            assert skill.provenance in ("induced", "refined", "consolidated")


async def test_empty_runs_no_iteration_and_names_its_own_folder(tmp_path):
    summary = await toy.run(toy.config(tmp_path, method="empty"), toy.ToyModel(), tmp_path / "runs")
    assert (summary["iterations"], summary["run"]) == ([], toy.only_folder(tmp_path / "runs").name)


# Ablation switches


def by_purpose(model: toy.ToyModel, purpose: str) -> list[Request]:
    return [r for r in model.requests if r.purpose.startswith(purpose)]


async def one_iteration(folder: Path, **fields: Any) -> tuple[toy.ToyModel, Any]:
    model = toy.ToyModel()
    loop = evolution(folder, model, **fields)
    return model, await loop.iterate(1, toy.libraries(*SKILLS.values()))


async def test_without_structured_diagnosis_only_the_critics_requests_change(tmp_path):
    full, _ = await one_iteration(tmp_path)
    plain, iteration = await one_iteration(tmp_path, structured_diagnosis=False)
    schemas = [set((r.schema or {})["properties"]) for r in by_purpose(plain, "critic")]
    assert schemas == [{"credits", "feedback"}] * 4
    assert [r.messages[1] for r in by_purpose(plain, "critic")] == [r.messages[1] for r in by_purpose(full, "critic")]
    trained = [[r for r in by_purpose(m, "actor") if r.sample_id.startswith("train/")] for m in (full, plain)]
    assert trained[0] == trained[1]
    assert all(not f.diagnoses for f in iteration.feedbacks)


async def test_a_group_of_one_has_one_rollout_and_no_advantage(tmp_path):
    model, iteration = await one_iteration(tmp_path, group_size=1)
    assert [len(g.trajectories) for g in iteration.groups] == [1] * 4
    assert {a for g in iteration.groups for a in g.advantages} == {0.0}
    assert len(by_purpose(model, "critic")) == 4


async def test_dropping_equal_groups_leaves_out_just_those_at_the_critic(tmp_path):
    full, before = await one_iteration(tmp_path)
    dropped, after = await one_iteration(tmp_path, drop_equal_groups=True)
    equal = {g.question.id for g in before.groups if g.equal}
    assert 0 < len(equal) < 4
    assert before.groups == after.groups
    names = {r.sample_id.rsplit("/", 1)[1] for r in by_purpose(dropped, "critic")}
    assert names == {q.question.id for q in before.groups} - equal
    assert len(by_purpose(full, "critic")) == 4


async def test_dividing_by_the_standard_deviation_changes_advantages_only(tmp_path):
    _, plain = await one_iteration(tmp_path)
    _, scaled = await one_iteration(tmp_path, advantage_std=True)
    assert [g.trajectories for g in plain.groups] == [g.trajectories for g in scaled.groups]
    assert [g.advantages for g in plain.groups] != [g.advantages for g in scaled.groups]


async def test_label_conditioning_shows_the_category_to_the_critic(tmp_path):
    plain, _ = await one_iteration(tmp_path)
    conditioned, _ = await one_iteration(tmp_path, label_conditioned=True)
    shown = [json.loads(r.messages[1].content) for r in by_purpose(conditioned, "critic")]
    assert [s.pop("category") for s in shown] == ["even", "odd", "even", "odd"]
    assert shown == [json.loads(r.messages[1].content) for r in by_purpose(plain, "critic")]


async def test_another_critic_can_be_plugged_in(tmp_path):
    class Silent:
        async def __call__(self, group: Any, libraries: Any, caller: Caller) -> Feedback:
            return Feedback(group.question.id, group.question.category)

    model = toy.ToyModel()
    loop = Evolution(toy.config(tmp_path), toy.benchmark(), toy.TEAM, Models(model, model, model), Silent())
    iteration = await loop.iterate(1, toy.libraries())
    assert (iteration.aggregate.verdicts, iteration.libraries) == ((), toy.libraries())
