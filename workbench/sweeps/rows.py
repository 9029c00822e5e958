"""The table of a sweep as HTML: the best row marked, errors to unfold."""

from __future__ import annotations

from itertools import pairwise
from math import ceil

from flydsl.errors import ArgumentError
from flydsl.simulator.estimates import LEGEND
from flydsl.sweeps import Row, Table
from flydsl.sweeps.row import TIMES, cell_text
from flydsl.sweeps.table import heading, table_text
from workbench.kit.html import code, details, escape, message, nowrap, table, title
from workbench.sweeps.choice import best_or_none

MOST_ROWS = 100
_MOST_COLUMNS = 9  # that fit beside each other in a window 1280 pixels wide


def sweep_html(rows: Table, *, most_rows: int = MOST_ROWS) -> str:
    """The heading, the best row in words, and the first rows."""
    return f"<div>{heading_html(rows)}{rows_html(rows, most_rows)}</div>"


def sweep_text(rows: Table) -> str:
    """The same as text."""
    return table_text(rows)


def row_html(row: Row) -> str:
    """A single row, upright: every column that has a value."""
    cells = [[code(name), escape(row.text(name))] for name, value in row.record().items() if value is not None]
    cells = [cell for cell in cells if cell[0] != code("error")]
    return f"<div>{table(('column', 'value'), cells)}{message(row.error) if row.error else ''}</div>"


def heading_html(rows: Table) -> str:
    """The number of rows, how many came from a file, and the best."""
    again = f", {rows.again} of them from the file" if rows.again else ""
    best = best_or_none(rows)
    found = "" if best is None else f"; the best: {code(label(best))}, {escape(best.time_text)}"
    return title(f"<strong>{escape(heading(rows) + again)}</strong>{found}")


def rows_html(rows: Table, most_rows: int = MOST_ROWS) -> str:
    """The first rows as a table, in parts where it has many columns, and below it what went wrong."""
    shown = rows[:most_rows]
    columns = [name for name in rows.columns if name != "error"]
    alike = [name for name in columns if len(shown) > 1 and len({row.text(name) for row in shown}) == 1]
    given = [name for name in columns if name in ("launcher", "arch", *rows.parameters)]
    others = [name for name in columns if name not in (*given, *alike)]
    alike = [name for name in alike if name not in given]
    pieces = max(ceil(len(others) / max(_MOST_COLUMNS - len(given), 3)), 1)
    ends = [len(others) * piece // pieces for piece in range(pieces + 1)]
    parts = [_piece(rows, shown, [*given, *others[start:end]]) for start, end in pairwise(ends) if shown]
    if alike:
        same = ", ".join(f"{escape(name)} {escape(shown[0].text(name))}" for name in alike)
        parts.append(title(f"The same in all rows: {same}"))
    if len(rows) > most_rows:
        parts.append(title(f"{len(rows) - most_rows} more rows: {code('table.records()')}"))
    if TIMES[-1] in columns:
        parts.append(title(escape(f"{LEGEND}.")))
    failures = rows.failures
    if failures:
        texts = "".join(title(code(label(row))) + message(str(row.error)) for row in failures[:most_rows])
        parts.append(details(f"{len(failures)} errors", texts))
    return "".join(parts)


def _piece(rows: Table, shown: list[Row], columns: list[str]) -> str:
    """Some columns of the table."""
    best = best_or_none(rows)
    cells = [
        [nowrap("best ▶") if row is best else "", *(escape(row.text(name)) for name in columns), _error(row)]
        for row in shown
    ]
    # There may be many columns, so a long name may take several lines.
    names = [escape(name).replace("_", "_<wbr>") for name in columns]
    is_number = [all(isinstance(row[name], int | float | None) for row in shown) for name in columns]
    numbers = [i for i, number in enumerate(is_number, start=1) if number]
    return table(["", *names, ""], cells, numbers=numbers, faint_rows=[i for i, row in enumerate(shown) if row.error])


def label(row: Row) -> str:
    """A row in a few words: its configuration, or its shape where there is nothing else."""
    given = row.config.to_dict() or row.shape
    return ", ".join(f"{name}={cell_text(value)}" for name, value in given.items()) or row.launcher


def _error(row: Row) -> str:
    return "" if row.error is None else escape(cell_text(row.error.splitlines()[0]))


def checked(rows: Table, *names: str) -> None:
    """Raise ArgumentError for a name that is no column of the table."""
    known = {name for row in rows for name in row.record()}
    if unknown := [name for name in names if name not in known]:
        raise ArgumentError(f"no row has {', '.join(unknown)}", hint=f"columns are {', '.join(rows.columns)}")
