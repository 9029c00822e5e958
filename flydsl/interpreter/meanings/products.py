"""The meaning of matrix instructions: their thread-value layouts place the values of a wave's lanes in tiles, which are
multiplied.

Sums are taken in float64 and rounded once, so that a result may differ from the hardware's in the last place.
"""

from __future__ import annotations

from functools import cache
from typing import cast

import numpy as np
from mlir import ir

from flydsl.atoms import MFMA, MFMAScale, MmaOp, ScaledOp, UniversalFMA
from flydsl.atoms.mfma import INSTRUCTIONS
from flydsl.atoms.scaled import FORMATS, WMMAScale
from flydsl.atoms.wmma import wmma_of
from flydsl.atoms.wmma_intrinsics import WMMA_NAMES, wmma_intrinsic
from flydsl.dialect.atom_inference import mma_value_type
from flydsl.dialect.elements import element_bits, element_type
from flydsl.dialect.location import trace_error
from flydsl.errors import ArgumentError
from flydsl.interpreter.elements import Array, dtype_of, element_name, recast, rounded, shape_of
from flydsl.interpreter.execution import MEANINGS, Execution, means
from flydsl.layout import size

_SCALE_OF_ONE = 0x7F7F7F7F
_ELEMENTS_OF_A_SCALE = 32
_MLIR_NAMES = {"iu8": "i8", "iu4": "i4", "fp8": "f8E4M3FN", "bf8": "f8E5M2", "xf32": "f32"}


def multiply(x: Execution, mma: MmaOp, values: list[Array], kinds: list[ir.Type], scales: dict[str, Array]) -> Array:
    """A * B + C of one call. values: of A, B and C in each lane, of these types. scales: set on the atom, by name."""
    if isinstance(mma, UniversalFMA):
        a, b, c = (value.astype(np.float64) for value in values)
        return rounded(a * b + c, mma.element)
    a, b, c = (_tile(x, mma, *given) for given in zip("abc", values, kinds, strict=True))
    if isinstance(mma, ScaledOp):
        a, b = a * _scales(x, mma, "a", scales), b * _scales(x, mma, "b", scales)
    total = _product(mma, a, b, c)
    return _of_lanes(x, mma, total, kinds[2])


def _product(mma: MmaOp, a: Array, b: Array, c: Array) -> Array:
    """D of whole tiles: (waves, rows, columns)."""
    blocks = mma.blocks if isinstance(mma, MFMA) else 1
    if mma.element_of("a") == "f32" and isinstance(mma, MFMA) and mma.instruction.intrinsic.elements[0] == "xf32":
        a, b = (_as_xf32(value) for value in (a, b))
    waves, m, n = len(a), a.shape[1] // blocks, b.shape[1] // blocks
    parts = [value.reshape(waves * blocks, rows, -1) for value, rows in ((a, m), (b, n))]
    product = np.matmul(parts[0], parts[1].transpose(0, 2, 1)).reshape(waves, m * blocks, n)
    total = product + c
    if getattr(mma, "clamp", False):
        total = np.clip(total, -(2**31), 2**31 - 1)
    return total


def _as_xf32(numbers: Array) -> Array:
    """f32 numbers rounded to 10 bits of mantissa."""
    bits = numbers.astype(np.float32).view(np.int32).astype(np.int64)
    bits = bits + 0xFFF + ((bits >> 13) & 1) & ~0x1FFF
    return bits.astype(np.int32).view(np.float32).astype(np.float64)


@cache
def _places(mma: MmaOp, operand: str) -> Array:
    """The element of a tile that each thread holds as each of its values."""
    layout = mma.layout_tv(operand)
    threads, values = (cast("int", size(mode)) for mode in (layout[0], layout[1]))
    found: Array = np.array([[layout((t, v)) for v in range(values)] for t in range(threads)])
    return found


def _extents(mma: MmaOp, operand: str) -> tuple[int, int]:
    """The rows and columns of an operand's tile, of all blocks."""
    m, n, k = mma.shape_mnk
    blocks = mma.blocks if isinstance(mma, MFMA) else 1
    return {"a": (m * blocks, k), "b": (n * blocks, k), "c": (m * blocks, n)}[operand]


