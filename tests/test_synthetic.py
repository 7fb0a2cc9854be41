"""The bundled synthetic data: shapes of the two real formats, counts, reproducibility."""

import json
import re
from collections import Counter
from datetime import datetime, timedelta

import pytest

from skill_evolution.benchmarks.synthetic import write_demo_data
from skill_evolution.paths import DEMO_DATA


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "new"
    write_demo_data(path, seed=0)
    return path


@pytest.fixture(scope="module")
def questions(folder):
    return json.loads((folder / "hotpotqa.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def conversations(folder):
    return json.loads((folder / "locomo.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["hotpotqa.json", "locomo.json"])
def test_committed_files_are_what_the_generator_writes(folder, name):
    assert (folder / name).read_bytes() == (DEMO_DATA / name).read_bytes()


def test_size_and_leftovers(folder):
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2_500_000
    assert sorted(path.name for path in folder.iterdir()) == ["hotpotqa.json", "locomo.json"]


def test_another_seed_writes_other_facts(tmp_path, folder):
    write_demo_data(tmp_path, seed=1)
    assert (tmp_path / "hotpotqa.json").read_bytes() != (folder / "hotpotqa.json").read_bytes()
    assert (tmp_path / "locomo.json").read_bytes() != (folder / "locomo.json").read_bytes()


def test_hotpotqa_shape_and_counts(questions):
    assert len(questions) == 200
    assert Counter(question["type"] for question in questions) == {"bridge": 150, "comparison": 50}
    assert (
        len({question["_id"] for question in questions}) == len({question["question"] for question in questions}) == 200
    )
    for question in questions:
        assert set(question) == {"_id", "answer", "question", "supporting_facts", "context", "type", "level"}
        assert question["level"] == "hard"
        titles = [title for title, _ in question["context"]]
        assert len(titles) == len(set(titles)) == 10
        sentences = dict(question["context"])
        assert all(0 <= index < len(sentences[title]) for title, index in question["supporting_facts"])
        assert len({title for title, _ in question["supporting_facts"]}) == 2


def test_bridge_answers_stand_in_the_supporting_facts_and_not_in_the_question(questions):
    for question in questions:
        if question["type"] == "bridge":
            sentences = dict(question["context"])
            told = " ".join(sentences[title][index] for title, index in question["supporting_facts"])
            assert question["answer"] in told
            assert question["answer"] not in question["question"]


def test_comparison_answers(questions):
    answers = [question["answer"] for question in questions if question["type"] == "comparison"]
    assert 0.25 <= sum(answer in ("yes", "no") for answer in answers) / len(answers) <= 0.7
    assert {"yes", "no"} <= set(answers)


def test_few_answers_repeat(questions, conversations):
    named = [question["answer"] for question in questions if question["answer"] not in ("yes", "no")]
    assert len(set(named)) > 0.9 * len(named)
    for conversation in conversations:
        single = [qa["answer"] for qa in conversation["qa"] if qa["category"] == 4]
        assert len(set(single)) >= 9


def test_locomo_shape_and_counts(conversations):
    assert [item["sample_id"] for item in conversations] == [
        f"conv-{number}" for number in (26, 30, 41, 42, 43, 44, 47, 48, 49, 50)
    ]
    for item in conversations:
        assert Counter(qa["category"] for qa in item["qa"]) == {1: 10, 2: 10, 3: 10, 4: 10, 5: 2}
        conversation = item["conversation"]
        speakers = {conversation["speaker_a"], conversation["speaker_b"]}
        ids = set()
        for number in range(1, 13):
            turns = conversation[f"session_{number}"]
            assert re.fullmatch(
                r"\d{1,2}:\d\d [ap]m on \d{1,2} [A-Z][a-z]+, \d{4}", conversation[f"session_{number}_date_time"]
            )
            assert 14 <= len(turns) <= 22
            assert [turn["dia_id"] for turn in turns] == [f"D{number}:{i + 1}" for i in range(len(turns))]
            assert {turn["speaker"] for turn in turns} <= speakers
            ids |= {turn["dia_id"] for turn in turns}
        for qa in item["qa"]:
            assert qa["evidence"]
            assert set(qa["evidence"]) <= ids
            keys = {"question", "answer", "evidence", "category"}
            assert set(qa) == (keys if qa["category"] != 5 else keys - {"answer"} | {"adversarial_answer"})


def _turns(item):
    return {
        turn["dia_id"]: turn for key, turns in item["conversation"].items() if isinstance(turns, list) for turn in turns
    }


def test_evidence_holds_the_items_of_lists_and_single_facts(conversations):
    for item in conversations:
        turns = _turns(item)
        for qa in item["qa"]:
            if qa["category"] in (1, 4):
                told = " ".join(turns[dia_id]["text"] for dia_id in qa["evidence"])
                assert all(part in told for part in qa["answer"].split(", "))


def test_yesterday_is_resolved_against_its_session(conversations):
    checked = 0
    for item in conversations:
        turns = _turns(item)
        for qa in item["qa"]:
            if qa["category"] == 2 and " yesterday." in turns[qa["evidence"][0]]["text"]:
                session = qa["evidence"][0].split(":")[0].removeprefix("D")
                stamp = item["conversation"][f"session_{session}_date_time"]
                day = datetime.strptime(stamp.split(" on ")[1], "%d %B, %Y") - timedelta(days=1)
                assert qa["answer"] == f"{day.day} {day:%B} {day.year}"
                checked += 1
    assert checked >= 3


def test_photos_have_the_three_real_keys(conversations):
    photos = [turn for item in conversations for turn in _turns(item).values() if "img_url" in turn]
    assert len(photos) > 50
    assert all(turn["blip_caption"] and turn["query"] and isinstance(turn["img_url"], list) for turn in photos)
