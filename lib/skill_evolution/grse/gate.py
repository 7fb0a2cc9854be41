"""The validation gate: one agent's candidate library at a time against the team before the update (paper 3.4).

A candidate is kept if its score is at least the base's minus delta. Accepted candidates are assembled once all agents
are tested, and the assembled team's score is recorded; acceptance stays per agent.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skill_evolution.base.aio import gather
from skill_evolution.benchmarks.base import Benchmark, Question
from skill_evolution.grse.rollouts import Trajectory, run_all
from skill_evolution.teams.team import Call, Libraries, Team

ROUNDING = 1e-9  # a candidate that is exactly delta worse is kept, whatever the floats make of the difference


@dataclass(frozen=True)
class Score:
    """Mean reward over the validation rows that finished (None if none did), and how many did not."""

    mean: float | None
    failed: int = 0


@dataclass(frozen=True)
class GateOutcome:
    """One agent's test. `changed` is False where there was no candidate to test."""

    changed: bool
    accepted: bool
    score: Score | None = None


@dataclass(frozen=True)
class GateResult:
    """The gate's outcome: scores of base and assembled team, one outcome an agent, the libraries that go on."""

    base: Score
    assembled: Score
    outcomes: Mapping[str, GateOutcome]
    libraries: Libraries

    def scores(self) -> dict[str, Any]:
        """Base, candidates and assembled score, and how many rows failed."""
        candidates = {a: o.score.mean for a, o in self.outcomes.items() if o.score}
        tested = [o.score for o in self.outcomes.values() if o.score]
        failed = self.base.failed + sum(s.failed for s in tested)
        failed += self.assembled.failed if self.assembled is not self.base else 0
        return {
            "base": self.base.mean, "candidates": candidates, "assembled": self.assembled.mean, "failed": failed,
        }  # fmt: skip

    def record(self) -> dict[str, Any]:
        """What stands in the iteration's gate.json."""
        return {**self.scores(), "outcomes": dict(self.outcomes)}


@dataclass(frozen=True)
class Gate:
    """Tests candidate libraries on validation questions. `delta` is the loss that is tolerated (FACTS A: 0.03)."""

    team: Team
    benchmark: Benchmark
    delta: float

    async def run(
        self, base: Libraries, candidates: Libraries, questions: Sequence[Question], call: Call
    ) -> GateResult:
        """Test every candidate that differs from its base, side by side, then the assembled team.

        A candidate is compared with the base on the rows that finished under both. Where there is none it is not
        accepted: nothing is known about it.
        """
        changed = [agent for agent in base if candidates[agent].fingerprint != base[agent].fingerprint]
        teams = [base, *({**base, agent: candidates[agent]} for agent in changed)]
        base_rows, *tested = await gather(self._rows(team, questions, call) for team in teams)
        by_agent = dict(zip(changed, tested, strict=True))
        outcomes = {agent: self._outcome(base_rows, by_agent.get(agent)) for agent in base}
        libraries = {agent: candidates[agent] if outcomes[agent].accepted else base[agent] for agent in base}
        base_score = mean_score(base_rows)
        if not any(outcome.accepted for outcome in outcomes.values()):
            return GateResult(base_score, base_score, outcomes, libraries)
        return GateResult(base_score, mean_score(await self._rows(libraries, questions, call)), outcomes, libraries)

    def _outcome(self, base: Sequence[Trajectory], rows: Sequence[Trajectory] | None) -> GateOutcome:
        if rows is None:
            return GateOutcome(changed=False, accepted=False)
        both = [(b.reward, r.reward) for b, r in zip(base, rows, strict=True)]
        gains = [new - old for old, new in both if old is not None and new is not None]
        accepted = bool(gains) and statistics.fmean(gains) >= -self.delta - ROUNDING
        return GateOutcome(True, accepted, mean_score(rows))

    async def _rows(self, libraries: Libraries, questions: Sequence[Question], call: Call) -> list[Trajectory]:
        # Base and candidates share their sample_ids: what the unchanged agents do before the changed one is the very
        # same call, so it is paid for once and adds no noise to the comparison.
        return await run_all(self.team, self.benchmark, questions, libraries, call)


def mean_score(trajectories: Sequence[Trajectory]) -> Score:
    """The mean reward of the rows that finished: a failed row is missing, not 0."""
    rewards = [t.reward for t in trajectories if t.reward is not None]
    mean = statistics.fmean(rewards) if rewards else None
    return Score(mean, len(trajectories) - len(rewards))
