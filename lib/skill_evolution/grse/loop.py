"""The loop: rollouts -> critic -> aggregation -> operators -> gate, and the final test (paper 3, FACTS A).

Methods differ in their critic and in settings only; GRSE's ablations and MASkills are this same code.
"""

import logging
import statistics
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

from skill_evolution.base.aio import gather, run_sync
from skill_evolution.benchmarks.base import Benchmark, Question
from skill_evolution.grse.aggregation import Aggregate, Verdict, aggregate
from skill_evolution.grse.critic import GroupCritic, question_key
from skill_evolution.grse.feedback import Feedback, collapse
from skill_evolution.grse.gate import Gate, GateResult
from skill_evolution.grse.leaks import LeakCheck
from skill_evolution.grse.operators import HardCase, Workshop
from skill_evolution.grse.rollouts import Group, Trajectory, run_all, run_group
from skill_evolution.grse.settings import Settings
from skill_evolution.models.base import ChatModel, Sampling
from skill_evolution.models.replies import Caller
from skill_evolution.skills import SkillLibrary
from skill_evolution.teams.team import Call, Libraries, Limits, Team

logger = logging.getLogger(__name__)


class Critic(Protocol):
    """From a group to checked feedback. Never raises for a bad reply: that is a rejection in the feedback."""

    async def __call__(self, group: Group, libraries: Libraries, caller: Caller) -> Feedback: ...


@dataclass(frozen=True)
class Models:
    """The three roles of a model in the method; they may be the same one."""

    actor: ChatModel
    critic: ChatModel
    optimizer: ChatModel


@dataclass(frozen=True)
class Iteration:
    """All that came of one iteration; `libraries` are those that it ended with."""

    number: int
    groups: tuple[Group, ...]
    feedbacks: tuple[Feedback, ...]
    aggregate: Aggregate
    workshops: tuple[Workshop, ...]
    gate: GateResult
    libraries: Libraries


@dataclass(frozen=True)
class Evolution:
    """The loop over one benchmark and team. `critic` is the method's: GroupCritic, or MASkills' TrajectoryCritic."""

    settings: Settings
    benchmark: Benchmark
    team: Team
    models: Models
    critic: Critic

    @cached_property
    def leaks(self) -> LeakCheck:
        """What may not leak into a skill; made once, as all training text goes into it."""
        return LeakCheck(self.benchmark.splits["train"])

    def call(self, stage: str, sampling: Sampling, iteration: int | None = None) -> Call:
        """How agents are called in a stage.

        Greedy calls carry no iteration in their sample_id: the same team on the same question is then the same call,
        and the ledger answers it.
        """
        greedy = sampling.temperature == 0 and stage != "train"
        place = f"{stage}/seed{self.settings.seed}" + ("" if greedy or iteration is None else f"/iteration{iteration}")
        limits = Limits(self.settings.grep_calls, self.settings.grep_lines, self.settings.handover_items)
        return Call(self.models.actor, sampling, place, limits)

    def caller(self, stage: Literal["critic", "optimizer"], iteration: int) -> Caller:
        """How the critic or the optimizer is called in an iteration."""
        model, sampling = (
            (self.models.critic, self.settings.critic_sampling)
            if stage == "critic"
            else (self.models.optimizer, self.settings.optimizer_sampling)
        )
        place = f"{stage}/seed{self.settings.seed}/iteration{iteration}"
        return Caller(model, sampling, place, fit=self.settings.fit_replies)

    async def run(self, libraries: Libraries | None = None) -> AsyncIterator[Iteration]:
        """The iterations, one after the other, from given libraries or (paper A) from empty ones."""
        libraries = libraries or self.team.empty_libraries()
        for number in range(1, self.settings.iterations + 1):
            iteration = await self.iterate(number, libraries)
            libraries = iteration.libraries
            yield iteration

    async def iterate(self, number: int, libraries: Libraries) -> Iteration:
        """One iteration: libraries stay fixed during its rollouts and change at its end."""
        groups = await self.rollouts(number, libraries)
        feedbacks = await self.feedback(number, groups, libraries)
        caller = self.caller("optimizer", number)
        aggregated = await aggregate(
            feedbacks,
            libraries,
            caller,
            group_patterns=self.settings.group_patterns,
            label_conditioned=self.settings.label_conditioned,
        )
        base = self.record_use(libraries, groups, feedbacks)
        workshops = await self.edit(number, base, aggregated, groups, caller)
        gate = Gate(self.team, self.benchmark, self.settings.gate_delta)
        result = await gate.run(
            base,
            {shop.agent: shop.library for shop in workshops},
            self.benchmark.splits["validation"],
            self.call("validation", self.settings.validation_sampling, number),
        )
        return Iteration(
            number, tuple(groups), tuple(feedbacks), aggregated, tuple(workshops), result, result.libraries
        )  # fmt: skip

    async def rollouts(self, number: int, libraries: Libraries) -> list[Group]:
        """G rollouts of every training question."""
        questions = self.benchmark.splits["train"]
        return await gather(self.group(number, question, libraries) for question in questions)

    async def group(self, number: int, question: Question, libraries: Libraries) -> Group:
        """G rollouts of one question, with their rewards and advantages."""
        return await run_group(
            self.team,
            self.benchmark,
            question,
            libraries,
            self.call("train", self.settings.train_sampling, number),
            group_size=self.settings.group_size,
            divide_by_std=self.settings.advantage_std,
        )

    async def feedback(self, number: int, groups: Sequence[Group], libraries: Libraries) -> list[Feedback]:
        """One critic call for every group that has a finished rollout (and differs, if equal groups are dropped)."""
        kept = [g for g in groups if g.finished and not (self.settings.drop_equal_groups and g.equal)]
        caller = self.caller("critic", number)
        return await gather(self.critic(group, libraries, caller) for group in kept)

    def record_use(
        self, libraries: Libraries, groups: Sequence[Group], feedbacks: Sequence[Feedback]
    ) -> dict[str, SkillLibrary]:
        """The same libraries with this iteration's utility and invocations.

        u <- m u + (1 - m) mean credit over questions, before the operators: it survives a rejected update (FACTS A).
        """
        used = Counter(
            (agent, name)
            for group in groups
            for t in group.finished
            if t.execution
            for agent, names in t.execution.used.items()
            for name in names
        )
        values: dict[tuple[str, str], list[float]] = {}
        for credit in collapse(c for f in feedbacks for c in f.credits):
            if credit.value is not None:
                values.setdefault((credit.agent, credit.skill), []).append(credit.value)
        return {
            agent: _with_skills(library, used, values, self.settings.utility_momentum)
            for agent, library in libraries.items()
        }

    async def edit(
        self,
        number: int,
        libraries: Libraries,
        aggregated: Aggregate,
        groups: Sequence[Group],
        caller: Caller,
    ) -> list[Workshop]:
        """The operators on a copy of every library, agents side by side, in the order and on the schedule of FACTS."""
        hard = hard_cases(groups, self.settings.hard_reward)
        shops = [Workshop(role, libraries[role.agent], caller, number, self.leaks) for role in self.team.roles]
        await gather(self._edit_one(shop, aggregated, hard) for shop in shops)
        return shops

    async def _edit_one(self, shop: Workshop, aggregated: Aggregate, hard: Sequence[HardCase]) -> None:
        verdicts: list[Verdict] = [v for v in aggregated.verdicts if v.agent == shop.agent]
        patterns = [
            p
            for p in aggregated.patterns
            if p.agent == shop.agent and p.support >= self.settings.induction_support
        ]  # fmt: skip
        await shop.refine(verdicts)
        if shop.iteration % self.settings.consolidate_every == 0:
            await shop.consolidate(verdicts)
        if shop.iteration % self.settings.prune_every == 0:
            shop.prune(verdicts, threshold=self.settings.prune_threshold)
        await shop.induce(patterns, hard, cap=self.settings.library_cap)

    async def test(self, libraries: Libraries) -> list[Trajectory]:
        """Every test question once with the given libraries."""
        call = self.call("test", self.settings.test_sampling)
        return await run_all(self.team, self.benchmark, self.benchmark.splits["test"], libraries, call)


