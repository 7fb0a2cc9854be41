"""What a benchmark is to this package: questions in three splits, a reward and reported metrics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


class DataError(ValueError):
    """A data file or a request for questions that can't be used; names the file, record and key at fault."""


@dataclass(frozen=True)
class Question:
    """One question with what is needed to answer and to score it.

    `context` is what an agent that sees the context is shown; `document` holds the lines that `grep` searches.
    A line that can be cited starts with its id in square brackets, "[D3:7] ..." or "[Title:0] ...".
    `evidence` lists the ids of the gold evidence in that same form, without the brackets.
    """

    id: str
    text: str
    answer: str
    category: str
    context: str = ""
    document: tuple[str, ...] = field(default=(), repr=False)
    evidence: tuple[str, ...] = ()
    group: str = ""


@dataclass(frozen=True)
class DataIssue:
    """A fault found in a data file and what was done about it ("repaired", "reported")."""

    where: str
    problem: str
    action: Literal["repaired", "reported"]


class Benchmark(Protocol):
    """The seam between the method and a task.

    `reward` is the training reward in [0, 1], higher is better; `metrics` are the reported figures in [0, 1].
    Both take the answer as text ("" where the team declined) and never raise for one odd answer. `evidence` of
    `metrics` holds the ids that the answering agent was handed. `source` labels tables: where the questions
    come from.
    """

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def splits(self) -> Mapping[Split, Sequence[Question]]: ...

    def reward(self, question: Question, answer: str) -> float: ...

    def metrics(self, question: Question, answer: str, evidence: Sequence[str] = ()) -> dict[str, float]: ...


@dataclass(frozen=True)
class QuestionSet:
    """A Benchmark from questions and a scoring function: all that one's own task needs.

    `score` maps (question, answer) to [0, 1] and is both the reward and the metric "score", unless
    `score_metrics` is given. `issues` are the faults found on loading.
    """

    name: str
    splits: Mapping[Split, Sequence[Question]] = field(repr=False)
    score: Callable[[Question, str], float]
    score_metrics: Callable[[Question, str, Sequence[str]], dict[str, float]] | None = None
    source: str = "given"
    issues: tuple[DataIssue, ...] = ()

    def reward(self, question: Question, answer: str) -> float:
        """The training reward of an answer, in [0, 1]."""
        return self.score(question, answer)

    def metrics(self, question: Question, answer: str, evidence: Sequence[str] = ()) -> dict[str, float]:
        """The reported figures of an answer, each in [0, 1]."""
        if self.score_metrics is None:
            return {"score": self.score(question, answer)}
        return self.score_metrics(question, answer, evidence)
