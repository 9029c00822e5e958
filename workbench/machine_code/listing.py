"""The ISA view: each kernel's machine code with source lines, registers in use, blocks and loops, waits and the mix.

It is static: a tooltip, and a table under the code, say what an instruction does; blocks are a picture and links.
`isa_widget` shows the same with a cursor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from flydsl.binary import BinaryModule
from flydsl.codegen import CodeObject
from flydsl.compiler import CompiledArtifact, Pipeline
from flydsl.errors import ArgumentError, did_you_mean
from flydsl.hsaco.register_uses import RegisterSet, registers_of
from workbench.kit.highlight import highlight
from workbench.kit.html import code, code_line, details, escape, faint, listing, svg_image, table, title
from workbench.machine_code.analysis import Analysis, analyses, listing_of, source_lines
from workbench.machine_code.blocks import Block
from workbench.machine_code.encodings import encodings, words
from workbench.machine_code.graph import MOST_BLOCKS, block_names, graph_svg, graph_text
from workbench.machine_code.help import glossary_html, help_line, help_of
from workbench.machine_code.instructions import MachineInstruction
from workbench.stages.levels import place_key

_MAX_LINES = 300  # of a kernel; a saved notebook stays small
_MAX_REST_LINES = 200
_MOST_TEXT_COLUMNS = 58
_SHORT_WAIT = 8  # instructions: too few to hide a memory access behind
_NOT_IN_ID = re.compile(r"[^\w-]")
_BAR_COLUMNS = 6
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_ENCODING_COLUMNS = 27
_MARK = "background-color:rgba(240,228,66,0.3)"


@dataclass(frozen=True)
class IsaListing:
    """Some of the lines of some kernels.

    first: the first line, from 1. registers: those to mark. encodings: by kernel, the bytes of its instructions; empty
    to leave them out.
    """

    kernels: tuple[Analysis, ...]
    first: int
    count: int
    registers: str
    encodings: dict[str, Sequence[bytes]]

    def _repr_html_(self) -> str:
        parts = (
            kernel_isa_html(
                analysis,
                registers=self.registers,
                first=self.first,
                max_lines=self.count,
                bytes_=self.encodings.get(analysis.kernel.name, ()),
            )
            for analysis in self.kernels
        )
        return f"<div>{''.join(parts)}</div>"

    def __repr__(self) -> str:
        return "\n\n".join(
            _kernel_text(analysis, self.first, self.count, self.encodings.get(analysis.kernel.name, ()))
            for analysis in self.kernels
        )


def part_of(
    value: Any,
    kernel: str | None = None,
    *,
    first: int = 1,
    count: int = _MAX_LINES,
    registers: str = "",
    encodings: bool = False,
) -> IsaListing:
    """Any part of the machine code of a pipeline or artifact. The other views end after 300 lines of a kernel.

    kernel: the name of one; by default all. first, count: the lines to show. registers: such as "v[4:7], s2"; marks the
    instructions that read (r) or write (w) any of them, and those at which one is in use. encodings: show the bytes of
    each instruction, as dwords.

    Raises ArgumentError for objects without machine code, unknown kernels, and invalid line numbers.
    """
    if isinstance(value, Pipeline):
        value = value.artifact
    if isinstance(value, BinaryModule):
        value.require_listing()
        value = value.code
    if not isinstance(value, CompiledArtifact | CodeObject):
        raise ArgumentError(
            f"a {type(value).__name__} has no machine code",
            hint="pass a pipeline, p, p.artifact, or a module that was opened",
        )
    if not all(isinstance(number, int) and number >= 1 for number in (first, count)):
        raise ArgumentError(
            f"first and count must be positive integers, got {first!r} and {count!r}",
            hint="pass first=301, for example; lines count from 1",
        )
    found = analyses(_code(value))
    names = [analysis.kernel.name for analysis in found]
    if kernel is not None and kernel not in names:
        hint = f"{did_you_mean(kernel, names)}they are {', '.join(names)}"
        raise ArgumentError(f"no kernel is called {kernel!r}", hint=hint)
    chosen = tuple(analysis for analysis in found if kernel in (None, analysis.kernel.name))
    known = {name: encodings_of(_code(value), name) for name in names} if encodings else {}
    if not all(known.values()):
        raise ArgumentError("the bytes of instructions need an assembler", hint="pip install ziglang")
    return IsaListing(chosen, first, count, registers, known)


def encodings_of(code: CodeObject, name: str) -> Sequence[bytes]:
    """The bytes of one kernel's instructions; empty if they are not known."""
    listed = listing_of(code)
    start = listed.labels[name]
    ends = [index for label, index in listed.labels.items() if label.startswith(".Lfunc_end") and index > start]
    return encodings(code)[start : min(ends, default=len(listed.instructions))]


