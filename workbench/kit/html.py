"""The little HTML that the views are made of: static, escaped, styled inline.

Reopened notebooks are not trusted: JupyterLab then allows only plain elements and inline styles. Colours are
translucent or those of the page, so they suit light and dark themes, and they never carry information that is not in
the text. All text by the user (names, source, messages) goes through `escape`.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Sequence
from functools import cache
from html import escape

__all__ = [
    "CHARACTER_EM", "FAINT", "INK", "ON_PAPER", "PAPER", "code", "code_line", "details", "escape", "faint", "listing",
    "message", "nowrap", "svg_image", "table", "title",
]  # fmt: skip

FAINT = "opacity:0.75"  # less could not be read
# No ink reads well on light and on dark pages, so pictures bring their paper; on a dark page their colours are others.
PAPER, INK = "#ffffff", "#444444"
_IN_THE_DARK = {
    **dict.fromkeys(("#ffffff", "#fbfbfb"), "#181818"),
    **dict.fromkeys(("#444444", "#222222"), "#dddddd"),
    **dict.fromkeys(("#cccccc", "#bbbbbb", "#e4e4e4"), "#4a4a4a"),
    **dict.fromkeys(("#005a8c", "#0072b2", "#0077b6"), "#4da3dc"),
    **dict.fromkeys(("#b34700", "#d55e00"), "#f08a3c"),
    "#767676": "#9a9a9a",
}

# What a page with views needs when it is printed: parts that scroll are cut off on paper. It holds for the whole page.
ON_PAPER = (
    '<style class="fly-paper">@media print { '
    ":root { print-color-adjust: exact; } "
    ".jp-OutputArea, .jp-OutputArea-output, .jp-InputArea-editor { overflow: visible !important; } "
    "pre { max-height: none !important; overflow: visible !important; white-space: pre-wrap !important; } "
    'div[style*="max-height"] { max-height: none !important; } '
    ".jp-OutputArea-output :is(th, td) { padding: 1px 3px !important; font-size: 90%; } }"
    "</style>"
)

_CELL = "padding:2px 10px;vertical-align:top;text-align:{align}"
_LISTING = (
    "margin:0;padding:6px 10px;overflow:auto;max-height:32em;line-height:1.35;font-family:monospace;font-size:0.93em"
)
CHARACTER_EM = 0.602  # the width of a character of code
_ROOM = 96  # characters of code that fit beside each other in a window 1280 pixels wide
_MESSAGE = "margin:6px 0;padding:6px 10px;overflow:auto;white-space:pre-wrap;border-left:4px solid rgba(213,94,0,0.8)"


def code(text: str) -> str:
    """A name, as code."""
    return f"<code>{escape(text)}</code>"


def faint(content: str) -> str:
    """De-emphasised HTML. content: HTML."""
    return f'<span style="{FAINT}">{content}</span>'


def nowrap(content: str) -> str:
    """HTML that does not wrap. content: HTML."""
    return f'<span style="white-space:nowrap">{content}</span>'


def title(content: str) -> str:
    """The heading of a view. content: HTML."""
    return f'<div style="margin:4px 0">{content}</div>'


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Collection[int] = (),
    faint_rows: Collection[int] = (),
) -> str:
    """A table. header and rows: HTML of each cell.

    numbers: the columns to align right. faint_rows: the rows that stand back.
    """

    def row(tag: str, cells: Sequence[str], style: str = "") -> str:
        aligns = ("right" if i in numbers else "left" for i in range(len(cells)))
        html = (
            f'<{tag} style="{_CELL.format(align=align)}">{cell}</{tag}>'
            for align, cell in zip(aligns, cells, strict=True)
        )
        return f"<tr{style}>{''.join(html)}</tr>"

    body = "".join(row("td", cells, f' style="{FAINT}"' if i in faint_rows else "") for i, cells in enumerate(rows))
    style = "margin:4px 0;border-collapse:collapse"
    return f'<table style="{style}"><thead>{row("th", header)}</thead><tbody>{body}</tbody></table>'


def details(summary: str, content: str, *, is_open: bool = False) -> str:
    """A part that can be folded. summary and content: HTML."""
    opened = " open" if is_open else ""
    return (
        f'<details{opened} style="margin:4px 0"><summary style="cursor:pointer">{summary}</summary>{content}</details>'
    )


def listing(content: str, *, wraps: bool = True) -> str:
    """Code, one line per line. Long lines go on in the next one if it wraps, else they scroll. content: HTML."""
    if wraps:  # JupyterLab breaks a word anywhere unless it is told otherwise
        breaks = "white-space:pre-wrap;word-break:normal;overflow-wrap:break-word"
        return f'<pre style="{_LISTING};{breaks}">{content}</pre>'
    # The span is as wide as the longest line, so that a line's background goes all the way when scrolled.
    inner = f'<span style="display:inline-block;min-width:100%">{content}</span>'
    return f'<pre style="{_LISTING};white-space:pre">{inner}</pre>'


def code_line(content: str, *, columns: int, indent: int) -> str:
    """A line of a listing that wraps, with its newline: what is too long for the page continues below, indented.

    content: HTML. columns: how many characters it has.
    """
    if columns <= _ROOM:
        return f"{content}\n"
    em = f"{CHARACTER_EM * indent:.4g}em"  # the sanitizer does not know "ch"
    return f'<span style="display:block;padding-left:{em};text-indent:-{em}">{content}\n</span>'


def message(text: str) -> str:
    """An error's text."""
    return f'<pre style="{_MESSAGE}">{escape(text)}</pre>'


def svg_image(svg: str, description: str) -> str:
    """A picture as an `<img>`, which needs no script and which every sanitizer leaves in. description: its alt text.

    In a dark page (`color-scheme: dark`, as JupyterLab's dark theme has it) it is dark.
    """
    head, _, rest = svg.partition(">")
    content = base64.b64encode(f"{head}><style>{_dark_style()}</style>{rest}".encode()).decode()
    return f'<img alt="{escape(description)}" style="max-width:100%" src="data:image/svg+xml;base64,{content}">'


@cache
def _dark_style() -> str:
    """CSS for the colours of pictures on a dark page."""
    rules = (
        f'[{attribute}="{light}"]{{{attribute}:{dark}}}'
        for light, dark in _IN_THE_DARK.items()
        for attribute in ("fill", "stroke")
    )
    return f"@media (prefers-color-scheme:dark){{{''.join(rules)}}}"
