"""The table of a sweep: a row for each point, in the order of the points, whichever worker ran them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from flydsl.errors import ArgumentError, did_you_mean
from flydsl.errors.missing_attributes import Explained
from flydsl.simulator.estimates import LEGEND
from flydsl.sweeps.comparison import Comparison
from flydsl.sweeps.row import ERROR, IS_COMPARED, TIMES, Row

_SHOWN_ROWS = 24


@dataclass
class Table(Explained, Sequence[Row]):
    """The rows that there are so far. total: how many there will be. again: how many of them a file already had.

    Tables are equal if their rows are.
    """

    rows: list[Row] = field(default_factory=list)
    total: int = 0
    again: int = field(default=0, compare=False)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @property
    def failures(self) -> list[Row]:
        """The rows with an error."""
        return [row for row in self.rows if row.error is not None]

    def records(self) -> list[dict[str, Any]]:
        """Every row as a flat dict."""
        return [row.record() for row in self.rows]

    @property
    def columns(self) -> list[str]:
        """The columns that say something: what rows differ in, then what was found, errors and notes last.

        Left out are parameters that have one value only, where others have several, and amounts that are 0 in all rows.
        The error of an estimate is shown with the estimate.
        """
        records = self.records()
        given = self.parameters or [name for row in self.rows[:1] for name in (*row.shape, *row.config.to_dict())]
        found = dict.fromkeys(name for row in self.rows for name in _times_first(row.values))
        names = [*given, *(name for name in found if any(row.values.get(name) for row in self.rows))]
        differ = [n for n in ("launcher", "arch") if len({record[n] for record in records}) > 1]
        last = [n for n in ("error", "note") if any(record[n] for record in records)]
        return [*differ, *names, *last]

    @property
    def parameters(self) -> list[str]:
        """The names of shapes and configurations that have more than one value."""
        names = dict.fromkeys(name for row in self.rows for name in (*row.shape, *row.config.to_dict()))
        return [name for name in names if len({repr(row[name]) for row in self.rows}) > 1]

    @property
    def measure(self) -> str:
        """The column that `best` compares by default: "time_us" if anything was measured, else "estimate_us"."""
        return next((name for name in TIMES if any(name in row.values for row in self.rows)), TIMES[-1])

    def where(self, **values: Any) -> list[Row]:
        """The rows without an error that have these values, as in `where(n=4096, arch="gfx950")`.

        Raises ArgumentError for a name that no row has.
        """
        records = [(row, row.record()) for row in self.rows]
        known = {name for _, record in records for name in record}
        if unknown := sorted(values.keys() - known):
            raise ArgumentError(
                f"no row has {', '.join(unknown)}",
                hint=f"{did_you_mean(unknown[0], known)}columns are {', '.join(self.columns)}",
            )
        return [r for r, record in records if r.error is None and all(record.get(n) == v for n, v in values.items())]

    def best(self, by: str | None = None, **where: Any) -> Row:
        """The row with the smallest time; of equal ones the first. It is `launcher(..., **row.config.kwargs)`.

        by: another column to have small. where: values that the row must have, such as one shape's; without them a
        small shape wins over a large one. Raises ArgumentError if no row has a time.
        """
        column = by or self.measure
        found = [row for row in self.where(**where) if isinstance(row[column], int | float)]
        if not found:
            first = f": {self.failures[0].error}" if self.failures else ""
            raise ArgumentError(
                f"{len(self.rows)} rows, {len(self.failures)} with errors, none with {column}{first}",
                hint=".failures has the rows with errors, .where(...) chooses rows",
            )
        return min(found, key=lambda row: row[column])

    def best_of_each(self, by: str | None = None) -> list[Row]:
        """The best row of each shape and architecture; those without any timed row are left out."""
        column, found = by or self.measure, dict[tuple[str, str], Row]()
        for row in self.rows:
            if row.error is None and isinstance(row[column], int | float):
                place = (row.arch, repr(row.shape))
                if place not in found or row[column] < found[place][column]:
                    found[place] = row
        return list(found.values())

    def pareto(self, small: str | None = None, large: str = "waves_per_simd") -> list[Row]:
        """The rows that no other beats in both: `small` as small as possible (the time), `large` as large as possible.

        From the smallest on; of rows that are equal in both, all.
        """
        column = small or self.measure
        pairs = [(row, row[column], row[large]) for row in self.where()]
        pairs = [pair for pair in pairs if all(isinstance(value, int | float) for value in pair[1:])]
        front: list[tuple[Row, Any, Any]] = []
        for pair in sorted(pairs, key=lambda pair: (pair[1], -pair[2])):
            if not front or pair[2] > front[-1][2] or pair[1:] == front[-1][1:]:
                front.append(pair)
        return [row for row, *_ in front]

    def compare(self, first: int, second: int) -> Comparison:
        """The reasons why one row is faster than another, as far as their columns tell; it prints as text.

        Raises ArgumentError for rows without a time.
        """
        return Comparison(self.rows[first], self.rows[second])

    def __repr__(self) -> str:
        return table_text(self)


def _times_first(values: dict[str, Any]) -> list[str]:
    """The columns of a row's values: its times, then the rest as found."""
    times = [name for name in (*TIMES, "bound") if name in values]
    return [*times, *(name for name in values if name not in (*times, ERROR, IS_COMPARED))]


def table_text(table: Table, most: int = _SHOWN_ROWS) -> str:
    """The first rows as text, the errors in short but for the first."""
    columns = table.columns
    cells = [columns, *([row.text(name) for name in columns] for row in table.rows[:most])]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    more = [f"{len(table) - most} more rows"] if len(table) > most else []
    legend = [LEGEND] if TIMES[-1] in columns else []
    errors = [f"first error: {row.error}" for row in table.failures[:1]]
    return "\n".join([heading(table), *lines, *more, *legend, *errors])


def heading(table: Table) -> str:
    """The number of rows of each kind."""
    count = f"{len(table)} rows" if len(table) == table.total else f"{len(table)} of {table.total} rows"
    failed = f", {len(table.failures)} with errors" if table.failures else ""
    return count + failed
