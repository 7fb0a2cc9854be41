"""The HotpotQA loader on small made-up files in every shape, and on a real file where one is given."""

import json
import os
import re
from pathlib import Path

import pytest

from skill_evolution.benchmarks import load_benchmark
from skill_evolution.benchmarks.hotpotqa import load_hotpotqa, sentence_id

HOTPOTQA = os.environ.get("SKILL_EVOLUTION_HOTPOTQA")
CITATION = re.compile(r"\[([^\[\]]+:\d+)\]")


def record(number=0, **changes):
    base = {
        "_id": f"id{number}",
        "question": f" Who led group {number}? ",
        "answer": "Ada Quill",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Red: a film [short]", 1], ["Ada &amp; Bo", 0]],
        "context": [
            ["Red: a film [short]", ["First one.", " Second\none."]],
            ["Ada &amp; Bo", ["Third.", " ", "Fifth."]],
        ],
    }
    return base | changes


def hugging_face(official):
    titles, sentences = zip(*official["context"], strict=True)
    fact_titles, indices = zip(*official["supporting_facts"], strict=True)
    rest = {key: value for key, value in official.items() if key != "_id"}
    return rest | {
        "id": official["_id"],
        "context": {"title": list(titles), "sentences": list(sentences)},
        "supporting_facts": {"title": list(fact_titles), "sent_id": list(indices)},
    }


def write(path, records, *, lines=False):
    text = "\n".join(map(json.dumps, records)) if lines else json.dumps(records)
    path.write_text(text, encoding="utf-8")
    return path


def load(path, sizes=(1, 1, 1), **options):
    n_train, n_validation, n_test = sizes
    return load_hotpotqa(path, n_train=n_train, n_validation=n_validation, n_test=n_test, **options)


def ids(questions):
    return {split: [question.id for question in part] for split, part in questions.splits.items()}


def test_question_from_a_record(tmp_path):
    loaded = load(write(tmp_path / "dev.json", [record(n) for n in range(3)]))
    question = loaded.splits["train"][0]
    assert (question.id, question.text, question.category) == ("id0", "Who led group 0?", "bridge")
    assert question.context == (
        "[Red: a film (short):0] First one.\n[Red: a film (short):1] Second one.\n\n"
        "[Ada &amp; Bo:0] Third.\n[Ada &amp; Bo:1]\n[Ada &amp; Bo:2] Fifth."
    )
    assert question.evidence == ("Red: a film (short):1", "Ada &amp; Bo:0")
    assert set(question.evidence) <= set(CITATION.findall(question.context))
    assert loaded.source == "HotpotQA file dev.json"
    assert loaded.issues == ()


def test_all_shapes_give_the_same_questions(tmp_path):
    records = [record(n) for n in range(3)]
    expected = load(write(tmp_path / "a.json", records)).splits
    other = [hugging_face(r) for r in records]
    assert load(write(tmp_path / "b.jsonl", records, lines=True)).splits == expected
    assert load(write(tmp_path / "c.json", other)).splits == expected
    assert load(write(tmp_path / "d.json", other, lines=True)).splits == expected
    with (tmp_path / "e.json").open("w", encoding="utf-8-sig") as file:
        json.dump(records, file)
    assert load(tmp_path / "e.json").splits == expected


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    records = [record(n) for n in range(3)]
    parquet.write_table(pyarrow.Table.from_pylist([hugging_face(r) for r in records]), tmp_path / "dev.parquet")
    assert load(tmp_path / "dev.parquet").splits == load(write(tmp_path / "dev.json", records)).splits


def test_slices_in_file_order(tmp_path):
    path = write(tmp_path / "dev.json", [record(n) for n in range(7)])
    expected = {"train": ["id0", "id1", "id2"], "validation": ["id3"], "test": ["id4", "id5"]}
    assert ids(load(path, (3, 1, 2))) == expected


def test_the_category_selects_before_slicing(tmp_path):
    path = write(tmp_path / "t.json", [record(n, type=["bridge", "comparison"][n % 2]) for n in range(8)])
    expected = {"train": ["id1"], "validation": ["id3"], "test": ["id5"]}
    assert ids(load(path, category="comparison")) == expected
    with pytest.raises(ValueError, match="unknown HotpotQA category 'multi_hop'; known: bridge, comparison"):
        load(path, category="multi_hop")


def test_too_few_questions_names_numbers(tmp_path):
    path = write(tmp_path / "dev.json", [record(0), record(1, type="comparison")])
    with pytest.raises(ValueError, match=r"has 2 questions, but n_train=5, n_validation=1 and n_test=1 need 7"):
        load(path, (5, 1, 1))
    with pytest.raises(ValueError, match="has 1 questions of category 'comparison'"):
        load(path, category="comparison")


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        ({"answer": None}, "record 2: answer"),
        ({"context": [["T", "not a list"]]}, r"record 2: context\.0\.1"),
        ({"context": {"title": ["A", "B"], "sentences": [["x"]]}}, "'title' and 'sentences' of equal length"),
        ({"type": "other"}, "record 2: type"),
        ({"supporting_facts": [["T", "x"]]}, r"supporting_facts\.0\.1"),
    ],
)
def test_malformed_record_names_file_record_and_key(tmp_path, broken, fault):
    path = write(tmp_path / "dev.json", [record(0), record(1, **broken), record(2)])
    with pytest.raises(ValueError, match=rf"dev\.json, (.|\n)*{fault}"):
        load(path)


