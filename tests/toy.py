"""A toy task for tests of the loop: boxes and their colours, two agents, and a model that follows simple rules."""

import asyncio
import hashlib
import itertools
import json
import os
import random
import re
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from skill_evolution.benchmarks.base import Question, QuestionSet
from skill_evolution.benchmarks.synthetic import write_demo_data
from skill_evolution.config import Config
from skill_evolution.evolution import Models
from skill_evolution.experiments import atrain, train
from skill_evolution.feedback import Credit
from skill_evolution.models.base import Completion, ModelError, Request
from skill_evolution.models.scripted import ScriptedModel
from skill_evolution.replies import Caller
from skill_evolution.rollouts import Group, Trajectory, advantages
from skill_evolution.skills import Skill, SkillLibrary
from skill_evolution.teams import Execution, Role, Step, Team

COLOURS = ("green", "blue", "red", "amber", "white")
CAREFUL = "Be careful"  # a skill that says so makes the toy answerer better
IDLE = "Do nothing"  # a skill that says so is never named as used
TEAM = Team(
    "toy",
    (
        Role("agent_1", "# Role: finder\nYou find the sentence.", sees_context=True),
        Role("agent_2", "# Role: answerer\nYou name the colour.", answers=True),
    ),
)


def question(number: int, split: str = "train") -> Question:
    """A question whose answer stands in its context."""
    colour = COLOURS[number % len(COLOURS)]
    line = f"[{split} box {number}:0] Box {number} is {colour}."
    text = f"Which colour has {split} box {number}?"
    category = "even" if number % 2 == 0 else "odd"
    return Question(f"{split}-{number}", text, colour, category, context=line, document=(line,), group=split)


def benchmark(train: int = 4, validation: int = 4, test: int = 4) -> QuestionSet:
    """So many questions a split; the reward is 1 for the right colour, else 0."""
    sizes = {"train": train, "validation": validation, "test": test}
    splits: Any = {split: tuple(question(i, split) for i in range(size)) for split, size in sizes.items()}
    return QuestionSet("toy", splits, lambda q, answer: float(answer.strip().lower() == q.answer))


def skill(name: str, body: str = "Read twice.", **fields: Any) -> Skill:
    """A skill whose id is its name unless given."""
    return Skill(name=name, description=f"Use for {name}.", body=body, **{"id": f"id-{name}", **fields})


def libraries(agent_1: tuple[Skill, ...] = (), agent_2: tuple[Skill, ...] = ()) -> dict[str, SkillLibrary]:
    """A library an agent of the toy team."""
    return {"agent_1": SkillLibrary("agent_1", agent_1), "agent_2": SkillLibrary("agent_2", agent_2)}


def execution(answer: str | None, used: Mapping[str, tuple[str, ...]] | None = None) -> Execution:
    """Three steps: a search of agent_1 in step 1, its hand-over in step 2, agent_2's answer in step 3."""
    steps = (
        Step(1, "agent_1", "call", "<grep>box</grep>"),
        Step(2, "agent_1", "handover", "[box 1:0] Box 1\n  is blue."),
        Step(3, "agent_2", "answer", f"I say <answer>{answer}</answer>"),
    )
    return Execution(answer, steps, {"agent_1": (), "agent_2": (), **(used or {})})


def group(*rewards: float | None, used: Mapping[str, tuple[str, ...]] | None = None, number: int = 1) -> Group:
    """A group with these rewards; None is a rollout that did not finish. `used` holds for every rollout."""
    asked = question(number)
    trajectories = tuple(
        Trajectory(asked, g, error="the call failed")
        if reward is None
        else Trajectory(asked, g, execution("blue" if reward else "grey", used), reward)
        for g, reward in enumerate(rewards)
    )
    return Group(asked, trajectories, advantages(rewards))


def credit(value: float, *, question: str = "q1", skill: str = "a", agent: str = "agent_1", **fields: Any) -> Credit:
    """A credit, labelled by its sign unless told otherwise."""
    label = "helped" if value > 0 else "harmful" if value < 0 else "neutral"
    return Credit(question, agent, skill, value, **{"contribution": label, **fields})


def caller(*replies: Any) -> tuple[Caller, ScriptedModel]:
    """A caller whose model gives these replies in turn (JSON, unless text, a completion or an exception)."""
    left = list(replies)

    def rule(request: Request) -> Any:
        if not left:
            return None
        reply = left.pop(0)
        return reply if isinstance(reply, str | Completion | Exception) else json.dumps(reply)

    model = ScriptedModel(rule)
    return Caller(model, Config().critic_sampling.sampling(), "place"), model


