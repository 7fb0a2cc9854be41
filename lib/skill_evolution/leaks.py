"""No training answers in skills: a written text that holds one, or a long stretch of training text, is rejected."""

import re
from collections.abc import Iterable, Sequence

from skill_evolution.benchmarks.base import Question
from skill_evolution.cases import common_words

STRETCH = 8  # words in a row that may not stand in a skill (our choice)
_WORD = re.compile(r"\w+")


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


class LeakCheck:
    """Looks for training answers and stretches of training text.

    An answer of several words leaks if its words stand in a row, whatever their case; a single word only if it is a
    name or a number of three digits or more and stands in the same case: "music", "yes", "Twice" or "7" in a skill
    says nothing about a question (our choice).
    """

    def __init__(self, questions: Sequence[Question]) -> None:
        self._answers = {" ".join(_words(q.answer.lower())): q.answer for q in questions if len(_words(q.answer)) > 1}
        self._names = {_words(q.answer)[0] for q in questions if _telling(q.answer)}
        self._longest = max((answer.count(" ") + 1 for answer in self._answers), default=0)
        texts = list(_training_texts(questions))
        self._stretches = set(_stretches(texts))
        self.common = common_words(texts)

    def found(self, text: str, *, before: str = "") -> str | None:
        """What leaks in a text, or None. What stood in `before` already is not this text's leak."""
        earlier = set(self._leaks(before))
        return next((leak for leak in self._leaks(text) if leak not in earlier), None)

    def answer(self, text: str) -> str | None:
        """The first training answer in a text, or None."""
        return next(iter(self._answers_in(text)), None)

    def _leaks(self, text: str) -> Iterable[str]:
        yield from self._answers_in(text)
        for stretch in _stretches([text]):
            if stretch in self._stretches:
                yield f"holds {STRETCH} words in a row of training text: {stretch!r}"

    def _answers_in(self, text: str) -> Iterable[str]:
        words = _words(text)
        lowered = [word.lower() for word in words]
        for length in range(2, self._longest + 1):
            for start in range(len(lowered) - length + 1):
                run = " ".join(lowered[start : start + length])
                if run in self._answers:
                    yield f"holds the training answer {self._answers[run]!r}"
        for word in words:
            if word in self._names:
                yield f"holds the training answer {word!r}"


_COUNTS = frozenset(
    ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "once", "twice", "yes", "no")
)


def _telling(answer: str) -> bool:
    words = _words(answer)
    if len(words) != 1 or words[0].lower() in _COUNTS:
        return False
    return any(c.isupper() for c in answer) or (any(c.isdigit() for c in answer) and len(words[0]) > 2)


def _training_texts(questions: Sequence[Question]) -> Iterable[str]:
    for question in questions:
        yield question.text
        yield from question.context.splitlines()
    for document in dict.fromkeys(question.document for question in questions):  # a conversation has many questions
        yield from document


def _stretches(texts: Iterable[str]) -> Iterable[str]:
    for text in texts:
        words = [word.lower() for word in _words(text)]
        for start in range(len(words) - STRETCH + 1):
            yield " ".join(words[start : start + STRETCH])
