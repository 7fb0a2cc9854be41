"""The loop: rollouts -> critic -> aggregation -> operators -> gate, and the final test (paper 3, FACTS A).

Methods differ in their critic and in config fields only; GRSE's ablations and MASkills are this same code.
"""

import logging
import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Protocol

from skill_evolution.aggregation import Aggregate, Verdict, aggregate
from skill_evolution.aio import gather
from skill_evolution.benchmarks.base import SPLITS, Benchmark, Question
from skill_evolution.cases import case_of, varied
from skill_evolution.config import Config, SamplingConfig
from skill_evolution.critic import question_key
from skill_evolution.feedback import Feedback, collapse
from skill_evolution.gate import Gate, GateResult, mean_score
from skill_evolution.leaks import LeakCheck
from skill_evolution.models.base import ChatModel
from skill_evolution.operators import Workshop
from skill_evolution.replies import Caller
from skill_evolution.rollouts import Group, Trajectory, run_all, run_group
from skill_evolution.runs import Run, write_json, write_jsonl
from skill_evolution.skills import SkillLibrary, load_library, save_library
from skill_evolution.summaries import check_splits, counted, test_summary, write_predictions, write_summary
from skill_evolution.teams import Call, Libraries, Limits, Team

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
    """The loop over one benchmark, team and critic, as a config says."""

    config: Config
    benchmark: Benchmark
    team: Team
    models: Models
    critic: Critic

    @cached_property
    def leaks(self) -> LeakCheck:
        """What may not leak into a skill; made once, as all training text goes into it."""
        return LeakCheck(self.benchmark.splits["train"])

    def call(self, stage: str, sampling: SamplingConfig, iteration: int | None = None) -> Call:
        """How agents are called in a stage.

        Greedy calls carry no iteration in their sample_id: the same team on the same question is then the same call,
        and the ledger answers it.
        """
        greedy = sampling.temperature == 0 and stage != "train"
        place = f"{stage}/seed{self.config.seed}" + ("" if greedy or iteration is None else f"/iteration{iteration}")
        limits = Limits(self.config.grep_calls, self.config.grep_lines, self.config.handover_items)
        return Call(self.models.actor, sampling.sampling(), place, limits)

    def caller(self, stage: Literal["critic", "optimizer"], iteration: int) -> Caller:
        """How the critic or the optimizer is called in an iteration."""
        model, sampling = (
            (self.models.critic, self.config.critic_sampling)
            if stage == "critic"
            else (self.models.optimizer, self.config.optimizer_sampling)
        )
        place = f"{stage}/seed{self.config.seed}/iteration{iteration}"
        return Caller(model, sampling.sampling(), place, fit=self.config.fit_replies)

    def start_libraries(self) -> dict[str, SkillLibrary]:
        """Empty libraries, or those of `start_libraries` (one folder an agent)."""
        folder = self.config.start_libraries
        if folder is None:
            return self.team.empty_libraries()
        return {agent: load_library(folder / agent, agent) for agent in self.team.agents}

    async def iterate(self, number: int, libraries: Libraries) -> Iteration:
        """One iteration: libraries stay fixed during its rollouts and change at its end."""
        groups = await self.rollouts(number, libraries)
        feedbacks = await self.feedback(number, groups, libraries)
        caller = self.caller("optimizer", number)
        aggregated = await aggregate(
            feedbacks,
            libraries,
            caller,
            group_patterns=self.config.group_patterns,
            label_conditioned=self.config.label_conditioned,
        )
        base = self.record_use(libraries, groups, feedbacks)
        workshops = await self.edit(number, base, aggregated, groups, caller)
        gate = Gate(self.team, self.benchmark, self.config.gate_delta)
        result = await gate.run(
            base,
            {shop.agent: shop.library for shop in workshops},
            self.benchmark.splits["validation"],
            self.call("validation", self.config.validation_sampling, number),
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
            self.call("train", self.config.train_sampling, number),
            group_size=self.config.group_size,
            divide_by_std=self.config.advantage_std,
        )

    async def feedback(self, number: int, groups: Sequence[Group], libraries: Libraries) -> list[Feedback]:
        """One critic call for every group that has a finished rollout (and differs, if equal groups are dropped)."""
        kept = [g for g in groups if g.finished and not (self.config.drop_equal_groups and g.equal)]
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
            agent: _with_skills(library, used, values, self.config.utility_momentum)
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
        shops = [
            Workshop(
                role, libraries[role.agent], caller, number, self.leaks, self.config.proposals,
                partial(self.screened, number, libraries, role.agent),
            )
            for role in self.team.roles
        ]  # fmt: skip
        await gather(self._edit_one(shop, aggregated, groups) for shop in shops)
        return shops

    async def _edit_one(self, shop: Workshop, aggregated: Aggregate, groups: Sequence[Group]) -> None:
        verdicts: list[Verdict] = [v for v in aggregated.verdicts if v.agent == shop.agent]
        patterns = [
            p
            for p in aggregated.patterns
            if p.agent == shop.agent and p.support >= self.config.induction_support
        ]  # fmt: skip
        await shop.refine(verdicts)
        if shop.iteration % self.config.consolidate_every == 0:
            await shop.consolidate(verdicts)
        if shop.iteration % self.config.prune_every == 0:
            shop.prune(verdicts, threshold=self.config.prune_threshold)
        questions = patterns[0].questions if patterns else ()
        cases = [
            case_of(shop.role, trajectory, self.leaks.common)
            for trajectory in worst_rollouts(groups, questions, self.config.hard_reward)
        ]
        await shop.induce(patterns, varied([case for case in cases if case]), cap=self.config.library_cap)

    async def screened(self, number: int, base: Libraries, agent: str, library: SkillLibrary) -> float:
        """The mean reward on a few training questions with one agent's library exchanged."""
        questions = self.benchmark.splits["train"][: self.config.screen_questions]
        call = self.call("screen", self.config.validation_sampling, number)
        rows = await run_all(self.team, self.benchmark, questions, {**base, agent: library}, call)
        return mean_score(rows).mean or 0.0

    async def test(self, libraries: Libraries) -> list[Trajectory]:
        """Every test question once with the given libraries."""
        call = self.call("test", self.config.test_sampling)
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


