"""A small world and a policy that replays a script, for the tests of the agent and its chains."""

import builtins
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from skill_evolution.base import aio
from skill_evolution.sage.agent.chains import Chain, run_chain
from skill_evolution.sage.agent.code_skills import CodeSkill, extract_skills
from skill_evolution.sage.agent.episode import PolicySampling, Sample
from skill_evolution.sage.agent.world import Execution, Session, Task, World, WorldError
from skill_evolution.sage.config import AgentConfig

END, USER, MODEL = 256, 257, 258  # bytes are tokens; these open and end turns


def task(n: int = 1, scenario: str = "a", instruction: str = "Pay Ann 5 dollars") -> Task:
    return Task(f"{scenario}_{n}", scenario, "train", instruction, {})


def skill(code: str, made_in: Task | None = None) -> CodeSkill:
    [made] = extract_skills(code, made_in or task())
    return made


def block(code: str) -> str:
    return f"```python\n{code}\n```"


@dataclass
class FakeSession:
    """Runs the test's own code (nothing else comes here), with `score(x)`, `complete_task()` and `crash()` defined."""

    printed: list[str] = field(default_factory=list)
    executed: list[str] = field(default_factory=list)
    value: float = 0.0
    completed: bool = False
    closed: int = 0

    def __post_init__(self) -> None:
        self.names: dict[str, object] = {
            "print": lambda *values: self.printed.append(" ".join(map(str, values)) + "\n"),
            "score": lambda value: setattr(self, "value", value),
            "complete_task": lambda: setattr(self, "completed", True),
            "crash": self._crash,
        }

    def _crash(self) -> None:
        raise WorldError("the server was killed")

    async def execute(self, code: str) -> Execution:
        self.executed.append(code)
        self.printed.clear()
        error = None
        try:
            getattr(builtins, "exec")(code, self.names)  # noqa: B009
        except WorldError:
            raise
        except Exception as fault:
            error = f"{type(fault).__name__}: {fault}"
        return Execution("".join(self.printed) + (error or ""), error, 0, self.completed)

    async def score(self) -> float:
        return self.value

    async def close(self) -> None:
        self.closed += 1


class FakeWorld:
    name = "fake"
    splits: tuple[str, ...] = ("train",)
    overview = "Call score(x), then complete_task()."

    def __init__(self, *, unopenable: str = "") -> None:
        self.unopenable = unopenable
        self.sessions: list[FakeSession] = []

    def tasks(self, split: str) -> list[Task]:
        return [task(n) for n in (1, 2, 3)]

    async def open(self, task: Task) -> Session:
        if task.task_id == self.unopenable:
            raise WorldError(f"can't open {task.task_id}")
        self.sessions.append(FakeSession())
        return self.sessions[-1]


class ScriptedPolicy:
    """Says what `script` gives for a sample's key; an exception that it gives is raised. Records what it is fed."""

    def __init__(self, script: Callable[[str], str | Exception]) -> None:
        self.script = script
        self.fed: dict[str, tuple[int, ...]] = {}
        self.max_tokens: dict[str, int] = {}

    def prompt_ids(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        return [USER, *"".join(message["content"] for message in messages).encode(), MODEL]

    def observation_ids(self, text: str, *, cut: bool = False) -> list[int]:
        return [*([END] if cut else []), USER, *text.encode(), MODEL]

    def live(self) -> AbstractContextManager[None]:
        return nullcontext()

    async def sample(self, ids: Sequence[int], *, key: str, sampling: PolicySampling) -> Sample:
        assert key not in self.fed, f"key {key} came twice"
        self.fed[key] = tuple(ids)
        self.max_tokens[key] = sampling.max_tokens
        text = self.script(key)
        if isinstance(text, Exception):
            raise text
        drawn = [*text.encode(), END][: sampling.max_tokens]
        cut = drawn[-1:] != [END]
        kept = bytes(token for token in drawn if token < END).decode(errors="ignore")
        return Sample(tuple(drawn), tuple(-(i + 1) / 8 for i in range(len(drawn))), kept, cut)

    def prompt(self, key: str) -> str:
        """The text of the prompt that the first sample of a task was fed."""
        return bytes(token for token in self.fed[f"{key}/0"] if token < END).decode()


def says(*turns: str | Exception) -> ScriptedPolicy:
    """A policy for one task that says these in turn."""
    return ScriptedPolicy(lambda key: turns[int(key.rpartition("/")[2])])


async def run_chains(
    policy: ScriptedPolicy, world: World, chains: Sequence[Sequence[Task]], *, key: str = "0/7", group: int = 1
) -> list[Chain]:
    """G chains over each sequence of tasks, side by side, of the agent with its library and the compact prompt."""
    agent = AgentConfig(layout="compact", tokens_per_turn=4000)
    return await aio.gather(
        run_chain(policy, world, tasks, agent, key=key, temperature=1.0, index=index)
        for tasks in chains
        for index in range(group)
    )
