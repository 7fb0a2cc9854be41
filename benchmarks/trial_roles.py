"""What a served model makes of each role: records calls and shows replies, counts and scores (docs/trials.md).

    python benchmarks/trial_roles.py rollouts --show 6     groups of training rollouts, and some of their replies
    python benchmarks/trial_roles.py critic --show 6       the critic on those groups: parsed, accepted, rejected
    python benchmarks/trial_roles.py iterate --show 6      one whole iteration: patterns, proposals, gate
    python benchmarks/trial_roles.py test [--libraries F]  test questions with the libraries of a folder, or none

The model must be served (`make serve`). Calls go to one ledger, so what was asked before is not asked again.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from skill_evolution import paths
from skill_evolution.aio import run_sync
from skill_evolution.config import load_config
from skill_evolution.evolution import Evolution, Iteration, iteration_summary
from skill_evolution.experiments import open_evolution
from skill_evolution.feedback import Feedback
from skill_evolution.models.ledger import Ledger
from skill_evolution.rollouts import Group
from skill_evolution.summaries import prediction_row, test_summary

LEDGER = paths.RESULTS / "trials" / "runs" / "calls.sqlite"


def show_group(group: Group) -> None:
    """Question, gold evidence and every rollout's steps."""
    question = group.question
    print(f"\n##### {question.id} {question.text}\ngold: {question.answer} | {question.evidence}")
    for line in question.context.splitlines():
        if any(line.startswith(f"[{i}]") for i in question.evidence):
            print("   ", line)
    for trajectory in group.trajectories:
        print(f"--- reward {trajectory.reward} {trajectory.error or ''}")
        for step in trajectory.execution.steps if trajectory.execution else ():
            print(f"  <{step.agent} {step.kind}{' CUT' if step.cut else ''}> {step.text}")


def group_counts(groups: list[Group]) -> dict[str, Any]:
    """How the rollouts went."""
    done = [t for g in groups for t in g.finished if t.execution]
    return {
        "rollouts": len(done),
        "reward": round(sum(t.reward or 0 for t in done) / len(done), 3),
        "equal_groups": sum(g.equal for g in groups),
        "declined": sum(t.execution.answer is None for t in done),
        "no_evidence_ids": sum(not t.execution.evidence for t in done),
        "all_gold_ids": sum(set(t.question.evidence) <= set(t.execution.evidence) for t in done),
        "problems": dict(Counter(p for t in done for p in t.execution.problems)),
    }


def feedback_counts(feedbacks: list[Feedback]) -> dict[str, Any]:
    """How the critic's replies went."""
    whole = Counter(r.reason for f in feedbacks for r in f.rejections if r.item == "")
    rejected = Counter(r.reason for f in feedbacks for r in f.rejections if r.item)
    accepted = sum(f.accepted for f in feedbacks)
    return {
        "replies": len(feedbacks),
        "unusable": dict(whole),
        "accepted": accepted,
        "rejected": dict(rejected),
        "share_accepted": round(accepted / max(1, accepted + sum(rejected.values())), 3),
        "diagnoses": dict(Counter(f"{d.agent} {d.failure_type}" for f in feedbacks for d in f.diagnoses)),
        "credits": sum(len(f.credits) for f in feedbacks),
    }


def show_iteration(iteration: Iteration) -> None:
    """Patterns, changes and the gate."""
    for pattern in iteration.aggregate.patterns:
        print(f"pattern {pattern.agent} {pattern.failure_type} support {pattern.support}: {pattern.suggestions}")
    for shop in iteration.workshops:
        for change in shop.changes:
            print(f"\n=== {change.operator} {change.agent} {change.skill}\n{change.record.after}")
        for rejection in shop.rejections:
            print(f"refused {shop.agent} {rejection.reason}: {rejection.item[:300]}")
    print(json.dumps(iteration_summary(iteration), indent=1))


async def trial(options: argparse.Namespace, evolution: Evolution) -> None:
    """One of the commands."""
    for model in {id(m): m for m in vars(evolution.models).values()}.values():
        await model.connect()
    libraries = evolution.start_libraries()
    if options.command == "test":
        rows = [prediction_row(evolution.benchmark, t) for t in await evolution.test(libraries)]
        for row in rows[: options.show]:
            print(json.dumps(row)[:600])
        print(test_summary(rows), "declined", sum(row["declined"] for row in rows), "of", len(rows))
    elif options.command == "iterate":
        show_iteration(await evolution.iterate(1, libraries))
    else:
        groups = await evolution.rollouts(1, libraries)
        print(json.dumps(group_counts(groups)))
        feedbacks = await evolution.feedback(1, groups, libraries) if options.command == "critic" else []
        for index, group in enumerate(groups[: options.show]):
            show_group(group)
            if feedbacks:
                print("FEEDBACK", feedbacks[index])
        if feedbacks:
            print(json.dumps(feedback_counts(feedbacks), indent=1))
    print("usage", json.dumps([vars(row) for row in evolution.models.actor.ledger.usage()], default=str)[:1500])


def main() -> None:
    """Reads the command line and runs one trial."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("rollouts", "critic", "iterate", "test"))
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--benchmark", default="hotpotqa")
    parser.add_argument("--method", default="grse")
    parser.add_argument("--libraries", type=Path)
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=JSON", help="further config fields")
    options = parser.parse_args()
    overrides = {key: json.loads(value) for key, value in (item.split("=", 1) for item in options.set)}
    config = load_config(
        "cpu", benchmark=options.benchmark, method=options.method, start_libraries=options.libraries, **overrides
    )
    LEDGER.parent.mkdir(parents=True, exist_ok=True)
    run_sync(trial(options, open_evolution(config, ledger=Ledger(LEDGER))))


if __name__ == "__main__":
    main()
