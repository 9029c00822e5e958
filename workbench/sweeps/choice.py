"""The choices behind the pictures of a sweep: the best row, two parameters, one number."""

from __future__ import annotations

from typing import Any

from flydsl.errors import ArgumentError
from flydsl.sweeps import Row, Table


def best_or_none(rows: Table) -> Row | None:
    """The best row; None if no row has a time, or if times do not compare: of several shapes or targets."""
    if len({(row.arch, repr(row.shape)) for row in rows}) > 1:
        return None
    try:
        return rows.best()
    except ArgumentError:
        return None


def two_parameters(rows: Table, x: str | None, y: str | None) -> tuple[str, str]:
    """The two parameters of a heat map: those given, else the first that have several values."""
    free = [name for name in rows.parameters if name not in (x, y)]
    if (x is None) + (y is None) > len(free):
        raise ArgumentError(
            f"a heat map needs two parameters with several values, and there is {', '.join(rows.parameters) or 'none'}",
            hint="name them: heat_map_figure(table, x, y)",
        )
    x = free.pop(0) if x is None else x
    return x, free.pop(0) if y is None else y


def distinct(rows: list[Row], name: str) -> list[Any]:
    """The values of a column, each once, numbers in order."""
    values = list({repr(row[name]): row[name] for row in rows}.values())
    return sorted(values) if all(isinstance(value, int | float) for value in values) else values
