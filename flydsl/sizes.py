"""Tensors of the types and sizes that a launcher was built for: what has others is refused when it is called.

    require_rows("A", A, m, N, apart=True)  # a matrix of m rows or more, of N elements each
    require_elements("Gamma", Gamma, N)     # N elements in any shape

Extents of tensors are numbers of run time, for which nothing is compiled again; so the launcher compares them on the
host, before its first kernel. Numbers that are wanted may be those of a launch, too. Types are known when tracing.

Each raises ArgumentError at the line that calls the launcher. package: of a library of kernels, whose own lines are
passed over.

>>> import torch
>>> @flyc.jit
... def rows_of_4(A: fx.Tensor, m: fx.Int32):
...     require_rows("A", A, m, 4, fx.Float32)
>>> rows_of_4(torch.zeros(8, 4), 8)
>>> rows_of_4(torch.zeros(8, 5), 8)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
flydsl.errors.ArgumentError: A of (8, 5): 4 elements a row here, and 8 rows or more, contiguous...
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.errors.places import line_outside_of

__all__ = [
    "require_array", "require_elements", "require_least", "require_pitch", "require_rows", "require_tensor",
    "require_tensors",
]  # fmt: skip


def require_tensor(name: str, tensor: Any, *dtypes: Any, rows: bool = False, package: str = "") -> None:
    """Refuse a tensor unless it is of one of these types; rows: and neighbours in a row lie side by side."""
    wanted = " or ".join(dict.fromkeys(dtype.__name__ for dtype in dtypes))
    _require(tensor.dtype in dtypes, f"{name} of {tensor.dtype.__name__}", f"it is of {wanted} here", package)
    layout: Any = tensor.type.layout
    side_by_side = not rows or layout.stride[-1] == 1
    _require(side_by_side, f"{name} of {tensor.type}", "elements of a row lie side by side", package)


def require_tensors(tensors: Mapping[str, Any], *, rows: str = "", package: str = "", **dtypes: Any) -> None:
    """`require_tensor` of some of these: name -> its type, or several in a tuple. rows: names of those with rows."""
    for name, wanted in dtypes.items():
        kinds = wanted if isinstance(wanted, tuple) else (wanted,)
        require_tensor(name, tensors[name], *kinds, rows=name in rows.split(), package=package)


def require_array(
    name: str, tensor: Any, dtype: Any = None, shape: tuple[Any, ...] | None = None, *, package: str = ""
) -> None:
    """Raise ArgumentError unless a tensor of torch is contiguous, and of this type and shape: (..., n) ends with n."""
    own, last = tuple(tensor.shape), tuple(n for n in shape or () if n is not ...)
    alike = shape is None or (own[len(own) - len(last) :] == last and (... in shape or len(own) == len(last)))
    wanted = ["contiguous", *([] if dtype is None else [f"of {dtype}"]), *([] if shape is None else [f"{shape}"])]
    fits = alike and dtype in (None, tensor.dtype) and tensor.is_contiguous()
    strides = "" if tensor.is_contiguous() else f" with strides {tuple(tensor.stride())}"
    _require(fits, f"{name} of {tensor.dtype} {own}{strides}", ", ".join(wanted).replace("Ellipsis", "..."), package)


def _require(holds: bool, what: str, hint: str, package: str) -> None:
    if not holds:
        raise ArgumentError(what, at=line_outside_of(package), hint=hint)


def require_rows(
    name: str, tensor: Any, rows: Any, columns: Any, *dtypes: Any, bits: int = 0, apart: bool = False, package: str = ""
) -> None:
    """Refuse a tensor, in a launcher, unless it has this many rows or more, of this many elements.

    rows, columns: integers, or numbers of the launch. dtypes: what its type may be, by default any. bits: of an
    element, by default as in the tensor. apart: it is a matrix of any row stride; otherwise rows follow one another, of
    one dimension or several, or all in one dimension.
    """
    require_tensor(name, tensor, *dtypes or (tensor.dtype,), package=package)
    extents, columns = _extents(tensor), _in_elements(columns, bits, tensor)
    if apart:
        dimensions = "one dimension" if len(extents) == 1 else f"{len(extents)} dimensions"
        _require(len(extents) == 2, f"{name} of {dimensions}", "rows of a matrix, of two dimensions", package)
        holds = (extents[1] == columns) & (extents[0] >= rows)
    else:
        holds = _is_row(extents, columns) & (_product(extents) >= fx.Int64(rows) * columns) & _is_dense(tensor, extents)
    how = "" if apart else ", contiguous"
    _refuse_unless(
        holds, package, name, extents, f"{{}} elements a row here, and {{}} rows or more{how}", columns, rows
    )


def require_pitch(
    name: str, tensor: Any, rows: Any, columns: int, pitch: Any, *dtypes: Any, bits: int = 0, package: str = ""
) -> None:
    """Refuse a tensor, in a launcher, that does not hold `rows` rows of `columns` elements, `pitch` apart.

    dtypes, bits: see `require_rows`.
    """
    require_tensor(name, tensor, *dtypes or (tensor.dtype,), package=package)
    extents = _extents(tensor)
    steps = [fx.Int64(extent - 1) * fx.get_scalar(tensor.stride[i]) for i, extent in enumerate(extents)]
    wanted, apart = (_in_elements(fx.Int64(n), bits, tensor) for n in ((rows - 1) * fx.Int64(pitch) + columns, pitch))
    holds = (rows == 0) | (sum(steps[1:], steps[0]) + 1 >= wanted) & (apart >= _in_elements(columns, bits, tensor))
    _refuse_unless(holds, package, name, extents, "{} rows of {} elements here, {} apart", rows, columns, pitch)


def require_elements(
    name: str, tensor: Any, count: Any, *dtypes: Any, bits: int = 0, or_more: bool = False, package: str = ""
) -> None:
    """Refuse a tensor, in a launcher, unless it has this many contiguous elements, in any shape.

    count: an integer that is known, or an Int32 of the launch. dtypes, bits: see `require_rows`.
    """
    require_tensor(name, tensor, *dtypes or (tensor.dtype,), package=package)
    extents, wanted = _extents(tensor), _in_elements(count, bits, tensor)
    total = _product(extents)
    holds = (total >= wanted if or_more else total == wanted) & _is_dense(tensor, extents)
    more = " or more" if or_more else ""
    _refuse_unless(holds, package, name, extents, f"{{}} elements{more} here, contiguous", wanted)


def require_least(tensors: Mapping[str, Any], *, package: str = "", **wanted: tuple[Any, Any]) -> None:
    """Refuse tensors of other types, or of fewer elements: name -> (its type, or several in a tuple, elements)."""
    for name, (kinds, count) in wanted.items():
        require_tensors(tensors, package=package, **{name: kinds})
        require_elements(name, tensors[name], count, or_more=True, package=package)


@flyc.jit
def _refuse_unless(holds: Any, package: str, name: str, extents: list[Any], wanted: str, *numbers: Any) -> None:
    if not holds:
        fx.refuse(f"{name} of {{}}: {wanted}", tuple(extents), *numbers, package=package)


def _in_elements(count: Any, bits: int, tensor: Any) -> Any:
    """The size of a tensor in elements of `bits` bits, which it may hold as bytes or words."""
    width = tensor.dtype.width
    return count if bits in (0, width) else count * bits // width


def _extents(tensor: Any) -> list[Any]:
    shape = tensor.shape
    return [fx.get_scalar(shape[i]) for i in range(fx.rank(tensor))]


def _is_row(extents: list[Any], columns: Any) -> Any:
    """True if the last dimensions, any number of them, are a row; one dimension has whole rows.

    The host divides, so never by columns that a launch has none of.
    """
    if len(extents) == 1:
        return extents[0] % (columns if isinstance(columns, int) else fx.max(columns, 1)) == 0
    holds: Any = fx.Boolean(False)
    for i in range(1, len(extents)):
        holds = holds | (_product(extents[i:]) == columns)
    return holds


def _product(extents: list[Any]) -> Any:
    """The number of elements: of one dimension an Int32, as extents are."""
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
