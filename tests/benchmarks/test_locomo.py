"""The LoCoMo loader on a small made-up file, and on the real file where one is given."""

import json
import os
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skill_evolution.benchmarks import load_benchmark
from skill_evolution.benchmarks.base import Question
from skill_evolution.benchmarks.locomo import CATEGORIES, SPLIT_OF, _spread, load_locomo

LOCOMO = os.environ.get("SKILL_EVOLUTION_LOCOMO")
needs_locomo = pytest.mark.skipif(not LOCOMO, reason="SKILL_EVOLUTION_LOCOMO is not set")


def turn(id, text, **more):
    return {"speaker": "Ann", "dia_id": id, "text": text, **more}


def qa(category=4, *, question="Who?", answer: object = "Ann", evidence=("D1:1",)):
    return {"question": question, "answer": answer, "category": category, "evidence": list(evidence)}


def sample(sample_id="conv-42", items=(), **conversation):
    base = {
        "speaker_a": "Ann",
        "speaker_b": "Bo",
        # Out of order on purpose: session 10 stands before 2.
        "session_10_date_time": "9:00 am on 2 June, 2023",
        "session_10": [turn("D10:1", "Last.")],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            turn("D1:1", "Hi,\nBo!\t Look ", blip_caption="a photo\nof a cat", query="cat"),
            turn("D1:2", ""),
        ],
        "session_2_date_time": "2:00 pm on 9 May, 2023",
        "session_2": [turn("D2:1", "Well.")],
    }
    items = list(items) or [qa()]
    return {"sample_id": sample_id, "conversation": base | conversation, "qa": items, "observation": {}}


def write(folder, *samples):
    path = folder / "locomo.json"
    path.write_text(json.dumps(samples), encoding="utf-8")
    return path


def whole(folder, **changes):
    return write(folder, *(sample(sample_id, **changes) for sample_id in SPLIT_OF))


def faults(loaded):
    return [issue for issue in loaded.issues if "is not in the file" not in issue.problem]


def counts(loaded, split):
    found = Counter(question.category for question in loaded.splits[split])
    return [found[name] for name in CATEGORIES]


def test_document_lines(tmp_path):
    loaded = load_locomo(write(tmp_path, sample(items=[qa(), qa(2, question="When?")])))
    first, second = loaded.splits["train"]
    assert first.document == (
        "[D1:1] (1:56 pm on 8 May, 2023) Ann: Hi, Bo! Look [photo: a photo of a cat]",
        "[D1:2] (1:56 pm on 8 May, 2023) Ann: ",
        "[D2:1] (2:00 pm on 9 May, 2023) Ann: Well.",
        "[D10:1] (9:00 am on 2 June, 2023) Ann: Last.",
    )
    assert second.document is first.document
    assert (first.id, first.group, first.category, first.context) == ("conv-42/0", "conv-42", "single_hop", "")
    assert second.category == "temporal"
    assert loaded.source == "LoCoMo file locomo.json"


def test_split_by_conversation(tmp_path):
    loaded = load_locomo(whole(tmp_path))
    groups = {split: [q.group for q in questions] for split, questions in loaded.splits.items()}
    assert groups == {
        "train": ["conv-42", "conv-48"],
        "validation": ["conv-41", "conv-49"],
        "test": ["conv-26", "conv-30", "conv-43", "conv-44", "conv-47", "conv-50"],
    }
    assert loaded.issues == ()


def test_category_filter_comes_after_the_split_and_keeps_ids(tmp_path):
    items = [qa(1, question="A?"), qa(5, question="B?"), qa(3, question="C?")]
    mixed, alone = (load_locomo(whole(tmp_path, items=items), category=c) for c in (None, "open_domain"))
    assert [q.id for q in mixed.splits["train"]] == ["conv-42/0", "conv-42/2", "conv-48/0", "conv-48/2"]
    assert [q.id for q in alone.splits["train"]] == ["conv-42/2", "conv-48/2"]
    with pytest.raises(ValueError, match="unknown LoCoMo category 'adversarial'; known: multi_hop, temporal"):
        load_locomo(whole(tmp_path), category="adversarial")


def test_category_5_needs_no_answer_and_the_others_do(tmp_path):
    fifth = {"question": "B?", "category": 5, "adversarial_answer": "x", "evidence": []}
    assert len(load_locomo(write(tmp_path, sample(items=[qa(), fifth]))).splits["train"]) == 1
    with pytest.raises(ValueError, match=r"locomo\.json, record 1: qa\.0: .*'answer' is missing"):
        load_locomo(write(tmp_path, sample(items=[qa(answer=None)])))


