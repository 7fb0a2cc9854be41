"""The simulated reader as an optimizer: merges credits, refines, consolidates and writes skills.

It writes what its table of directives says about a missing capability, and now and then overshoots: a rule that
sounds like a remedy and narrows too much. It has no way to tell the two apart; that is what credits and gate are for.
All figures are our choice.
"""

import json
from typing import Any

from skill_evolution.models.simulated.chance import Chance
from skill_evolution.models.simulated.directives import DIRECTIVES, Directive, recognise
from skill_evolution.models.simulated.documents import (
    ConsolidateTask,
    LibraryText,
    MergeTask,
    PatternText,
    RefineTask,
    WriteTask,
    read,
    read_section,
)

LOW_UTILITY = -0.1  # mean credit at or below which a skill is judged to do harm
_PARTNERS, _EDIT, _DESCRIPTION, _BODY, _ANCHOR = 4, 600, 1024, 4000, 1000  # lengths that the reply forms have room for

# The rule that a writer may jump to for a capability, and that narrows too much.
OVERSHOOTS = {
    "widen_adjacent": "exact_phrase_only",
    "each_hop": "one_keyword_only",
    "stem_search": "exact_phrase_only",
    "quote_all": "latest_session_only",
    "follow_bridge": "one_passage_only",
    "both_entities": "first_sentence_only",
    "whole_context": "one_passage_only",
    "shortest_span": "decline_unless_verbatim",
    "resolve_dates": "keep_relative_dates",
    "yes_no": "full_sentence",
    "list_all": "full_sentence",
    "commit_likely": "decline_unless_verbatim",
}
_GENERAL = "Read the question twice and check the result against it before replying."


def merge_credits(system: str, user: str, chance: Chance) -> str:
    """The reply to "merge credits": a verdict by the mean credit and the votes.

    Raises:
        ModelError: The message is not what the task asks for; so for all tasks here.
    """
    del system, chance
    task = read(MergeTask, user, "the merge call's document")
    partners = list(dict.fromkeys(name for c in task.credits for name in c.redundant_with))[:_PARTNERS]
    edits = [c.suggested_edit for c in task.credits if c.suggested_edit]
    edit = max(dict.fromkeys(edits), key=edits.count)[:_EDIT] if edits else None
    mean = "no credit" if task.mean_credit is None else f"mean credit {task.mean_credit:+.2f}"
    reply = {
        "verdict": _verdict(task, often=bool(edits) and 2 * len(edits) >= len(task.credits)),
        "summary": f"{mean} over {task.questions} questions",
        "suggested_edit": edit,
        "redundant_with": partners,
    }
    return json.dumps(reply, ensure_ascii=False)


def _verdict(task: MergeTask, *, often: bool) -> str:
    """The verdict; `often` is whether half of the questions suggest an edit. Without a mean the votes decide."""
    votes = [credit.contribution for credit in task.credits]
    harmful = 2 * votes.count("harmful") >= len(votes) if task.mean_credit is None else task.mean_credit <= LOW_UTILITY
    if harmful:
        return "refine" if often else "low_utility"
    if 2 * votes.count("redundant") > len(votes):
        return "redundant"
    return "refine" if often else "keep"


def refine_skill(system: str, user: str, chance: Chance) -> str:
    """The reply to "refine a skill": what stands against the suggestion is replaced, else a sentence is added."""
    del system, chance
    task = read(RefineTask, user, "the refine call's document")
    body, suggestion = task.skill.body, task.suggested_edit or ""
    wanted = [d for d, _ in recognise(suggestion)]
    for directive in wanted:
        for there, sentence in recognise(body):
            if there.key in directive.opposes or directive.key in there.opposes:
                return _replaced(body, sentence, directive)
    there = {d.key for d, _ in recognise(body)}
    text = next((d.text for d in wanted if d.key not in there), suggestion if not wanted else "") or _GENERAL
    anchor = _ending(body)
    return _edits("insert_after", anchor, f"\n{text}") if text not in body else _edits("replace", anchor, anchor)


