"""The acting agents: reads the messages of one turn and replies in the form that the system message offers."""

from collections.abc import Sequence

from skill_evolution.models.base import Message, ModelError
from skill_evolution.testbed.reader import answering, passages, searching
from skill_evolution.testbed.reader.chance import Chance
from skill_evolution.testbed.reader.policy import Policy
from skill_evolution.testbed.reader.reading import Line, read_brief, read_lines, read_question, read_user


def reply(messages: Sequence[Message], chance: Chance) -> str:
    """One turn of an agent.

    Args:
        messages: The system message first, then user and assistant messages in turn, a user message last.
        chance: The call's draws.

    Raises:
        ModelError: Where there is no system message or no user message.
    """
    if len(messages) < 2 or messages[0].role != "system" or messages[-1].role != "user":
        roles = ", ".join(message.role for message in messages) or "none"
        raise ModelError(f"simulated reader: needs a system message first and a user message last, got {roles}")
    brief = read_brief(messages[0].content)
    first = next(message.content for message in messages if message.role == "user")
    question, context, handed = read_user(first)
    query = read_question(question)
    policy = Policy(brief.skills, chance, question)
    lines: list[Line] = [line for part in (context, *handed) for line in read_lines(part)]
    if brief.kind == "searcher":
        pattern, found = searching.step(query, messages, brief, policy)
        if pattern is not None:
            return _form("grep", pattern, policy)
        lines = [*lines, *found]
    elif brief.kind == "reader":
        lines = passages.pick(query, lines, policy)[: brief.limit]
    if brief.answers:
        return _form("answer", answering.answer(query, lines, policy) or "NO_ANSWER", policy)
    return _form("handover", "\n".join(line.raw for line in lines) or "NO_EVIDENCE", policy)


def _form(tag: str, content: str, policy: Policy) -> str:
    used = ", ".join(policy.used()) or "none"
    return f"<{tag}>{content}</{tag}>\n<skills_used>{used}</skills_used>"
