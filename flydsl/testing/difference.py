"""Changes in a kernel since its figures were kept, in words: figures, machine code by source line, and time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from flydsl.testing.baseline import Change
from flydsl.testing.code import Code, Passage

_MOST_LINES = 12
"""The source lines that a failure names: those that changed most."""
_MOST_INSTRUCTIONS = 5
_WIDTH = 72
_REGISTER = re.compile(r"\b([vsa])(\d+\b|\[\d+:\d+\])")
_LABEL = re.compile(r"\.L\w+")

# What a reader wants to know first, of the figures that are worse.
_FIRST = ("scratch_bytes", "spills", "time_us", "vgprs", "agprs", "waves_per_simd", "lds_bytes", "sgprs")


@dataclass(frozen=True)
class Difference:
    """A launch whose figures are others than those that are kept. before: None where no code of it is kept."""

    kernel: str
    arch: str
    file: str
    changes: Sequence[Change]
    before: Code | None
    after: Code

    @property
    def worse(self) -> list[Change]:
        """The figures that are worse, what a reader wants to know first in front."""
        found = [change for change in self.changes if change.is_worse]
        return sorted(found, key=lambda change: _FIRST.index(change.name) if change.name in _FIRST else len(_FIRST))

    def __str__(self) -> str:
        """The first three lines say what is wrong: the figures, and where the code differs first."""
        first, *others = self.worse
        lines = [
            f"{self.kernel} on {self.arch} is worse than in {self.file}: {first}",
            f"  also worse: {', '.join(map(str, others))}" if others else "  no other figure is worse",
            f"  first difference: {self.first_difference()}",
        ]
        return "\n".join([*lines, *self.table(), *self.of_code(), *self.of_time()])

    def first_difference(self) -> str:
        """The first instructions that differ, and the line that they come from; registers do not count."""
        if self.before is None:
            return "unknown, as no machine code is kept; pytest --update-figures keeps it"
        old, new = _flat(self.before), _flat(self.after)
        pairs = zip(old, new, strict=False)
        same = next((i for i, (a, b) in enumerate(pairs) if shape(a[1]) != shape(b[1])), min(len(old), len(new)))
        if same == len(old) == len(new):
            return "none, the instructions are the same"
        was, now = ([text for _, text in side[same : same + 1]] for side in (old, new))
        passage = (new[same:] or new[-1:] or old[same:])[0][0]
        return f"{_place(passage)}: {_instead(was, now)}"

    def table(self) -> Iterator[str]:
        """The figures that changed, one a line."""
        yield "figures that changed:"
        width = max(len(change.name) for change in self.changes)
        for change in self.changes:
            before, now = change.before or 0.0, change.now or 0.0
            row = f"  {change.name:<{width}}  {before:>10g}  {now:>10g}  {now - before:>+10g}"
            yield f"{row}  worse" if change.is_worse else row

    def of_code(self) -> Iterator[str]:
        """The instructions by which each line of the source has more or fewer than it had."""
        if self.before is None:
            return
        found = list(changed_lines(self.before, self.after))
        yield "machine code by line of the source:" if found else "machine code: only registers, or the order, differ"
        for passage, was, now in sorted(found, key=lambda row: -abs(len(row[2]) - len(row[1])))[:_MOST_LINES]:
            yield f"  {_place(passage)}: {len(was)} -> {len(now)} instructions, {_gained(was, now)}"
        if len(found) > _MOST_LINES:
            yield f"  and {len(found) - _MOST_LINES} more lines"

    def of_time(self) -> Iterator[str]:
        """The lines of the source in which a wave spends other time than it did, those that changed most first."""
        found = [] if self.before is None else list(changed_times(self.before, self.after))
        if found:
            yield "where the time went, in cycles of a wave:"
        for passage, before, after in sorted(found, key=lambda row: -abs(row[2] - row[1]))[:_MOST_LINES]:
            yield f"  {_place(passage)}: {before} -> {after} ({after - before:+})"


def changed_lines(before: Code, after: Code) -> Iterator[tuple[Passage, list[str], list[str]]]:
    """The lines of the source whose instructions are others than they were, apart from registers and order."""
    old, new = _by_line(before), _by_line(after)
    for line in dict.fromkeys([*new, *old]):
        was, now = ([text for p in side.get(line, ()) for text in p.instructions] for side in (old, new))
        if Counter(map(shape, was)) != Counter(map(shape, now)):
            yield (new.get(line) or old[line])[0], was, now


def changed_times(before: Code, after: Code) -> Iterator[tuple[Passage, int, int]]:
    """The lines of the source with the cycles that a wave spent there, and spends, where these differ."""
    if all(passage.cycles is None for passage in before) or all(passage.cycles is None for passage in after):
        return
    old, new = _by_line(before), _by_line(after)
    for line in dict.fromkeys([*new, *old]):
        was, now = (sum(p.cycles or 0 for p in side.get(line, ())) for side in (old, new))
        if was != now:
            yield (new.get(line) or old[line])[0], was, now


def _by_line(code: Code) -> dict[tuple[str, str], list[Passage]]:
    found: dict[tuple[str, str], list[Passage]] = {}
    for passage in code:
        found.setdefault(passage.line, []).append(passage)
    return found


def _flat(code: Code) -> list[tuple[Passage, str]]:
    return [(passage, text) for passage in code for text in passage.instructions]


def shape(instruction: str) -> str:
    """An instruction without the numbers of its registers and labels.

    >>> shape("v_add_f32_e32 v4, s2, v[8:9]"), shape("s_cbranch_scc1 .LBB0_4")
    ('v_add_f32_e32 v, s, v', 's_cbranch_scc1 .L')
    """
    return _LABEL.sub(".L", _REGISTER.sub(r"\1", instruction))


def _instead(was: Sequence[str], now: Sequence[str]) -> str:
    if not was:
        return f"{now[0]} is new"
    return f"{now[0]} instead of {was[0]}" if now else f"{was[0]} is gone"


def _gained(was: Iterable[str], now: Iterable[str]) -> str:
    """The instructions by name that are more or fewer, such as "+2 v_exp_f32, -1 v_mul_f32"."""
    old, new = (Counter(text.split()[0] for text in side) for side in (was, now))
    by_name = {name: new[name] - old[name] for name in [*new, *old] if new[name] != old[name]}
    if not by_name:
        return "with other operands"
    ordered = sorted(by_name, key=lambda name: -abs(by_name[name]))
    more = f", and {len(ordered) - _MOST_INSTRUCTIONS} more names" if len(ordered) > _MOST_INSTRUCTIONS else ""
    return ", ".join(f"{by_name[name]:+} {name}" for name in ordered[:_MOST_INSTRUCTIONS]) + more


def _place(passage: Passage) -> str:
    text = f"{passage.place}  {passage.source}".rstrip()
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 4]} ..."