def _with_skills(
    library: SkillLibrary,
    used: Mapping[tuple[str, str], int],
    values: Mapping[tuple[str, str], Sequence[float]],
    momentum: float,
) -> SkillLibrary:
    for skill in library:
        place = (library.agent, skill.name)
        utility = skill.utility
        if place in values:
            utility = momentum * utility + (1 - momentum) * statistics.fmean(values[place])
        library = library.with_skill(
            replace(skill, utility=utility, invocations=skill.invocations + used.get(place, 0))
        )
    return library


def hard_cases(groups: Sequence[Group], threshold: float) -> list[HardCase]:
    """Questions whose mean reward is at or below the threshold, the worst first; repeated questions count once."""
    cases, seen = [], set()
    for group in groups:
        mean, key = group.mean_reward, question_key(group.question)
        if mean is None or mean > threshold or key in seen:
            continue
        seen.add(key)
        best = max(group.finished, key=lambda t: t.reward or 0.0)
        cases.append(HardCase(group.question.text, best.execution and best.execution.answer, mean))
    return sorted(cases, key=lambda case: case.reward)


def evolve(
    benchmark: Benchmark,
    team: Team,
    model: ChatModel,
    settings: Settings | None = None,
    *,
    critic: Critic | None = None,
) -> list[Iteration]:
    """Evolve a team's skills from empty libraries; works inside a notebook's running event loop too.

    Args:
        benchmark: training questions to learn from, validation questions for the gate.
        team: the agents.
        model: plays them, and the critic and the optimizer as well. Calls aren't recorded here; wrap it in a
            `models.ledger.RecordedModel` for that.
        settings: the method's; default the paper's.
        critic: default the group-relative one.

    Returns:
        All that came of each iteration; the last one's `libraries` are what was learned.
    """
    settings = settings or Settings()
    critic = critic or GroupCritic(team, settings.structured_diagnosis, settings.label_conditioned)
    evolution = Evolution(settings, benchmark, team, Models(model, model, model), critic)

    async def iterations() -> list[Iteration]:
        return [iteration async for iteration in evolution.run()]

    return run_sync(iterations())
