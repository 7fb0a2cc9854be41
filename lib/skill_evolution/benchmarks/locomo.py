"""LoCoMo: questions about conversations of two people over many sessions, read from `locomo10.json`.

The published file has faults (malformed and dangling evidence ids, numbers as answers, dates without a session,
duplicate questions, category 5 without answers); each is repaired or reported as a DataIssue.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator

from skill_evolution.benchmarks import scoring
from skill_evolution.benchmarks.base import SPLITS, DataError, DataIssue, Question, QuestionSet, Split
from skill_evolution.benchmarks.records import one_line, read_records, validate

CATEGORIES = tuple(name for number, name in scoring.LOCOMO_CATEGORIES.items() if number != 5)
_CONVERSATIONS: dict[Split, tuple[int, ...]] = {
    "train": (42, 48),
    "validation": (41, 49),
    "test": (26, 30, 43, 44, 47, 50),
}
SPLIT_OF: dict[str, Split] = {
    f"conv-{number}": split for split, numbers in _CONVERSATIONS.items() for number in numbers
}
_SESSION = re.compile(r"session_(\d+)(_date_time)?")
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


class _Turn(BaseModel):
    """One turn of a session; other keys (image links and the like) are ignored."""

    speaker: str
    dia_id: Annotated[str, Field(pattern=r"^D\d+:\d+$")]
    text: str
    blip_caption: str = ""


class _Item(BaseModel):
    """One question with its answer; category 5 needs no answer, since it is left out."""

    question: Annotated[str, Field(min_length=1)]
    category: Literal[1, 2, 3, 4, 5]
    answer: str | int | float | None = None
    evidence: list[str] = []

    @model_validator(mode="after")
    def _has_answer(self) -> "_Item":
        if self.category != 5 and self.answer is None:
            raise DataError(f"'answer' is missing, which only category 5 may lack (category {self.category})")
        return self


class _Sample(BaseModel):
    """One conversation of the file, the sessions still under their numbered keys."""

    sample_id: str
    conversation: dict[str, Any]
    qa: list[_Item]

    @model_validator(mode="after")
    def _in_a_split(self) -> "_Sample":
        if self.sample_id not in SPLIT_OF:
            raise DataError(f"sample_id {self.sample_id!r} belongs to no split; known: {', '.join(SPLIT_OF)}")
        return self


_TURNS = TypeAdapter(list[_Turn])


class _Conversation:
    """The lines and the questions of one conversation, and the faults found on the way."""

    def __init__(self, sample: _Sample, where: str) -> None:
        self.sample, self.where = sample, f"{where}, {sample.sample_id}"
        self.issues: list[DataIssue] = []
        lines = dict(self._lines())
        self.ids, self.document = frozenset(lines), tuple(lines.values())

    def _report(self, place: str, problem: str, action: Literal["repaired", "reported"] = "reported") -> None:
        self.issues.append(DataIssue(f"{self.where}, {place}", problem, action))

    def _sessions(self) -> Iterator[tuple[str, str, list[_Turn]]]:
        """Yields (key, date, turns) in the order of the sessions' numbers."""
        conversation = self.sample.conversation
        found = filter(None, map(_SESSION.fullmatch, conversation))
        for number in sorted({int(match[1]) for match in found}):
            key, date_key = f"session_{number}", f"session_{number}_date_time"
            if key not in conversation:
                self._report(date_key, "a date without a session; left out")
                continue
            if date_key not in conversation:
                self._report(key, "a session without a date; its lines say 'date unknown'")
            try:
                turns = _TURNS.validate_python(conversation[key])
            except ValidationError as error:
                fault = error.errors(include_url=False)[0]
                place = ".".join(map(str, (key, *fault["loc"])))
                raise DataError(f"{self.where}: conversation.{place}: {fault['msg']}") from error
            yield key, one_line(str(conversation.get(date_key, "date unknown"))), turns

    def _lines(self) -> Iterator[tuple[str, str]]:
        seen: set[str] = set()
        for key, date, turns in self._sessions():
            for turn in turns:
                if turn.dia_id in seen:
                    raise DataError(f"{self.where}, {key}: the turn id {turn.dia_id!r} stands twice; ids are unique")
                seen.add(turn.dia_id)
                photo = f" [photo: {one_line(turn.blip_caption)}]" if turn.blip_caption else ""
                yield turn.dia_id, f"[{turn.dia_id}] ({date}) {one_line(turn.speaker)}: {one_line(turn.text)}{photo}"

    def _evidence(self, place: str, raw_ids: Sequence[str]) -> tuple[str, ...]:
        """Evidence ids in the form of the lines' ids; one that no line has stays, as in the official recall."""
        evidence: list[str] = []
        for raw in raw_ids:
            ids = [f"D{int(session)}:{int(turn)}" for session, turn in _EVIDENCE.findall(raw)]
            if not ids:
                self._report(place, f"evidence {raw!r} names no turn; left out")
            elif ids != [raw]:
                self._report(place, f"evidence {raw!r} is malformed; read as {', '.join(ids)}", "repaired")
            for id in ids:
                if id not in self.ids:
                    self._report(place, f"evidence {id!r} names a turn that isn't there; kept")
            evidence += ids
        return tuple(evidence)

    def questions(self) -> Iterator[Question]:
        """Questions of categories 1 to 4; an id is "conv-26/17", 17 being the item's index in the file, from 0."""
        earlier: dict[str, str] = {}
        for index, item in enumerate(self.sample.qa):
            if item.category == 5:
                continue
            id, text = f"{self.sample.sample_id}/{index}", item.question.strip()
            if (first := earlier.setdefault(text, id)) != id:
                self._report(f"qa {index}", f"the same question as {first}; both are kept")
            yield Question(
                id=id,
                text=text,
                answer=str(item.answer),
                category=scoring.LOCOMO_CATEGORIES[item.category],
                document=self.document,
                evidence=self._evidence(f"qa {index}", item.evidence),
                group=self.sample.sample_id,
            )