def _tile(x: Execution, mma: MmaOp, operand: str, value: Array, kind: ir.Type) -> Array:
    """An operand as tiles, (waves, rows, columns)."""
    places, (rows, columns) = _places(mma, operand), _extents(mma, operand)
    numbers = _numbers(mma, operand, value, kind)
    tile = np.zeros((len(x.by_waves(numbers)), rows * columns), numbers.dtype)
    tile[:, places] = x.by_waves(numbers)
    return tile.reshape(-1, columns, rows).transpose(0, 2, 1)


def _numbers(mma: MmaOp, operand: str, value: Array, kind: ir.Type) -> Array:
    """The numbers (lanes, values) in the registers of an operand, wide enough to add up."""
    element, count = mma.element_of(operand), _places(mma, operand).shape[1]
    values = ir.VectorType.get([count], element_type(element))
    held = recast(value, kind, values) if kind != values else value
    numbers = held.reshape(len(held), count)
    if not np.issubdtype(numbers.dtype, np.integer):
        return numbers.astype(np.float64)
    bits = element_bits(element)
    unsigned = operand != "c" and hasattr(mma, "sign_a") and not getattr(mma, f"sign_{operand}")
    return numbers.astype(np.int64) & ((1 << bits) - 1) if unsigned else numbers.astype(np.int64)


def _of_lanes(x: Execution, mma: MmaOp, total: Array, kind: ir.Type) -> Array:
    """A tile of D as each lane's values."""
    flat = total.transpose(0, 2, 1).reshape(len(total), -1)
    held = x.by_lanes(flat[:, _places(mma, "c")])
    element = mma.element_of("c")
    held = held.astype(np.float32) if element == "f32" else rounded(held, element)
    result = held.astype(dtype_of(element_name(kind)), copy=False)
    return result.reshape(len(result), *shape_of(kind))


