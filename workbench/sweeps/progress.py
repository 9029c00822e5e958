"""A sweep while it runs: a bar and the table as it fills. It is plain HTML that is replaced, so it stays when saved."""

from __future__ import annotations

import time
from typing import Any

from flydsl.sweeps import Table
from flydsl.sweeps.table import heading
from workbench.kit.html import details
from workbench.kit.notebook import display
from workbench.sweeps.rows import heading_html, rows_html

_SECONDS_BETWEEN = 0.25
_MOST_ROWS = 40
_BAR = "background-color:rgba(0,119,182,0.55)"
_FRAME = "display:inline-block;width:24em;white-space:pre;background-color:rgba(128,128,128,0.2)"


def progress_html(rows: Table) -> str:
    """The bar, and the rows so far; folded when all are there."""
    is_done = len(rows) == rows.total
    table = details("rows", rows_html(rows, _MOST_ROWS), is_open=not is_done) if len(rows) else ""
    return f"<div>{heading_html(rows)}{'' if is_done else bar_html(len(rows), rows.total)}{table}</div>"


def bar_html(done: int, total: int) -> str:
    """A bar, as long as what is done of the total. The heading says it in numbers."""
    width = f"width:{100 * done / max(total, 1):.0f}%"
    inner = f'<span style="display:inline-block;{width};{_BAR}"> </span>'
    return f'<div style="margin:4px 0"><span style="{_FRAME}">{inner}</span></div>'


class Progress:
    """Show the table of a sweep, which calls it, in the cell that runs, a few times a second."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._table: Table | None = None
        self._shown_at = 0.0

    def __call__(self, rows: Table) -> None:
        is_first = rows is not self._table
        self._table = rows
        now = time.monotonic()
        if not is_first and len(rows) < rows.total and now - self._shown_at < _SECONDS_BETWEEN:
            return
        self._shown_at = now
        content = {"text/html": progress_html(rows), "text/plain": heading(rows)}
        if is_first:
            self._handle = display(content, raw=True, display_id=True)
        elif self._handle is not None:  # None where nothing is displayed: outside of a notebook
            self._handle.update(content, raw=True)