def _read(path: Path) -> tuple[dict[Split, list[Question]], list[DataIssue]]:
    splits: dict[Split, list[Question]] = {split: [] for split in SPLITS}
    issues: list[DataIssue] = []
    missing = dict(SPLIT_OF)
    for where, record in read_records(path):
        sample = validate(_Sample, record, where)
        split = missing.pop(sample.sample_id, None)
        if split is None:
            raise DataError(f"{where}: the conversation {sample.sample_id!r} stands twice in the file")
        conversation = _Conversation(sample, where)
        splits[split] += conversation.questions()
        issues += conversation.issues
    for sample_id, split in missing.items():
        issues.append(DataIssue(path.name, f"{sample_id} of the {split} split is not in the file", "reported"))
    return splits, issues


def _spread(questions: Sequence[Question], limit: int | None) -> tuple[Question, ...]:
    """At most `limit` questions, even over conversations and categories, in the order of the file.

    Draws one question at a time from the (conversation, category) pair that has given the fewest so far, then by the
    fewest of its category and of its conversation. Within a pair the questions stand at even distances.
    """
    if limit is None or limit >= len(questions):
        return tuple(questions)
    pairs: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, question in enumerate(questions):
        pairs[question.group, question.category].append(index)
    taken = Counter[str | tuple[str, str]]()
    for _ in range(limit):
        left = (pair for pair, indices in pairs.items() if taken[pair] < len(indices))
        pair = min(left, key=lambda pair: (taken[pair], taken[pair[1]], taken[pair[0]]))
        taken.update([pair, *pair])
    chosen = (
        indices[(2 * i + 1) * len(indices) // (2 * taken[pair])]
        for pair, indices in pairs.items()
        for i in range(taken[pair])
    )
    return tuple(questions[index] for index in sorted(chosen))


def load_locomo(
    path: Path | str,
    *,
    category: str | None = None,
    n_train: int | None = None,
    n_validation: int | None = None,
    n_test: int | None = None,
) -> QuestionSet:
    """Questions from LoCoMo's file, split by conversation first and filtered by category then (FACTS A "LoCoMo split").

    Args:
        path: `locomo10.json`, or a file in its format with the same conversation names.
        category: one of CATEGORIES. None takes all four, for a mixed library. Category 5 is always left out.
        n_train: at most this many training questions, spread evenly over conversations and categories; None is all.
        n_validation: the same for validation.
        n_test: the same for test.

    Returns:
        A benchmark whose reward is the mean of the category's token F1 and smoothed BLEU (FACTS A "reward"). Its
        metrics: f1 and bleu by the category's rule, f1_memory and bleu1_memory as the memory systems report them,
        and evidence_recall (1 for a question without gold evidence). All questions of a conversation share the tuple
        `document`, one line a turn in the order of the sessions; white space within a turn is folded.

    Raises:
        FileNotFoundError: there is no such file.
        DataError: an unknown category, or a malformed file; the text names record and key.
    """
    if category is not None and category not in CATEGORIES:
        raise DataError(f"unknown LoCoMo category {category!r}; known: {', '.join(CATEGORIES)}, or None for all")
    limits: Mapping[Split, int | None] = {"train": n_train, "validation": n_validation, "test": n_test}
    path = Path(path)
    splits, issues = _read(path)
    return QuestionSet(
        name="locomo",
        splits={
            split: _spread([q for q in questions if category in (None, q.category)], limits[split])
            for split, questions in splits.items()
        },
        score=locomo_reward,
        score_metrics=locomo_metrics,
        source=f"LoCoMo file {path.name}",
        issues=tuple(issues),
    )


def locomo_reward(question: Question, answer: str) -> float:
    """Mean of the category's token F1 and smoothed BLEU."""
    gold, category = question.answer, question.category
    return (scoring.locomo_f1(answer, gold, category) + scoring.locomo_bleu(answer, gold, category)) / 2


def locomo_metrics(question: Question, answer: str, evidence: Sequence[str] = ()) -> dict[str, float]:
    """The reported figures of one answer and of the evidence ids it was given from."""
    gold, category = question.answer, question.category
    return {
        "f1": scoring.locomo_f1(answer, gold, category),
        "bleu": scoring.locomo_bleu(answer, gold, category),
        "f1_memory": scoring.memory_f1(answer, gold),
        "bleu1_memory": scoring.memory_bleu1(answer, gold),
        "evidence_recall": scoring.evidence_recall(evidence, question.evidence),
    }
