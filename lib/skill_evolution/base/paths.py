"""Where things are, anchored on the repository (or on SKILL_EVOLUTION_HOME), never on the working directory."""

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
ROOT = Path(os.environ.get("SKILL_EVOLUTION_HOME", PACKAGE.parent.parent)).resolve()
PROFILES = PACKAGE / "profiles"
PROMPTS = PACKAGE / "prompts"
DATA = ROOT / "data"
DEMO_DATA = DATA / "demo"
PLANTED = DATA / "planted"
REPORTED = DATA / "reported"
NOTEBOOKS = ROOT / "notebooks"
RESULTS = Path(os.environ.get("SKILL_EVOLUTION_RESULTS", ROOT / "results")).resolve()
CACHE = Path(
    os.environ.get("SKILL_EVOLUTION_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "skill-evolution"
).resolve()  # converted models, server logs
