"""Each notebook as a reader meets it: opened in JupyterLab in a browser, kernel restarted, all cells run.

That the cells run without a browser is tested elsewhere (papermill, nbval); here the page is: no dialog asks for more
than the restart, no cell fails, no picture or widget is broken. Debian's `chromium` is the browser. Runs are trained
into a folder of their own, or taken from SKILL_EVOLUTION_RESULTS where it is set. A screenshot of each finished page
stays in pytest's folder (`--basetemp=FOLDER` says where).
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("playwright.sync_api", reason="playwright (of the extra dev) is not installed")
from playwright.sync_api import Browser, Page, sync_playwright

from skill_evolution.base import paths
from skill_evolution.runs.notebooks import find_notebooks

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path (Debian: apt-get install chromium)"),
]
START_SECONDS = 120  # until the server answers and a page is there, on a busy machine
RUN_SECONDS = 1800  # one notebook, all of its training runs included
NOTEBOOK = ".jp-WindowedPanel-outer"
RESTART = "Restart Kernel and Run All Cells…"
# The state of the notebook in front; cells far from the window have a model but no element in the page.
STATE = """() => {
    const panel = window.jupyterapp.shell.currentWidget;
    const code = panel.context.model.toJSON().cells.filter(cell => cell.cell_type === 'code');
    return {
        counts: code.map(cell => cell.execution_count),
        failed: code.some(cell => cell.outputs.some(output => output.output_type === 'error')),
        kernel: panel.sessionContext.session?.kernel?.status,
    };
}"""
FINISHED = (
    f"() => {{ const {{counts, failed, kernel}} = ({STATE})();"
    " return kernel === 'idle' && (failed || counts.every(count => count !== null)); }"
)
# A picture that did not load, an output that JupyterLab could not show, and text taken for a formula, as the search
# pattern \[D3:6\] is (the outputs have no formulas).
BROKEN = """() => [
    ...[...document.querySelectorAll('.jp-OutputArea img')].filter(image => !image.naturalWidth).map(() => 'picture'),
    ...[...document.querySelectorAll('.jp-OutputArea mjx-container')].map(() => 'text shown as a formula'),
    ...[...document.querySelectorAll('.jp-OutputArea-output')].map(output => output.innerText)
        .filter(text => /Error displaying widget|Error rendering output|Loading widget|JavaScript Error/.test(text)),
]"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    """A JupyterLab on copies of the notebooks without outputs: address, token, and the folder that it shows."""
    home = tmp_path_factory.mktemp("jupyterlab")
    folder = home / "notebooks"
    folder.mkdir()
    for path in find_notebooks():
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.update(outputs=[], execution_count=None)
        nbformat.write(notebook, folder / path.name)
    own = {name: str(home / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")}
    own |= {name: str(home / name.lower()) for name in ("JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")}
    own |= {
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "SKILL_EVOLUTION_HOME": str(paths.ROOT),
        "SKILL_EVOLUTION_RESULTS": os.environ.get("SKILL_EVOLUTION_RESULTS", str(home / "results")),
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--ServerApp.root_dir={folder}"]
    command += ["--LabApp.expose_app_in_browser=True", "--allow-root"]
    news = home / "jupyterlab_settings_dir" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    news.parent.mkdir(parents=True)
    news.write_text('{"fetchNews": "false"}', encoding="utf-8")  # neither asked for nor fetched
    log = home / "server.log"
    with log.open("w") as stream:
        process = subprocess.Popen(command, cwd=home, env={**os.environ, **own}, stdout=stream, stderr=stream)
    try:
        yield *_address(process, home / "runtime", log), folder
    finally:
        process.terminate()  # and with it, its kernels
        process.wait(START_SECONDS)


def _address(process: subprocess.Popen, runtime: Path, log: Path) -> tuple[str, str]:
    """Wait for the file in which a running server states its address and its token."""
    from jupyter_server.serverapp import list_running_servers  # slow, and most test runs leave this module out

    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if found := list(list_running_servers(str(runtime))):
            return found[0]["url"], found[0]["token"]
        time.sleep(0.2)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text(errors='replace')}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(server: tuple[str, str, Path], browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    address, token, _ = server
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(1000 * START_SECONDS)
    page.goto(f"{address}lab/tree/{request.getfixturevalue('name')}.ipynb?token={token}&reset")
    yield page
    page.close()


@pytest.mark.parametrize("name", [path.stem for path in find_notebooks()])
def test_all_cells_run_from_a_fresh_kernel(name, server, page, tmp_path):
    page.locator(".jp-NotebookPanel:visible .jp-Cell").first.wait_for()
    page.wait_for_function(f"() => ({STATE})().kernel === 'idle'")
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name=RESTART).click()
    page.get_by_role("button", name="Confirm Kernel Restart").click()
    page.wait_for_function(FINISHED, timeout=1000 * RUN_SECONDS, polling=1000)
    state = page.evaluate(STATE)
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")

    saved = nbformat.read(server[2] / f"{name}.ipynb", as_version=4)
    code = [cell for cell in saved.cells if cell.cell_type == "code"]
    assert [dict(output) for cell in code for output in cell.outputs if output.output_type == "error"] == []
    assert state["counts"] == [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert any(cell.outputs for cell in code)

    draw_all_cells(page, len(saved.cells))
    page.locator(NOTEBOOK).screenshot(path=tmp_path / f"{name}.png")
    assert page.evaluate(BROKEN) == []


def draw_all_cells(page: Page, count: int) -> None:
    """Make the window so high that the notebook has no need to scroll: cells out of sight may not be drawn."""
    cells = f"[...document.querySelectorAll('{NOTEBOOK} .jp-Cell')]"
    for _ in range(3):  # a cell's height is an estimate until it is drawn
        page.locator(NOTEBOOK).evaluate("panel => { panel.scrollTop = 0; }")
        bottom = page.evaluate(f"() => Math.ceil({cells}.at(-1).getBoundingClientRect().bottom)")
        page.set_viewport_size({"width": 1400, "height": bottom + 100})
        page.wait_for_function(f"() => {cells}.length === {count}")
        page.wait_for_function(f"() => [...document.querySelectorAll('{NOTEBOOK} img')].every(image => image.complete)")
