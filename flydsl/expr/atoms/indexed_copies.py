"""Copies to and from places that a tensor of offsets gives: `fx.gather` and `fx.scatter`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from flydsl.dialect.leaves import is_static
from flydsl.dialect.location import argument_error
from flydsl.errors import how_to_make
from flydsl.expr.atoms.copies import CopyAtom, copy_atom_call
from flydsl.expr.layouts.algebra import get_shape, size
from flydsl.expr.memory.tensors import Pointer, Tensor, add_offset, get_layout, make_view, memref_load, require_tensor
from flydsl.expr.tracing.operands import as_fly_value

if TYPE_CHECKING:
    from flydsl.expr.kinds import AnyPointer

__all__ = ["gather", "scatter"]


def gather(
    copy_atom: CopyAtom, base_iter: AnyPointer, offset_tensor: Tensor, dst_tensor: Tensor, *, pred: Tensor | None = None
) -> None:
    """Read values from places around a pointer: each call of the copy instruction reads at `base_iter + offset`.

    dst_tensor: ((values of a call, calls), rest...), as `partition_D` gives it. offset_tensor: (calls, rest...), in
    elements of the pointer. pred: Booleans of that shape; where one is false, nothing is read, and the target keeps its
    value. Raises ArgumentError where the shapes do not fit.
    """

    def call(place: Tensor, part: Tensor, condition: Any) -> None:
        copy_atom_call(copy_atom, place, part, pred=condition)

    _each("gather", copy_atom, base_iter, offset_tensor, dst_tensor, pred, call)


def scatter(
    copy_atom: CopyAtom, src_tensor: Tensor, base_iter: AnyPointer, offset_tensor: Tensor, *, pred: Tensor | None = None
) -> None:
    """Write values to places around a pointer: each call of the copy instruction writes at `base_iter + offset`.

    The shapes are those of `gather`, of what is written. Which of two values at one place remains is not defined.
    """

    def call(place: Tensor, part: Tensor, condition: Any) -> None:
        copy_atom_call(copy_atom, part, place, pred=condition)

    _each("scatter", copy_atom, base_iter, offset_tensor, src_tensor, pred, call)


def _each(
    what: str, atom: Any, base: Any, offsets: Any, data: Any, pred: Any, call: Callable[[Tensor, Tensor, Any], None]
) -> None:
    if not isinstance(atom, CopyAtom):
        raise argument_error(f"{what} takes a copy atom first, not {atom!r}", how_to_make.COPY_ATOM)
    base = as_fly_value(base)
    if not isinstance(base, Pointer):
        raise argument_error(f"{what} takes a pointer, not {base!r}", how_to_make.POINTER)
    require_tensor(what, offsets)
    calls, *rest = _modes(what, offsets)
    data_calls, *data_rest = _data_modes(what, require_tensor(what, data))
    if (calls, rest) != (data_calls, data_rest):
        raise argument_error(
            f"{what}: offsets for {(calls, *rest)} calls, data of {(data_calls, *data_rest)}",
            "data is ((values, calls), rest...), and its offsets are (calls, rest...)",
        )
    if pred is not None and _modes(what, require_tensor(what, pred)) != [calls, *rest]:
        raise argument_error(
            f"{what}: {_modes(what, pred)} predicates for {(calls, *rest)} calls", "give one for each call"
        )
    (_, values) = atom.layout_src_tv
    for v, *place in _coordinates([calls, *rest]):
        here = make_view(add_offset(base, memref_load(offsets, (v, *place))), values)
        condition = None if pred is None else memref_load(pred, (v, *place))
        part = (None, v), *place
        call(here, data[part], condition)


def _modes(what: str, tensor: Tensor) -> list[int]:
    """The extents of a tensor's modes."""
    shape = get_shape(get_layout(tensor))
    if not is_static(shape):
        raise argument_error(
            f"{what} takes tensors whose extents are known at compile time, not {tensor.type}",
            "offsets and data lie in registers: fx.make_fragment_like(...)",
        )
    return [int(size(mode)) for mode in (shape if isinstance(shape, tuple) else (shape,))]


def _data_modes(what: str, data: Tensor) -> list[int]:
    """The number of calls, and the extents of the other modes, of the data."""
    shape = get_shape(get_layout(data))
    if not isinstance(shape, tuple) or not isinstance(shape[0], tuple) or len(shape[0]) != 2 or not is_static(shape):
        raise argument_error(
            f"{what} takes data of shape ((values, calls), rest...), not {data.type}",
            "a part of a tiled copy has it: thr_copy.partition_D(tensor)",
        )
    return [int(size(shape[0][1])), *(int(size(mode)) for mode in shape[1:])]


def _coordinates(extents: list[int]) -> Iterator[tuple[int, ...]]:
    """All coordinates, leftmost mode fastest."""
    for reversed_place in itertools.product(*(range(extent) for extent in reversed(extents))):
        yield reversed_place[::-1]
