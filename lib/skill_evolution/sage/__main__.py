"""The stages of a SAGE profile from the command line, one process or many.

    python -m skill_evolution.sage train --profile demo --arm sage
    accelerate launch --config_file FILE -m skill_evolution.sage train --profile paper --arm sage
    python -m skill_evolution.sage evaluate --profile paper --arm sage --splits test challenge
    python -m skill_evolution.sage check-launch --profile paper zero3
    python -m skill_evolution.sage verl-data --profile paper chains.parquet

`train` trains the first stage of the arm that isn't trained yet. With one process it goes on to the next; several
processes end, as a sharded model can't be unloaded for another: launch again until it says that nothing is left.
"""

import argparse
import json
import logging
import sys
from pathlib import Path

from skill_evolution.base.settings import ConfigError
from skill_evolution.sage.stages import arms, study
from skill_evolution.sage.stages.arms import Arm

logger = logging.getLogger("skill_evolution.sage")


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        options.run(options)
    except ConfigError as error:
        logger.error("%s", error)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m skill_evolution.sage", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--profile", default="demo")
    common.add_argument("--seed", type=int, default=0)
    common.add_argument("--sft-seed", type=int, default=0)
    common.add_argument("--overrides", type=json.loads, default={}, help="fields of SageConfig as JSON")
    arm = argparse.ArgumentParser(add_help=False)
    arm.add_argument("--arm", choices=arms.MAIN, default="sage")
    arm.add_argument("--root", type=Path, help="folder of the stages (default: results/<profile>/sage)")
    commands.add_parser("train", parents=[common, arm]).set_defaults(run=_train)
    evaluate = commands.add_parser("evaluate", parents=[common, arm])
    evaluate.add_argument("--splits", nargs="+", default=["test", "challenge"])
    evaluate.add_argument("--scenarios", type=int, help="the first so many of each split")
    evaluate.set_defaults(run=_evaluate)
    check = commands.add_parser("check-launch", parents=[common])
    check.add_argument("files", nargs="+", help="names in profiles/accelerate, or paths")
    check.set_defaults(run=_check_launch)
    data = commands.add_parser("verl-data", parents=[common])
    data.add_argument("file", type=Path)
    data.set_defaults(run=_verl_data)
    return parser


def _lineup(options: argparse.Namespace) -> arms.Lineup:
    return arms.lineup(options.profile, seed=options.seed, sft_seed=options.sft_seed, overrides=options.overrides)


def _arm(options: argparse.Namespace, **evaluations: object) -> Arm:
    [arm] = arms.training_arms(_lineup(options), names=[options.arm], **evaluations)  # pyright: ignore[reportArgumentType]
    return arm


def _train(options: argparse.Namespace) -> None:
    from skill_evolution.sage.policies.loading import process_count
    from skill_evolution.sage.stages.training import train

    left = [stage for stage in _arm(options).stage.lineage() if not stage.trained(options.root)]
    for stage in left[:1] if process_count() > 1 else left:
        train(stage, root=options.root)
        logger.info("trained: %s", stage.folder(options.root))
    untrained = [stage.name for stage in left if not stage.trained(options.root)]
    logger.info("left to train: %s", ", ".join(untrained) or "nothing")


def _evaluate(options: argparse.Namespace) -> None:
    arm = _arm(options, splits=options.splits, scenarios=options.scenarios)
    if missing := [stage.name for stage in arm.stage.lineage() if not stage.trained(options.root)]:
        raise ConfigError(f"not trained yet: {', '.join(missing)}; run `train` first")
    study.run([arm], processes=1, root=options.root)
    frame = study.figures([arm], root=options.root)
    sys.stdout.write(frame[["arm", "split", "decoding", "tgc", "sgc", "steps", "tokens"]].round(1).to_string() + "\n")


def _check_launch(options: argparse.Namespace) -> None:
    from skill_evolution.sage.scale.launch import check_launch

    for name in options.files:
        check_launch(name, _lineup(options).config)
        logger.info("%s fits profile %s", name, options.profile)


def _verl_data(options: argparse.Namespace) -> None:
    from skill_evolution.sage.scale.verl_rows import dataset
    from skill_evolution.sage.stages.training import open_world
    from skill_evolution.sage.training.grpo import plan

    config = _lineup(options).config
    with open_world(config) as world:
        dataset(plan(world, config), name=world.name).to_parquet(options.file)
    logger.info("%d steps of %d chains: %s", config.grpo.steps, config.grpo.scenarios, options.file)


if __name__ == "__main__":
    sys.exit(main())
