"""The IR view: what changed from one text to another."""

from __future__ import annotations

import difflib

from workbench.html import escape, preformatted

# Blue and orange tell apart for everyone, on light and dark pages; the sign in front says the same without colour.
_STYLES = {"+": "background:rgba(0,114,178,0.22)", "-": "background:rgba(230,159,0,0.22)"}
_CONTEXT_LINES = 3


def diff_html(before: str, after: str) -> str:
    """The unified diff of two texts with three lines of context."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=_CONTEXT_LINES, lineterm=""))[2:]
    if not lines:
        return "<em>no change</em>"
    return preformatted("\n".join(_line(line) for line in lines))


def _line(line: str) -> str:
    if line.startswith("@@"):
        return f'<span style="opacity:0.6">{escape(line)}</span>'
    style = _STYLES.get(line[:1])
    return f'<span style="{style}">{escape(line)}</span>' if style else escape(line)
