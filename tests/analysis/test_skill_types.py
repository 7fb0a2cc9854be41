"""Types of skills: the keyword rule, the coding by a model, and the counts."""

import json

import pandas as pd
import pytest
from scripted_model import ScriptedModel
from toy import caller, skill

from skill_evolution.analysis import skill_types
from skill_evolution.models.base import ModelError
from skill_evolution.models.replies import Rejection
from skill_evolution.runs.config import load_config
from skill_evolution.runs.folder import run_folder
from skill_evolution.skills import SkillLibrary, save_library
from skill_evolution.testbed.reader.directives import DIRECTIVES

REASONING = {"resolve_dates"}
FORMATTING = {"shortest_span", "yes_no", "list_all", "full_sentence", "keep_relative_dates"}
ABSTENTION = {"commit_likely", "decline_unless_verbatim"}


@pytest.mark.parametrize("key", DIRECTIVES)
def test_rule_types_what_the_simulated_optimizer_writes(key):
    """By hand: what a searcher or reader is told is retrieval, what an answerer is told is one of three."""
    expected = next(
        (name for name, keys in (("reasoning", REASONING), ("formatting", FORMATTING), ("abstention", ABSTENTION))
         if key in keys),
        "retrieval",
    )  # fmt: skip
    assert skill_types.type_by_rule(skill(key.replace("_", "-"), DIRECTIVES[key].text)) == expected


def test_rule_goes_by_the_body_and_asks_the_description_only_without_a_keyword_in_it():
    assert skill_types.type_by_rule(skill("grep-more", "Check the answer against the question.")) == "verification"
    assert skill_types.type_by_rule(skill("grep-more", "Take your time.")) == "retrieval"
    assert skill_types.type_by_rule(skill("calm", "Take your time.")) == "generic"


async def test_a_model_types_each_skill_in_one_call_and_a_bad_reply_is_a_fault():
    asked, model = caller(
        {"type": "formatting", "reason": "It bounds the answer."}, {"type": "cooking"}, ModelError("gone")
    )
    coded = await skill_types.types_by_model([skill("a"), skill("b"), skill("c")], asked)
    assert coded[0] == "formatting"
    faults = [c.reason for c in coded if isinstance(c, Rejection)]
    assert faults == ["schema", "call_failed"]
    assert {request.purpose for request in model.requests} == {"analysis/skill_type"}
    first = model.requests[0]
    assert json.loads(first.messages[1].content) == {"name": "a", "description": "Use for a.", "body": "Read twice."}
    assert first.schema is not None
    assert "abstention" in str(first.schema)
    assert all(f"- {name}:" in first.messages[0].content for name in skill_types.TYPES)


def saved(config, root, *skills) -> None:
    for agent in ("agent_1", "agent_2"):
        save_library(
            SkillLibrary(agent, skills if agent == "agent_1" else ()),
            run_folder(config, root=root) / "libraries" / agent,
        )


def test_simulated_libraries_are_coded_by_the_rule(tmp_path):
    config = load_config("demo", benchmark="locomo", category="temporal")
    saved(config, tmp_path, skill("spans", "Answer with the shortest span."), skill("calm", "Take your time."))
    coded = skill_types.code_skills([config], root=tmp_path)
    assert list(coded["type"]) == ["formatting", "generic"]
    assert set(coded["coded_by"]) == {"keyword rule"}
    assert list(coded["trained_on"]) == ["temporal", "temporal"]
    assert not (tmp_path / "skill_types").exists()


def test_a_language_models_libraries_are_coded_by_it_once(tmp_path, monkeypatch):
    model = ScriptedModel(lambda request: json.dumps({"type": "reasoning"}), name="some-model")
    monkeypatch.setattr(skill_types, "make_model", lambda config: model)
    optimizer = {"kind": "server", "model": "some-model"}
    config = load_config("demo", optimizer=optimizer)
    saved(config, tmp_path, skill("spans", "Answer with the shortest span."))
    for _ in range(2):
        coded = skill_types.code_skills([config], root=tmp_path)
        assert list(coded["type"]) == ["reasoning"]
        assert list(coded["coded_by"]) == ["some-model"]
    assert len(model.requests) == 1
    with pytest.raises(ValueError, match="2 optimizers"):
        skill_types.code_skills([config, load_config("demo")], root=tmp_path)


def test_counts_have_every_type_and_keep_the_uncoded_apart():
    coded = pd.DataFrame(
        {"benchmark": "locomo", "method": "grse", "coded_by": "x",
         "type": ["abstention", "abstention", "retrieval", "generic", skill_types.UNCODED]}
    )  # fmt: skip
    counts = skill_types.type_counts(coded)
    shares = counts.set_index("type")["share"].to_dict()
    assert shares["abstention"] == 50
    assert shares["formatting"] == 0
    assert pd.isna(shares[skill_types.UNCODED])
    assert set(counts["n"]) == {4}
    table = skill_types.type_table(counts).set_index("type")
    assert table.loc["abstention", "grse"] == "2 (50 %)"
    assert table.loc["abstention", "GRSE, reported"] == "18 % (Gemma-4-31B-it)"
    assert table.loc["abstention", "MASkills, reported"] == "5 % (Gemma-4-31B-it)"
    assert table.loc[skill_types.UNCODED, "grse"] == "1"
