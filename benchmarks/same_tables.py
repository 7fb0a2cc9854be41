"""Whether the tables are what they were: every CSV in results/demo/tables against the one of a commit.

    .venv/bin/python benchmarks/same_tables.py 3e62a41

Numbers that differ by less than 1e-9 of their size are told apart from others: libraries differ in the last digit. So
are seconds that were measured, which no two runs share. The exit status is 1 if a table is missing, new or says
something else.
"""

import argparse
import io
import subprocess
import sys
from pathlib import Path

import pandas as pd

from skill_evolution.base.paths import RESULTS, ROOT

TABLES = "results/demo/tables"
MEASURED = {
    "06_wall_clock.csv": "first start to last end [s]",
    "06_clock_ratios.csv": "first start to last end",
}
"""The column of a table that holds wall clock."""


def git(*arguments: str) -> str:
    """What git prints in the repository."""
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True).stdout


def difference(name: str, old: str, new: str) -> str | None:
    """How two CSV texts of a table differ: None, "last digit", "measured seconds", or what is different."""
    if old == new:
        return None
    before, after = (pd.read_csv(io.StringIO(text)) for text in (old, new))
    if name in MEASURED and before.drop(columns=MEASURED[name]).equals(after.drop(columns=MEASURED[name])):
        return "measured seconds"
    try:
        pd.testing.assert_frame_equal(before, after, rtol=1e-9, atol=1e-12, check_exact=False)
    except AssertionError as error:
        return " ".join(str(error).split())
    return "last digit"


def main() -> int:
    """Compare and print a line for each table that differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", help="the commit to compare with")
    parser.add_argument("--folder", type=Path, default=RESULTS / "demo" / "tables", help="the tables (%(default)s)")
    arguments = parser.parse_args()
    listed = git("ls-tree", "-r", "--name-only", arguments.revision, "--", TABLES)
    old = {Path(name).name for name in listed.split() if name.endswith(".csv")}
    new = {path.name for path in arguments.folder.glob("*.csv")}
    found = {name: "missing" for name in old - new} | {name: "new" for name in new - old}
    for name in sorted(old & new):
        text = (arguments.folder / name).read_text(encoding="utf-8")
        if what := difference(name, git("show", f"{arguments.revision}:{TABLES}/{name}"), text):
            found[name] = what
    for name, what in sorted(found.items()):
        print(f"{name}: {what}")
    print(f"{len(old & new) - sum(name in old & new for name in found)} of {len(old)} tables are the same")
    return int(any(what not in ("last digit", "measured seconds") for what in found.values()))


if __name__ == "__main__":
    sys.exit(main())
