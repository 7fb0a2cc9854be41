"""The simulated reader knows nothing but what a request's messages say, over whole iterations and runs.

What a skill is worth must show in the answers alone; gold answers are for the critic's eyes; a request's purpose, files
and benchmarks are nothing to it.
"""

import ast
import asyncio
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from simulated_cases import Recording

from skill_evolution.benchmarks.base import Question, QuestionSet, Split
from skill_evolution.grse.loop import Models
from skill_evolution.grse.summaries import iteration_summary
from skill_evolution.runs.config import load_config
from skill_evolution.runs.experiments import atrain, benchmark_of
from skill_evolution.runs.methods import make_evolution
from skill_evolution.skills import Skill, SkillLibrary
from skill_evolution.teams.team import TEAMS
from skill_evolution.testbed import reader
from skill_evolution.testbed.reader import SimulatedReader
from skill_evolution.testbed.reader.directives import DIRECTIVES

PACKAGE = Path(reader.__file__).parent


def evolution(config, model=None, benchmark=None):
    model = model or SimulatedReader()
    models = Models(model, model, model)
    return make_evolution(config, benchmark or benchmark_of(config), TEAMS[config.benchmark](), models)


# --- a skill is worth what its body does ---

# helpful body, harmful body, agent, questions on which both come into play
PAIRS = [
    ("locomo", "single_hop", "agent_1", "widen_adjacent", "one_keyword_only"),
    ("locomo", "temporal", "agent_2", "resolve_dates", "keep_relative_dates"),
    ("hotpotqa", None, "agent_1", "follow_bridge", "first_sentence_only"),
    ("hotpotqa", None, "agent_2", "shortest_span", "decline_unless_verbatim"),
]


def utilities(benchmark, category, agent, bodies):
    """Utility by name after one iteration of GRSE on the bundled questions, from a library of these bodies."""
    config = load_config("demo", benchmark=benchmark, category=category, n_train=40, n_validation=1)
    skills = tuple(Skill(name, "A habit.", DIRECTIVES[key].text, f"id-{name}") for name, key in bodies.items())
    libraries = {name: SkillLibrary(name, skills if name == agent else ()) for name in ("agent_1", "agent_2")}
    loop = evolution(config)

    async def once():
        groups = await loop.rollouts(1, libraries)
        return loop.record_use(libraries, groups, await loop.feedback(1, groups, libraries))

    return {skill.name: skill.utility for skill in asyncio.run(once())[agent]}


@pytest.mark.parametrize(("benchmark", "category", "agent", "helpful", "harmful"), PAIRS)
def test_credit_signs_swap_with_the_bodies(benchmark, category, agent, helpful, harmful):
    """The names tell the truth in the first library and lie in the second."""
    true = utilities(benchmark, category, agent, {"helpful-habit": helpful, "harmful-habit": harmful})
    lie = utilities(benchmark, category, agent, {"helpful-habit": harmful, "harmful-habit": helpful})
    assert true["helpful-habit"] > 0.005 > -0.005 > true["harmful-habit"]
    assert lie["helpful-habit"] < -0.005 < 0.005 < lie["harmful-habit"]


# --- gold answers are for the critic ---


def sentinel(question):
    """A word that stands for the gold answer of the question of this id and nowhere else."""
    return f"Goldword{re.sub('[^0-9a-zA-Z]', '', question)}z"


@pytest.fixture(scope="module", params=[("grse", "hotpotqa"), ("grse", "locomo"), ("maskills", "locomo")], ids="/".join)
def recorded(request, tmp_path_factory):
    """All calls of a training run whose gold answers are sentinels; rewards are by the true ones."""
    method, name = request.param
    sizes = {"n_train": 16, "n_validation": 6, "n_test": 6, "iterations": 3}
    config = load_config("demo", method=method, benchmark=name, **sizes)
    true = benchmark_of(config)
    by_id = {question.id: question for questions in true.splits.values() for question in questions}
    splits: dict[Split, tuple[Question, ...]] = {
        s: tuple(replace(q, answer=sentinel(q.id)) for q in questions) for s, questions in true.splits.items()
    }
    hidden = QuestionSet(name, splits, lambda question, answer: true.reward(by_id[question.id], answer))
    model = Recording()
    asyncio.run(
        atrain(config, benchmark=hidden, models=Models(model, model, model), root=tmp_path_factory.mktemp("runs"))
    )
    return {sentinel(question) for question in by_id}, model.calls