def isa_html(artifact: CompiledArtifact | CodeObject, *, registers: str = "", is_open: bool = True) -> str:
    """Each kernel's code, then, folded, what surrounds it.

    registers: such as "v[4:7], s2": instructions that read or write any of them are marked.
    """
    code_object = _code(artifact)
    kernels = "".join(
        kernel_isa_html(analysis, registers=registers, is_open=is_open) for analysis in analyses(code_object)
    )
    rest = [line for line in code_object.isa.splitlines() if not line.startswith(("\ts_", "\tv_"))]
    shown = "\n".join(highlight(line, "isa") for line in rest[:_MAX_REST_LINES])
    left = f"\n{faint(f'{len(rest) - _MAX_REST_LINES} more lines')}" if len(rest) > _MAX_REST_LINES else ""
    return kernels + details(f"The listing without instructions, {len(rest)} lines", listing(shown + left))


def kernel_isa_html(
    analysis: Analysis,
    *,
    registers: str = "",
    is_open: bool = True,
    first: int = 1,
    max_lines: int = _MAX_LINES,
    bytes_: Sequence[bytes] = (),
) -> str:
    """One kernel; of its lines at most max_lines, from `first` on, which counts from 1. bytes_: of each instruction."""
    name, count = analysis.kernel.name, len(analysis.instructions)
    bytes_column = "encoding, " if bytes_ else ""
    counters = " ".join(analysis.outstanding.counters)
    under_way = f"memory under way ({counters}), " if counters else ""
    in_use = f"registers in use ({' '.join(columns(analysis))})"
    legend = f"{in_use}, {under_way}{bytes_column}instruction, line of the source"
    shown = islice(_lines(analysis, registers_of(registers), bytes_), first - 1, first - 1 + max_lines)
    more = "".join(title(faint(escape(note))) for note in _cut_note(analysis, first, max_lines))
    content = f"{summary_html(analysis)}{title(faint(legend))}{listing(''.join(shown))}{more}{_behind_html(analysis)}"
    return details(f"ISA of {code(name)}, {count} instructions", content, is_open=is_open)


def summary_html(analysis: Analysis) -> str:
    """The mix of instructions, and remarks on the kernel."""
    return _mix_html(analysis) + "".join(title(escape(note)) for note in notes_of(analysis))


def _behind_html(analysis: Analysis) -> str:
    """The folded part after the code: what its instructions do, and its blocks."""
    helps = details("What these instructions do, and what they cost", glossary_html(analysis))
    return helps + (
        details(f"Control flow, {len(analysis.blocks)} blocks", _graph_html(analysis))
        if len(analysis.blocks) > 1
        else ""
    )


def _graph_html(analysis: Analysis) -> str:
    """The blocks as a picture, and as a table whose links lead into the code."""
    names = block_names(analysis.blocks)

    def link(number: int) -> str:
        return f'<a href="#{_block_id(analysis, number)}">{escape(names[number])}</a>'

    rows = [
        [
            link(number),
            str(block.end - block.start),
            ", ".join(map(link, block.successors)) or "ends",
            escape(names[block.loops[-1]]) if block.loops else "",
        ]
        for number, block in enumerate(analysis.blocks[:MOST_BLOCKS])
    ]
    blocks = table(("block", "instructions", "goes on with", "in the loop of"), rows, numbers=(1,))
    picture = svg_image(graph_svg(analysis), graph_text(analysis))
    return f'<div style="max-height:40em;overflow:auto">{picture}</div>{blocks}'


def _block_id(analysis: Analysis, number: int) -> str:
    """The address of a block in the page."""
    return f"{_NOT_IN_ID.sub('-', analysis.kernel.name)}-block-{number}"


def isa_text(artifact: CompiledArtifact | CodeObject) -> str:
    """The code of each kernel."""
    return "\n\n".join(map(_kernel_text, analyses(_code(artifact))))


def _kernel_text(analysis: Analysis, first: int = 1, max_lines: int = _MAX_LINES, bytes_: Sequence[bytes] = ()) -> str:
    lines = islice(_text_lines(analysis, bytes_), first - 1, first - 1 + max_lines)
    counters = analysis.outstanding.counters
    under_way = f"; {', '.join(counters)} under way" if counters else ""
    head = f"{analysis.kernel.name}: {', '.join(columns(analysis))} in use{under_way}"
    return "\n".join([head, *notes_of(analysis), *lines, *_cut_note(analysis, first, max_lines)])


