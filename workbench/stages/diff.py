"""The IR view: what changed from one text to another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from html import escape
from typing import NamedTuple

from flydsl.system.garbage import collection_paused
from workbench.kit.highlight import TAGS, TOOLTIP, folds_as_html, highlight, with_folds, without_folds
from workbench.kit.html import faint, listing
from workbench.stages.alignment import Pair, ParsedLine, align, parse
from workbench.stages.renaming import in_names_of

# Blue and orange tell apart for everyone, on light and dark pages; the sign in front says the same without colour. The
# backgrounds are faint, for the text on them is coloured too; the bars beside them are not.
_BAR = "display:block;margin-left:-4px;border-left:4px solid "
_STYLES = {
    "+": f"{_BAR}#0072b2;background-color:rgba(0,114,178,0.09)",
    "-": f"{_BAR}#e69f00;background-color:rgba(230,159,0,0.09)",
    "~": "display:block;opacity:0.75",
}
_STATIC_TAGS = {**TAGS, "fold": TOOLTIP}
_CONTEXT_LINES = 3
_MAX_LINE_CHARS = 1000  # a code object in the IR is one line of many thousands
_MIN_SIMILARITY = 0.5  # of two lines for their differences to be marked word by word

_WORD = re.compile(r"[\w.%$-]+|\s+|.")


class Change(NamedTuple):
    """One line of a diff.

    sign: "+" added, "-" removed, "~" only white space changed, " " equal except for names. text: the line after the
    change, or before it if it was removed. other: the line that replaced it or that it replaced, if any.
    """

    sign: str
    text: str
    other: str | None = None


@dataclass(frozen=True)
class Diff:
    """The changes between two texts; renamed values and moved locations do not count (see `alignment`).

    Lines that were removed have the names that the values have after the change (see `renaming`).
    """

    changes: tuple[Change, ...]
    language: str = "text"

    @staticmethod
    @lru_cache(maxsize=64)
    @collection_paused()  # each line is several objects, and they stay
    def between(before: str, after: str, language: str = "text") -> Diff:
        """The diff of two texts in a language of `workbench.kit.highlight.LANGUAGES`.

        >>> Diff.between("%0 = a.b : i32", "%7 = a.b : i32", "mlir").summary
        'no change'
        """
        if before == after:
            return Diff((), language)
        has_names = language in ("mlir", "llvm")
        old, new = parse(before, has_names=has_names), parse(after, has_names=has_names)
        pairs = align(old, new)
        if has_names:
            old = tuple(line._replace(text=text) for line, text in zip(old, in_names_of(old, new, pairs), strict=True))
        return Diff(tuple(_in_order(_changes(old, new, pairs))), language)

    @cached_property
    def counts(self) -> Counter[str]:
        """The number of lines with each sign."""
        return Counter(change.sign for change in self.changes)

    @property
    def is_empty(self) -> bool:
        """True if nothing changed, white space included."""
        return self.counts[" "] == len(self.changes)

    @property
    def summary(self) -> str:
        """Numbers of lines added and removed, and of lines in which only white space changed, if any.

        >>> Diff.between("a", "b").summary, Diff.between("a", " a").summary
        ('+1 -1', '+0 -0, ~1 in white space')
        """
        if self.is_empty:
            return "no change"
        spaces = self.counts["~"]
        return f"+{self.counts['+']} -{self.counts['-']}" + (f", ~{spaces} in white space" if spaces else "")

    @cached_property
    def hunks(self) -> list[Sequence[Change]]:
        """The changes in runs, each with three lines of what is around it."""
        changed = [i for i, change in enumerate(self.changes) if change.sign != " "]
        runs: list[tuple[int, int]] = []
        for i in changed:
            start, end = max(i - _CONTEXT_LINES, 0), min(i + _CONTEXT_LINES + 1, len(self.changes))
            if runs and start <= runs[-1][1]:
                start = runs.pop()[0]
            runs.append((start, end))
        return [self.changes[start:end] for start, end in runs]

    def text(self) -> str:
        """The hunks, each line after its sign."""
        return "\n...\n".join("\n".join(change.sign + clipped(change.text) for change in hunk) for hunk in self.hunks)

    def html(self, *, max_lines: int | None = None) -> str:
        """A listing; long types are three dots with a tooltip. max_lines: where to cut it off, saying so."""
        total = sum(map(len, self.hunks))
        lines: list[str] = []
        for number, hunk in enumerate(self.hunks):
            room = total if max_lines is None else max_lines - len(lines)
            if room <= 0:
                break
            gap = faint("⋯") + "\n" if number else ""
            shown = [self._line(change) for change in hunk[:room]]
            lines += [gap + shown[0], *shown[1:]]
        left = total - len(lines)
        more = faint(f"{left} more lines; .text() has all") if left else ""
        return listing("".join(lines) + more)

    def line_html(self, change: Change, tags: Mapping[str, str] = TAGS) -> str:
        """A line, without its sign: with the words underlined that changed, or with colours (see `highlight`)."""
        text = clipped(change.text)
        if change.sign in "+-" and change.other is not None:
            return _marked(text, clipped(change.other), tags.get("fold", "") if self.language == "mlir" else "")
        return highlight(text, self.language, tags)

    def _line(self, change: Change) -> str:
        content = self.line_html(change, _STATIC_TAGS)
        style = _STYLES.get(change.sign)
        # The line's end is inside it: at the end of a block it takes no room, and without styles it is all there is.
        return f'<span style="{style}">{change.sign}{content}\n</span>' if style else f" {content}\n"


def _changes(before: Sequence[ParsedLine], after: Sequence[ParsedLine], pairs: Sequence[Pair]) -> Iterator[Change]:
    """Line by line; what stands between aligned lines was removed and added."""
    i = j = 0
    for pair in pairs:
        yield from _replaced(before[i : pair.before], after[j : pair.after])
        i, j = pair.before + 1, pair.after + 1
        old, new = before[pair.before], after[pair.after]
        if not pair.is_equal and old.text != new.text:
            yield Change("-", old.text, new.text)
            yield Change("+", new.text, old.text)
        else:
            yield Change(" " if old.shape == new.shape else "~", new.text)
    yield from _replaced(before[i:], after[j:])


def _replaced(before: Sequence[ParsedLine], after: Sequence[ParsedLine]) -> Iterator[Change]:
    """Lines in place of others; where there are as many, one in place of one, if they are alike at all."""
    if len(before) != len(after):
        yield from (Change("-", line.text) for line in before)
        yield from (Change("+", line.text) for line in after)
        return
    for old, new in zip(before, after, strict=True):
        alike = SequenceMatcher(None, old.words, new.words).quick_ratio() >= _MIN_SIMILARITY
        yield Change("-", old.text, new.text if alike else None)
        yield Change("+", new.text, old.text if alike else None)


def _in_order(changes: Iterator[Change]) -> Iterator[Change]:
    """Within a run of changed lines, first what was removed, then what was added."""
    added: list[Change] = []
    for change in changes:
        if change.sign == "+":
            added.append(change)
            continue
        if change.sign != "-":
            yield from added
            added = []
        yield change
    yield from added


def _marked(text: str, other: str, fold: str = "") -> str:
    """A changed line with the words underlined that the other one does not have. fold: as a tag of `highlight`."""
    if fold:
        text, other = with_folds(text), with_folds(other)
    words, others = _WORD.findall(text), _WORD.findall(other)
    start = _common(words, others)
    end = _common(words[start:][::-1], others[start:][::-1])
    middle, others = words[start : len(words) - end], others[start : len(others) - end]
    parts, position = [escape("".join(words[:start]))], 0
    for block in SequenceMatcher(None, middle, others, autojunk=False).get_matching_blocks():
        if changed := "".join(middle[position : block.a]):
            parts.append(f"<u>{escape(without_folds(changed))}</u>")
        parts.append(escape("".join(middle[block.a : block.a + block.size])))
        position = block.a + block.size
    return folds_as_html("".join(parts) + escape("".join(words[len(words) - end :])), fold)


def _common(words: Sequence[str], others: Sequence[str]) -> int:
    """The number of equal words at the beginning of both."""
    pairs = enumerate(zip(words, others, strict=False))
    return next((i for i, (word, other) in pairs if word != other), min(len(words), len(others)))


def clipped(line: str) -> str:
    """A line that is not too long to show."""
    return line if len(line) <= _MAX_LINE_CHARS else f"{line[:_MAX_LINE_CHARS]}... ({len(line)} characters)"