def test_number_as_answer_becomes_text(tmp_path):
    loaded = load_locomo(write(tmp_path, sample(items=[qa(2, answer=2022)])))
    assert loaded.splits["train"][0].answer == "2022"
    assert loaded.reward(loaded.splits["train"][0], "2022") == 1


@pytest.mark.parametrize(
    ("raw", "evidence", "actions"),
    [
        ("D1:1; D2:1", ("D1:1", "D2:1"), ["repaired"]),
        ("D1:1 D2:1", ("D1:1", "D2:1"), ["repaired"]),
        ("D:10:1", ("D10:1",), ["repaired"]),
        ("D10:01", ("D10:1",), ["repaired"]),
        ("D", (), ["reported"]),
        ("D7:7", ("D7:7",), ["reported"]),
        ("D:7:07", ("D7:7",), ["repaired", "reported"]),
        ("D1:2", ("D1:2",), []),
    ],
)
def test_evidence_is_repaired_or_reported(tmp_path, raw, evidence, actions):
    loaded = load_locomo(write(tmp_path, sample(items=[qa(evidence=["D1:1", raw])])))
    assert loaded.splits["train"][0].evidence == ("D1:1", *evidence)
    assert [issue.action for issue in faults(loaded)] == actions
    assert all(issue.where == "locomo.json, record 1, conv-42, qa 0" for issue in faults(loaded))
    assert all(repr(raw) in issue.problem or "D7:7" in issue.problem for issue in faults(loaded))


def test_other_faults_are_reported(tmp_path):
    path = write(
        tmp_path, sample(items=[qa(), qa(), qa(5)], session_11_date_time="10:00 am on 3 June, 2023", session_3=[])
    )
    loaded = load_locomo(path)
    assert [
        (issue.where.removeprefix("locomo.json, record 1, conv-42, "), issue.action) for issue in faults(loaded)
    ] == [
        ("session_3", "reported"),
        ("session_11_date_time", "reported"),
        ("qa 1", "reported"),
    ]
    assert [q.id for q in loaded.splits["train"]] == ["conv-42/0", "conv-42/1"]
    assert len(loaded.issues) - len(faults(loaded)) == 9  # the other conversations are missing


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (sample("conv-99"), "sample_id 'conv-99' belongs to no split; known: conv-42, conv-48"),
        (sample(session_2=[turn("2:1", "x")]), r"conv-42: conversation\.session_2\.0\.dia_id"),
        (sample(session_2=[turn("D1:1", "x")]), "session_2: the turn id 'D1:1' stands twice"),
        (sample(session_2="oops"), r"conversation\.session_2: "),
        (sample(items=[qa(7)]), r"qa\.0\.category"),
        ({"sample_id": "conv-42", "qa": []}, "conversation: Field required"),
    ],
)
def test_malformed_file_names_record_and_key(tmp_path, broken, fault):
    with pytest.raises(ValueError, match=rf"locomo\.json, record 2.*{fault}"):
        load_locomo(write(tmp_path, sample("conv-26"), broken))


def test_conversation_twice(tmp_path):
    with pytest.raises(ValueError, match="record 2: the conversation 'conv-42' stands twice"):
        load_locomo(write(tmp_path, sample(), sample()))


def test_limits_spread_over_conversations_and_categories(tmp_path):
    items = [qa(category, question=f"{category}{i}?") for category in (1, 2, 3, 4) for i in range(5)]
    path = whole(tmp_path, items=items)
    loaded = load_locomo(path, n_train=8, n_validation=0, n_test=12)
    assert [len(loaded.splits[split]) for split in ("train", "validation", "test")] == [8, 0, 12]
    assert set(Counter((q.group, q.category) for q in loaded.splits["train"]).values()) == {1}
    assert Counter(q.category for q in loaded.splits["test"]) == dict.fromkeys(CATEGORIES, 3)
    assert set(Counter(q.group for q in loaded.splits["test"]).values()) == {2}
    assert load_locomo(path, n_train=8, n_validation=0, n_test=12).splits == loaded.splits
    assert len(load_locomo(path, n_train=1000).splits["train"]) == 40


pairs = st.tuples(st.sampled_from("ABC"), st.sampled_from(CATEGORIES))


