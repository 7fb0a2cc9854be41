"""What the README shows is run as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skill_evolution.base import paths

README = (paths.ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_python_of_the_readme_runs(number: int, tmp_path: Path):
    environment = {**os.environ, "SKILL_EVOLUTION_RESULTS": str(tmp_path), "TQDM_DISABLE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS[number]], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"0\.\d", done.stdout)


def test_ones_own_task_takes_at_most_thirty_lines():
    (block,) = (block for block in BLOCKS if "Team(" in block)
    assert len(block.splitlines()) <= 30


def test_the_commands_named_are_there():
    makefile = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE))
    assert named
    assert named <= set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
