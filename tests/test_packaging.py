"""The files around the package agree with one another, and none of them names the machine it was made on."""

import importlib
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from skill_evolution.base.paths import PACKAGE, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def requirements(lines):
    """The requirements by name; a name that stands twice fails."""
    parsed = [Requirement(line) for line in lines]
    by_name = {canonicalize_name(requirement.name): requirement for requirement in parsed}
    assert len(by_name) == len(parsed), "a dependency stands twice"
    return by_name


def conda_requirements():
    entries = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    pip = [line for entry in entries if isinstance(entry, dict) for line in entry["pip"]]
    assert "-e ." in pip, "environment.yml does not install this package"
    conda = [entry for entry in entries if isinstance(entry, str) and entry != "pip"]
    return requirements([*conda, *(line for line in pip if line != "-e .")])


def test_environment_yml_has_every_dependency_with_the_same_bounds():
    expected = requirements([*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra)])
    found = conda_requirements()
    python = found.pop(canonicalize_name("python"))
    assert python.specifier == SpecifierSet(PROJECT["requires-python"])
    assert {name: (r.extras, r.specifier) for name, r in found.items()} == {
        name: (r.extras, r.specifier) for name, r in expected.items()
    }


def test_each_dependency_has_a_lower_bound():
    for line in [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra)]:
        assert any(part.operator in (">=", "==") for part in Requirement(line).specifier), line


def test_citation_and_license_agree_with_pyproject():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert {key: citation[key] for key in ("title", "version", "license")} == {
        "title": PROJECT["name"],
        "version": PROJECT["version"],
        "license": PROJECT["license"],
    }
    assert citation["authors"] == PROJECT["authors"]
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert PROJECT["license"] == "Apache-2.0"
    assert text.split()[:5] == ["Apache", "License", "Version", "2.0,", "January"]
    assert f"Copyright 2026 {PROJECT['authors'][0]['name']}" in text


def test_package_data_patterns_cover_every_file_that_is_not_code():
    """An installed wheel has all prompts, profiles and styles: each such file matches a pattern of pyproject."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = config["tool"]["setuptools"]["package-data"]["skill_evolution"]
    covered = {path for pattern in patterns for path in PACKAGE.glob(pattern)}
    files = {path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"}}
    assert files - covered == set()


def test_console_script_exists():
    module, function = PROJECT["scripts"]["skill-evolution"].split(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_no_file_names_this_machine():
    """Neither a home or work folder nor a package index's host; the words are put together so as not to find these."""
    words = [
        "/" + "work/",
        "/" + "root/",
        "/" + "tmp/ipykernel",
        "/" + "opt/wheels",
        "py" + "pi.org",
        "extra-" + "index-url",
    ]
    pattern = re.compile("|".join(map(re.escape, words)) + r"|/(home|Users)/\w+/")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0 or not listed.stdout:
        pytest.skip("no file is under git's control here")
    guilty = []
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and path.suffix not in {".png", ".pdf"}:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                if found := pattern.search(line):
                    guilty.append(f"{name}:{number}: {found[0]}")
    assert guilty == []


def test_importing_the_library_needs_neither_torch_nor_vllm():
    code = (
        "import importlib, pkgutil, sys, skill_evolution\n"
        "for module in pkgutil.walk_packages(skill_evolution.__path__, 'skill_evolution.'):\n"
        "    if '.sage' not in module.name and not module.name.endswith(('__main__', 'expert_data')):\n"
        "        importlib.import_module(module.name)\n"
        "import skill_evolution.sage, skill_evolution.testbed.world, skill_evolution.sage.appworld.world\n"
        "print(sorted({'torch', 'vllm', 'trl', 'transformers', 'sentence_transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
