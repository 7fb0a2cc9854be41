"""The papers' figures against FACTS A and B, typed by hand; differences against what follows from other rows."""

import pytest

from skill_evolution import paths
from skill_evolution.analysis.reported import ReportedRow, load_reported

NAMES = sorted(path.stem for path in paths.REPORTED.glob("*.csv"))
HEADER = ",".join(ReportedRow.model_fields)
ROW = "locomo,M,grse,all,f1,54.9,percent,absolute,GRSE 5.5,"


def figures(name: str, **where: str) -> list[float]:
    frame = load_reported(name)
    for column, value in where.items():
        frame = frame[frame[column] == value]
    return list(frame["value"])


@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_valid_and_every_row_has_a_source(name):
    frame = load_reported(name)
    assert len(frame)
    assert frame["source"].str.startswith(("GRSE", "SAGE")).all()


@pytest.mark.parametrize(
    ("name", "where", "expected"),
    [
        ("grse", {"benchmark": "hotpotqa", "method": "grse"}, [83.7, 82.8]),
        ("grse", {"benchmark": "hotpotqa", "method": "maskills"}, [80.6, 82.3]),
        ("grse", {"benchmark": "locomo", "category": "multi_hop"}, [6.7, 3.2]),
        ("grse_skills", {"metric": "broken_answers"}, [-1.8, -0.6, -6.8, -3.1]),
        ("grse_skills", {"metric": "skill_share"}, [18, 5, 57, 50]),
        ("grse_skills", {"metric": "no_cited_evidence"}, [14]),
        ("grse_robustness", {"metric": "f1"}, [66.9, 66.7, 6.3]),
        ("grse_robustness", {"metric": "correct_credit_signs"}, [5, 3]),
        ("grse_robustness", {"category": "verbatim-evidence-guard"}, [-0.19, -0.07, 3, 7]),
        ("grse_transfer", {"method": "transferred"}, [1.3, 1.8]),
        ("grse_transfer", {"method": "in_domain"}, [1.9, 1.2]),
        ("grse_ablations", {"metric": "f1", "kind": "absolute"}, [54.9, 53.0]),
        ("grse_ablations", {"metric": "bleu"}, [42.2, -0.6]),
        ("grse_ablations", {"metric": "f1", "kind": "difference"}, [-1.0, -0.8, -0.5, -4.1, 2.4]),
        ("grse_cost", {"metric": "actor_tokens"}, [1.6, 2.9, 1.7, 3.0]),
        ("grse_cost", {"metric": "wall_clock"}, [1.3, 1.8, 1.2, 1.5]),
        ("grse_cost", {"metric": "rollout_tokens"}, [3.8, 4.3]),
        ("sage", {"method": "sage", "category": "test_challenge"}, [50.1, 32.4, 17.3]),
        ("sage", {"method": "sage", "kind": "absolute", "category": "test_normal"}, [72.0, 60.7, 12.1, 1475]),
        ("sage", {"metric": "tokens", "kind": "absolute"}, [3613, 2988, 1340, 1475]),
        ("sage", {"model": "o1"}, [61.9, 41.1, 36.7, 19.4]),
        ("sage_ablations", {"method": "retrieval_skill_embedding"}, [66.3, 56.0, 14.5, 1692]),
        ("sage_ablations", {"method": "sft_grpo"}, [66.1, 51.2, 1284]),
        ("sage_ablations", {"method": "chain_of_three"}, [54.8]),
        ("sage_ablations", {"method": "start_base_model"}, [40.7, 25.6, 11.9, 2532]),
        ("sage_skills", {"method": "sage"}, [0.88, 0.72, 361, 230]),
    ],
)
def test_figures_of_facts(name, where, expected):
    assert figures(name, **where) == expected


def test_sage_differences_follow_from_its_absolute_figures():
    def normal(method: str, metric: str) -> float:
        return figures("sage", kind="absolute", category="test_normal", method=method, metric=metric)[0]

    assert figures("sage", kind="difference") == [pytest.approx(normal("sage", "sgc") - normal("grpo", "sgc"))]
    relative = [round(100 * (normal("sage", m) / normal("grpo", m) - 1)) for m in ("steps", "tokens")]
    assert figures("sage", kind="relative") == relative == [-26, -59]


def test_disagreements_keep_both_figures_with_a_note():
    planted = load_reported("grse_robustness").query("metric == 'planted_skills'")
    assert set(planted["value"]) == {5, 6}
    assert planted["note"].str.contains("disagrees").all()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ROW.replace("54.9", "high"), "bad.csv, line 3: value"),
        (ROW.replace("54.9", "nan"), "bad.csv, line 3: value"),
        (ROW.replace("absolute", "exact"), "bad.csv, line 3: kind"),
        (ROW.replace("GRSE 5.5", ""), "bad.csv, line 3: source"),
        (ROW + ",extra", "bad.csv, line 3: columns beyond the header"),
        (ROW.removesuffix(","), "bad.csv, line 3: note: Field required"),
        (ROW, "stands 2 times"),
        (ROW.replace("5.5", "6"), "stands 2 times"),
    ],
)
def test_a_bad_row_is_named(tmp_path, row, message):
    (tmp_path / "bad.csv").write_text(f"{HEADER}\n{ROW}\n{row}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load_reported("bad", folder=tmp_path)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"nothing\.csv: no such file; known are .*'grse'"):
        load_reported("nothing")