def _replaced(body: str, sentence: str, directive: Directive) -> str:
    """An edit that puts a directive in the place of a sentence; of its whole line, if that asks for nothing else.

    What follows in the line then are the reasons for the sentence, which would no longer hold.
    """
    line = next((line for line in body.splitlines() if sentence in line), sentence)
    if len(recognise(line)) == 1 and body.count(line) == 1 and len(line) <= _ANCHOR:
        return _edits("replace", line, directive.text)
    if body.count(sentence) == 1:
        return _edits("replace", sentence, directive.text.rstrip("."))
    return _edits("insert_after", _ending(body), f"\n{directive.text}")


def _ending(body: str) -> str:
    """The shortest run of last lines that stands once in a body, so that it can be an anchor."""
    text = body.rstrip()
    lines = text.splitlines() or [body]
    endings = ("\n".join(lines[start:]) for start in range(len(lines) - 1, -1, -1))
    return next((ending for ending in endings if text.count(ending) == 1), text)[-_ANCHOR:]


def _edits(op: str, anchor: str, text: str) -> str:
    return json.dumps({"edits": [{"op": op, "anchor": anchor, "text": text}]}, ensure_ascii=False)


def consolidate_skills(system: str, user: str, chance: Chance) -> str:
    """The reply to "consolidate skills": every line once, less those that contradict what stands before them."""
    del system, chance
    skills = read(ConsolidateTask, user, "the consolidate call's document").skills
    lines: list[str] = []
    for line in (line.strip() for skill in skills for line in skill.body.splitlines()):
        if line and line not in lines and not _contradicts(line, "\n".join(lines)):
            lines.append(line)
    while len(lines) > 1 and sum(map(len, lines)) + len(lines) > _BODY:
        lines.pop()
    description = " ".join(dict.fromkeys(skill.description for skill in skills))[:_DESCRIPTION]
    reply = {"name": skills[0].name, "description": description, "body": "\n".join(lines)[:_BODY]}
    return json.dumps(reply, ensure_ascii=False)


def _contradicts(line: str, before: str) -> bool:
    there = {d.key for d, _ in recognise(before)}
    return any(there & set(d.opposes) or d.key in DIRECTIVES[key].opposes for d, _ in recognise(line) for key in there)


def write_skill(system: str, user: str, chance: Chance) -> str:
    """The reply to "write a skill": for the most frequent pattern that the library does not cover yet."""
    patterns = read(WriteTask, user, "the induction call's document").patterns
    library = read_section(LibraryText, system, "Library").skills
    there = {d.key for skill in library for d, _ in recognise(f"{skill.description}\n{skill.body}")}
    for pattern in patterns:
        for directive, _ in (found for text in pattern.suggestions for found in recognise(text)):
            if directive.key not in there:
                return _skill(directive.key, pattern, chance)
    return _written("careful-work", patterns[0], _GENERAL)


def _skill(key: str, pattern: PatternText, chance: Chance) -> str:
    risk = overshoot_risk(pattern.questions) if key in OVERSHOOTS else 0.0
    chosen = chance.pick(f"write/{key}", [key, OVERSHOOTS.get(key, key)], [1 - risk, risk])
    return _written(chosen.replace("_", "-"), pattern, DIRECTIVES[chosen].text)


def overshoot_risk(questions: int) -> float:
    """Probability of a rule that narrows too much, by the number of questions behind it.

    Who has one case to go by generalises wrongly more often than who has seen the same failure in many.
    """
    return 1 / (1 + questions)


def _written(name: str, pattern: PatternText, body: str) -> str:
    """A skill's reply. The description tells where it came from and asks for nothing."""
    kind = pattern.failure_type.replace("_", " ")
    description = f"For questions like those that went wrong before ({kind})."
    reply = {"name": name, "description": description, "common": kind, "body": body, "examples": []}
    return json.dumps(reply, ensure_ascii=False)


TASKS: dict[str, Any] = {
    "merge credits": merge_credits,
    "refine a skill": refine_skill,
    "consolidate skills": consolidate_skills,
    "write a skill": write_skill,
}