def uniform(*names: str) -> float:
    """A number in [0, 1) that depends on the names alone."""
    return int.from_bytes(hashlib.sha256("/".join(names).encode()).digest()[:8], "big") / 2**64


Answer = Callable[[dict[str, Any], Request], Any]


class ToyModel:
    """Plays both agents, the critic and the optimizer by simple rules: a function of the request alone.

    Args:
        replies: what to reply to a task instead, by the title in its system message.
        fail: requests for which a ModelError is raised.
        skilled: chance of a right answer with and without a careful skill.
    """

    context_length = 65_536

    def __init__(
        self,
        replies: Mapping[str, Answer] | None = None,
        *,
        fail: Callable[[Request], bool] = lambda request: False,
        skilled: tuple[float, float] = (0.9, 0.6),
        name: str = "toy",
    ) -> None:
        self.name = name
        self.tasks = {**TASKS, **(replies or {})}
        self.fail = fail
        self.skilled = skilled
        self.requests: list[Request] = []

    async def connect(self) -> None:
        """Nothing to get ready."""

    async def generate(self, request: Request) -> Completion:
        """The reply of the role that the system message gives."""
        self.requests.append(request)
        if self.fail(request):
            raise ModelError("out of order")
        system, user = request.messages[0].content, request.messages[-1].content
        if system.startswith("# Task:"):
            title = system.split("\n", 1)[0].removeprefix("# Task:").strip()
            reply = self.tasks[title](json.loads(user), request)
            return Completion(reply if isinstance(reply, str) else json.dumps(reply))
        skills = re.findall(r'<skill name="([^"]+)">(.*?)</skill>', system, re.DOTALL)
        names = ", ".join(name for name, text in skills if IDLE not in text) or "none"
        return Completion(f"{self._act(system, user, request)}\n<skills_used>{names}</skills_used>")

    def _act(self, system: str, user: str, request: Request) -> str:
        if "# Role: finder" in system:
            return f"<handover>{user.split('# Passages', 1)[1].split('# Question')[0].strip()}</handover>"
        right = re.search(r"is (\w+)\.", user)
        chance = self.skilled[0] if CAREFUL in system else self.skilled[1]
        good = right is not None and uniform(request.sample_id) < chance
        return f"<answer>{right[1] if right and good else 'grey'}</answer>"

    async def close(self) -> None:
        """Nothing to close."""


def _compare(document: dict[str, Any], request: Request) -> dict[str, Any]:
    """Credits the answerer's skills by the mean reward, and misses a capability where a rollout went wrong."""
    rollouts = document["rollouts"]
    first, worst = rollouts[0], min(rollouts, key=lambda r: r["reward"])
    mean = sum(r["reward"] for r in rollouts) / len(rollouts)
    cited = [{"rollout": first["rollout"], "step": 2}]
    credits = [
        {"agent": "agent_2", "skill": name, "credit": round(2 * mean - 1, 3), "citations": cited}
        for name in first["skills_used"]["agent_2"]
    ]
    reply: dict[str, Any] = {"credits": credits, "diagnoses": []}
    if worst["reward"] < 1:
        text = worst["steps"][1].get("text") or document["texts"][worst["steps"][1]["see"]]
        cited = [{"rollout": worst["rollout"], "step": 2, "quote": text}]
        need = {"agent": "agent_2", "failure_type": "reasoning_error", "suggestion": "check the colour named"}
        reply["diagnoses"] = [{**need, "citations": cited, "action": "induce"}]
    return reply


def _induce(document: dict[str, Any], request: Request) -> dict[str, Any]:
    place = request.sample_id.replace("/", " ")
    return {
        "common": "It names the wrong one.", "name": f"careful {place}", "description": "When naming.",
        "body": f"{CAREFUL} with the name: {place}.", "examples": [],
    }  # fmt: skip


def _merge(document: dict[str, Any], request: Request) -> dict[str, Any]:
    mean = document["mean_credit"]
    return {"verdict": "refine" if mean > -0.2 else "low_utility", "suggested_edit": f"mind {mean}"}


def _refine(document: dict[str, Any], request: Request) -> dict[str, Any]:
    body = document["skill"]["body"]
    return {"edits": [{"op": "insert_after", "anchor": body, "text": f" {document['suggested_edit']}."}]}


