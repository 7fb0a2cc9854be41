"""A toy world that reads code but never runs it, and a tiny policy for it, for the tests of sampling and training."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from skill_evolution.sage.agent.episode import PolicySampling, Sample
from skill_evolution.sage.agent.world import Execution, Session, Task, WorldError
from skill_evolution.sage.config import SageConfig, load_sage_config
from skill_evolution.sage.policies.policy import LocalPolicy
from skill_evolution.sage.policies.tiny import tiny_llama, train_tokenizer

TEXTS = [
    "paint the wall red blue green now",
    '```python\ndef paint(colour):\n    pass\npaint("red")\ndone()\n```',
    "ok cut",
]
COLOURS = ("red", "blue", "green")
SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "intermediate_size": 32, "max_position_embeddings": 512}


class ToySession:
    """Scores code by what stands in it: `half` and `full` set the score, `done` completes, `crash` breaks the world."""

    def __init__(self) -> None:
        self.value = 0.0

    async def execute(self, code: str) -> Execution:
        if "crash" in code:
            raise WorldError("the server was killed")
        await asyncio.sleep(0)
        self.value = 1.0 if "full" in code else 0.5 if "half" in code else self.value
        return Execution("seen", None, 0, "done" in code)

    async def score(self) -> float:
        return self.value

    async def close(self) -> None:
        pass


class ToyWorld:
    name = "toy"
    splits: tuple[str, ...] = ("train", "dev")
    overview = "Paint."

    def __init__(self, scenarios: int = 3) -> None:
        self.scenarios = scenarios

    def tasks(self, split: str) -> list[Task]:
        names = [f"{split}{n}" for n in range(self.scenarios)]
        return [
            Task(f"{name}_{n + 1}", name, split, f"paint the wall {colour}", {})
            for name in names
            for n, colour in enumerate(COLOURS)
        ]

    async def open(self, task: Task) -> Session:
        return ToySession()


def toy_policy(*, seed: int = 0, cls: type[LocalPolicy] = LocalPolicy, **options: Any) -> LocalPolicy:
    tokenizer = train_tokenizer(TEXTS)
    return cls(tiny_llama(tokenizer, seed=seed, **SMALL), tokenizer, **options)


class SayingPolicy(LocalPolicy):
    """Says what `say` gives for a sample's key, in ids of its tokenizer; the model is there to be trained.

    None never answers.
    """

    say: Callable[[str], str | Exception | None] = staticmethod(lambda key: "")

    async def sample(self, ids: Sequence[int], *, key: str, sampling: PolicySampling) -> Sample:
        await asyncio.sleep(0)
        text = self.say(key)
        if text is None:
            await asyncio.Event().wait()
            raise AssertionError("no one sets this event")
        if isinstance(text, Exception):
            raise text
        turn = tuple(self.turn_ids(text)[: sampling.max_tokens])
        return Sample(turn, (-1.0,) * len(turn), text, cut=turn[-1] != self.tokenizer.eos_token_id)


def code(*lines: str) -> str:
    return "\n".join(["```python", *lines, "```"])


def varied(key: str) -> str:
    """Code that depends on the key alone, of several lengths and scores."""
    number = hashlib.sha256(key.encode()).digest()[0]
    return ("no code", code("half", "done()"), code("full = 1", "done()"), code("paint", "half", "done()"))[number % 4]


def toy_config(**overrides: Any) -> SageConfig:
    """The demo profile made small: a step of 2 scenarios x 2 tasks x 2 chains."""
    agent = {"turns": 3, "tokens_per_turn": 24, "context": 256}
    grpo = {"scenarios": 2, "group": 2, "steps": 3, "evaluate_every": None, "warmup_steps": 0, "schedule": "constant"}
    values = {"agent": agent | overrides.pop("agent", {}), "grpo": grpo | overrides.pop("grpo", {})}
    return load_sage_config("demo", **values, **overrides)
