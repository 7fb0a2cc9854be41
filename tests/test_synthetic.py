"""The bundled synthetic data: shapes of the two real formats, counts, reproducibility."""

import json
import re
from collections import Counter

import pytest

from skill_evolution.benchmarks.locomo import CATEGORIES
from skill_evolution.benchmarks.synthetic import smalltalk, write_demo_data
from skill_evolution.config import load_config
from skill_evolution.experiments import benchmark_of
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
        assert len(set(single)) == len(single) == 20  # no pool of answers runs out within a conversation


def test_locomo_shape_and_counts(conversations):
    assert [item["sample_id"] for item in conversations] == [
        f"conv-{number}" for number in (26, 30, 41, 42, 43, 44, 47, 48, 49, 50)
    ]
    for item in conversations:
        assert Counter(qa["category"] for qa in item["qa"]) == {1: 20, 2: 20, 3: 20, 4: 20, 5: 2}
        conversation = item["conversation"]
        speakers = {conversation["speaker_a"], conversation["speaker_b"]}
        ids = set()
        for number in range(1, 13):
            turns = conversation[f"session_{number}"]
            assert re.fullmatch(
                r"\d{1,2}:\d\d [ap]m on \d{1,2} [A-Z][a-z]+, \d{4}", conversation[f"session_{number}_date_time"]
            )
            assert 20 <= len(turns) <= 32  # the facts take 20 to 26; LoCoMo's sessions have 10 to 47, mean 21.6
            assert [turn["dia_id"] for turn in turns] == [f"D{number}:{i + 1}" for i in range(len(turns))]
            assert {turn["speaker"] for turn in turns} <= speakers
            ids |= {turn["dia_id"] for turn in turns}
        for qa in item["qa"]:
            assert qa["evidence"]
            assert set(qa["evidence"]) <= ids
            keys = {"question", "answer", "evidence", "category"}
            assert set(qa) == (keys if qa["category"] != 5 else keys - {"answer"} | {"adversarial_answer"})


def test_every_category_is_asked_ten_times_about_either_speaker(conversations):
    for item in conversations:
        speakers = _speakers(item)
        about = Counter(
            (qa["category"], name)
            for qa in item["qa"]
            for name in speakers
            if re.search(rf"\b{name}\b", qa["question"])
        )
        assert all(about[category, name] == 10 for category in (1, 2, 3, 4) for name in speakers)


def test_split_sizes_of_the_demo_profile():
    for category, sizes in ((None, (160, 160, 480)), *((name, (40, 40, 120)) for name in CATEGORIES)):
        splits = benchmark_of(load_config("demo", benchmark="locomo", category=category)).splits
        assert tuple(len(splits[split]) for split in ("train", "validation", "test")) == sizes


def test_no_question_stands_twice_in_a_conversation(conversations):
    """The wrong speaker's questions (category 5) included: they must have no answer under another category."""
    for item in conversations:
        questions = [qa["question"] for qa in item["qa"]]
        assert len(set(questions)) == len(questions)


def test_evidence_is_spoken_by_whom_the_question_is_about(conversations):
    """After what the other one asked, where the turn that answers says little without it."""
    for item in conversations:
        turns = _turns(item)
        for qa in item["qa"]:
            told = [turns[dia_id] for dia_id in qa["evidence"]]
            if told[0]["text"].endswith("?"):
                assert told.pop(0)["speaker"] != told[0]["speaker"]
            speakers = {turn["speaker"] for turn in told}
            (named,) = {name for name in _speakers(item) if re.search(rf"\b{name}\b", qa["question"])}
            others = set(_speakers(item)) - {named}
            assert speakers == ({named} if qa["category"] != 5 else others)  # 5 asks about the wrong one


def test_no_item_of_a_list_stands_in_it_twice(conversations):
    for item in conversations:
        for qa in item["qa"]:
            if qa["category"] == 1:
                parts = qa["answer"].split(", ")
                assert len(set(parts)) == len(parts) >= 2
                assert len(qa["evidence"]) in (1, len(parts))  # all in one turn, or one a turn


def test_sessions_hold_small_talk_beside_the_facts(conversations):
    patterns = ["\\w+".join(map(re.escape, re.split(r"\{\w\}", text))) for text, _ in smalltalk.CHATTER]
    chatter = re.compile("|".join(patterns))
    texts = [turn["text"] for item in conversations for turn in _turns(item).values()]
    assert sum(chatter.fullmatch(text) is not None for text in texts) > 120  # on average one in each of 120 sessions


def test_times_are_stated_relative_or_told_by_another_event(conversations):
    """Of ten: three stated, three relative and two plans (relative as well), two by another event that is dated."""
    counts = Counter()
    for item in conversations:
        for qa in item["qa"]:
            if qa["category"] == 2:
                first, last = (_turns(item)[qa["evidence"][position]]["text"] for position in (0, -1))
                event = first != last and not first.endswith("?")
                counts["event" if event else "stated" if f"on {qa['answer']}" in last else "relative"] += 1
    assert counts == {"stated": 60, "event": 40, "relative": 100}


def _speakers(item):
    return item["conversation"]["speaker_a"], item["conversation"]["speaker_b"]


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


def test_photos_have_the_three_real_keys(conversations):
    photos = [turn for item in conversations for turn in _turns(item).values() if "img_url" in turn]
    assert len(photos) > 50
    assert all(turn["blip_caption"] and turn["query"] and isinstance(turn["img_url"], list) for turn in photos)
