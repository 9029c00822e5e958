"""The IR view: what changed from one text to another."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from itertools import groupby

from workbench.html import escape, faint, listing

# Blue and orange tell apart for everyone, on light and dark pages; the sign in front says the same without colour.
_STYLES = {
    "+": "display:block;background-color:rgba(0,114,178,0.22)",
    "-": "display:block;background-color:rgba(230,159,0,0.22)",
}
_CONTEXT_LINES = 3
_MAX_LINE_CHARS = 1000  # a code object in the IR is one line of many thousands


@dataclass(frozen=True)
class Diff:
    """A unified diff with three lines of context. lines: without the two that name the files."""

    lines: tuple[str, ...]

    @staticmethod
    def between(before: str, after: str) -> Diff:
        """The diff of two texts; it has no lines where they are the same."""
        found = difflib.unified_diff(before.splitlines(), after.splitlines(), n=_CONTEXT_LINES, lineterm="")
        return Diff(tuple(found)[2:])

    @property
    def summary(self) -> str:
        """Lines added and removed.

        >>> Diff.between("a", "b").summary
        '+1 -1'
        """
        if not self.lines:
            return "no change"
        added = sum(line.startswith("+") for line in self.lines)
        removed = sum(line.startswith("-") for line in self.lines)
        return f"+{added} -{removed}"

    def html(self, *, max_lines: int | None = None) -> str:
        """A listing. max_lines: where to cut it off, saying so."""
        shown = self.lines if max_lines is None else self.lines[:max_lines]
        left = len(self.lines) - len(shown)
        more = faint(f"{left} more lines; the stage on its own shows all") if left else ""
        runs = groupby(map(_clipped, shown), key=lambda line: line[:1])
        return listing("".join(_run(sign, "\n".join(lines)) for sign, lines in runs) + more)


def _clipped(line: str) -> str:
    return line if len(line) <= _MAX_LINE_CHARS else f"{line[:_MAX_LINE_CHARS]}... ({len(line)} characters)"


def _run(sign: str, text: str) -> str:
    """Successive lines that begin with the same sign."""
    if sign == "@":
        return faint(escape(text)) + "\n"
    style = _STYLES.get(sign)
    return f'<span style="{style}">{escape(text)}</span>' if style else escape(text) + "\n"