def _scales(x: Execution, mma: ScaledOp, side: str, scales: dict[str, Array]) -> Array:
    """The factor of each element of A or B: (waves, rows, k)."""
    given = scales.get(f"scale_{side}", np.full(1, _SCALE_OF_ONE, np.int32))
    opsel = mma.opsel_a if side == "a" else mma.opsel_b
    rows, k = _extents(mma, side)
    words = x.by_waves(np.ascontiguousarray(given)).view(np.uint32).reshape(-1, x.wave_size)
    row, block = np.meshgrid(np.arange(rows), np.arange(k // _ELEMENTS_OF_A_SCALE), indexing="ij")
    if isinstance(mma, MFMAScale):
        codes = words[:, row + rows * block] >> np.uint32(8 * opsel)
    else:
        codes = words[:, row + (16 * opsel if rows == 16 else 0)] >> (8 * block).astype(np.uint32)
    codes = (codes & np.uint32(0xFF)).astype(np.int64)
    factors = np.where(codes == 0xFF, np.nan, np.exp2(codes.astype(np.float64) - 127))
    return np.repeat(factors, _ELEMENTS_OF_A_SCALE, axis=2)


# --- by their names --------------------------------------------------------------------------------------------------


@cache
def _mfma_of(operation: str, arch: str) -> MFMA | None:
    for row in INSTRUCTIONS.values():
        if row.intrinsic.operation == operation and arch in row.archs:
            return MFMA(row.intrinsic.m, row.intrinsic.n, row.intrinsic.k, row.a, row.b, row.c)
    return None


@means("rocdl.mfma.*")
def _mfma(x: Execution, op: ir.Operation, *operands: Array) -> Array:
    kinds = [value.type for value in op.operands]
    if op.name.startswith("rocdl.mfma.scale."):
        return _mfma_scale(x, op, kinds, *operands)
    mma = _mfma_of(op.name, x.arch.name)
    if mma is None:
        raise trace_error(f"the interpreter has no {op.name} of {x.arch.name}", "run the kernel compiled")
    if any(number.any() for number in operands[3:]):
        raise trace_error(f"the interpreter has no cbsz, abid and blgp of {op.name}", "run the kernel compiled")
    return multiply(x, mma, list(operands[:3]), kinds[:3], {})


def _mfma_scale(x: Execution, op: ir.Operation, kinds: list[ir.Type], *operands: Array) -> Array:
    a, b, c, code_a, code_b, opsel_a, scale_a, opsel_b, scale_b = operands
    m, _, k = _shape(op.name)
    names = {code: name for name, (code, _) in FORMATS.items()}
    formats = [names[int(code[0])] for code in (code_a, code_b)]
    mma = MFMAScale(m, m, k, formats[0], formats[1], "f32", int(opsel_a[0]), int(opsel_b[0]))
    unscaled = not (scale_a.any() or scale_b.any() or opsel_a.any() or opsel_b.any())
    scales = {} if unscaled else {"scale_a": scale_a, "scale_b": scale_b}
    values = [_fitted(value, kind, mma, side) for value, kind, side in zip((a, b), kinds, "ab", strict=False)]
    return multiply(x, mma, [values[0][0], values[1][0], c], [values[0][1], values[1][1], kinds[2]], scales)


def _fitted(value: Array, kind: ir.Type, mma: ScaledOp, side: str) -> tuple[Array, ir.Type]:
    """An operand without the registers that its format does not take."""
    fitting = mma_value_type(mma, side, "i32")
    return value[:, : fitting.shape[0]], fitting


def _shape(name: str) -> tuple[int, int, int]:
    """The shape in an instruction's name: `rocdl.wmma.scale.f32.16x16x128.f8f6f4`."""
    part = next(part for part in name.split(".") if part.count("x") == 2)
    m, n, k = (int(extent) for extent in part.split("x"))
    return m, n, k


@means("rocdl.wmma.scale.*")
def _wmma_scale(x: Execution, op: ir.Operation, *operands: Array) -> Array:
    a, b, c, scale_a, scale_b = operands
    given = {name: op.attributes[name] for name in op.attributes}
    attributes = {name: int(value.value) for name, value in given.items() if hasattr(value, "value")}
    if str(op.operands[3].type) != "i32" or attributes.get("fmtScaleA") or attributes.get("fmtScaleB"):
        raise trace_error(f"the interpreter has E8M0 scales of 32 elements only for {op.name}", "run it compiled")
    m, n, k = _shape(op.name)
    names = {code: name for name, (code, _) in FORMATS.items()}
    default = FORMATS["f4E2M1FN"][0] if m == 32 else 0
    formats = [names[attributes.get(f"fmt{side}", default)] for side in "AB"]
    opsel = [attributes.get(f"scale{side}Type", 0) for side in "AB"]
    mma = WMMAScale(m, n, k, formats[0], formats[1], "f32", *opsel)
    kinds = [value.type for value in op.operands]
    values = [_fitted(value, kind, mma, side) for value, kind, side in zip((a, b), kinds, "ab", strict=False)]
    scales = {"scale_a": scale_a, "scale_b": scale_b}
    return multiply(x, mma, [values[0][0], values[1][0], c], [values[0][1], values[1][1], kinds[2]], scales)


def _wmma(x: Execution, op: ir.Operation, *operands: Array) -> Array:
    name = op.name.removeprefix("rocdl.").replace(".", "_")
    form = wmma_intrinsic(name, x.arch.name)
    a, b, c = (_MLIR_NAMES.get(element, element) for element in form.elements)
    set_ = {key for key in ("signA", "signB", "clamp", "opsel", "modC") if key in op.attributes}
    set_ = {key for key in set_ if int(op.attributes[key].value)}
    signs = "signA" in set_, "signB" in set_, "clamp" in set_
    try:
        is_integer = c == "i32"
        mma = wmma_of(x.arch.name, (form.m, form.n, form.k), (a, b, c), signs if is_integer else (False, False, False))
        if set_ & {"opsel", "modC"} or form.sparse:
            raise ArgumentError("modifiers")
    except ArgumentError:
        raise trace_error(f"the interpreter has no {op.name} of this form", "run the kernel compiled") from None
    return multiply(x, mma, list(operands[:3]), [value.type for value in list(op.operands)[:3]], {})


for _name in WMMA_NAMES:
    if _name.startswith("wmma"):
        MEANINGS[f"rocdl.{'.'.join(_name.split('_', 3))}"] = _wmma