@given(st.lists(pairs, max_size=30), st.integers(0, 40))
def test_a_limited_set_is_a_balanced_part_in_order(drawn, limit):
    questions = [Question(str(i), "?", "!", category, group=group) for i, (group, category) in enumerate(drawn)]
    chosen = _spread(questions, limit)
    assert len(chosen) == min(limit, len(questions))
    order = [int(question.id) for question in chosen]
    assert order == sorted(set(order))
    available, taken = Counter(drawn), Counter((q.group, q.category) for q in chosen)
    # No pair is passed over while another has given two questions more.
    most = max(taken.values(), default=0)
    assert all(taken[pair] == available[pair] or taken[pair] >= most - 1 for pair in available)


def test_reward_and_metrics(tmp_path):
    items = [qa(1, answer="pottery, camping", evidence=["D1:1", "D2:1"])]
    loaded = load_locomo(write(tmp_path, sample(items=items)))
    question = loaded.splits["train"][0]
    assert loaded.reward(question, "potteries") == 0.5  # each of F1 and BLEU: one part of two
    assert loaded.reward(question, "") == 0
    # set tokens {pottery} against {pottery, camping}: F1 2/3; BLEU-1: 1/1 and brevity penalty exp(1 - 3/1)
    expected = {"f1": 0.5, "bleu": 0.5, "f1_memory": 2 / 3, "bleu1_memory": 0.1353352832366127, "evidence_recall": 0.5}
    assert loaded.metrics(question, "pottery", ["D1:1", "D10:1"]) == pytest.approx(expected)


def test_load_benchmark(tmp_path, monkeypatch):
    path = whole(tmp_path)
    assert load_benchmark("locomo", path, category="all").source == "LoCoMo file locomo.json"
    assert len(load_benchmark("locomo", path, n_test=3).splits["test"]) == 3
    monkeypatch.setattr("skill_evolution.base.paths.DEMO_DATA", tmp_path)
    assert load_benchmark("locomo").source == "synthetic"


# The real file

TRAIN, VALIDATION, TEST = [58, 82, 21, 229], [68, 60, 21, 159], [156, 179, 54, 453]  # FACTS A "LoCoMo split"


@needs_locomo
def test_real_counts():
    loaded = load_locomo(str(LOCOMO))
    assert [len(loaded.splits[split]) for split in ("train", "validation", "test")] == [390, 308, 842]
    assert [counts(loaded, split) for split in ("train", "validation", "test")] == [TRAIN, VALIDATION, TEST]
    for number, category in enumerate(CATEGORIES):
        alone = load_locomo(str(LOCOMO), category=category)
        sizes = [len(alone.splits[split]) for split in ("train", "validation", "test")]
        assert sizes == [TRAIN[number], VALIDATION[number], TEST[number]]
        for split, questions in alone.splits.items():
            assert [q.id for q in questions] == [q.id for q in loaded.splits[split] if q.category == category]


@needs_locomo
def test_real_conversations():
    loaded = load_locomo(str(LOCOMO))
    questions = [question for split in loaded.splits.values() for question in split]
    documents = {question.group: question.document for question in questions}
    assert len(documents) == 10
    lines = [line for document in documents.values() for line in document]
    assert len(lines) == 5882
    sessions = {(group, line.split(":")[0]) for group, document in documents.items() for line in document}
    assert len(sessions) == 272
    assert not [line for line in lines if "\n" in line or not line.startswith("[D")]
    assert len({question.id for question in questions}) == 1540
    assert all(isinstance(question.answer, str) and question.answer for question in questions)
    assert len({id(question.document) for question in questions}) == 10


@needs_locomo
def test_real_faults_are_all_repaired_or_reported():
    loaded = load_locomo(str(LOCOMO))
    kinds = Counter(
        (next(word for word in ("evidence", "date", "same") if word in issue.problem), issue.action)
        for issue in loaded.issues
    )
    # Malformed: five repaired, and "D", which names no turn. Dangling: D30:05 is D30:5; two turns aren't there.
    assert kinds == {
        ("evidence", "repaired"): 6,
        ("evidence", "reported"): 3,
        ("date", "reported"): 16,
        ("same", "reported"): 11,
    }
    lost = [
        issue.problem for issue in loaded.issues if "isn't there" in issue.problem or "names no turn" in issue.problem
    ]
    assert lost == [
        "evidence 'D10:19' names a turn that isn't there; kept",
        "evidence 'D' names no turn; left out",
        "evidence 'D4:36' names a turn that isn't there; kept",
    ]


@needs_locomo
def test_real_evidence_can_be_found_again():
    loaded = load_locomo(str(LOCOMO))
    for question in (question for split in loaded.splits.values() for question in split):
        lines = {line[1 : line.index("]")] for line in question.document}
        assert set(question.evidence) - lines <= {"D10:19", "D4:36"}
