"""A kernel's machine code as `explorer.js` takes it: lines, what each register does, help, bytes, the graph.

The same script runs in the widget and in an exported page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from flydsl.codegen import CodeObject
from flydsl.hsaco.register_uses import RegisterSet
from workbench.kit.assets import asset_text
from workbench.kit.highlight import highlight
from workbench.kit.html import escape
from workbench.kit.line_list import TAGS
from workbench.machine_code.analysis import Analysis, analyse
from workbench.machine_code.encodings import words
from workbench.machine_code.graph import MOST_BLOCKS, graph_svg
from workbench.machine_code.help import help_html, help_of
from workbench.machine_code.listing import columns, encodings_of, flag, named_head, place, waits_text
from workbench.machine_code.live_ranges import live_ranges


def content(code: CodeObject, name: str) -> dict[str, Any]:
    """One kernel.

    lines: of the listing; those that head a block have no `instruction`. counters: of memory operations under way, of
    which each line has as many numbers. helps: HTML, by what `help` counts. ranges: of
    each register the runs of instructions at which it is in use. scale: the registers that a full bar stands for.
    """
    analysis = analyse(code, name)
    helps = {help_of(analysis, i): None for i in analysis.instructions}
    numbers = {found: number for number, found in enumerate(helps)}
    resources = analysis.kernel.resources
    return {
        "name": name,
        "files": columns(analysis),
        "counters": analysis.outstanding.counters,
        "scale": [max(_most(analysis, file), _allocated(resources, file), 1) for file in columns(analysis)],
        "target": analysis.target or 0,
        "lines": list(_lines(analysis, numbers, encodings_of(code, name))),
        "helps": [help_html(found) for found in helps],
        "ranges": live_ranges(analysis.pressures),
        "graph": graph_svg(analysis, on_paper=False),
        "blocks": len(analysis.blocks),
        "cut": max(len(analysis.blocks) - MOST_BLOCKS, 0),
    }


def _most(analysis: Analysis, file: str) -> int:
    return max((pressure.count(file[0].lower()) for pressure in analysis.pressures), default=0)


def _allocated(resources: Any, file: str) -> int:
    return int({"VGPR": resources.vgprs, "AGPR": resources.agprs, "SGPR": resources.sgprs}[file])


def _lines(analysis: Analysis, numbers: dict[Any, int], bytes_: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    waits = waits_text(analysis)
    for number, block in enumerate(analysis.blocks):
        yield {"html": escape(named_head(analysis, number)), "block": number}
        for instruction in analysis.instructions[block.start : block.end]:
            index = instruction.index
            pressure = analysis.pressures[index]
            remarks = (place(instruction), waits.get(index, ""), flag(analysis, instruction))
            yield {
                "html": "│" * len(block.loops) + highlight(f" {instruction.text}".replace("\t", " "), "isa", TAGS),
                "instruction": index,
                "length": len(block.loops) + len(instruction.text),
                "counts": [pressure.count(file[0].lower()) for file in columns(analysis)],
                "underWay": analysis.outstanding.counts[index],
                "over": analysis.target is not None and analysis.vector_registers[index] > analysis.target,
                "remarks": escape("  ".join(filter(None, remarks))),
                "encoding": words(bytes_[index]) if bytes_ else "",
                "help": numbers[help_of(analysis, instruction)],
                "reads": compact(instruction.uses.reads),
                "writes": compact(instruction.uses.writes),
            }


def compact(registers: RegisterSet) -> str:
    """A set of registers as assembly writes them.

    >>> from flydsl.hsaco.register_uses import registers_of
    >>> compact(registers_of("v2 v[3:5] s7 vcc"))
    's7 vcc v[2:5]'
    """
    return " ".join(_runs(registers.names()))


def _runs(names: Iterable[str]) -> Iterator[str]:
    first = last = ""
    for name in [*names, ""]:
        if first and name == f"{last[0]}{int(last[1:]) + 1 if last[1:].isdigit() else ''}" and last[1:].isdigit():
            last = name
            continue
        if first == "vcc_lo" and name == "vcc_hi":
            first = last = "vcc"
            continue
        if first:
            yield first if first == last else f"{first[0]}[{first[1:]}:{last[1:]}]"
        first = last = name


def script() -> str:
    """The JavaScript: a function `mountIsa(element, content)`. That of `kit.line_list` goes before."""
    return asset_text(__file__, "explorer.js")


def style() -> str:
    """The CSS that goes with it."""
    return asset_text(__file__, "explorer.css")
