"""The page of a test that failed: what it said, the machine code before and now side by side, and the compilations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import partial
from itertools import zip_longest
from pathlib import Path

from flydsl.compiler import Launch, Pipeline, capture_launches
from flydsl.errors import FlyError
from flydsl.simulator.checks import no_checks
from flydsl.testing import compilations
from flydsl.testing.code import Code, Passage
from flydsl.testing.difference import Difference, shape
from workbench.kit.highlight import highlight
from workbench.kit.html import escape, faint, message, table
from workbench.page import Chapter, Section, page
from workbench.stages.comparison import Comparison

_MOST_COMPILATIONS = 4
_NAME = re.compile(r"[^\w.\[\]-]+")
_CELL = "padding:0 8px;vertical-align:top;white-space:pre;font-family:monospace"
_CHANGED = {"-": "background-color:rgba(230,159,0,0.15)", "+": "background-color:rgba(0,114,178,0.15)"}


def write_page(
    folder: Path, test: str, text: str, differences: Sequence[Difference], launches: Sequence[Launch]
) -> Path:
    """Write the page of a test into a folder. text: of its failure. launches: that it made."""
    written = folder / f"{_NAME.sub('-', test)}.html"
    compiled_again = list(_with_stages(launches))
    pipelines = [launch.pipeline for launch in launches if launch.pipeline.finished]
    written.write_text(page([_chapter(test, text, differences, pipelines), *compiled_again]), encoding="utf-8")
    return written


def _chapter(test: str, text: str, differences: Sequence[Difference], pipelines: Sequence[Pipeline]) -> Chapter:
    sections: dict[str, Section] = {"What is wrong": lambda: message(text)}
    for difference in differences:
        sections[f"Figures of {difference.kernel}"] = partial(_figures_html, difference)
        sections[f"Machine code of {difference.kernel}, before and now"] = partial(_side_by_side, difference)
        sections[f"Stages of {difference.kernel}, before and now"] = partial(_stages, difference, pipelines)
    return Chapter(test, sections)


def _stages(difference: Difference, pipelines: Sequence[Pipeline]) -> str:
    """Both compilations, stage by stage."""
    kept = None if difference.before is None else compilations.find(difference.before)
    now = [p for p in pipelines if difference.kernel in {kernel.name for kernel in p.artifact.kernels}]
    if kept is None or not now:
        return message(
            "the compilation whose figures are kept is not in the cache folder; it is put there when the figures are "
            "written, and when the test passes with the same machine code"
        )
    return Comparison(kept.pipeline, now[-1], ("before", "now"))._repr_html_()


def _with_stages(launches: Sequence[Launch]) -> Iterator[Pipeline | Launch]:
    """Each compilation of some launches once, compiled again to have its stages, and launched again to be counted."""
    firsts = {id(launch.pipeline): launch for launch in launches}
    for launch in [*firsts.values()][:_MOST_COMPILATIONS]:
        if not callable(launch.function):
            yield launch.pipeline
            continue
        with no_checks(), capture_launches(counted=True, traced=True) as again:
            try:
                launch.function(*launch.arguments)
            except FlyError:  # the failure, which the page tells; what came before it is shown
                yield again[0].pipeline if again else launch.pipeline
                continue
        yield from again[:1]


def _figures_html(difference: Difference) -> str:
    rows = [
        [escape(change.name), f"{change.before or 0:g}", f"{change.now or 0:g}", f"{-change.lost:+g}", _verdict(change)]
        for change in difference.changes
    ]
    return table(("figure", "before", "now", "better by", ""), rows, numbers=(1, 2, 3))


def _verdict(change: object) -> str:
    return "worse" if getattr(change, "is_worse", False) else ""


def _side_by_side(difference: Difference) -> str:
    """The passages of both codes, aligned, with the instructions marked that the other one does not have."""
    if difference.before is None:
        return message("no machine code was kept with the figures; pytest --update-figures keeps it")
    rows = [row for pair in _aligned(difference.before, difference.after) for row in _rows(*pair)]
    head = f'<tr><th style="{_CELL}">before</th><th style="{_CELL}">now</th></tr>'
    return f'<div style="overflow:auto"><table>{head}{"".join(rows)}</table></div>'


def _aligned(before: Code, after: Code) -> Iterator[tuple[Passage | None, Passage | None]]:
    matcher = SequenceMatcher(None, [p.line for p in before], [p.line for p in after], autojunk=False)
    for _, i, to_i, j, to_j in matcher.get_opcodes():
        yield from zip_longest(before[i:to_i], after[j:to_j])


def _rows(before: Passage | None, after: Passage | None) -> Iterator[str]:
    """A row for the line of the source of each, and one for each instruction."""
    yield _row(*(faint(escape(f"{p.place}  {p.source}{_cycles(p)}")) if p else "" for p in (before, after)))
    old, new = (list(p.instructions) if p else [] for p in (before, after))
    matcher = SequenceMatcher(None, list(map(shape, old)), list(map(shape, new)), autojunk=False)
    for kind, i, to_i, j, to_j in matcher.get_opcodes():
        signs = ("", "") if kind == "equal" else ("-", "+")
        for texts in zip_longest(old[i:to_i], new[j:to_j]):
            yield _row(*(highlight(f"  {text}", "isa") if text else "" for text in texts), signs=signs)


def _cycles(passage: Passage) -> str:
    return "" if passage.cycles is None else f"  [{passage.cycles} cycles]"


def _row(*cells: str, signs: Sequence[str] = ("", "")) -> str:
    """cells: HTML."""
    styles = [f"{_CELL};{_CHANGED[sign]}" if sign and cell else _CELL for cell, sign in zip(cells, signs, strict=True)]
    return (
        f"<tr>{''.join(f'<td style={chr(34)}{s}{chr(34)}>{c}</td>' for c, s in zip(cells, styles, strict=True))}</tr>"
    )
