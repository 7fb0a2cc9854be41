"""A single model without a team: reads passages or a conversation in one user message, answers or checks an answer.

The same rules as the agents', without skills: the evidence reader's or the searcher's choice of lines, then the
answerer. It doesn't reason aloud, so a chain of thought is the same answer, and a greedy check never disagrees with it.
"""

import re
from collections.abc import Mapping

from skill_evolution.models.base import Message, ModelError
from skill_evolution.testbed.reader import answering, passages, searching
from skill_evolution.testbed.reader.chance import Chance
from skill_evolution.testbed.reader.policy import Policy
from skill_evolution.testbed.reader.reading import read_lines, read_question

LINES = 6
"""Evidence lines that it answers from: as many as an agent hands over (FACTS A)."""
_SECTION = re.compile(r"^# (Passages|Conversation|Question|Answer given|Form of your reply)\n", re.MULTILINE)


def offered(messages: tuple[Message, ...]) -> bool:
    """Whether this is one user message that asks for an answer or for a check of one."""
    return len(messages) == 1 and messages[0].role == "user" and _form(_sections(messages[0].content)) != ""


def reply(user: str, chance: Chance) -> str:
    """The answer in its tag; or, shown an answer, NO_CHANGE or what the text says instead.

    Raises:
        ModelError: The message has no question.
    """
    sections = _sections(user)
    if "Question" not in sections:
        raise ModelError("simulated reader: a user message alone needs a section '# Question'")
    query = read_question(sections["Question"])
    policy = Policy((), chance, query.text)
    lines = read_lines(sections.get("Passages", sections.get("Conversation", "")))
    told = any(line.stamp for line in lines)
    evidence = searching.scan(query, lines, LINES, policy) if told else passages.pick(query, lines, policy)[:LINES]
    answer = answering.answer(query, evidence, policy) or "NO_ANSWER"
    if "<answer>" in _form(sections):
        return f"<answer>{answer}</answer>"
    given = sections.get("Answer given", "")
    return "NO_CHANGE" if given == answer else f"The text says {answer}, not {given}."


def _sections(user: str) -> dict[str, str]:
    """A message's sections by their titles; no line of a source begins with "# "."""
    _, *parts = _SECTION.split(user)
    return {title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}


def _form(sections: Mapping[str, str]) -> str:
    """The reply form, "" where it asks neither for an answer nor for a check."""
    form = sections.get("Form of your reply", "")
    return form if "<answer>" in form or "NO_CHANGE" in form else ""