def _cut_note(analysis: Analysis, first: int, max_lines: int) -> list[str]:
    """A note on the shown lines and how to see the others; empty if all are shown."""
    total = len(analysis.instructions) + len(analysis.blocks)
    last = min(first - 1 + max_lines, total)
    if (first, last) == (1, total):
        return []
    following = (
        f"; from {last + 1} on: workbench.listing(p, {analysis.kernel.name!r}, first={last + 1})"
        if last < total
        else ""
    )
    shown = f"Lines {first} to {last} of {total}" if first <= total else f"There are {total} lines"
    return [f"{shown}{following}"]


def notes_of(analysis: Analysis) -> list[str]:
    """Remarks on a kernel: peak register use, what fewer registers would allow, loops, short waits."""
    return [note for note in (_peak_note(analysis), _loop_note(analysis), _wait_note(analysis)) if note]


def _peak_note(analysis: Analysis) -> str:
    allocated, peak, target = analysis.kernel.occupancy.vgprs_allocated, analysis.peak, analysis.target
    note = f"At most {peak} vector registers are in use at once; {allocated} are allocated."
    if target is None:
        return note
    waves = analysis.kernel.usage.occupancy.waves_per_simd + 1
    over = analysis.over_target
    if not over:
        return f"{note} {waves} waves per SIMD need an allocation of at most {target}: what is in use would fit."
    lines = ", ".join(map(str, source_lines(over)))
    return (
        f"{note} {peak - target} fewer would give {waves} waves per SIMD: "
        f"more than {target} are in use at {len(over)} instructions (◀), from line {lines} of the source."
    )


def _loop_note(analysis: Analysis) -> str:
    heads = {head: block for block in analysis.blocks for head in block.loops}
    if not heads:
        return ""
    parts = [
        f"{analysis.blocks[head].label or 'the start'}, "
        f"{sum(b.end - b.start for b in analysis.blocks if head in b.loops)} instructions"
        for head in sorted(heads)
    ]
    return f"Loops: {'; '.join(parts)}."


def _wait_note(analysis: Analysis) -> str:
    waits = analysis.outstanding.waits
    short = [w for w in waits if w.distance is not None and w.distance <= _SHORT_WAIT]
    if not waits:
        return ""
    return (
        f"Waits for memory: {len(waits)}; {len(short)} of them for an access that was issued "
        f"{_SHORT_WAIT} instructions before or later."
    )


def _mix_html(analysis: Analysis) -> str:
    mix = analysis.mix()
    rows = [["all", *(str(count) for count, _ in mix.values())]]
    if any(inside for _, inside in mix.values()):
        rows.append(["in loops", *(str(inside) for _, inside in mix.values())])
    return table(("instructions", *map(escape, mix)), rows, numbers=range(1, len(mix) + 1))


def columns(analysis: Analysis) -> tuple[str, ...]:
    """The register files to count: no AGPRs where there are none."""
    return ("VGPR", "AGPR", "SGPR") if analysis.kernel.resources.agprs else ("VGPR", "SGPR")


def _counts(analysis: Analysis, instruction: MachineInstruction) -> str:
    pressure = analysis.pressures[instruction.index]
    return "".join(f"{pressure.count(column[0].lower()):>4}" for column in columns(analysis))


def _under_way(analysis: Analysis, instruction: MachineInstruction) -> str:
    """The memory operations that are under way, a column for each counter."""
    return "".join(f"{count or '':>3}" for count in analysis.outstanding.counts[instruction.index])


def flag(analysis: Analysis, instruction: MachineInstruction) -> str:
    """A remark on a line: peak register use, or too many registers for one more wave."""
    in_use = analysis.vector_registers[instruction.index]
    if analysis.target is not None and in_use > analysis.target:
        return f"◀ {in_use - analysis.target} fewer"
    return "◀ peak" if in_use == analysis.peak and analysis.target is None else ""


def waits_text(analysis: Analysis) -> dict[int, str]:
    """The text for each wait, by instruction: the memory instructions that it waits for."""
    found: dict[int, list[str]] = {}
    for wait in analysis.outstanding.waits:
        if wait.cause is not None:
            older = f", and {wait.count - 1} older" if wait.count > 1 else ""
            found.setdefault(wait.instruction.index, []).append(f"{wait.cause.mnemonic}, {wait.distance} before{older}")
    return {index: "waits for " + "; ".join(causes) for index, causes in found.items()}