def test_missing_id_names_the_key(tmp_path):
    nameless = record()
    del nameless["_id"]
    with pytest.raises(ValueError, match=r"dev\.jsonl, line 1: _id: Field required"):
        load(write(tmp_path / "dev.jsonl", [nameless], lines=True))


def test_broken_json_names_the_line(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(record()) + "\n\n{oops\n")
    with pytest.raises(ValueError, match=r"a\.jsonl, line 3: not JSON"):
        load(tmp_path / "a.jsonl")
    (tmp_path / "b.json").write_text("[{},")
    with pytest.raises(ValueError, match=r"b\.json starts like a JSON list"):
        load(tmp_path / "b.json")
    with pytest.raises(FileNotFoundError, match="none"):
        load(tmp_path / "none.json")


def test_faults_are_reported(tmp_path):
    title = "Ada &amp; Bo"
    records = [
        record(0, supporting_facts=[[title, 3], ["Nowhere", 0], [title, 0]]),
        record(0, question="Another?"),
        record(2, question="Who led group 0?", context=[[title, ["x"]], [title, ["y", "z"]]], supporting_facts=[]),
    ]
    loaded = load(write(tmp_path / "dev.json", records))
    assert [(issue.where, issue.action) for issue in loaded.issues] == [
        ("dev.json, record 1, id0", "reported"),
        ("dev.json, record 1, id0", "reported"),
        ("dev.json, record 2, id0", "repaired"),
        ("dev.json, record 3, id2", "reported"),
        ("dev.json, record 3, id2", "reported"),
    ]
    problems = " | ".join(issue.problem for issue in loaded.issues)
    for part in (f"'{title}', 3]", "'Nowhere', 0]", "named id0#2", "the same question as id0", "two passages"):
        assert part in problems
    assert ids(loaded) == {"train": ["id0"], "validation": ["id0#2"], "test": ["id2"]}
    # The official scores count facts that name no sentence, so they stay among the gold evidence.
    assert loaded.splits["train"][0].evidence == (f"{title}:3", "Nowhere:0", f"{title}:0")


@pytest.mark.parametrize("title", ["Plain", "A: B:2", "List [of] things", "Line\nbreak", "AT&amp;T [1]: x"])
def test_ids_can_be_found_again(title):
    assert CITATION.findall(f"see [{sentence_id(title, 12)}] and") == [sentence_id(title, 12)]


def test_reward_and_metrics(tmp_path):
    loaded = load(write(tmp_path / "dev.json", [record(n) for n in range(3)]))
    question = loaded.splits["test"][0]
    assert loaded.reward(question, "") == 0
    assert loaded.reward(question, "Quill") == pytest.approx(2 / 3)
    # answer: precision 1, recall 1/2; facts: precision 1, recall 1/2; joint: 1 and 1/4, so F1 = 2/5
    found = loaded.metrics(question, "Quill", ["Ada &amp; Bo:0"])
    expected = {"em": 0, "f1": 2 / 3, "precision": 1, "recall": 0.5, "sp_em": 0, "sp_f1": 2 / 3}
    # one unigram of one, brevity penalty exp(1 - 2/1)
    expected |= {"joint_em": 0, "joint_f1": 0.4, "bleu": 0.36787944117144233}
    assert found == pytest.approx(expected)
    assert loaded.metrics(question, "ada quill", question.evidence)["joint_em"] == 1


def test_load_benchmark(tmp_path):
    path = write(tmp_path / "dev.json", [record(n) for n in range(3)])
    loaded = load_benchmark("hotpotqa", path, category="all", n_train=1, n_validation=1, n_test=1)
    assert loaded.source == "HotpotQA file dev.json"
    with pytest.raises(ValueError, match="set n_validation, n_test"):
        load_benchmark("hotpotqa", path, n_train=1)
    with pytest.raises(ValueError, match="unknown benchmark 'hotpot'; known: hotpotqa, locomo"):
        load_benchmark("hotpot", path)


def test_bundled_file_is_labelled_synthetic(tmp_path, monkeypatch):
    monkeypatch.setattr("skill_evolution.base.paths.DEMO_DATA", tmp_path)
    write(tmp_path / "hotpotqa.json", [record(n) for n in range(3)])
    assert load_benchmark("hotpotqa", n_train=1, n_validation=1, n_test=1).source == "synthetic"


@pytest.mark.skipif(not HOTPOTQA, reason="SKILL_EVOLUTION_HOTPOTQA is not set")
def test_real_file_loads_whole():
    count = sum(bool(line.strip()) for line in Path(str(HOTPOTQA)).read_text(encoding="utf-8").splitlines())
    loaded = load(str(HOTPOTQA), (count - 2, 1, 1))
    questions = [question for split in loaded.splits.values() for question in split]
    assert len({question.id for question in questions}) == count
    reported = " ".join(issue.where for issue in loaded.issues)
    for question in questions:
        assert set(question.evidence) <= set(CITATION.findall(question.context)) or question.id in reported
        assert loaded.metrics(question, question.answer, question.evidence)["joint_em"] == 1
    with pytest.raises(ValueError, match=f"has {count} questions"):
        load(str(HOTPOTQA), (count, 1, 0))
