"""Profiles that extend others (those of teams: tests/runs/test_config.py)."""

from skill_evolution.base.profiles import profile_path, read_profile


def test_a_profile_extends_one_of_its_own_kind(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("extends: demo\ngrpo: {steps: 3}", encoding="utf-8")
    demo = read_profile(profile_path("demo", kind="sage"), kind="sage")
    assert read_profile(path, kind="sage") == {**demo, "grpo": {**demo["grpo"], "steps": 3}}
