"""A training run's figures as a CSV file, one row a step, which a resumed run goes on with."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class TrainingLog:
    """Rows of a CSV file, written whole at every step so that a killed run leaves a readable file."""

    def __init__(self, path: Path) -> None:
        """The log at `path`, with the rows that stand there already."""
        self.path = path
        self.rows: list[dict[str, Any]] = []
        if path.is_file():
            with path.open(encoding="utf-8", newline="") as file:
                self.rows = list(csv.DictReader(file))

    def keep(self, step: int) -> None:
        """Drop rows after `step`: the run goes on from a checkpoint made there."""
        self.rows = [row for row in self.rows if int(row["step"]) <= step]

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a row (with a column `step`); one of the same step is replaced. Columns are those of all rows."""
        self.rows = [old for old in self.rows if int(old["step"]) != int(row["step"])] + [dict(row)]
        columns = list(dict.fromkeys(column for one in self.rows for column in one))
        partial = self.path.with_suffix(".partial")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        partial.replace(self.path)
