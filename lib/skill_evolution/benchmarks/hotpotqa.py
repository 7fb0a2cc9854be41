"""HotpotQA, distractor setting: questions over ten short passages, two of which hold the answer's evidence.

Reads the official file (a JSON list), the same records as JSON lines, and the shape of the Hugging Face data set
`hotpotqa/hotpot_qa` (dicts of lists, `id` for `_id`) as JSON, JSON lines or parquet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AliasChoices, BaseModel, Field, field_validator

from skill_evolution.benchmarks import scoring
from skill_evolution.benchmarks.base import SPLITS, DataError, DataIssue, Question, QuestionSet
from skill_evolution.benchmarks.records import one_line, read_records, validate

Text = Annotated[str, Field(min_length=1)]
Category = Literal["bridge", "comparison"]
CATEGORIES: tuple[Category, ...] = get_args(Category)


def _pairs(value: Any, first: str, second: str) -> Any:
    """Turns the Hugging Face shape, a dict of two lists, into the official list of pairs."""
    if not isinstance(value, Mapping):
        return value
    try:
        return list(zip(value[first], value[second], strict=True))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"expected the lists {first!r} and {second!r} of equal length ({error})") from error


class _Record(BaseModel):
    """One question as it stands in a file; other keys are ignored."""

    id: Text = Field(validation_alias=AliasChoices("_id", "id"))
    question: Text
    answer: Text
    type: Category
    supporting_facts: list[tuple[str, int]]
    context: list[tuple[Text, list[str]]]

    @field_validator("supporting_facts", mode="before")
    @classmethod
    def _facts(cls, value: Any) -> Any:
        return _pairs(value, "title", "sent_id")

    @field_validator("context", mode="before")
    @classmethod
    def _passages(cls, value: Any) -> Any:
        return _pairs(value, "title", "sentences")


def sentence_id(title: str, index: int) -> str:
    r"""The id of a passage's sentence, "Title:0"; `index` counts from 0.

    Square brackets in a title become round ones and white space is folded, so that an id in square brackets can be
    found again by `\[([^\[\]]+:\d+)\]`; all else, colons and HTML entities included, stays. The same rule makes the
    evidence ids, so the two always agree.
    """
    return f"{one_line(title).translate(str.maketrans('[]', '()'))}:{index}"


def _render(context: Sequence[tuple[str, Sequence[str]]]) -> str:
    """One line a sentence, a blank line between passages; an empty sentence keeps its line and so its number."""
    return "\n\n".join(
        "\n".join(f"[{sentence_id(title, i)}] {one_line(s)}".rstrip() for i, s in enumerate(sentences))
        for title, sentences in context
    )


class _Reader:
    """Turns records into questions and notes the faults on the way."""

    def __init__(self) -> None:
        self.issues: list[DataIssue] = []
        self._ids: dict[str, int] = {}
        self._texts: dict[str, str] = {}

    def question(self, where: str, record: _Record) -> Question:
        where = f"{where}, {record.id}"
        self._check_evidence(where, record)
        question = Question(
            id=self._unique_id(where, record.id),
            text=record.question.strip(),
            answer=record.answer,
            category=record.type,
            context=_render(record.context),
            evidence=tuple(dict.fromkeys(sentence_id(*fact) for fact in record.supporting_facts)),
        )
        if (earlier := self._texts.setdefault(question.text, question.id)) != question.id:
            self.issues.append(DataIssue(where, f"the same question as {earlier}; both are kept", "reported"))
        return question

    def _unique_id(self, where: str, id: str) -> str:
        self._ids[id] = count = self._ids.get(id, 0) + 1
        if count == 1:
            return id
        self.issues.append(DataIssue(where, f"id stands {count} times in the file; named {id}#{count}", "repaired"))
        return f"{id}#{count}"

    def _check_evidence(self, where: str, record: _Record) -> None:
        lengths: dict[str, int] = {}
        for title, sentences in record.context:
            if title in lengths:
                self.issues.append(DataIssue(where, f"two passages have the title {title!r}", "reported"))
            lengths[title] = max(len(sentences), lengths.get(title, 0))
        for title, index in record.supporting_facts:
            if not 0 <= index < lengths.get(title, 0):
                problem = f"supporting fact [{title!r}, {index}] names no sentence; kept, as the official scores do"
                self.issues.append(DataIssue(where, problem, "reported"))


def load_hotpotqa(
    path: Path | str,
    *,
    n_train: int,
    n_validation: int,
    n_test: int,
    category: str | None = None,
) -> QuestionSet:
    """Questions from a HotpotQA file: train, validation and test as slices in file order (FACTS A "HotpotQA sizes").

    Args:
        path: the official JSON list, JSON lines, or the Hugging Face shape as either of them or as parquet.
        n_train: number of training questions; the paper's profile takes 500, 200 and 800.
        n_validation: number of validation questions.
        n_test: number of test questions.
        category: only questions of this type. None takes both.

    Returns:
        A benchmark whose reward is the answer-token F1. Its metrics: em, f1, precision, recall, bleu of the answer,
        sp_em and sp_f1 of the evidence ids handed over, and joint_em and joint_f1 of both.

    Raises:
        FileNotFoundError: there is no such file.
        DataError: an unknown category, a malformed record (the text names file, line and key),
            or too few questions in the file. Records after the last one needed are not looked at.
    """
    path, sizes = Path(path), (n_train, n_validation, n_test)
    if category not in (None, *CATEGORIES):
        raise DataError(f"unknown HotpotQA category {category!r}; known: {', '.join(CATEGORIES)}, or None for both")
    reader, needed = _Reader(), sum(sizes)
    records = ((where, validate(_Record, raw, where)) for where, raw in read_records(path))
    chosen = islice((r for r in records if category in (None, r[1].type)), needed)
    questions = [reader.question(where, record) for where, record in chosen]
    if len(questions) < needed:
        raise DataError(
            f"{path} has {len(questions)} questions{f' of category {category!r}' if category else ''}, but "
            f"n_train={n_train}, n_validation={n_validation} and n_test={n_test} need {needed}: set smaller numbers"
        )
    left = iter(questions)
    return QuestionSet(
        name="hotpotqa",
        splits={split: tuple(islice(left, size)) for split, size in zip(SPLITS, sizes, strict=True)},
        score=hotpot_reward,
        score_metrics=hotpot_metrics,
        source=f"HotpotQA file {path.name}",
        issues=tuple(reader.issues),
    )


def hotpot_reward(question: Question, answer: str) -> float:
    """Answer-token F1 (FACTS A "reward")."""
    return scoring.hotpot_answer(answer, question.answer).f1


def hotpot_metrics(question: Question, answer: str, evidence: Sequence[str] = ()) -> dict[str, float]:
    """The official scores of one answer and of the evidence ids it was given from."""
    scores = scoring.hotpot_answer(answer, question.answer)
    facts = scoring.hotpot_supporting_facts(evidence, question.evidence)
    joint = scoring.hotpot_joint(scores, facts)
    return {
        **asdict(scores),
        "sp_em": facts.em,
        "sp_f1": facts.f1,
        "joint_em": joint.em,
        "joint_f1": joint.f1,
        "bleu": scoring.hotpot_bleu(answer, question.answer),
    }