def place(instruction: MachineInstruction) -> str:
    """The line of the source that an instruction comes from; empty if it is not known."""
    return "" if instruction.location is None else place_key(instruction.location)


def _bar(analysis: Analysis, instruction: MachineInstruction) -> str:
    """The vector registers in use as a bar; a full one stands for those that are allocated."""
    full = max(analysis.kernel.occupancy.vgprs_allocated, analysis.peak, 1)
    eighths = -(-8 * _BAR_COLUMNS * analysis.vector_registers[instruction.index] // full)
    return f"{_EIGHTHS[8] * (eighths // 8)}{_EIGHTHS[eighths % 8]}"[:_BAR_COLUMNS].ljust(_BAR_COLUMNS)


def _lines(analysis: Analysis, marked: RegisterSet, bytes_: Sequence[bytes]) -> Iterator[str]:
    waits, columns_ = waits_text(analysis), _text_columns(analysis)
    for number, block in enumerate(analysis.blocks):
        head = faint(escape(named_head(analysis, number)))
        yield f'<span id="{_block_id(analysis, number)}">{head}</span>\n'
        for instruction in analysis.instructions[block.start : block.end]:
            text = instruction.text.replace("\t", " ")
            padding = " " * max(columns_ - len(text) - len(block.loops), 1)
            bars = "│" * len(block.loops)
            encoding = words(bytes_[instruction.index]).ljust(_ENCODING_COLUMNS) if bytes_ else ""
            remarks = "  ".join(
                filter(None, (place(instruction), waits.get(instruction.index, ""), flag(analysis, instruction)))
            )
            use = f"{_use(analysis, instruction, marked):<2}" if marked else ""
            language = "text" if use.strip("│ ") else "isa"  # no other colour reads well on the mark
            tip = escape(help_line(help_of(analysis, instruction)))
            shown = f'<span title="{tip}">{highlight(f" {text}", language)}</span>'
            counts, under_way = _counts(analysis, instruction), _under_way(analysis, instruction)
            line = (
                f"{counts} {faint(_bar(analysis, instruction))} {use}{under_way}{encoding}{bars}{shown}"
                f"{padding}{faint(escape(remarks))}"
            )
            marked_line = f'<span style="{_MARK}">{line}</span>' if use.strip("│ ") else line
            indent = len(counts) + _BAR_COLUMNS + len(use) + len(under_way) + len(encoding) + columns_ + 3
            yield code_line(marked_line, columns=indent + len(remarks), indent=indent)


def _text_columns(analysis: Analysis) -> int:
    """The width of the column of instructions: that of the longest, but at most 58 characters, which few exceed."""
    longest = max((len(instruction.text) for instruction in analysis.instructions), default=0)
    deepest = max((len(block.loops) for block in analysis.blocks), default=0)
    return min(longest + deepest + 1, _MOST_TEXT_COLUMNS)


def _use(analysis: Analysis, instruction: MachineInstruction, marked: RegisterSet) -> str:
    """ "r" and "w" where an instruction reads or writes a marked register, a line where one is in use."""
    reads, writes = instruction.uses
    pressure = analysis.pressures[instruction.index]
    in_use = "│" if (pressure.before | pressure.after) & marked else ""
    return ("r" if reads & marked else "") + ("w" if writes & marked else "") or in_use


def named_head(analysis: Analysis, number: int) -> str:
    """The line above a block, with its name in the graph."""
    block = analysis.blocks[number]
    head = block_head(block, analysis)
    return head if block.label or number == 0 else f"block {number}, {head}"


def block_head(block: Block, analysis: Analysis) -> str:
    """A block's label, and the loop it is in."""
    label = block.label or ("entry" if block.start == 0 else "falls through")
    inside = f"  in the loop of {analysis.blocks[block.loops[-1]].label or 'the entry'}" if block.loops else ""
    return f"{label}:{inside}"


def _text_lines(analysis: Analysis, bytes_: Sequence[bytes]) -> Iterator[str]:
    for block in analysis.blocks:
        yield block_head(block, analysis)
        for instruction in analysis.instructions[block.start : block.end]:
            text = f"{instruction.text:<{_MOST_TEXT_COLUMNS}} {place(instruction)}"
            encoding = words(bytes_[instruction.index]).ljust(_ENCODING_COLUMNS) if bytes_ else ""
            numbers = f"{_counts(analysis, instruction)}{_under_way(analysis, instruction)}"
            yield f"{numbers}  {encoding}{text}".rstrip()


def _code(artifact: CompiledArtifact | CodeObject) -> CodeObject:
    return artifact.code if isinstance(artifact, CompiledArtifact) else artifact
