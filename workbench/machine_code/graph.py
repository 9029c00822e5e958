"""The control-flow graph of a kernel as a picture: its blocks in the order of the code, branches as arcs beside them.

Branches forward are on the right, branches back, which close loops, on the left. What goes on with the next block is a
straight line. The order of the code keeps the picture beside the listing, and no line crosses a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from workbench.kit.html import INK, PAPER, escape
from workbench.machine_code.analysis import Analysis
from workbench.machine_code.blocks import Block

_LEAST_WIDTH, _HEIGHT, _GAP = 190, 40, 18
_LETTER = 7  # the width of one, and a little more
_LANE = 12
"""Between arcs that pass the same blocks."""
_INDENT = 10
_MARGIN = 6
MOST_BLOCKS = 200


@dataclass(frozen=True)
class Arc:
    """A branch that does not go to the next block. lane: how far out it is drawn, from 0."""

    source: int
    target: int
    lane: int

    @property
    def is_back(self) -> bool:
        """True if it goes back, to a block before or to its own."""
        return self.target <= self.source


def arcs(blocks: Sequence[Block]) -> list[Arc]:
    """Every branch, the shortest closest to the blocks; those that pass the same blocks are in different lanes."""
    wanted = [(i, to) for i, block in enumerate(blocks) for to in block.successors if to != i + 1]
    found: list[Arc] = []
    for source, target in sorted(wanted, key=lambda edge: (abs(edge[0] - edge[1]), edge)):
        is_back = target <= source
        low, high = sorted((source, target))
        taken = {
            arc.lane
            for arc in found
            if arc.is_back == is_back and low <= max(arc.source, arc.target) and min(arc.source, arc.target) <= high
        }
        found.append(Arc(source, target, next(lane for lane in range(len(taken) + 1) if lane not in taken)))
    return found


def graph_svg(analysis: Analysis, *, on_paper: bool = True) -> str:
    """The picture. on_paper: with colours of its own; else with those of the page around it, and blocks to choose."""
    blocks = analysis.blocks[:MOST_BLOCKS]
    found = [arc for arc in arcs(blocks) if max(arc.source, arc.target) < len(blocks)]
    left = _MARGIN + _LANE * (1 + max((arc.lane for arc in found if arc.is_back), default=-1))
    right = _LANE * (1 + max((arc.lane for arc in found if not arc.is_back), default=-1))
    deepest = max((len(block.loops) for block in blocks), default=0)
    edge = left + deepest * _INDENT + _box_width(analysis, blocks)
    width = edge + right + _MARGIN
    height = len(blocks) * (_HEIGHT + _GAP) - _GAP + 2 * _MARGIN
    ink = INK if on_paper else "currentColor"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="monospace" font-size="11">',
        f'<defs><marker id="tip" markerWidth="7" markerHeight="7" refX="6" refY="3" orient="auto">'
        f'<path d="M0 0L6 3L0 6z" fill="{ink}"/></marker></defs>',
    ]
    if on_paper:
        parts.append(f'<rect width="{width}" height="{height}" fill="{PAPER}"/>')
    drawing = _Drawing(analysis, blocks, left, edge, ink)
    parts += [drawing.block(i) for i in range(len(blocks))]
    parts += drawing.lines()
    parts += [drawing.arc(arc) for arc in found]
    return "".join([*parts, "</svg>"])


def graph_text(analysis: Analysis) -> str:
    """The graph in words, for those who do not see it."""
    names = block_names(analysis.blocks)
    return "; ".join(
        f"{name} goes on with {' or '.join(names[to] for to in block.successors) or 'nothing'}"
        for name, block in zip(names, analysis.blocks, strict=True)
    )


def block_names(blocks: Sequence[Block]) -> list[str]:
    """The name of each block: its label, or its place."""
    return [block.label or ("entry" if i == 0 else f"block {i}") for i, block in enumerate(blocks)]


class _Drawing:
    """A drawing of blocks and jumps. Places, left: of the blocks that are in no loop; right: of all blocks."""

    def __init__(self, analysis: Analysis, blocks: Sequence[Block], left: int, right: int, ink: str) -> None:
        self._analysis, self._blocks, self._left, self._right, self._ink = analysis, blocks, left, right, ink
        self._names = block_names(blocks)

    def _top(self, i: int) -> int:
        return _MARGIN + i * (_HEIGHT + _GAP)

    def _start(self, i: int) -> int:
        return self._left + len(self._blocks[i].loops) * _INDENT

    def block(self, i: int) -> str:
        block, x, y = self._blocks[i], self._start(i), self._top(i)
        fill = "rgb(0,119,182)" if block.loops else "rgb(128,128,128)"
        name, holds = self._names[i], _contents(self._analysis, block)
        inside = f"in the loop of {self._names[block.loops[-1]]}" if block.loops else ""
        label = escape(", ".join(filter(None, (name, holds, inside))))
        return (
            f'<g class="block" data-block="{i}" tabindex="0" role="button" aria-label="{label}">'
            f'<rect x="{x}" y="{y}" width="{self._right - x}" height="{_HEIGHT}" rx="3" fill="{fill}" '
            f'fill-opacity="0.15" stroke="{self._ink}"/>'
            f'<text x="{x + 8}" y="{y + 16}" fill="{self._ink}" font-weight="bold">{escape(name)}</text>'
            f'<text x="{x + 8}" y="{y + 31}" fill="{self._ink}">{escape(holds)}</text></g>'
        )

    def lines(self) -> Iterator[str]:
        """Lines from each block to the next one, if that follows it."""
        for i, block in enumerate(self._blocks[:-1]):
            if i + 1 in block.successors:
                x = self._left + 2 * _INDENT + 60
                yield self._path(f"M{x} {self._top(i) + _HEIGHT}V{self._top(i + 1)}")

    def arc(self, arc: Arc) -> str:
        out, into = self._top(arc.source) + _HEIGHT - 10, self._top(arc.target) + 10
        distance = _LANE * (arc.lane + 1)
        if arc.is_back:
            x = self._left - distance
            return self._path(f"M{self._start(arc.source)} {out}H{x}V{into}H{self._start(arc.target)}")
        x = self._right + distance
        return self._path(f"M{self._right} {out}H{x}V{into}H{self._right}")

    def _path(self, d: str) -> str:
        return f'<path d="{d}" fill="none" stroke="{self._ink}" marker-end="url(#tip)"/>'


def _contents(analysis: Analysis, block: Block) -> str:
    """The number of a block's instructions, of each kind."""
    inside = analysis.instructions[block.start : block.end]
    counts = ((kind, sum(i.kind == kind for i in inside)) for kind in ("MFMA", "WMMA", "VMEM", "LDS"))
    first = f"{len(inside)} instructions" if len(inside) != 1 else "1 instruction"
    return ", ".join([first, *(f"{count} {kind}" for kind, count in counts if count)])


def _box_width(analysis: Analysis, blocks: Sequence[Block]) -> int:
    """Wide enough for the text of every block."""
    return max([_LEAST_WIDTH, *(_LETTER * len(_contents(analysis, block)) + 16 for block in blocks)])
