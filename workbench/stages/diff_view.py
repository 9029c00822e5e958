"""A diff as `diff_view.js` shows it: unified or side by side, from change to change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from workbench.kit.assets import asset_text
from workbench.kit.line_list import TAGS
from workbench.stages.diff import Diff
from workbench.stages.rows import Row, rows

_MAX_ROWS = 5000  # of a diff; of a longer one only what changed, and what is around it
_CONTEXT_ROWS = 3


def diff_rows(diff: Diff, before: Sequence[int] = (), after: Sequence[int] = ()) -> list[list[Any]]:
    """The rows: sign, line numbers, lines as HTML, origin. before, after: the origin of each line, or none.

    In a long diff, ["…", count] stands for equal rows far from every change.
    """

    def row_data(row: Row | int) -> list[Any]:
        if isinstance(row, int):
            return ["…", row]
        places, number = (after, row.right_number) if row.right is not None else (before, row.left_number)
        shown = (None if row.sign == " " else row.left, row.right)
        left, right = (None if side is None else diff.line_html(side, TAGS) for side in shown)
        origin = places[number - 1] if places else -1
        return [row.sign, row.left_number, row.right_number, left, right, origin]

    return [row_data(row) for row in _shortened(rows(diff))]


def _shortened(found: list[Row]) -> Iterator[Row | int]:
    """The rows; of a long diff, numbers of equal rows in place of those far from every change."""
    near: Sequence[int] = range(len(found))
    if len(found) > _MAX_ROWS:
        changed = [i for i, row in enumerate(found) if row.sign != " "]
        near = sorted(
            {j for i in changed for j in range(i - _CONTEXT_ROWS, i + _CONTEXT_ROWS + 1) if 0 <= j < len(found)}
        )
    last = -1
    for i in near:
        if i > last + 1:
            yield i - last - 1
        yield found[i]
        last = i
    if last + 1 < len(found):
        yield len(found) - last - 1


def script() -> str:
    """The JavaScript: a function `diffView(element, label, origins)`. That of `kit.line_list` goes before."""
    return asset_text(__file__, "diff_view.js")


def style() -> str:
    """The CSS that goes with it."""
    return asset_text(__file__, "diff_view.css")
