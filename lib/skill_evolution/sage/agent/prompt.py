"""Text to and from the agent's policy: how a task and what code printed are put, and the code in what comes back."""

import re
import textwrap
from collections.abc import Sequence

from skill_evolution.models import prompting
from skill_evolution.sage.agent.code_skills import CodeSkill
from skill_evolution.sage.agent.world import Task, World
from skill_evolution.sage.config import AgentConfig

# Up to a closing fence at the start of a line, or to the end: a model that stops there needn't close its block.
_BLOCK = re.compile(r"```(?:python|py)[ \t]*(?:\n|\Z)(.*?)(^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE | re.IGNORECASE)


def messages(agent: AgentConfig, world: World, task: Task, skills: Sequence[CodeSkill]) -> list[dict[str, str]]:
    """The chat that opens a task; the same prompt serves for solving it and for writing skills.

    What all tasks share comes first, for prefix caching.
    """
    shown = [skill.code if agent.bodies else skill.signature for skill in skills]
    text = prompting.render(f"sage/{agent.layout}.md.j2", overview=world.overview, task=task, skills=shown)
    return [{"role": "user", "content": text}]


def observation(agent: AgentConfig, output: str, *, unfinished: int | None = None) -> str:
    """What follows a turn.

    Args:
        agent: Its layout, and how much of the output it is shown.
        output: What the turn's code printed; "" also where none was run.
        unfinished: Tokens after which a code block was cut off; None if none was.
    """
    compact, shown = agent.layout == "compact", shorten(output.rstrip(), agent.output_chars)
    return prompting.render("sage/observation.md.j2", compact=compact, output=shown, unfinished=unfinished)


def find_code(text: str, *, cut: bool) -> tuple[str | None, bool]:
    """The code of a turn, and whether a block was cut off.

    All ```python blocks of the turn are joined and run as one: a model that defines a function in one block and calls
    it in the next means both. A block that is still open at the end runs if the model stopped there by itself; if the
    token limit did (`cut`), it's left out, because half a program can do half its work. None where no code remains.
    """
    blocks = [(match[1], bool(match[2])) for match in _BLOCK.finditer(text.replace("\r\n", "\n"))]
    unfinished = cut and bool(blocks) and not blocks[-1][1]
    code = "\n".join(textwrap.dedent(block).strip("\n") for block, _ in (blocks[:-1] if unfinished else blocks))
    return (code if code.strip() else None), unfinished


def shorten(text: str, limit: int) -> str:
    """Text of at most `limit` characters and a line that says how many of its middle are missing."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit - limit // 2], text[len(text) - limit // 2 :]  # an error's text stands at the end
    return f"{head}\n[{len(text) - limit} characters left out]\n{tail}"
