"""The bundled benchmark: invented questions in the real formats of HotpotQA and LoCoMo, made from a seed."""

import json
import os
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from skill_evolution.testbed.questions.dialogues import conversations
from skill_evolution.testbed.questions.encyclopedia import questions

HOTPOTQA_FILE = "hotpotqa.json"
LOCOMO_FILE = "locomo.json"


def write_demo_data(folder: Path, *, seed: int = 0) -> None:
    """Writes `hotpotqa.json` and `locomo.json`, byte for byte the same for a seed.

    HotpotQA: 200 questions in the official distractor shape, to be sliced 60 / 40 / 100 in file order. LoCoMo: ten
    conversations under the real sample ids, so that the split by conversation applies (FACTS A "LoCoMo split"); twenty
    questions of each category 1 to 4 (ten about either speaker) and two of category 5 a conversation. Sizes are our
    choice: the 40 training and validation questions that a category has so are enough to tell a skill's effect from
    chance.

    Args:
        folder: Created if missing; files there are replaced.
        seed: Decides every name and fact.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / HOTPOTQA_FILE, questions(random.Random(f"hotpotqa/{seed}")))
    _write(folder / LOCOMO_FILE, conversations(random.Random(f"locomo/{seed}")))


def _write(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """A JSON list with one record a line, written whole and then renamed."""
    body = ",\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(f"[\n{body}\n]\n", encoding="utf-8", newline="\n")
    os.replace(temporary, path)
