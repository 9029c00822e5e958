"""Tensors of the sizes that a launcher was built for: what has another one is refused when it is called.

    require_rows("A", A, m, N, apart=True)  # a matrix of m rows or more, of N elements each
    require_elements("Gamma", Gamma, N)     # N elements in any shape

Extents of tensors are numbers of run time, for which nothing is compiled again; so the launcher compares them on the
host, before its first kernel. Numbers that are wanted may be those of a launch, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels.kernels_common import require, require_tensor, require_tensors


def require_rows(
    name: str, tensor: Any, rows: Any, columns: Any, *dtypes: Any, bits: int = 0, apart: bool = False
) -> None:
    """Refuse a tensor, in a launcher, unless it has this many rows or more, of this many elements.

    rows, columns: integers, or numbers of the launch. dtypes: what its type may be, by default any. bits: of an
    element, by default as in the tensor. apart: it is a matrix of any row stride; otherwise rows follow one another, of
    one dimension or several, or all in one dimension.
    """
    require_tensor(name, tensor, *dtypes or (tensor.dtype,))
    extents, columns = _extents(tensor), _in_elements(columns, bits, tensor)
    if apart:
        require(len(extents) == 2, f"{name} of {_dimensions(extents)}", "rows of a matrix, of two dimensions")
        holds = (extents[1] == columns) & (extents[0] >= rows)
    else:
        holds = _is_row(extents, columns) & (_product(extents) >= fx.Int64(rows) * columns) & _is_dense(tensor, extents)
    how = "" if apart else ", one behind the other"
    _refuse_unless(holds, name, extents, f"{{}} elements a row here, and {{}} rows or more{how}", columns, rows)


def require_pitch(name: str, tensor: Any, rows: Any, columns: int, pitch: Any, *dtypes: Any, bits: int = 0) -> None:
    """Refuse a tensor, in a launcher, in which not so many rows of `columns` elements, `pitch` apart, lie.

    dtypes, bits: see `require_rows`.
    """
    require_tensor(name, tensor, *dtypes or (tensor.dtype,))
    extents = _extents(tensor)
    steps = [fx.Int64(extent - 1) * fx.get_scalar(tensor.stride[i]) for i, extent in enumerate(extents)]
    wanted, apart = (_in_elements(fx.Int64(n), bits, tensor) for n in ((rows - 1) * fx.Int64(pitch) + columns, pitch))
    holds = (rows == 0) | (sum(steps[1:], steps[0]) + 1 >= wanted) & (apart >= _in_elements(columns, bits, tensor))
    _refuse_unless(holds, name, extents, "{} rows of {} elements here, {} apart", rows, columns, pitch)


def require_elements(name: str, tensor: Any, count: Any, *dtypes: Any, bits: int = 0, or_more: bool = False) -> None:
    """Refuse a tensor, in a launcher, unless it has this many elements, one behind the other, in any shape.

    count: an integer that is known, or an Int32 of the launch. dtypes, bits: see `require_rows`.
    """
    require_tensor(name, tensor, *dtypes or (tensor.dtype,))
    extents, wanted = _extents(tensor), _in_elements(count, bits, tensor)
    total = _product(extents)
    holds = (total >= wanted if or_more else total == wanted) & _is_dense(tensor, extents)
    more = " or more" if or_more else ""
    _refuse_unless(holds, name, extents, f"{{}} elements{more} here, one behind the other", wanted)


def require_least(tensors: Mapping[str, Any], **wanted: tuple[Any, Any]) -> None:
    """Refuse tensors of other types, or of fewer elements: name -> (its type, or several in a tuple, elements)."""
    for name, (kinds, count) in wanted.items():
        require_tensors(tensors, **{name: kinds})
        require_elements(name, tensors[name], count, or_more=True)


@flyc.jit
def _refuse_unless(holds: Any, name: str, extents: list[Any], wanted: str, *numbers: Any) -> None:
    if not holds:
        fx.refuse(f"{name} of {{}}: {wanted}", tuple(extents), *numbers, package="kernels")


def _in_elements(count: Any, bits: int, tensor: Any) -> Any:
    """Elements of so many bits as those of a tensor, which may be bytes or words of them."""
    width = tensor.dtype.width
    return count if bits in (0, width) else count * bits // width


def _extents(tensor: Any) -> list[Any]:
    shape = tensor.shape
    return [fx.get_scalar(shape[i]) for i in range(fx.rank(tensor))]


def _is_row(extents: list[Any], columns: Any) -> Any:
    """True if the last dimensions, so many as there may be, are a row; one dimension has whole rows.

    The host divides, so never by columns that a launch has none of.
    """
    if len(extents) == 1:
        return extents[0] % (columns if isinstance(columns, int) else fx.max(columns, 1)) == 0
    holds: Any = fx.Boolean(False)
    for i in range(1, len(extents)):
        holds = holds | (_product(extents[i:]) == columns)
    return holds


def _dimensions(extents: list[Any]) -> str:
    return "one dimension" if len(extents) == 1 else f"{len(extents)} dimensions"


def _product(extents: list[Any]) -> Any:
    """How many elements there are: of one dimension an Int32, as extents are."""
    if len(extents) == 1:
        return extents[0]
    product = fx.Int64(extents[0])
    for extent in extents[1:]:
        product = product * extent
    return product


def _is_dense(tensor: Any, extents: list[Any]) -> Any:
    """True if elements follow one another: the last dimension does, and each other one begins where it ends."""
    layout: Any = tensor.type.layout
    holds: Any = fx.Boolean(True)
    if layout.stride[-1] != 1:
        last = len(extents) - 1
        holds = (fx.get_scalar(tensor.stride[last]) == 1) | (extents[last] <= 1)
    for i in range(len(extents) - 1):
        step = _product(extents[i + 1 :])
        holds = holds & ((fx.get_scalar(tensor.stride[i]) == step) | (extents[i] <= 1))
    return holds
