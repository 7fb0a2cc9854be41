"""The papers' figures against FACTS A and B, typed by hand; differences against what follows from other rows.

And each figure of the GRSE paper stands, as reported, in the stored outputs of the notebook that it belongs to.
"""

import re
from collections.abc import Iterator
from functools import cache

import nbformat
import pytest
from bs4 import BeautifulSoup, Tag

from skill_evolution.analysis.names import NAMES as DISPLAYED
from skill_evolution.analysis.reported import ReportedRow, load_reported
from skill_evolution.base import paths

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
        ("grse_skills", {"metric": "declined_to_correct"}, [61]),
        ("grse_skills", {"metric": "declined_to_correct_without_evidence"}, [5]),
        ("grse_skills", {"metric": "declined_to_correct_with_evidence"}, [56]),
        ("grse_skills", {"metric": "coded_skills"}, [180]),
        ("grse_robustness", {"metric": "test_questions"}, [453]),
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


# For each file, metric and kind: the notebook, words from the labels of the table's cell that shows the figure (title,
# group, row, column), and the whole word that the cell has.
SHOWN = {
    "grse f1 absolute": "01 > token F1 > {benchmark} > {method} (reported, {model}) > {category} > {value:.1f}",
    "grse f1 difference": "01 > F1 minus > {benchmark} > MASkills > {category} > reported > {value:+.1f} ({model})",
    "grse_skills broken_answers absolute": "02 > {benchmark} > broken > {method}, reported > {value:g} ({model})",
    "grse_skills no_cited_evidence absolute": (
        "02 > {benchmark} > no evidence cited after > {method}, reported > {value:g} % ({model})"
    ),
    "grse_skills declined_to_correct absolute": (
        "02 > {benchmark} > declined before, correct after > {method}, reported > {value:g} ({model})"
    ),
    "grse_skills declined_to_correct_without_evidence absolute": (
        "02 > {benchmark} > without cited evidence > {method}, reported > {value:g} ({model})"
    ),
    "grse_skills declined_to_correct_with_evidence absolute": (
        "02 > {benchmark} > with cited evidence > {method}, reported > {value:g} ({model})"
    ),
    "grse_skills skill_share absolute": "02 > {benchmark} > {category} > {method}, reported > {value:g} % ({model})",
    "grse_skills coded_skills absolute": "02 > the paper coded {value:g}",
    "grse_robustness f1 absolute": "03 > F1 and BLEU > {method} > F1, reported ({model}) > {value:.1f}",
    "grse_robustness f1 difference": "03 > Differences in F1 > {method} minus perturbed start > reported > {value:.1f}",
    "grse_robustness correct_credit_signs absolute": "03 > Right signs > {method} > reported > {value:g} of 5",
    "grse_robustness * absolute": "03 > paper > {category} > {metric} > {value:g}",
    "grse_transfer f1 difference": "04 > Differences > GRSE > {method} minus {other} > reported > {value:+.1f}",
    "grse_ablations f1 absolute": "05 > token F1 [%] > {method} (reported) > {category} > {value:.1f}",
    "grse_ablations bleu absolute": "05 > smoothed BLEU [%] > {method} (reported) > {category} > {value:.1f}",
    "grse_ablations f1 difference": "05 > F1 minus the full > {method} (reported) > {category} > {value:+.1f}",
    "grse_ablations bleu difference": "05 > BLEU minus the full > {method} (reported) > {category} > {value:+.1f}",
    "grse_cost actor_tokens range_low": "06 > Tokens, GRSE > reported, {source} > validation > {value:.1f} to",
    "grse_cost actor_tokens range_high": "06 > Tokens, GRSE > reported, {source} > validation > to {value:.1f}",
    "grse_cost rollout_tokens range_low": "06 > Tokens, GRSE > reported, {source} > rollouts > {value:.1f} to",
    "grse_cost rollout_tokens range_high": "06 > Tokens, GRSE > reported, {source} > rollouts > to {value:.1f}",
    "grse_cost wall_clock range_low": "06 > Wall clock, GRSE > reported, {source} > {value:.1f} to",
    "grse_cost wall_clock range_high": "06 > Wall clock, GRSE > reported, {source} > to {value:.1f}",
}
ROWS = {"transferred": "transferred", "in_domain": "in-domain", "helpful_only": "helpful skills only"}
AGAINST = {"transferred": "no skills", "in_domain": "transferred"}


@cache
def shown_cells(number: str) -> list[tuple[str, str]]:
    """Labels and text of every cell of the tables in a notebook's stored outputs; printed lines have no labels."""
    [path] = paths.NOTEBOOKS.glob(f"{number}_*.ipynb")
    outputs = [output for cell in nbformat.read(path, as_version=4).cells for output in cell.get("outputs", [])]
    tables = [
        BeautifulSoup(output["data"].get("text/html", ""), "html.parser") for output in outputs if "data" in output
    ]
    lines = [("", line) for output in outputs for line in output.get("text", "").splitlines()]
    return lines + [cell for page in tables for table in page.find_all("table") for cell in labelled(table)]


def labelled(table: Tag) -> Iterator[tuple[str, str]]:
    title, group, columns = "", "", []
    for row in table.find_all("tr"):
        texts = [cell.get_text(" ", strip=True).replace("\N{MINUS SIGN}", "-") for cell in row.find_all(["td", "th"])]
        if len(texts) == 1:  # a title over everything or the name of a group
            title, group = (title, texts[0]) if columns else (texts[0], "")
        elif not columns:
            columns = texts
        else:
            rest = list(zip(columns, texts, strict=True))
            row_labels = [text for text in texts if not re.match(r"[-+±–]?\d", text)]
            yield from ((" | ".join([title, group, *row_labels, column]), text) for column, text in rest)


def place(name: str, row: dict) -> tuple[str, list[str], str]:
    """The notebook's number, the labels and the cell that show a row of `<name>.csv`."""
    exact = f"{name} {row['metric']} {row['kind']}"
    number, *labels, cell = SHOWN[exact if exact in SHOWN else f"{name} * {row['kind']}"].split(" > ")
    names = {key: DISPLAYED.get(value, value) for key, value in row.items()}
    names["metric"] = row["metric"].replace("_", " ")
    names |= {"method": ROWS.get(row["method"], names["method"]), "other": AGAINST.get(row["method"], "")}
    return number, [label.format(**names) for label in labels], cell.format(**names)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("grse")])
def test_each_figure_of_the_grse_paper_stands_in_its_notebook(name):
    missing = []
    for row in load_reported(name).to_dict("records"):
        number, labels, cell = place(name, row)
        whole = re.compile(rf"(?<![-\w.]){re.escape(cell)}(?![\w.])")
        if not any(whole.search(text) and all(label in of for label in labels) for of, text in shown_cells(number)):
            missing.append(f"notebook {number}: {' > '.join([*labels, cell])} ({row['source']})")
    assert missing == []
