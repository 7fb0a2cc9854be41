"""What a notebook shows and leaves behind: tidy CSV files, tables to read (CSV, LaTeX, HTML) and figures."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from IPython.display import HTML

from skill_evolution.analysis import gallery
from skill_evolution.analysis.figures import MADE_WITH
from skill_evolution.analysis.tables import render_table, save_table
from skill_evolution.runs.folder import write_text


@dataclass(frozen=True)
class Report:
    """Writes into `folder/tables` and `folder/figures`; `made_with` says whose model and questions everything is of."""

    folder: Path
    made_with: str

    def tidy(self, frame: pd.DataFrame, name: str) -> None:
        """Write a tidy frame as CSV, with the column made_with; figures are drawn from such files."""
        text = frame.assign(**{MADE_WITH: self.made_with}).to_csv(index=False, lineterminator="\n")
        write_text(self.folder / "tables" / f"{name}.csv", text)

    def table(
        self,
        frame: pd.DataFrame,
        name: str,
        title: str,
        *,
        made_with: str | None = None,
        shown: pd.DataFrame | None = None,
    ) -> HTML:
        """Write a table as CSV, LaTeX and HTML and show it.

        Args:
            frame: the table.
            name: of its files.
            title: what it shows; whose model and questions follows in brackets.
            made_with: stands there instead of the report's; "" for nothing.
            shown: another form of the table for the notebook.
        """
        made_with = self.made_with if made_with is None else made_with
        title = f"{title} ({made_with})" if made_with else title
        save_table(frame, self.folder / "tables" / name, title=title)
        return render_table(frame if shown is None else shown, title=title)

    def figure(self, name: str) -> HTML:
        """Draw a figure of the gallery from its CSV files, as PDF and PNG, and show it."""
        return gallery.draw(name, self.folder)
