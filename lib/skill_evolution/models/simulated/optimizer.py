"""The simulated reader as an optimizer: merges credits, refines, consolidates and writes skills.

It writes what its table of directives says about a missing capability, and now and then overshoots: a rule that
sounds like a remedy and narrows too much. It has no way to tell the two apart; that is what credits and gate are for.
"""

import json
from typing import Any

from skill_evolution.models.simulated.chance import Chance
from skill_evolution.models.simulated.directives import DIRECTIVES, recognise

LOW_UTILITY = -0.1  # mean credit at or below which a skill is judged to do harm

# The rule that a writer may jump to for a capability, and that narrows too much.
_OVERSHOOTS = {
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
    """The reply to "merge credits": a verdict by the mean credit and the votes."""
    del system, chance
    document = json.loads(user)
    credits, mean = document["credits"], document["mean_credit"]
    partners = list(dict.fromkeys(name for c in credits for name in c["redundant_with"]))[:4]
    edits = [c["suggested_edit"] for c in credits if c["suggested_edit"]]
    edit = max(dict.fromkeys(edits), key=edits.count) if edits else None
    verdict, often = "keep", 2 * len(edits) >= len(credits)
    if mean <= LOW_UTILITY:
        verdict = "refine" if edit is not None and often else "low_utility"
    elif 2 * sum(c["contribution"] == "redundant" for c in credits) > len(credits):
        verdict = "redundant"
    elif edit is not None and often:
        verdict = "refine"
    summary = f"mean credit {mean:+.2f} over {document['questions']} questions"
    return json.dumps(
        {"verdict": verdict, "summary": summary, "suggested_edit": edit, "redundant_with": partners}, ensure_ascii=False
    )


def refine_skill(system: str, user: str, chance: Chance) -> str:
    """The reply to "refine a skill": a sentence that stands against the suggestion is replaced, else one is added."""
    del system, chance
    document = json.loads(user)
    body, suggestion = document["skill"]["body"], document["suggested_edit"] or ""
    wanted = [d for d, _ in recognise(suggestion)]
    sentences = recognise(body)
    for directive in wanted:
        for there, sentence in sentences:
            opposed = there.key in directive.opposes or directive.key in there.opposes
            if opposed and body.count(sentence) == 1:
                return _edits("replace", sentence, directive.text.rstrip("."))
    text = wanted[0].text if wanted else suggestion or _GENERAL
    last = body.rstrip().splitlines()[-1]
    return _edits("insert_after", last, f"\n{text}")


def _edits(op: str, anchor: str, text: str) -> str:
    return json.dumps({"edits": [{"op": op, "anchor": anchor, "text": text}]}, ensure_ascii=False)


def consolidate_skills(system: str, user: str, chance: Chance) -> str:
    """The reply to "consolidate skills": every sentence once, contradictions settled for the skill listed first."""
    del system, chance
    skills = json.loads(user)["skills"]
    lines = dict.fromkeys(line.strip() for skill in skills for line in skill["body"].splitlines() if line.strip())
    body = "\n".join(lines)
    description = " ".join(dict.fromkeys(skill["description"] for skill in skills))[:1024]
    return json.dumps({"name": skills[0]["name"], "description": description, "body": body}, ensure_ascii=False)


def write_skill(system: str, user: str, chance: Chance) -> str:
    """The reply to "write a skill": for the most frequent pattern that the library does not cover yet."""
    document = json.loads(user)
    library = json.loads(system.split("# Library\n", 1)[1])["skills"]
    there = {d.key for skill in library for d, _ in recognise(f"{skill['description']}\n{skill['body']}")}
    for pattern in document["patterns"]:
        for directive, _ in recognise(pattern["missing_capability"]):
            if directive.key not in there:
                return json.dumps(_skill(directive.key, pattern, chance), ensure_ascii=False)
    return json.dumps(_written("careful-work", document["patterns"][0], _GENERAL), ensure_ascii=False)


def _skill(key: str, pattern: dict[str, Any], chance: Chance) -> dict[str, str]:
    risk = overshoot_risk(pattern["questions"])
    chosen = chance.pick("write", [key, _OVERSHOOTS[key]], [1 - risk, risk])
    return _written(chosen.replace("_", "-"), pattern, DIRECTIVES[chosen].text)


def overshoot_risk(questions: int) -> float:
    """Probability of a rule that narrows too much, by the number of questions behind it (our choice).

    Who has one case to go by generalises wrongly more often than who has seen the same failure in many.
    """
    return 1 / (1 + questions)


def _written(name: str, pattern: dict[str, Any], body: str) -> dict[str, str]:
    """A skill's reply. The description tells where it came from and asks for nothing."""
    kind = pattern["failure_type"].replace("_", " ")
    return {"name": name, "description": f"For questions like those that went wrong before ({kind}).", "body": body}


TASKS = {
    "merge credits": merge_credits,
    "refine a skill": refine_skill,
    "consolidate skills": consolidate_skills,
    "write a skill": write_skill,
}
