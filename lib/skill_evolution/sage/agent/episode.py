"""The skill-library agent: one task solved over turns of code, with the skills it is offered and those it writes.

A turn is one sample of the policy; the code blocks in it are run in the world's session and what they print, errors
included, comes back as the next observation. The ids that the policy is fed are the ones it sampled and those of the
observations, never text tokenised again.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Literal, Protocol

from skill_evolution.sage.agent.code_skills import CodeSkill, extract_skills, parses, used_skills
from skill_evolution.sage.agent.prompt import find_code, messages, observation
from skill_evolution.sage.agent.world import Execution, Session, Task, World
from skill_evolution.sage.config import AgentConfig

logger = logging.getLogger(__name__)

Ended = Literal["completed", "no_code", "turns", "context", "error", "stopped"]


@dataclass(frozen=True)
class PolicySampling:
    """How a policy samples: temperature (0 is greedy) and the most tokens of one sample."""

    temperature: float
    max_tokens: int


@dataclass(frozen=True)
class Sample:
    """What a policy sampled.

    Attributes:
        ids: Token ids as sampled, the end token included if it was.
        logprobs: The log-probability of each, at the sampling temperature.
        text: The ids as text, without the end token.
        cut: Whether max_tokens ended it.

    Raises:
        ValueError: ids and logprobs differ in length.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    cut: bool

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.logprobs):
            raise ValueError(f"a sample has {len(self.ids)} ids and {len(self.logprobs)} logprobs; one each is right")


