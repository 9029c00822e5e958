"""The table of a sweep: a row for each point, in the order of the points, whichever worker ran them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from flydsl.errors import ArgumentError, did_you_mean
from flydsl.missing_attributes import Explained
from flydsl.simulator.estimates import LEGEND, Estimate
from flydsl.sweeps.config import Config

TIMES = ("time_us", "estimate_us")
ERROR, IS_COMPARED = "estimate_error_percent", "estimate_is_compared"
_SHOWN_ROWS = 24
_MOST_CHARS = 40


@dataclass(frozen=True, eq=False)
class Row:
    """The outcome of a point.

    values: by column: resources (`waves_per_simd`, `vgprs`, `lds_bytes`, …), counters, and on the simulator
    `estimate_us` with `estimate_error_percent` and `estimate_is_compared` (see `flydsl.simulator.estimates`; none if
    the error is not known) and `bound`, on a GPU `time_us`. error: the text of what went wrong, None if nothing did.
    note: what is missing, and why.
    """

    launcher: str
    shape: dict[str, Any]
    config: Config
    arch: str
    values: dict[str, Any]
    error: str | None = None
    note: str | None = None

    def record(self) -> dict[str, Any]:
        """The row as one flat dict, for example for `pandas.DataFrame(table.records())`."""
        about = {"launcher": self.launcher, "arch": self.arch, **self.shape, **self.config.to_dict()}
        return {**self.values, **about, "error": self.error, "note": self.note}

    def __getitem__(self, column: str) -> Any:
        """A column's value, None where the row has none."""
        return self.record().get(column)

    @property
    def time_us(self) -> float | None:
        """The measured time, or the estimate; None if there is neither."""
        return next((self.values[name] for name in TIMES if name in self.values), None)

    @property
    def time_text(self) -> str:
        """The time with its unit, an estimate with its error; empty without a time."""
        if "time_us" in self.values:
            return f"{cell_text(self.time_us)} us"
        return "" if self.time_us is None else str(self._estimate)

    @property
    def _estimate(self) -> Estimate:
        return Estimate(self.values["estimate_us"], self.values.get(ERROR), self.values.get(IS_COMPARED, True))

    def text(self, column: str) -> str:
        """A column's value in a few characters, an estimate with its error.

        >>> Row("f", {}, Config(), "gfx942", {"estimate_us": 0.5, "estimate_error_percent": 20.0}).text("estimate_us")
        '0.5 ± 20 %'
        """
        text = cell_text(self[column])
        return f"{text} {self._estimate.error}" if text and column == "estimate_us" else text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and self.record() == other.record()

    def __repr__(self) -> str:
        """The row in a line.

        >>> Row("scale", {"n": 1000}, Config(block=64), "gfx942", {"estimate_us": 0.5, "waves_per_simd": 8})
        <scale n=1000, block=64 on gfx942: estimate_us 0.5 ± ?, waves_per_simd 8>
        """
        given = ", ".join(f"{n}={cell_text(v)}" for n, v in (self.shape | self.config.to_dict()).items())
        found = (
            self.error.splitlines()[0]
            if self.error
            else ", ".join(f"{name} {self.text(name)}" for name in (*TIMES, "waves_per_simd") if name in self.values)
        )
        return f"<{self.launcher} {given}{self.arch and ' on '}{self.arch}: {found}>"


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

    def __repr__(self) -> str:
        return table_text(self)


def _times_first(values: dict[str, Any]) -> list[str]:
    """The columns of a row's values: its times, then the rest as found."""
    times = [name for name in (*TIMES, "bound") if name in values]
    return [*times, *(name for name in values if name not in (*times, ERROR, IS_COMPARED))]


def cell_text(value: Any) -> str:
    """A value in a few characters; nothing for None.

    >>> cell_text(0.123456), cell_text(None), cell_text((64, 128))
    ('0.1235', '', '(64, 128)')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = " ".join((getattr(value, "__name__", None) or str(value)).split())
    return text if len(text) <= _MOST_CHARS else text[: _MOST_CHARS - 1] + "…"


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
