"""One notebook file: run through papermill, and cleaned of what differs from run to run."""

import logging
from pathlib import Path
from typing import Any

import nbformat
import papermill
import zmq
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbconvert import HTMLExporter
from nbstripout import strip_output
from traitlets import default

logging.getLogger("papermill").setLevel(logging.WARNING)  # the batch says itself what it runs
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
RUN_DEPENDENT = [
    "metadata.papermill",
    "metadata.signature",
    "metadata.vscode",
    "metadata.widgets",
    "metadata.language_info.version",
    "cell.metadata.papermill",
    "cell.metadata.execution",
    "cell.metadata.ExecuteTime",
    "cell.metadata.collapsed",
    "cell.metadata.scrolled",
]
"""Metadata that differs from run to run or from editor to editor, in nbstripout's notation."""


class OwnKernelManager(AsyncKernelManager):
    """Starts the kernel of the running interpreter, whatever is registered under "python3" elsewhere.

    A kernel spec in JUPYTER_PATH or in the user's home may be stale or point to another environment. Without folders to
    search, jupyter_client falls back to the spec that the installed ipykernel provides for ``sys.executable``.
    """

    @default("kernel_spec_manager")
    def _own_kernel_only(self) -> KernelSpecManager:
        return KernelSpecManager(kernel_dirs=[])

    @default("transport_encryption")  # a jupyter_client without this trait never asks
    def _encrypt_where_possible(self) -> str:
        return "auto" if zmq.has("curve") else "disabled"


def execute(source: Path, output: Path, partial: Path, parameters: dict[str, Any]) -> None:
    """Run one notebook in its own folder and write it, cleaned, with an HTML page beside it.

    Args:
        source: The notebook.
        output: Where the executed notebook goes once it has run to the end.
        partial: Where it stands until then, saved after each cell.
        parameters: What papermill is to inject.

    Raises:
        papermill.PapermillExecutionError: If a cell fails.
        nbclient.exceptions.DeadKernelError: If the kernel dies.
    """
    notebook = papermill.execute_notebook(
        source,
        partial,
        parameters=parameters,
        kernel_name=KERNELSPEC["name"],
        language=KERNELSPEC["language"],
        progress_bar=False,
        kernel_manager_class=OwnKernelManager,
        cwd=source.parent,
    )
    strip(notebook)
    page, _ = HTMLExporter().from_notebook_node(notebook, resources={"metadata": {"name": source.stem}})
    output.with_suffix(".html").write_text(page, encoding="utf-8")
    nbformat.write(notebook, partial)
    partial.replace(output)


def strip(notebook: nbformat.NotebookNode, *, drop_injected: bool = False) -> None:
    """Remove in place what differs from run to run and is no result: outputs stay, times and paths go.

    Cell ids and execution counts become running numbers (nbval refuses outputs without a count) and the kernel becomes
    "python3". Running it twice changes nothing more.

    Args:
        notebook: What to clean.
        drop_injected: Remove the cell that papermill injected, so that an executed notebook can be committed as source.
    """
    strip_output(
        notebook,
        keep_output=True,
        keep_count=True,
        keep_id=False,
        extra_keys=RUN_DEPENDENT,
        drop_tagged_cells=["injected-parameters"] if drop_injected else [],
    )
    for cell in notebook.cells:
        if cell.metadata.get("tags") == []:  # papermill's doing
            del cell.metadata["tags"]
    executed = [cell for cell in notebook.cells if cell.get("execution_count") is not None]
    for count, cell in enumerate(executed, start=1):
        for part in [cell, *cell.outputs]:
            if "execution_count" in part:
                part["execution_count"] = count
    notebook.metadata["kernelspec"] = nbformat.from_dict(KERNELSPEC)


def strip_file(path: Path) -> bool:
    """Make a notebook on disk fit for a commit (see `strip`); return whether the file changed."""
    before = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(before, as_version=4)
    strip(notebook, drop_injected=True)
    after = nbformat.writes(notebook) + "\n"
    if after != before:
        path.write_text(after, encoding="utf-8")
    return after != before
