"""The batch runner, on tiny notebooks made here."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from skill_evolution.base.paths import ROOT
from skill_evolution.runs import notebook_file, notebooks

PARAMETERS = 'profile: str = "demo"  # which\noverrides: dict = {}\nlibrary: str = "none"\n'
STALE = {"name": "some-old-env", "display_name": "gone", "language": "python"}


def write_notebook(folder: Path, name: str, *sources: str, tagged: bool = True, parameters: str = PARAMETERS) -> Path:
    first = new_code_cell(parameters, metadata={"tags": ["parameters"]} if tagged else {})
    path = folder / f"{name}.ipynb"
    nbformat.write(
        new_notebook(cells=[first, *map(new_code_cell, sources)], metadata={"kernelspec": STALE}),
        path,
    )
    return path


SHOW = """import json, os, sys
print(json.dumps({"profile": profile, "overrides": overrides, "library": library, "python": sys.executable,
                  "cwd": os.getcwd(), "results": os.environ["SKILL_EVOLUTION_RESULTS"]}))
from tqdm.auto import tqdm
for _ in tqdm(range(3)): pass"""


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory):
    """One run of three notebooks (good, failing, killed) in folders with a space, beside a misleading kernel spec."""
    home = tmp_path_factory.mktemp("a place")
    folder = home / "note books"
    folder.mkdir()
    write_notebook(folder, "00_good", SHOW)
    write_notebook(
        folder, "01_raises", "before = 1\nprint('before')", "raise KeyError('the cell says so')", "print('no')"
    )
    write_notebook(folder, "02_killed", "print('alive')", "import os; os._exit(9)")
    spec = home / "share" / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(
        json.dumps({"argv": ["/no/such/python"], "display_name": "stale", "language": "python"})
    )
    lines: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(home / "share"))
        outcomes = notebooks.run_notebooks(
            profile="demo",
            results=home / "re sults",
            parameters={"group_size": 2, "library": "planted"},
            folder=folder,
            report=lines.append,
        )
    return folder, home / "re sults" / "demo", outcomes, lines


def test_good_notebook_gets_parameters_overrides_own_kernel_and_folder(batch):
    folder, target, outcomes, _ = batch
    assert outcomes[0].error is None
    assert outcomes[0].output == target / "00_good.ipynb"
    executed = nbformat.read(outcomes[0].output, as_version=4)
    outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    assert len(outputs) == 1, "a progress bar was drawn"
    assert json.loads(outputs[0]["text"]) == {
        "profile": "demo",
        "overrides": {"group_size": 2},
        "library": "planted",
        "python": sys.executable,
        "cwd": str(folder),
        "results": str(target.parent),
    }


def test_executed_notebook_is_clean_and_has_a_page(batch):
    _, target, *_ = batch
    text = (target / "00_good.ipynb").read_text()
    assert "papermill" not in json.loads(text)["metadata"]
    executed = nbformat.reads(text, as_version=4)
    notebook_file.strip(executed)
    assert nbformat.writes(executed) + "\n" == text
    assert '"library": "planted"' in (target / "00_good.html").read_text().replace("&quot;", '"')


def test_failing_notebook_is_kept_under_another_name_and_others_run(batch):
    _, target, outcomes, lines = batch
    assert "KeyError: 'the cell says so'" in outcomes[1].error
    assert outcomes[1].output == target / "01_raises.failed.ipynb"
    assert "before" in outcomes[1].output.read_text()
    assert [line.split(" s ->")[0].rstrip("0123456789") for line in lines] == [
        "[1/3] 00_good ...",
        "[1/3] 00_good ok ",
        "[2/3] 01_raises ...",
        "[2/3] 01_raises FAILED after ",
        "[3/3] 02_killed ...",
        "[3/3] 02_killed FAILED after ",
    ]


def test_killed_kernel_leaves_nothing_that_looks_finished(batch):
    _, target, outcomes, _ = batch
    assert "DeadKernelError" in outcomes[2].error
    assert {path.name for path in target.iterdir()} == {
        "00_good.ipynb",
        "00_good.html",
        "01_raises.failed.ipynb",
        "02_killed.failed.ipynb",
    }


def test_exit_status_and_where_results_are(tmp_path, monkeypatch, capsys):
    """An earlier result stays and is named as such."""
    write_notebook(tmp_path, "00_a")
    (tmp_path / "results" / "demo").mkdir(parents=True)
    (tmp_path / "results" / "demo" / "00_a.ipynb").write_text("earlier")
    monkeypatch.setattr(notebooks, "execute", lambda *job: 1 / 0)
    assert notebooks.main(["--notebooks", str(tmp_path), "--results", str(tmp_path / "results")]) == 1
    said = capsys.readouterr().out
    assert f"FAILED after 0 s -> {tmp_path / '00_a.ipynb'}\nZeroDivisionError: division by zero" in said
    assert "00_a.ipynb is of an earlier run." in said
    assert f"Results: {tmp_path / 'results' / 'demo'}\n1 of 1 notebooks failed: 00_a\n" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_notebook_ends_with_its_batch(tmp_path, number):
    file = tmp_path / "kernel"
    write_notebook(
        tmp_path, "00_a", f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(300)"
    )
    command = [sys.executable, "-m", "skill_evolution.runs.notebooks", "--notebooks", str(tmp_path)]
    with subprocess.Popen([*command, "--results", str(tmp_path / "results")], stdout=subprocess.DEVNULL) as batch:
        until(lambda: file.exists() and file.read_text(), "the notebook didn't start")
        batch.send_signal(number)
    until(lambda: not runs(int(file.read_text())), "the kernel outlived its batch", seconds=15)


def runs(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def until(reached, problem, seconds=60):
    deadline = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > deadline:
            pytest.fail(problem)
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["01_main"], "no notebook 01_main in .*; there are: 00_a"),
        (["-p", "gruop_size", "2"], "'gruop_size'; did you mean 'group_size'"),
        (["-p", "libary", "x"], "'libary'; did you mean 'library'"),
        (["-p", "profile", "cpu"], "--profile"),
        (["-p", "group_size", "four"], "group_size.*four"),
        (["-p", "overrides", "{group: 2}"], "'group'; did you mean 'group_size'"),
        (["-p", "library", "[1"], "not YAML"),
        (["--profile", "dmeo"], "dmeo.*demo"),
    ],
)
def test_bad_usage_is_refused_before_anything_runs(tmp_path, monkeypatch, capsys, arguments, message):
    write_notebook(tmp_path, "00_a")
    monkeypatch.setattr(notebooks, "execute", lambda *job: pytest.fail("a notebook was started"))
    with pytest.raises(SystemExit) as stopped:
        notebooks.main(["--notebooks", str(tmp_path), "--results", str(tmp_path / "results"), *arguments])
    assert stopped.value.code == 2
    assert not (tmp_path / "results").exists()
    assert re.search(message, capsys.readouterr().err, flags=re.DOTALL)


def test_notebook_that_cannot_be_parametrised_is_refused(tmp_path):
    write_notebook(tmp_path, "00_untagged", tagged=False)
    with pytest.raises(ValueError, match=r"00_untagged.ipynb: no cell is tagged 'parameters'"):
        notebooks.declared_parameters(tmp_path / "00_untagged.ipynb")
    write_notebook(tmp_path, "01_other", parameters="profile = 'demo'")
    with pytest.raises(ValueError, match="but not overrides"):
        notebooks.declared_parameters(tmp_path / "01_other.ipynb")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no notebooks in"):
        notebooks.find_notebooks(folder=tmp_path / "empty")


def test_parameters_go_where_they_are_declared():
    """By hand: `seed` is a field of Config and declared by "a" only; `library` is no field and known to "b" only."""
    declared = {"a": ["profile", "overrides", "seed"], "b": ["profile", "overrides", "library"]}
    values = {"seed": 3, "library": "x", "overrides": {"iterations": 1}}
    assert notebooks.assign_parameters(declared, values, profile="demo") == {
        "a": {"profile": "demo", "seed": 3, "overrides": {"iterations": 1}},
        "b": {"profile": "demo", "library": "x", "overrides": {"iterations": 1, "seed": 3}},
    }
    assert notebooks.assign_parameters(declared, {}, profile="demo")["a"] == {"profile": "demo"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2),
        ("-0.3", -0.3),
        ("1e-3", 0.001),
        ("true", True),
        ("null", None),
        ("[0, 1]", [0, 1]),
        ("{temperature: 0}", {"temperature": 0}),
        ("Qwen3.8-27B", "Qwen3.8-27B"),
        ("Qwen/Qwen3.8-27B", "Qwen/Qwen3.8-27B"),
        ("2023-05-08", "2023-05-08"),
    ],
)
def test_values_are_yaml(text, value):
    assert notebooks.parse_value(text) == value


def test_existing_files_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "locomo10.json").touch()
    (tmp_path / "demo").mkdir()
    assert notebooks.parse_value("locomo10.json") == str(tmp_path / "locomo10.json")
    assert notebooks.parse_value("demo") == "demo", "a plain word is not taken for a folder"


def test_strip_keeps_outputs_and_removes_what_depends_on_the_run(tmp_path, capsys):
    path = write_notebook(tmp_path, "00_a")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(new_code_cell("profile = 'demo'", metadata={"tags": ["injected-parameters"]}))
    notebook.cells[0].update(
        execution_count=7,
        id="f00ba4",
        outputs=[nbformat.v4.new_output("execute_result", {"text/plain": "42"}, execution_count=7)],
    )
    notebook.cells[0].metadata["execution"] = {"iopub.execute_input": "2026-11-30T16:00:00Z"}
    notebook.metadata["papermill"] = {"duration": 1.5, "output_path": "/srv/x.ipynb"}
    notebook.metadata["language_info"] = {"name": "python", "version": "3.11.7"}
    nbformat.write(notebook, path)
    assert notebooks.main(["--notebooks", str(tmp_path), "--strip"]) == 0
    assert capsys.readouterr().out == "00_a.ipynb: cleaned\n"
    cleaned = nbformat.read(path, as_version=4)
    assert cleaned["metadata"] == {"kernelspec": notebook_file.KERNELSPEC, "language_info": {"name": "python"}}
    assert len(cleaned["cells"]) == 1, "papermill's cell is not part of the source"
    assert cleaned["cells"][0]["metadata"] == {"tags": ["parameters"]}
    assert cleaned["cells"][0]["execution_count"] == 1
    assert cleaned["cells"][0]["outputs"][0]["execution_count"] == 1
    assert cleaned["cells"][0]["outputs"][0]["data"] == {"text/plain": "42"}
    assert not notebook_file.strip_file(path)


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.name)
def test_committed_notebooks_are_clean_small_and_parametrised(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < 1_000_000
    notebook = nbformat.reads(text, as_version=4)
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    notebook_file.strip(notebook, drop_injected=True)
    clean = nbformat.writes(notebook) + "\n" == text  # apart, or pytest would print both
    assert clean, "run: make notebooks-strip"
    notebooks.declared_parameters(path)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output["output_type"] == "error"]
