"""Pictures of layouts, tiled copies and matrix instructions as text for Typst, which makes a PDF of it.

    fx.utils.print_typst(tiled_mma, file="mma.typ")   # then: typst compile mma.typ

In a notebook the workbench draws the same things.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import Any

from flydsl import layout as algebra
from flydsl.dialect.location import argument_error
from flydsl.expr.atoms.copies import TiledCopy
from flydsl.expr.atoms.mma import MmaAtom, TiledMma
from flydsl.layout import ComposedLayout, Layout

__all__ = ["print_typst"]

Color = Callable[..., str]
_HEADER = '#set page(width: auto, height: auto, margin: 8mm)\n#set text(font: "DejaVu Sans Mono", size: 6pt)\n'
_HUES = 16
# Operand -> what it shows, and its extents among (M, N, K).
_OPERANDS = {"a": ("A (M,K)", (0, 2)), "b": ("B (N,K)", (1, 2)), "c": ("C (M,N)", (0, 1))}


def print_typst(arg: Any, *, color: Color | None = None, file: str | None = None) -> None:
    """Write a static layout, tiled copy, matrix instruction or tiled MMA as Typst markup.

    A layout is a grid of its indices, the others are grids of the threads and values that hold each element.

    color: the colour of a cell, such as "#ffcc00", by its index, or by its thread and value. file: the path to write
    to; a file of an earlier call gets another page. By default the markup is printed. Raises ArgumentError for an
    `arg` of another kind.
    """
    body = "\n".join(_pages(arg, color))
    if file is None:
        sys.stdout.write(_HEADER + body + "\n")
        return
    path = Path(file)
    begun = path.exists() and path.read_text().startswith(_HEADER)
    with path.open("a" if begun else "w") as out:
        out.write(f"#pagebreak()\n{body}\n" if begun else f"{_HEADER}{body}\n")


def _pages(arg: Any, color: Color | None) -> Iterator[str]:
    if isinstance(arg, Layout | ComposedLayout) and arg.is_static:
        yield _caption(str(arg))
        yield _indices(arg, color or _grey)
    elif isinstance(arg, TiledCopy):
        yield _caption(f"{arg.atom.type}, tile {arg.tile_mn}")
        yield _holders(arg.tiled_tv_layout, _extents(arg.tile_mn), color or _hue)
    elif isinstance(arg, MmaAtom | TiledMma):
        op: Any = arg.type.op if isinstance(arg, MmaAtom) else arg.type.mma
        extents = op.shape_mnk if isinstance(arg, MmaAtom) else arg.tile_size_mnk
        yield _caption(str(arg.type))
        for operand, (name, modes) in _OPERANDS.items():
            yield _caption(name)
            yield _holders(op.layout_tv(operand), [extents[mode] for mode in modes], color or _hue)
    else:
        raise argument_error(
            f"print_typst of {arg!r}",
            "pass a static layout, a tiled copy, a matrix instruction or a tiled MMA",
        )


def _caption(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'#text(weight: "bold", raw("{quoted}"))\n'


def _grid(columns: int, cells: list[tuple[str, str]]) -> str:
    inner = "\n".join(f'  table.cell(fill: rgb("{fill}"))[{text}],' for text, fill in cells)
    return f"#table(columns: {columns}, inset: 3pt, align: center,\n{inner}\n)\n"


def _indices(layout: Layout | ComposedLayout, color: Color) -> str:
    shape = algebra.get_shape(layout)
    modes = shape if isinstance(shape, tuple) else (shape,)
    rows, columns = _rows_and_columns([_as_int(algebra.product(mode)) for mode in modes])
    indices = [layout(row + column * rows) for row in range(rows) for column in range(columns)]
    return _grid(columns, [(str(index), color(index)) for index in indices])


def _holders(layout_tv: Layout, extents: list[int], color: Color) -> str:
    """The grid of a tile whose elements are numbered along its first mode first.

    layout_tv: (thread, value) -> number.
    """
    rows, columns = _rows_and_columns(extents)
    threads, values = (_as_int(algebra.size(mode)) for mode in layout_tv)
    holder: dict[int, tuple[int, int]] = {}
    for thread in range(threads):
        for value in range(values):
            holder.setdefault(int(layout_tv(thread, value)), (thread, value))
    cells = []
    for row in range(rows):
        for column in range(columns):
            found = holder.get(row + column * rows)
            cells.append(("", "#ffffff") if found is None else (f"T{found[0]} V{found[1]}", color(*found)))
    return _grid(columns, cells)


def _extents(tile: Any) -> list[int]:
    return [mode if isinstance(mode, int) else _as_int(algebra.size(mode)) for mode in tile.modes]


def _as_int(size: Any) -> int:
    """A size of a static layout, which is an int."""
    return int(size)


def _rows_and_columns(extents: list[int]) -> tuple[int, int]:
    """The first extent, and the product of the others."""
    return extents[0], prod(extents[1:])


def _grey(index: int) -> str:
    shade = 0xFF - 8 * (int(index) % _HUES)
    return f"#{shade:02x}{shade:02x}{shade:02x}"


def _hue(thread: int, value: int) -> str:
    step = thread % _HUES
    return f"#{0xA0 + 6 * step:02x}{0xFF - 5 * step:02x}{0xC0 + 21 * (step * 7 % _HUES) // 6:02x}"
