"""What kind of rule a skill is: coded by a language model, or by keywords where the optimizer is simulated (App. B).

The paper lets Qwen3.8-27B give each skill of the final libraries one primary type from its name, description and body.
So does `code_skills`, with the config's optimizer model and one call a skill, recorded in a ledger of its own. The
simulated reader can't judge a text; its skills are coded by `type_by_rule`, and the column `coded_by` says so.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

import pandas as pd
from filelock import FileLock
from pydantic import Field

from skill_evolution.analysis.frames import counted, groups
from skill_evolution.analysis.reported import load_reported, with_reported
from skill_evolution.base import paths
from skill_evolution.base.aio import gather, run_sync
from skill_evolution.grse.feedback import Rejection
from skill_evolution.models.base import Sampling
from skill_evolution.models.config import ModelConfig
from skill_evolution.models.ledger import Ledger, RecordedModel
from skill_evolution.models.prompting import render
from skill_evolution.models.replies import Caller, Reply
from skill_evolution.runs.config import Config
from skill_evolution.runs.experiments import make_model
from skill_evolution.runs.folder import run_columns, run_folder
from skill_evolution.skills import Skill, load_library

SkillType = Literal["retrieval", "verification", "reasoning", "formatting", "abstention", "generic"]
TYPES: tuple[SkillType, ...] = get_args(SkillType)
UNCODED = "not coded"
SAMPLING = Sampling(temperature=0, max_tokens=512)  # our choice: greedy, room for the reason

_WORDS: dict[SkillType, str] = {
    "abstention": r"declin|abstain|abstention|no_answer|no_evidence|refus|unanswerable|guess|not enough evidence",
    "retrieval": r"search|grep|keyword|fetch|retriev|hand over|look (?:up|for)|passage|turns?\b|session|match|hits?\b"
    r"|stem|neighbour|neighbor|adjacent|evidence for",
    "verification": r"verif|check|confirm|validat|consisten|contradict|make sure|agree",
    "reasoning": r"infer|work out|deduc|conclu|combin|compar|comput|calculat|count|resolv|relative|step by step",
    "formatting": r"shortest|span|concise|brief|bare|comma|list|sentence|phrase|format|leave out|yes/no|units?\b"
    r"|as they were",
}
KEYWORDS: dict[SkillType, re.Pattern[str]] = {
    name: re.compile(rf"\b(?:{words})", re.IGNORECASE) for name, words in _WORDS.items()
}
"""Beginnings of words that speak for a type. Where two types have as many, the one that stands first here is taken."""


class TypeReply(Reply):
    """One primary type and why."""

    type: SkillType
    reason: Annotated[str, Field(max_length=400)] = ""


def type_by_rule(skill: Skill) -> SkillType:
    """The type whose KEYWORDS the body holds most of; name and description are asked only where the body has none.

    The description of a skill often tells from which failure it came, not what it asks for. "generic" is a skill
    without any keyword.
    """
    for text in (skill.body, f"{skill.name.replace('-', ' ')} {skill.description}"):
        counts = {name: len({found.lower() for found in words.findall(text)}) for name, words in KEYWORDS.items()}
        best = max(KEYWORDS, key=lambda name: counts[name])
        if counts[best]:
            return best
    return "generic"


async def types_by_model(skills: Sequence[Skill], caller: Caller) -> list[SkillType | Rejection]:
    """The type of each skill by one call each (purpose "analysis/skill_type"), or why the call gave none."""
    system = render("analysis/skill_type.md.j2", types=TYPES)

    async def one(skill: Skill) -> SkillType | Rejection:
        user = json.dumps({"name": skill.name, "description": skill.description, "body": skill.body}, indent=1)
        name = hashlib.sha256(user.encode()).hexdigest()[:12]
        reply = await caller.ask_whole(
            system=system, user=user, schema=TypeReply, purpose="analysis/skill_type", name=name
        )
        return reply if isinstance(reply, Rejection) else reply.type

    return await gather(one(skill) for skill in skills)


def final_skills(configs: Iterable[Config], *, root: Path | None = None) -> pd.DataFrame:
    """Every skill of the final libraries of finished runs: benchmark, trained_on, method, seed, agent and `skill`.

    Raises:
        LibraryError: a run has no final libraries.
    """
    rows = []
    for config in configs:
        folder = run_folder(config, root=root) / "libraries"
        for agent in sorted(path.name for path in folder.iterdir()):
            rows += [
                {**run_columns(config), "agent": agent, "skill": skill} for skill in load_library(folder / agent, agent)
            ]
    return pd.DataFrame(rows, columns=["benchmark", "trained_on", "method", "seed", "agent", "skill"])


def code_skills(configs: Sequence[Config], *, root: Path | None = None) -> pd.DataFrame:
    """The skills of the final libraries with their types.

    Args:
        configs: finished runs, of one optimizer model.
        root: folder of the run folders; default `results/<profile>/runs`. The ledger of the coding stands there too, in
            `skill_types/calls.sqlite`: what was coded once is not asked again.

    Returns:
        benchmark, trained_on, method, seed, agent, name, description, body, type (or "not coded"), coded_by, fault.

    Raises:
        ValueError: the configs' optimizers differ: types by different judges are not to be put together.
        LibraryError: a run has no final libraries.
    """
    optimizers = list({config.optimizer.model_dump_json(): config.optimizer for config in configs}.values())
    if len(optimizers) != 1:
        raise ValueError(f"skills are coded by one model, but the configs have {len(optimizers)} optimizers")
    frame = final_skills(configs, root=root)
    skills: list[Skill] = list(frame["skill"])
    if optimizers[0].kind == "simulated":
        coded: list[SkillType | Rejection] = [type_by_rule(skill) for skill in skills]
        coder = "keyword rule"
    else:
        folder = (root or paths.RESULTS / configs[0].profile / "runs") / "skill_types"
        coded = run_sync(_recorded(skills, optimizers[0], folder))
        coder = optimizers[0].label
    texts = {name: [getattr(skill, name) for skill in skills] for name in ("name", "description", "body")}
    types = [UNCODED if isinstance(c, Rejection) else c for c in coded]
    faults = [f"{c.reason} {c.item}".strip() if isinstance(c, Rejection) else None for c in coded]
    return frame.drop(columns="skill").assign(**texts, type=types, coded_by=coder, fault=faults)


async def _recorded(skills: Sequence[Skill], config: ModelConfig, folder: Path) -> list[SkillType | Rejection]:
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        ledger = Ledger(folder / "calls.sqlite")
        model = RecordedModel(make_model(config), ledger)
        try:
            await model.connect()
            return await types_by_model(skills, Caller(model, SAMPLING, "analysis"))
        finally:
            await model.close()
            ledger.close()


def type_counts(coded: pd.DataFrame) -> pd.DataFrame:
    """How many skills are of which type: benchmark, method, type, count, n (coded), share (percent of n), coded_by.

    Every type has a row; skills that could not be coded are rows of the type "not coded", without a share.
    """
    found = []
    for (benchmark, method), part in groups(coded, "benchmark", "method"):
        types = list(part["type"])
        n = len(types) - types.count(UNCODED)
        for name in (*TYPES, *([UNCODED] if n < len(types) else [])):
            share = 100 * types.count(name) / n if n and name != UNCODED else float("nan")
            cell = {"benchmark": benchmark, "method": method, "type": name, "count": types.count(name)}
            found.append({**cell, "n": n, "share": share, "coded_by": part["coded_by"].iloc[0]})
    return pd.DataFrame(found, columns=["benchmark", "method", "type", "count", "n", "share", "coded_by"])


def type_table(counts: pd.DataFrame) -> pd.DataFrame:
    """`type_counts` to read: a row a type, our counts by method, and the paper's shares beside them.

    `counts` holds ids, not names: the paper's figures are found by them.
    """
    said = load_reported("grse_skills").query("metric == 'skill_share'")
    said = said.assign(type=said["category"])
    return with_reported(counts.assign(cell=counted(counts, 0)), said, "type")