class Policy(Protocol):
    """A model that is being trained or tested: ids in, ids out."""

    def prompt_ids(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """The ids of a chat's start, up to where the model's turn begins."""
        ...

    def observation_ids(self, text: str, *, cut: bool = False) -> list[int]:
        """The ids between two sampled turns: the observation as the user's turn, and the next one's beginning.

        After a sample that was `cut` they begin with the end token that it lacks. The text comes from outside: what
        looks like a special token in it must be encoded as plain text.
        """
        ...

    def live(self) -> AbstractContextManager[None]:
        """Entered by `run_chain` around one chain: the samples of all live chains may wait to share a batch."""
        ...

    async def sample(self, ids: Sequence[int], *, key: str, sampling: PolicySampling) -> Sample:
        """One continuation. The key names this very sample: same key and ids, same sample, whatever else runs."""
        ...


class TimedPolicy(Policy, Protocol):
    """A policy that knows how long it has sampled so far, in seconds."""

    seconds: float


@dataclass(frozen=True)
class Turn:
    """One turn: the observation's ids before it (none for the first), the sample, its code and what that did."""

    observation_ids: tuple[int, ...]
    sample: Sample
    code: str | None = None
    execution: Execution | None = None

    @property
    def unfinished(self) -> bool:
        """Whether the token limit cut the sample within a code block."""
        return find_code(self.sample.text, cut=self.sample.cut)[1]


@dataclass(frozen=True)
class Episode:
    """One task as it was worked on.

    Attributes:
        task: The task.
        key: Names it; turn t was sampled with the key `<key>/<t>`.
        prompt_ids: The ids before the first turn.
        turns: What was sampled and run.
        score: Share of the task's tests that pass at the end, in [0, 1]; 0 where `error` is set.
        completed: The code said that the task is done.
        ended: Why it ended: completed, no_code (a turn without any), turns (the limit), context (the prompt, or the
            last observation and one more token, didn't fit), error, stopped (with its chain, before the end).
        offered: Names of the skills that were loaded and shown.
        dropped: Names of the skills that failed to load; not shown.
        defined: The skills that its code defines.
        used: Names of the offered skills that its code used.
        error: Why the world or the policy failed, "TypeName: message"; None if neither did. There is then no reward.
    """

    task: Task
    key: str
    prompt_ids: tuple[int, ...] = ()
    turns: tuple[Turn, ...] = ()
    score: float = 0.0
    completed: bool = False
    ended: Ended = "error"
    offered: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    defined: tuple[CodeSkill, ...] = ()
    used: frozenset[str] = frozenset()
    error: str | None = None

    @cached_property
    def completion_ids(self) -> tuple[int, ...]:
        """All ids after the prompt. They end with sampled ones: an observation without a turn after it isn't there."""
        return tuple(chain.from_iterable((*turn.observation_ids, *turn.sample.ids) for turn in self.turns))

    @cached_property
    def logprobs(self) -> tuple[float, ...]:
        """One for each of completion_ids; 0 for those of observations."""
        pairs = ((0.0,) * len(turn.observation_ids) + turn.sample.logprobs for turn in self.turns)
        return tuple(chain.from_iterable(pairs))

    @cached_property
    def env_mask(self) -> tuple[int, ...]:
        """One for each of completion_ids: 1 sampled, 0 observation."""
        pairs = ((0,) * len(turn.observation_ids) + (1,) * len(turn.sample.ids) for turn in self.turns)
        return tuple(chain.from_iterable(pairs))

    @property
    def steps(self) -> int:
        """Turns that the policy took."""
        return len(self.turns)

    @property
    def sampled_tokens(self) -> int:
        """Tokens that the policy sampled."""
        return sum(len(turn.sample.ids) for turn in self.turns)

    @property
    def no_code(self) -> bool:
        """Whether a turn without code ended it; its reward is then -1 (FACTS B)."""
        return self.ended == "no_code"

    @property
    def success(self) -> bool:
        """Whether all tests pass and the code said that the task is done."""
        return self.completed and self.score == 1.0

    @property
    def cut(self) -> bool:
        """Whether the token limit ended any of its samples."""
        return any(turn.sample.cut for turn in self.turns)


async def run_task(
    policy: Policy,
    world: World,
    task: Task,
    agent: AgentConfig,
    *,
    skills: Sequence[CodeSkill],
    key: str,
    temperature: float,
) -> Episode:
    """Work on one task until it is completed, a turn holds no code, or a limit is reached.

    Each skill is first executed in the session; what fails is dropped and not shown. A turn that the token limit cut
    inside a code block is told so and goes on; cut before any block, it is a turn without code.

    Never raises for what the policy or the world does: their failure is the Episode's `error`, with the turns so far.
    """
    run = _Run(policy, task, agent, key, temperature)
    try:
        session = await world.open(task)
        try:
            await run.load(session, skills)
            ended = await run.converse(session, world, skills)
            return run.episode(ended, score=await session.score())
        finally:
            await _close(session, key)
    except Exception as error:  # any: a fault in one row must not cost the others their step
        logger.warning("%s: the row failed", key, exc_info=True)
        return run.episode("error", error=f"{type(error).__name__}: {error}")


async def _close(session: Session, key: str) -> None:
    try:
        await session.close()
    except Exception:  # what there was to learn from the session is known by now
        logger.warning("%s: a session could not be closed", key, exc_info=True)


@dataclass
class _Run:
    """An episode in the making."""

    policy: Policy
    task: Task
    agent: AgentConfig
    key: str
    temperature: float
    prompt_ids: tuple[int, ...] = ()
    turns: list[Turn] = field(default_factory=list)
    offered: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)

    async def load(self, session: Session, skills: Sequence[CodeSkill]) -> None:
        for skill in skills:
            failed = (await session.execute(skill.code)).error
            (self.dropped if failed else self.offered).append(skill.name)

    async def converse(self, session: Session, world: World, skills: Sequence[CodeSkill]) -> Ended:
        shown = [skill for skill in skills if skill.name in self.offered]
        self.prompt_ids = tuple(self.policy.prompt_ids(messages(self.agent, world, self.task, shown)))
        ids, observed = list(self.prompt_ids), ()
        while len(self.turns) < self.agent.turns:
            if len(ids) + len(observed) >= self.agent.context:
                return "context"
            ids += observed
            turn = await self.take_turn(session, ids, observed)
            ids += turn.sample.ids
            if ended := _end(turn):
                return ended
            observed = self.observe(turn)
        return "turns"

    async def take_turn(self, session: Session, ids: list[int], observed: tuple[int, ...]) -> Turn:
        room = min(self.agent.tokens_per_turn, self.agent.context - len(ids))
        sampling = PolicySampling(self.temperature, room)
        sample = await self.policy.sample(tuple(ids), key=f"{self.key}/{len(self.turns)}", sampling=sampling)
        self.turns.append(Turn(observed, sample))  # kept also where running its code fails
        code, _ = find_code(sample.text, cut=sample.cut)
        if code is not None:
            self.turns[-1] = Turn(observed, sample, code, await session.execute(code))
        return self.turns[-1]

    def observe(self, turn: Turn) -> tuple[int, ...]:
        output = turn.execution.output if turn.execution else ""
        text = observation(self.agent, output, unfinished=len(turn.sample.ids) if turn.unfinished else None)
        return tuple(self.policy.observation_ids(text, cut=turn.sample.cut))

    def episode(self, ended: Ended, *, score: float = 0.0, error: str | None = None) -> Episode:
        run = [turn.code for turn in self.turns if turn.code is not None and turn.execution and parses(turn.code)]
        code = "\n\n".join(run)  # the task's code as one: a function may be defined in one turn and called in the next
        return Episode(
            task=self.task,
            key=self.key,
            prompt_ids=self.prompt_ids,
            turns=tuple(self.turns),
            score=score,
            completed=any(turn.execution.completed for turn in self.turns if turn.execution),
            ended=ended,
            offered=tuple(self.offered),
            dropped=tuple(self.dropped),
            defined=tuple(extract_skills(code, self.task)),
            used=used_skills(code, self.offered),
            error=error,
        )


def _end(turn: Turn) -> Ended | None:
    if turn.execution is not None:
        return "completed" if turn.execution.completed else None
    return None if turn.unfinished else "no_code"
