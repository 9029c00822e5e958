"""Docstrings as reStructuredText, for Sphinx: they are written for readers of the source, and nearly Markdown."""

from __future__ import annotations

import re

_CODE = re.compile(r"`([^`]+)`")
_MARKUP = re.compile(r"([*|\\]|_\b)")


def as_rst(lines: list[str]) -> list[str]:
    """The lines of a docstring: `code` is set as code, an indented block after a text is a literal one.

    >>> as_rst(["The sum of *all* in `x`:", "", "    total(x)"])
    ['The sum of \\\\*all\\\\* in ``x``:', '', '::', '', '    total(x)']
    """
    made: list[str] = []
    literal = False
    for line in lines:
        indented = line.startswith("    ")
        if indented and not literal and not _goes_on(made):
            made += ["::", ""] if not made or not made[-1].strip() else ["", "::", ""]
            literal = True
        elif line.strip() and not indented:
            if literal and made[-1].strip():
                made.append("")
            literal = False
        verbatim = literal or line.lstrip().startswith((">>>", "..."))
        made.append(line if verbatim else _text(line))
    return made


def _goes_on(made: list[str]) -> bool:
    """True if an indented line belongs to the item of a list before it."""
    before = next((line for line in reversed(made) if line.strip()), "")
    return before.lstrip().startswith(("- ", "* ")) or before.startswith("  ")


def _text(line: str) -> str:
    """A line of text, what is not code escaped."""
    parts = _CODE.split(line)  # text and code by turns
    return "".join(f"``{part}``" if i % 2 else _MARKUP.sub(r"\\\1", part) for i, part in enumerate(parts))
