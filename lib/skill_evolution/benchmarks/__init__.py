"""Benchmarks: questions in three splits with a reward and metrics.

The loaders are imported on use, so that importing the package stays cheap.
"""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from skill_evolution.base import paths
from skill_evolution.benchmarks.base import DataError, QuestionSet

logger = logging.getLogger(__name__)
BENCHMARKS = ("hotpotqa", "locomo")


def load_benchmark(
    name: str,
    path: Path | str | None = None,
    *,
    category: str | None = None,
    n_train: int | None = None,
    n_validation: int | None = None,
    n_test: int | None = None,
) -> QuestionSet:
    """Loads a benchmark from a real file, or from the bundled synthetic one in the same format.

    Args:
        name: "hotpotqa" or "locomo".
        path: the data file; None takes the bundled one, and the benchmark's `source` then says "synthetic".
        category: LoCoMo: multi_hop, temporal, open_domain or single_hop. HotpotQA: bridge or comparison. None and
            "all" take every category.
        n_train: number of training questions. HotpotQA: required, and the file must have as many. LoCoMo: an upper
            limit, None takes the whole split.
        n_validation: the same for validation.
        n_test: the same for test.

    Raises:
        FileNotFoundError: there is no such file.
        DataError: an unknown name or category, a missing number, or a malformed file.
    """
    if name not in BENCHMARKS:
        raise DataError(f"unknown benchmark {name!r}; known: {', '.join(BENCHMARKS)}; one's own is given to `train`")
    file = paths.DEMO_DATA / f"{name}.json" if path is None else Path(path)
    sizes: dict[str, Any] = {"n_train": n_train, "n_validation": n_validation, "n_test": n_test}
    category = None if category == "all" else category
    if name == "hotpotqa":
        from skill_evolution.benchmarks.hotpotqa import load_hotpotqa as load

        if missing := [key for key, size in sizes.items() if size is None]:
            raise DataError(
                f"set {', '.join(missing)}: HotpotQA's file has no splits (the paper's profile: 500/200/800)"
            )
    else:
        from skill_evolution.benchmarks.locomo import load_locomo as load
    questions = load(file, category=category, **sizes)
    if questions.issues:
        logger.info("%s: %d faults in the data, see `issues`", file.name, len(questions.issues))
    return replace(questions, source="synthetic") if path is None else questions