def test_only_the_critic_is_shown_gold_answers(recorded):
    sentinels, calls = recorded
    shown = Counter()
    for request, completion in calls:
        text = "\n".join(message.content for message in request.messages)
        role = request.purpose.split("/")[0]
        shown[role] += (holds := any(word in text for word in sentinels))
        assert holds == (role == "critic")
        assert not any(word in completion.text for word in sentinels)  # and what it replies passes none on
    assert shown["critic"] >= 16
    assert {request.purpose for request, _ in calls} > {"actor/agent_1", "actor/agent_2", "critic", "optimizer/induce"}


def test_the_purpose_of_a_call_is_never_read(recorded):
    _, calls = recorded
    purposes = ("", "actor/agent_2", "critic", "optimizer/induce", "a helpful skill")

    async def again(request, purpose):
        return await SimulatedReader().generate(replace(request, purpose=purpose))

    for number, (request, completion) in enumerate(calls[::7]):
        assert asyncio.run(again(request, purposes[number % len(purposes)])) == completion


# --- whole iterations on the bundled questions ---


@pytest.mark.parametrize("method", ["grse", "maskills"])
@pytest.mark.parametrize("benchmark", ["hotpotqa", "locomo"])
def test_every_reply_of_an_iteration_passes_the_checks_uncut(method, benchmark):
    """The second iteration, for it has skills to credit and to change."""
    config = load_config("demo", method=method, benchmark=benchmark, n_train=60, n_validation=10, prune_every=1)
    model = Recording()
    loop = evolution(config, model)

    async def two():
        first = await loop.iterate(1, loop.team.empty_libraries())
        return first, await loop.iterate(2, first.libraries)

    refusals = Counter()
    for iteration in asyncio.run(two()):
        summary = iteration_summary(iteration)
        assert summary["critic_rejected"] == {}
        assert summary["problems"] == {}
        assert summary["unknown_skills_named"] == 0
        refusals.update(summary["changes_refused"])
    # nothing is wrong with a reply: a full library or its last skill are not the writer's to know
    assert set(refusals) <= {"prune:last_skill", "induce:library_full", "induce:duplicate"}
    assert all(completion.finish_reason == "stop" for _, completion in model.calls)
    longest = max(completion.completion_tokens for _, completion in model.calls)
    assert longest < config.critic_sampling.max_tokens / 2
    assert longest < config.optimizer_sampling.max_tokens / 2


REAL = {name: os.environ.get(f"SKILL_EVOLUTION_{name.upper()}") for name in ("hotpotqa", "locomo")}


@pytest.mark.parametrize("method", ["grse", "maskills"])
@pytest.mark.parametrize("benchmark", ["hotpotqa", "locomo"])
def test_every_reply_on_real_questions_passes_the_checks_uncut(method, benchmark):
    if not REAL[benchmark]:
        pytest.skip(f"SKILL_EVOLUTION_{benchmark.upper()} is not set")
    sizes = {"n_train": 60, "n_validation": 10, "n_test": 1}
    config = load_config("demo", method=method, benchmark=benchmark, data_path=REAL[benchmark], **sizes)
    model = Recording()
    loop = evolution(config, model)
    summary = iteration_summary(asyncio.run(loop.iterate(1, loop.team.empty_libraries())))
    assert (summary["critic_rejected"], summary["failed_rollouts"]) == ({}, 0)
    assert all(completion.finish_reason == "stop" for _, completion in model.calls)


# --- no benchmark, no file ---


def test_it_imports_nothing_of_the_method_or_the_benchmarks():
    allowed = ("skill_evolution.models.base", "skill_evolution.testbed.reader")
    for path in sorted(PACKAGE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert all(name.startswith(allowed) for name in names if name.startswith("skill_evolution")), path
            assert not {"os", "io", "pathlib", "sqlite3", "socket", "builtins"} & {name.split(".")[0] for name in names}


_AUDITED = """
import asyncio, sys
sys.path[:0] = {folders!r}
from skill_evolution.testbed.reader import SimulatedReader, actor, critic, optimizer
assert not any("benchmarks" in name for name in sys.modules)
import test_simulated_knowledge as tests
model = tests.Recording()
for benchmark in ("hotpotqa", "locomo"):
    loop = tests.evolution(tests.load_config("demo", benchmark=benchmark, n_train=6, n_validation=2), model)
    asyncio.run(loop.iterate(1, loop.team.empty_libraries()))
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" else None)
for request, _ in model.calls:
    try:
        SimulatedReader().generate(request).send(None)
    except StopIteration:
        pass
print(len(model.calls), opened)
"""


def test_it_loads_no_benchmark_and_opens_no_file():
    code = _AUDITED.format(folders=[str(Path(__file__).parent), str(Path(__file__).parents[1] / "helpers")])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    calls, opened = done.stdout.split(" ", 1)
    assert int(calls) > 100
    assert opened.strip() == "[]"
