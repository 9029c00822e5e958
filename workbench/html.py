"""The little HTML that the views are made of: static, escaped, styled inline.

Notebooks are reopened untrusted, where only plain elements and inline styles survive; everything that a user wrote
(names, source, messages) goes through `escape`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["badge", "details", "escape", "preformatted", "table"]

_CELL = "padding:2px 10px;text-align:{align};white-space:nowrap"
_PRE = "margin:0;padding:6px 10px;overflow:auto;max-height:32em;line-height:1.35;white-space:pre"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table. header and rows: HTML of each cell. numbers: the columns to align right."""

    def row(tag: str, cells: Sequence[str]) -> str:
        styles = [_CELL.format(align="right" if i in numbers else "left") for i in range(len(cells))]
        return "".join(f'<{tag} style="{style}">{cell}</{tag}>' for style, cell in zip(styles, cells, strict=True))

    body = "".join(f"<tr>{row('td', cells)}</tr>" for cells in rows)
    return f"<table><thead><tr>{row('th', header)}</tr></thead><tbody>{body}</tbody></table>"


def details(summary: str, content: str, *, is_open: bool = False) -> str:
    """A part that can be folded. summary and content: HTML."""
    return f"<details{' open' if is_open else ''}><summary>{summary}</summary>{content}</details>"


def preformatted(content: str) -> str:
    """Code or a listing. content: HTML, one line per line."""
    return f'<pre style="{_PRE}">{content}</pre>'


def badge(text: str) -> str:
    """A short word that stands out, such as a state."""
    return f"<strong>{escape(text)}</strong>"
