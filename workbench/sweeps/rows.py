"""The table of a sweep as HTML: the best row marked, errors to unfold."""

from __future__ import annotations

from flydsl.errors import ArgumentError
from flydsl.simulator.estimates import LEGEND
from flydsl.sweeps import Row, Table
from flydsl.sweeps.table import TIMES, cell_text, heading, table_text
from workbench.kit.html import code, details, escape, message, table, title
from workbench.sweeps.choice import best_or_none

MOST_ROWS = 100


def sweep_html(rows: Table, *, most_rows: int = MOST_ROWS) -> str:
    """The heading, the best row in words, and the first rows."""
    return f"<div>{heading_html(rows)}{rows_html(rows, most_rows)}</div>"


def sweep_text(rows: Table) -> str:
    """The same as text."""
    return table_text(rows)


def row_html(row: Row) -> str:
    """A row by itself, upright: every column that has a value."""
    cells = [[code(name), escape(row.text(name))] for name, value in row.record().items() if value is not None]
    cells = [cell for cell in cells if cell[0] != code("error")]
    return f"<div>{table(('column', 'value'), cells)}{message(row.error) if row.error else ''}</div>"


def heading_html(rows: Table) -> str:
    """How many rows there are, how many came from a file, and the best."""
    again = f", {rows.again} of them from the file" if rows.again else ""
    best = best_or_none(rows)
    found = "" if best is None else f"; the best: {code(label(best))}, {escape(best.time_text)}"
    return title(f"<strong>{escape(heading(rows) + again)}</strong>{found}")


def rows_html(rows: Table, most_rows: int = MOST_ROWS) -> str:
    """The first rows as a table, and below it what went wrong."""
    columns, best = [name for name in rows.columns if name != "error"], best_or_none(rows)
    shown = rows[:most_rows]
    is_number = {name: all(isinstance(row[name], int | float | None) for row in shown) for name in columns}
    cells = [
        ["best ▶" if row is best else "", *(escape(row.text(name)) for name in columns), _error(row)] for row in shown
    ]
    # There are many columns, so a long name may take several lines.
    names = [escape(name).replace("_", "_<wbr>") for name in columns]
    numbers = [i for i, name in enumerate(columns, start=1) if is_number[name]]
    faint = [i for i, row in enumerate(shown) if row.error is not None]
    parts = [table(["", *names, ""], cells, numbers=numbers, faint_rows=faint)] if shown else []
    if len(rows) > most_rows:
        parts.append(title(f"{len(rows) - most_rows} more rows: {code('table.records()')}"))
    if TIMES[-1] in columns:
        parts.append(title(escape(f"{LEGEND}.")))
    failures = rows.failures
    if failures:
        texts = "".join(title(code(label(row))) + message(str(row.error)) for row in failures[:most_rows])
        parts.append(details(f"{len(failures)} errors", texts))
    return "".join(parts)


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
