"""Matrix instructions and tiled MMAs: A, B and C side by side, with who holds which element as which value."""

from __future__ import annotations

from flydsl import atoms
from flydsl import expr as fx
from flydsl.dialect.elements import element_bits
from flydsl.layout import get_shape, make_layout, size
from workbench.layouts.grid import AnyLayout
from workbench.layouts.objects import of_thread
from workbench.layouts.panel import Panel
from workbench.layouts.view import View, named, view_of

# Operand -> its name, and its modes among (M, N, K).
_OPERANDS = {"a": ("A (M,K)", (0, 2)), "b": ("B (N,K)", (1, 2)), "c": ("C (M,N)", (0, 1))}


@view_of.register
def _(value: atoms.MmaOp, *tensors: AnyLayout | None) -> View:
    named(tensors)
    panels = []
    for operand, (name, (_, inner)) in _OPERANDS.items():
        layout_tv = value.layout_tv(operand)
        # Of an instruction of several blocks these lie below one another.
        columns = value.shape_mnk[inner]
        tile = make_layout((_elements(value, operand) // columns, columns))
        panels.append(Panel(tile, layout_tv, name, element_bits(value.element_of(operand))))
    return View(f"{value}, {value.threads} threads", tuple(panels), "thread")


@view_of.register
def _(value: atoms.TiledMma, *tensors: AnyLayout | None) -> View:
    given = named(tensors, *_OPERANDS)
    panels = []
    for operand, (name, modes) in _OPERANDS.items():
        bits = element_bits(value.op.element_of(operand))
        if operand in given:
            coordinates = make_layout(get_shape(given[operand]))  # partitioned in the place of the tensor
            panels.append(Panel(given[operand], value.partition(operand, coordinates), name, bits))
        elif not given:
            tile = make_layout(tuple(value.tile_size_mnk[mode] for mode in modes))
            panels.append(Panel(tile, value.layout_tv(operand), name, bits))
    return View(f"{value.op}, {value.threads} threads", tuple(panels), "thread")


@view_of.register
def _(value: fx.MmaAtom, *tensors: AnyLayout | None) -> View:
    return view_of(value.type.op, *tensors)


@view_of.register
def _(value: fx.TiledMma, *tensors: AnyLayout | None) -> View:
    return view_of(value.type.mma, *tensors)


@view_of.register
def _(value: fx.ThrMma, *tensors: AnyLayout | None) -> View:
    return of_thread(view_of(value.tiled_mma, *tensors), value.thr_idx)


def _elements(op: atoms.MmaOp, operand: str) -> int:
    """The number of elements in an operand of one instruction."""
    layout_tv = op.layout_tv(operand)
    return 1 + max(layout_tv(number) for number in range(int(size(layout_tv))))  # type: ignore[arg-type]