def worst_rollouts(groups: Sequence[Group], first: Collection[str], threshold: float) -> list[Trajectory]:
    """The worst rollout of each question: of those in `first`, then of the hard ones by their mean reward.

    A question is hard at a mean reward at or below the threshold; repeated questions count once.
    """
    found: dict[str, tuple[bool, float, Trajectory]] = {}
    for group in groups:
        mean, key = group.mean_reward, question_key(group.question)
        if mean is not None and (key in first or mean <= threshold):
            worst = min(group.finished, key=lambda t: t.reward or 0.0)
            found.setdefault(key, (key not in first, mean, worst))
    return [worst for _, _, worst in sorted(found.values(), key=lambda item: item[:2])]


async def evolve(run: Run, evolution: Evolution) -> dict[str, Any]:
    """Run the loop to its end in a run folder and return the summary. What the ledger knows is not asked again."""
    finished = run.finished_summary()
    if finished is not None:
        return finished
    check_splits(evolution.benchmark, SPLITS if evolution.config.iterations else ("test",))
    libraries: Libraries = evolution.start_libraries()
    iterations = []
    for number in range(1, evolution.config.iterations + 1):
        iteration = await evolution.iterate(number, libraries)
        libraries = iteration.libraries
        write_iteration(run, iteration)
        iterations.append(iteration_summary(iteration))
        if evolution.config.test_every_iteration:
            iterations[-1] |= test_summary(await _tested(evolution, libraries, run.iteration(number)))
        logger.info("%s iteration %d: %s", run.folder.name, number, iterations[-1]["validation"])
    rows = await _tested(evolution, libraries, run.folder)
    for agent, library in libraries.items():
        save_library(library, run.folder / "libraries" / agent)
    return write_summary(run, rows, iterations=iterations, libraries=libraries)


async def _tested(evolution: Evolution, libraries: Libraries, folder: Path) -> list[dict[str, Any]]:
    """The test's rows, also written to `predictions.jsonl` in a folder."""
    return write_predictions(folder, evolution.benchmark, await evolution.test(libraries))


def write_iteration(run: Run, iteration: Iteration) -> None:
    """Trajectories, feedback, aggregation, edits, gate and the libraries of an iteration, as files."""
    folder = run.iteration(iteration.number)
    write_jsonl(
        folder / "trajectories.jsonl",
        (_trajectory_row(g, i) for g in iteration.groups for i in range(len(g.trajectories))),
    )
    write_jsonl(folder / "feedback.jsonl", iteration.feedbacks)
    write_json(folder / "aggregation.json", iteration.aggregate)
    write_jsonl(folder / "edits.jsonl", (change for shop in iteration.workshops for change in shop.changes))
    write_json(folder / "gate.json", iteration.gate.record())
    for agent, library in iteration.libraries.items():
        save_library(library, folder / "libraries" / agent)


def _trajectory_row(group: Group, index: int) -> dict[str, Any]:
    trajectory = group.trajectories[index]
    return {
        "question_id": group.question.id,
        "rollout": index + 1,
        "reward": trajectory.reward,
        "advantage": group.advantages[index],
        "error": trajectory.error,
        "execution": trajectory.execution,
    }


def iteration_summary(iteration: Iteration) -> dict[str, Any]:
    """Counts and scores of an iteration; every kind of loss is counted by its reason."""
    trajectories = [t for g in iteration.groups for t in g.trajectories]
    executions = [t.execution for t in trajectories if t.execution]
    rewards = [t.reward for t in trajectories if t.reward is not None]
    rejected = [r.reason for f in iteration.feedbacks for r in f.rejections]
    refused = [r.reason for shop in iteration.workshops for r in shop.rejections]
    merges = [f"merge:{r.reason}" for r in iteration.aggregate.rejections]
    return {
        "iteration": iteration.number,
        "train_reward": sum(rewards) / len(rewards) if rewards else None,
        "rollouts": len(trajectories),
        "failed_rollouts": len(trajectories) - len(rewards),
        "equal_groups": sum(g.equal for g in iteration.groups if g.finished),
        "groups": len(iteration.groups),
        "problems": counted(p for e in executions for p in e.problems),
        "unknown_skills_named": sum(len(e.unknown_used) for e in executions),
        "critic_accepted": sum(f.accepted for f in iteration.feedbacks),
        "critic_rejected": counted(rejected),
        "payload_cuts": sum(f.cuts for f in iteration.feedbacks),
        "changes": counted(c.operator for shop in iteration.workshops for c in shop.changes),
        "changes_refused": counted([*merges, *refused]),
        "validation": iteration.gate.scores(),
        "accepted": {agent: outcome.accepted for agent, outcome in iteration.gate.outcomes.items()},
        "skills": {agent: len(library) for agent, library in iteration.libraries.items()},
        "utility": {a: {s.name: round(s.utility, 6) for s in library} for a, library in iteration.libraries.items()},
    }
