"""What code can tell of a rollout from the gold data, and worked cases for skills, their names masked by letters.

A critic that is told how much of the gold evidence was handed over can judge; one that has to find out searches. The
names, numbers and answer of a case become letters, so what a skill shows of it is its form and no training answer.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from skill_evolution.benchmarks.base import Question
from skill_evolution.rollouts import Trajectory
from skill_evolution.teams import Role

LETTERS = "BCDEFGHJKLMNPQRSTUVWXYZ"  # A and I are words of their own
_ID = re.compile(r"^\[[^\[\]\n]+:\d+\]\s*")
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_START = re.compile(r"(?:^|[.?!:\]\[\n(])\s*[\"'“]?$")  # what stands before the first word of a sentence
MANY = 25  # a word that starts so many lines names nothing (our choice)
_FUNCTION_WORDS = frozenset(
    """a about after all also an and another any are as at be because been before both but by can could did do does
    during each every few first for from had has have he her here his how i if in into is it its last later many
    may more most much my no not now of on once one only or other our she should since so some such than that
    the their them then there these they this those three throughout through to today two under until up was we
    were what when where which while who whom whose why will with would yes you your""".split()  # noqa: SIM905
)
_TIMED = re.compile(r":$|\($")
_PLAIN = frozenset(("yes", "no"))


def gold_lines(question: Question) -> tuple[str, ...]:
    """The lines of the gold evidence, with their ids, in the order of the source."""
    marks = tuple(f"[{id}]" for id in question.evidence)
    return tuple(line for line in (*question.context.splitlines(), *question.document) if line.startswith(marks))


def facts(trajectory: Trajectory) -> dict[str, Any]:
    """What became of the gold evidence in a rollout: found by a search (if one was made), handed over, answered."""
    question, execution = trajectory.question, trajectory.execution
    assert execution is not None
    lines = gold_lines(question)
    handed = _text(step.text for step in execution.steps if step.kind == "handover")
    told: dict[str, Any] = {}
    if any(step.kind == "call" for step in execution.steps):
        found = _text(step.text for step in execution.steps if step.kind == "result")
        told["gold_lines_found_by_search"] = _share(lines, found)
    if handed:
        told["gold_lines_handed_over"] = _share(lines, handed)
        if question.answer.lower() not in _PLAIN:
            told["gold_answer_handed_over"] = _folded(question.answer) in handed
    return {**told, "declined": execution.answer is None}


def evidence_handed_over(trajectory: Trajectory) -> bool:
    """Whether the answering agent was handed all gold lines, or the gold answer itself."""
    told = facts(trajectory)
    have, _, of = told.get("gold_lines_handed_over", "0 of 0").partition(" of ")
    return told.get("gold_answer_handed_over", False) or 0 < int(of) == int(have)


def _share(lines: Sequence[str], text: str) -> str:
    return f"{sum(_folded(_ID.sub('', line)) in text for line in lines)} of {len(lines)}"


def _text(parts: Iterable[str]) -> str:
    return _folded("\n".join(parts))


def _folded(text: str) -> str:
    return " ".join(text.lower().split())


@dataclass(frozen=True)
class Case:
    """What an agent did with a question that went badly, and what it should have done; names masked."""

    question: str
    given: str
    did: str
    right: str

    def example(self) -> str:
        """The case as a skill shows it: without what went wrong."""
        return "\n".join(part for part in (f"Question: {self.question}", self.given, self.right) if part)


def case_of(role: Role, trajectory: Trajectory, common: frozenset[str]) -> Case | None:
    """The case of an agent's part in a rollout; None where the gold data don't say what would have been right."""
    question, execution = trajectory.question, trajectory.execution
    lines = gold_lines(question)
    own = [step.text for step in execution.steps if step.agent == role.agent] if execution else []
    if not lines or not own:
        return None
    texts = [question.text, "\n".join(lines), own[-1], question.answer]
    asked, evidence, did, answer = masked(texts, common, answer=question.answer)
    if role.answers:
        return Case(asked, f"Handed over:\n{evidence}", did, f"<answer>{answer}</answer>")
    return Case(asked, "", did, f"<handover>\n{evidence}\n</handover>")


def varied(cases: Sequence[Case]) -> list[Case]:
    """The cases in an order in which each is as unlike as may be to those before it, by the words of the questions."""
    left, chosen, words = list(cases), [], set()
    while left:
        new = min(left, key=lambda case: len(words & set(case.question.split())) / len(case.question.split() or "?"))
        left.remove(new)
        chosen.append(new)
        words |= set(new.question.split())
    return chosen


def unnamed(text: str, question: Question) -> str:
    """A text about a question with the question's names and answer replaced by letters."""
    sources = (question.text, *gold_lines(question))
    return masked(sources, frozenset(), answer=question.answer, also=(text,))[-1]


def masked(texts: Sequence[str], common: frozenset[str], *, answer: str = "", also: Sequence[str] = ()) -> list[str]:
    """The texts with every name, every number and the answer replaced by a letter, the same one wherever it stands.

    Args:
        texts: texts of one case.
        common: further words that aren't names although a sentence starts with them.
        answer: is masked as well, unless it is yes or no.
        also: further texts, in which only what was found in the others is replaced.
    """
    common |= _FUNCTION_WORDS
    found = [name for text in texts for name in _names(text, common)]
    if answer and answer.lower() not in _PLAIN:
        found.append(answer)
    letters: dict[str, str] = {}
    for name in sorted(dict.fromkeys(found), key=lambda name: -len(name)):
        whole = next((longer for longer in letters if re.search(rf"\b{re.escape(name)}\b", longer)), None)
        letters[name] = letters[whole] if whole else LETTERS[len(set(letters.values())) % len(LETTERS)]
    if not letters:
        return [*texts, *also]
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, letters))})\b")
    return [pattern.sub(lambda match: letters[match[0]], text) for text in (*texts, *also)]


def _names(text: str, common: frozenset[str]) -> Iterable[str]:
    """Runs of capitalised words (less common ones at the start of a sentence), and numbers."""
    run: list[re.Match[str]] = []
    for match in (*_WORD.finditer(text), None):
        if run and (match is None or not _capital(match[0]) or text[run[-1].end() : match.start()] != " "):
            yield text[run[0].start() : run[-1].end()]
            run = []
        if match is None or not _capital(match[0]):
            continue
        if match[0].isdigit() and _TIMED.search(text[: match.start()]):  # of an id or a time of day
            continue
        starts = not run and _START.search(text[: match.start()])
        if not (starts and match[0].lower() in common):
            run.append(match)


def _capital(word: str) -> bool:
    return len(word) > 1 and ((word[0].isupper() and not re.fullmatch(r"D\d+", word)) or word.isdigit())


def common_words(texts: Sequence[str]) -> frozenset[str]:
    """Words that name nothing: written small somewhere, or in many of the texts."""
    counts = Counter(word.lower() for text in texts for word in set(_WORD.findall(text)))
    small = {word for text in texts for word in _WORD.findall(text) if word.islower()}
    return frozenset(small | {word for word, count in counts.items() if count >= MANY})