def _consolidate(document: dict[str, Any], request: Request) -> dict[str, Any]:
    return {"name": "joint", "description": "Both.", "body": " ".join(s["body"] for s in document["skills"])}


TASKS: Mapping[str, Answer] = {
    "compare rollouts": _compare,
    "assess one trajectory": lambda document, request: {},
    "merge credits": _merge,
    "refine a skill": _refine,
    "consolidate skills": _consolidate,
    "write a skill": _induce,
}


class Reordered:
    """A model whose completions come back in another order, or one at a time; what they say is unchanged."""

    def __init__(self, model: Any, *, seed: int, at_once: int = 1000) -> None:
        self.model, self.name, self.context_length = model, model.name, model.context_length
        self.rng, self.limit = random.Random(seed), asyncio.Semaphore(at_once)

    async def connect(self) -> None:
        """Nothing to get ready."""

    async def generate(self, request: Request) -> Completion:
        """The model's completion, after a random number of turns of the event loop."""
        async with self.limit:
            for _ in range(self.rng.randrange(20)):
                await asyncio.sleep(0)
            return await self.model.generate(request)

    async def close(self) -> None:
        """Nothing to close."""


def config(folder: Path, **fields: Any) -> Config:
    """A small config; its data file only gives the run an identity, the questions come from `benchmark`."""
    data = folder / "toy.json"
    if not data.exists():
        data.write_text("[]", encoding="utf-8")
    return Config(**{"profile": "toy", "data_path": data, "iterations": 2, "prune_every": 2, **fields})


async def run(settings: Config, model: Any, root: Path, *, questions: QuestionSet | None = None) -> dict[str, Any]:
    """One run of the toy team under a folder of runs; the summary."""
    models = Models(model, model, model)
    return await atrain(settings, benchmark=questions or benchmark(), team=TEAM, models=models, root=root)


def only_folder(root: Path) -> Path:
    """The one run folder under a folder of runs."""
    (folder,) = (path for path in root.iterdir() if path.is_dir())
    return folder


def results(folder: Path) -> dict[str, bytes]:
    """What must not depend on concurrency, kills or time: every file of a run but config and ledger."""
    names = ("config.json", "calls.sqlite", "calls.sqlite-wal", "calls.sqlite-shm", ".lock")
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in names)
    return {str(f.relative_to(folder)): f.read_bytes() for f in files if not f.name.endswith(".tmp")}


class Paced(ToyModel):
    """The toy model with a server's manners: a call takes a moment, and only a few run at once."""

    async def generate(self, request: Request) -> Completion:
        """The toy model's completion, after two milliseconds."""
        if not hasattr(self, "limit"):
            self.limit = asyncio.Semaphore(4)
        async with self.limit:
            await asyncio.sleep(0.002)
            return await super().generate(request)


def train_paced(folder: Path, root: Path) -> None:
    """A run long enough to be killed in the middle; for a process of its own."""
    settings = config(folder, iterations=3, group_size=3)
    asyncio.run(run(settings, Paced(), root, questions=benchmark(train=5)))


def train_until_rename(folder: Path, root: Path, number: int) -> None:
    """`train_paced`, killed just before its n-th file or folder is renamed; for a process of its own."""
    left = itertools.count(1)

    def dying(rename: Any) -> Any:
        def wrapped(self: Path, target: Any) -> Any:
            if next(left) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return rename(self, target)

        return wrapped

    Path.replace, Path.rename = dying(Path.replace), dying(Path.rename)  # type: ignore[method-assign]
    train_paced(folder, root)


def simulated_config(folder: Path, name: Any, **fields: Any) -> Config:
    """A few of the bundled generator's questions and the simulated reader."""
    data = folder / f"{name}.json"
    if not data.exists():
        write_demo_data(folder)
    sizes = {"n_train": 6, "n_validation": 5, "n_test": 6}
    return Config(**{"profile": "toy", "benchmark": name, "data_path": data, **sizes, "iterations": 2, **fields})


def train_simulated(folder: Path, root: Path, name: str = "hotpotqa") -> None:
    """A run of the simulated reader; for a process of its own."""
    train(simulated_config(folder, name, iterations=3, n_train=20), root=root)


if __name__ == "__main__":
    train_paced(Path(sys.argv[1]), Path(sys.argv[2]))
