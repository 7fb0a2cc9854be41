"""What a critic is shown of a group: numbers, references for what repeats, and cuts that are marked and counted."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_evolution.benchmarks.base import Question
from skill_evolution.payload import (
    CHARACTERS_A_TOKEN,
    REPEATED,
    PayloadTooLongError,
    group_payload,
    team_payload,
)
from skill_evolution.rollouts import Group, Trajectory, advantages
from skill_evolution.skills import Skill, SkillLibrary
from skill_evolution.teams import Execution, Step, StepKind, locomo_team

QUESTION = Question("q1", "Where?", "Rome", "single_hop", context="[A:0] passage", evidence=("A:0",))
KINDS: tuple[StepKind, ...] = ("call", "result", "handover", "answer")


def group(*rollouts: tuple[float | None, list[str]], question: Question = QUESTION) -> Group:
    trajectories = []
    for number, (reward, texts) in enumerate(rollouts):
        if reward is None:
            trajectories.append(Trajectory(question, number, error="down"))
            continue
        steps = tuple(
            Step(n, "agent_2" if kind == "answer" else "agent_1", kind, text)
            for n, (kind, text) in enumerate(zip(KINDS, texts, strict=False), start=1)
        )
        used = {"agent_1": ("widen",) if number == 0 else (), "agent_2": ()}
        trajectories.append(Trajectory(question, number, Execution("Rome" if reward else None, steps, used), reward))
    return Group(question, tuple(trajectories), advantages([t.reward for t in trajectories]))


def shown(of: Group, **options: Any) -> dict[str, Any]:
    payload = group_payload(of, **{"room": 10_000, **options})
    return json.loads(payload.text)


def test_a_group_is_shown_with_rewards_advantages_numbered_steps_and_recorded_use() -> None:
    document = shown(group((1.0, ["c", "r", "h", "a"]), (0.0, ["c2"])))
    assert document == {
        "question": "Where?",
        "gold_answer": "Rome",
        "gold_evidence": ["[A:0] passage"],
        "rollouts": [
            {
                "rollout": 1,
                "reward": 1.0,
                "advantage": 0.5,
                "facts": {
                    "gold_lines_found_by_search": "0 of 1",
                    "gold_lines_handed_over": "0 of 1",
                    "gold_answer_handed_over": False,
                    "declined": False,
                },
                "steps": [
                    {"step": 1, "agent": "agent_1", "kind": "call", "text": "c"},
                    {"step": 2, "agent": "agent_1", "kind": "result", "text": "r"},
                    {"step": 3, "agent": "agent_1", "kind": "handover", "text": "h"},
                    {"step": 4, "agent": "agent_2", "kind": "answer", "text": "a"},
                ],
                "skills_used": {"agent_1": ["widen"], "agent_2": []},
                "final_answer": "Rome",
            },
            {
                "rollout": 2,
                "reward": 0.0,
                "advantage": -0.5,
                "facts": {"gold_lines_found_by_search": "0 of 1", "declined": True},
                "steps": [{"step": 1, "agent": "agent_1", "kind": "call", "text": "c2"}],
                "skills_used": {"agent_1": [], "agent_2": []},
                "final_answer": None,
            },
        ],
    }


def test_a_rollout_that_failed_is_left_out_and_the_others_keep_their_numbers() -> None:
    document = shown(group((1.0, ["c"]), (None, []), (0.0, ["c"])))
    assert [r["rollout"] for r in document["rollouts"]] == [1, 3]
    assert [r["advantage"] for r in document["rollouts"]] == [0.5, -0.5]


def test_options_say_what_is_shown() -> None:
    one = group((1.0, ["c"]))
    assert "advantage" not in shown(one, relative=False)["rollouts"][0]
    assert shown(one, show_category=True)["category"] == "single_hop"
    assert "category" not in shown(one)
    assert "context" not in shown(one)


def test_a_long_text_that_repeats_stands_once() -> None:
    long, short = "x" * REPEATED, "y" * (REPEATED - 1)
    document = shown(group((1.0, [long, short]), (0.0, [long, short]), (0.5, ["z" * REPEATED])))
    assert document["texts"] == {"T1": long}
    assert [r["steps"][0].get("see") for r in document["rollouts"]] == ["T1", "T1", None]
    assert document["rollouts"][0]["steps"][1]["text"] == short
    assert document["rollouts"][2]["steps"][0]["text"] == "z" * REPEATED


def test_what_fits_is_not_cut() -> None:
    payload = group_payload(group((1.0, ["x" * 900])), room=10_000)
    assert payload.cuts == 0
    assert "cut ..." not in payload.text


def test_what_does_not_fit_is_cut_in_its_middle_marked_and_counted() -> None:
    text = "begin " + "x" * 30_000 + " end"
    one = group((1.0, [text, "short"]))
    payload = group_payload(one, room=4_000)
    assert len(payload.text) <= 4_000 * CHARACTERS_A_TOKEN
    assert payload.cuts == 1
    (cut, short) = json.loads(payload.text)["rollouts"][0]["steps"]
    assert cut["text"].startswith("begin x")
    assert cut["text"].endswith("x end")
    assert short["text"] == "short"
    said = int(cut["text"].split("[... ")[1].split(" ")[0])
    kept = cut["text"].replace(f" [... {said} characters cut ...] ", "")
    assert said + len(kept) == len(text)  # the mark says truly how much is missing


def test_a_cut_text_is_no_longer_than_the_limit_that_it_was_cut_to() -> None:
    payload = group_payload(group((1.0, ["x" * 125] * 4), question=Question("q1", "?", "a", "c")), room=249)
    texts = json.loads(payload.text)["texts"]
    assert payload.cuts == 1
    assert len(texts["T1"]) <= 120  # the shortest limit that there is; the mark is part of it


def test_a_group_that_can_not_fit_is_named() -> None:
    for room in (100, 0, -5):
        with pytest.raises(PayloadTooLongError, match="question q1"):
            group_payload(group((1.0, ["x" * 1000])), room=room)


@given(
    texts=st.lists(st.text(min_size=0, max_size=400), min_size=1, max_size=4),
    room=st.integers(min_value=0, max_value=500),
)
def test_a_payload_fits_or_is_refused_and_a_cut_never_lengthens(texts: list[str], room: int) -> None:
    one = group((1.0, texts), (0.0, texts))
    whole = group_payload(one, room=100_000)
    try:
        payload = group_payload(one, room=room)
    except PayloadTooLongError:
        return
    assert len(payload.text) <= room * CHARACTERS_A_TOKEN
    assert (payload.cuts == 0) == (payload.text == whole.text)
    assert json.loads(payload.text)["question"] == "Where?"


def test_the_teams_roles_and_libraries_are_shown_once() -> None:
    libraries = {
        "agent_1": SkillLibrary("agent_1", (Skill("widen", "When: it's narrow.", 'Look "around".', id="s1"),)),
        "agent_2": SkillLibrary("agent_2"),
    }
    agents = json.loads(team_payload(locomo_team(), libraries))["agents"]
    assert [(a["agent"], a["answers"]) for a in agents] == [("agent_1", False), ("agent_2", True)]
    assert agents[0]["skills"] == [{"name": "widen", "description": "When: it's narrow.", "body": 'Look "around".'}]
    assert agents[1]["skills"] == []
    assert agents[0]["role"].startswith("# Role: conversation searcher")
