"""A skill and an agent's library of them: immutable values, checked when they are made."""

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

from pydantic import ConfigDict

Provenance = Literal["human", "induced", "refined", "consolidated"]
PROVENANCES: tuple[Provenance, ...] = get_args(Provenance)

NAME_LENGTH = 64  # both limits are those of the Agent Skills format
DESCRIPTION_LENGTH = 1024
RESERVED = "none"  # an agent's reply names it when it used no skill
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_DELIMITER = re.compile(r"</?skill", re.IGNORECASE)  # what encloses a skill in an agent's prompt


@dataclass(frozen=True)
class EditRecord:
    """One change of a skill: by which operator, in which iteration, for which reason.

    `evidence` holds question ids or short reasons. `before` and `after` are `Skill.text` on either side of the
    change; "" means that the skill did not exist.

    Raises:
        ValueError: A text holds characters that UTF-8 can't encode.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")  # for reading history.jsonl

    operator: str
    iteration: int
    evidence: tuple[str, ...]
    before: str
    after: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", tuple(self.evidence))
        for text in (self.operator, *self.evidence, self.before, self.after):
            if fault := _encoding_fault(text):
                raise ValueError(f"edit record of {self.operator!r}: {fault}")


@dataclass(frozen=True)
class Skill:
    """One skill as an agent is shown it, with our records of it.

    The text is brought into one form here, so that what is saved is what loads: white space in `description` is
    folded into single spaces; in `body` line breaks become "\\n", blank lines at the start and white space at the
    end go away, and everything between stays as it is.

    Attributes:
        name: 1-64 of a-z, 0-9 and single hyphens inside (the Agent Skills rules, kept to ASCII so that a folder's
            name is the same on every file system), and not "none".
        description: When to use the skill; 1-1024 characters, one paragraph.
        body: What to do, in Markdown.
        id: Stays the same when the skill is renamed or refined.
        provenance: Who wrote it.
        utility: The smoothed credit, in [-1, 1] when it comes from credits (DESIGN, "aggregation").
        invocations: How often agents recorded its use.
        history: Its changes, oldest first.

    Raises:
        ValueError: A field breaks these rules, or a text holds "<skill" or "</skill", which would end the skill
            early in a prompt, or characters that UTF-8 can't encode.
    """

    name: str
    description: str
    body: str
    id: str
    provenance: Provenance = "human"
    utility: float = 0.0
    invocations: int = 0
    history: tuple[EditRecord, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "description", " ".join(self.description.split()))
        body = self.body.replace("\r\n", "\n").replace("\r", "\n")
        object.__setattr__(self, "body", re.sub(r"\A\s*\n", "", body).rstrip())
        object.__setattr__(self, "history", tuple(self.history))
        if fault := _name_fault(self.name) or _text_fault(self) or _record_fault(self):
            raise ValueError(f"skill {self.name!r}: {fault}")

    @property
    def text(self) -> str:
        """Description and body as one text: the `before` and `after` of an EditRecord."""
        return f"{self.description}\n\n{self.body}"


def _name_fault(name: str) -> str | None:
    if len(name) > NAME_LENGTH or not _NAME.fullmatch(name):
        return f"a name is 1 to {NAME_LENGTH} of a-z, 0-9 and single hyphens between them"
    if name == RESERVED:
        return f"the name {RESERVED!r} is reserved: agents reply with it when they used no skill"
    return None


def _encoding_fault(text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"can't be written as UTF-8: {error}"
    return None


def _text_fault(skill: Skill) -> str | None:
    if not 1 <= len(skill.description) <= DESCRIPTION_LENGTH:
        return f"the description has {len(skill.description)} characters; it must have 1 to {DESCRIPTION_LENGTH}"
    if not skill.body:
        return "the body is empty"
    for field in ("description", "body"):
        text = getattr(skill, field)
        if found := _DELIMITER.search(text):
            return f"the {field} holds {found[0]!r}, which delimits skills in a prompt"
        if fault := _encoding_fault(text):
            return f"the {field}: {fault}"
    return None


def _record_fault(skill: Skill) -> str | None:
    if not skill.id.strip() or not skill.id.isprintable():
        return f"the id is {skill.id!r}; it must be one line of printable characters"
    if skill.provenance not in PROVENANCES:
        return f"the provenance is {skill.provenance!r}; it must be one of {', '.join(PROVENANCES)}"
    if not math.isfinite(skill.utility):
        return f"the utility is {skill.utility}; it must be a finite number"
    if skill.invocations < 0:
        return f"invocations is {skill.invocations}; it can't be negative"
    return None


@dataclass(frozen=True)
class SkillLibrary:
    """The skills of one agent, in the order in which a prompt shows them; every change gives a new library.

    Raises:
        ValueError: Two skills share a name or an id.
    """

    agent: str
    skills: tuple[Skill, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "skills", tuple(self.skills))
        seen: dict[tuple[str, str], str] = {}
        for skill in self.skills:
            for key in (("name", skill.name), ("id", skill.id)):
                if key in seen:
                    kind, value = key
                    raise ValueError(
                        f"library of {self.agent!r}: the {kind} {value!r} stands twice"
                        f" (skills {seen[key]!r} and {skill.name!r}); it must be unique"
                    )
                seen[key] = skill.name

    def __len__(self) -> int:
        return len(self.skills)

    def __iter__(self) -> Iterator[Skill]:
        return iter(self.skills)

    def names(self) -> tuple[str, ...]:
        """The skills' names, in order."""
        return tuple(skill.name for skill in self.skills)

    def get(self, name: str) -> Skill | None:
        """The skill of that name, or None."""
        return next((skill for skill in self.skills if skill.name == name), None)

    def with_skill(self, skill: Skill) -> "SkillLibrary":
        """With `skill` in the place of the one with its id, or at the end where there is none.

        Raises:
            ValueError: Another skill (with another id) has this name.
        """
        skills = tuple(skill if old.id == skill.id else old for old in self.skills)
        return replace(self, skills=skills if skill in skills else (*skills, skill))

    def without(self, name: str) -> "SkillLibrary":
        """Without the skill of that name.

        Raises:
            KeyError: There is none.
        """
        if self.get(name) is None:
            raise KeyError(f"library of {self.agent!r} has no skill {name!r}, only {', '.join(self.names()) or 'none'}")
        return replace(self, skills=tuple(skill for skill in self.skills if skill.name != name))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of what a prompt shows: names, descriptions and bodies in order; no records, no agent."""
        shown = [(skill.name, skill.description, skill.body) for skill in self.skills]
        return hashlib.sha256(json.dumps(shown).encode()).hexdigest()


def slug(text: str, taken: Collection[str] = ()) -> str:
    """A valid skill name that is not in `taken`, from any text (a model's title for a skill, for instance).

    Accents go, all else outside a-z and 0-9 becomes a hyphen, so no path can come out of it. A text without any
    such character gives "skill"; a name that is taken or reserved gets "-2", "-3" ...
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:NAME_LENGTH].rstrip("-") or "skill"
    free, number = name, 1
    while free in taken or free == RESERVED:
        number += 1
        suffix = f"-{number}"
        free = name[: NAME_LENGTH - len(suffix)].rstrip("-") + suffix
    return free
