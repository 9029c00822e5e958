"""Matrix instructions called by name: `rocdl.mfma_f32_16x16x16f16(res, [a, b, c, cbsz, abid, blgp])`.

The operands stand in a list or one by one. Every lane passes its part of the matrices. Operands may hold their
elements in any form of the right width, so 8 fp8 numbers do for the i64 that the instruction takes. The three
trailing numbers are part of the instruction, and 0 where left out: cbsz and abid broadcast blocks of A, blgp permutes
the lanes of B. `smfmac_...` takes [a, b, c, index, cbsz, abid]; `mfma_scale_...` takes [a, b, c, cbsz, blgp, opsel_a,
scale_a, opsel_b, scale_b].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir

from flydsl.atoms.matrix_intrinsics import MATRIX_INTRINSICS, SCALED_ARCHS, SCALED_MATRIX_INTRINSICS, MatrixIntrinsic
from flydsl.dialect.location import argument_error
from flydsl.errors import how_to_make
from flydsl.expr.numeric import Int32
from flydsl.expr.rocdl.intrinsic import (
    as_type,
    bits_of,
    call,
    ir_type,
    operand,
    require_target,
    result_type_first,
    value_of,
)
from flydsl.expr.tracing.described import described
from flydsl.expr.tracing.immediates import immediate

_CBSZ_MAX, _ABID_MAX, _BLGP_MAX = 7, 15, 7
_SCALED_FORMAT_MAX = 4  # fp8, bf8, fp6, bf6, fp4
_OPSEL_MAX = 3


def _listed(what: str, operands: Any, least: int, most: int) -> list[Any]:
    if not isinstance(operands, Sequence) or not least <= len(operands) <= most:
        raise argument_error(
            f"{what} takes a list of {least} to {most} operands, not {operands!r}",
            "[a, b, c], and perhaps cbsz, abid, blgp",
        )
    return list(operands) + [0] * (most - len(operands))


def _operands(listed: tuple[Any, ...]) -> Any:
    """The operands, which may be given as one list."""
    return listed[0] if len(listed) == 1 else listed


def _check_result(what: str, res: Any, kind: ir.Type) -> None:
    if res is not None and ir_type(what, res) != kind:
        raise argument_error(f"{what}: the result is {kind}, not {ir_type(what, res)}", how_to_make.RESULT)


def _constants(*numbers: int) -> list[ir.Value]:
    return [Int32(number).ir_value() for number in numbers]


def _named(intrinsic: MatrixIntrinsic) -> Callable[..., Any]:
    name, operation = intrinsic.name, intrinsic.name.replace("_", ".")

    @result_type_first
    def instruction(res: Any, *listed: Any) -> Any:
        operands = _operands(listed)
        require_target(name, intrinsic.archs)
        types = [ir.Type.parse(text) for text in (intrinsic.a, intrinsic.b, intrinsic.c)]
        _check_result(name, res, types[2])
        given = _listed(name, operands, 3 + intrinsic.sparse, 6)
        matrices = [
            as_type(f"operand {matrix} of {name}", value, kind)
            for matrix, value, kind in zip("abc", given, types, strict=False)
        ]
        if intrinsic.sparse:
            index = as_type(f"the index of {name}", given[3], Int32.ir_type)
            modifiers = [index, *_constants(*_modifiers(name, given[4:], "cbsz", "abid"))]
        else:
            modifiers = _constants(*_modifiers(name, given[3:], "cbsz", "abid", "blgp"))
        return call(operation, [*matrices, *modifiers], types[2])

    return _described(instruction, name, f"{intrinsic.m} x {intrinsic.n} x {intrinsic.k}: a {intrinsic.a}, "
                      f"b {intrinsic.b}, c and the result {intrinsic.c}.")  # fmt: skip


def _modifiers(name: str, numbers: list[Any], *names: str) -> list[int]:
    largest = {"cbsz": _CBSZ_MAX, "abid": _ABID_MAX, "blgp": _BLGP_MAX}
    return [immediate(f"{n} of {name}", number, 0, largest[n]) for n, number in zip(names, numbers, strict=True)]


def _scaled(name: str) -> Callable[..., Any]:
    results = {"16x16x128": "vector<4xf32>", "32x32x64": "vector<16xf32>"}
    result = next(kind for shape, kind in results.items() if shape in name)

    @result_type_first
    def instruction(res: Any, *listed: Any) -> Any:
        operands = _operands(listed)
        require_target(name, SCALED_ARCHS)
        kind = ir.Type.parse(result)
        _check_result(name, res, kind)
        a, b, c, cbsz, blgp, opsel_a, scale_a, opsel_b, scale_b = _listed(name, operands, 3, 9)
        formats = [immediate(f"{n} of {name}", v, 0, _SCALED_FORMAT_MAX) for n, v in (("cbsz", cbsz), ("blgp", blgp))]
        selected = [immediate(f"opsel of {name}", v, 0, _OPSEL_MAX) for v in (opsel_a, opsel_b)]
        matrices = [_registers(name, a, formats[0]), _registers(name, b, formats[1]), as_type(name, c, kind)]
        scales = [operand(f"the scale of {name}", scale, Int32) for scale in (scale_a, scale_b)]
        first, second = ([number, scale] for number, scale in zip(_constants(*selected), scales, strict=True))
        return call(name.replace("_", "."), [*matrices, *_constants(*formats), *first, *second], kind)

    return _described(instruction, name, f"a and b: 32 numbers of 4, 6 or 8 bits; c and the result {result}.")


def _registers(name: str, value: Any, number_format: int) -> ir.Value:
    """32 numbers of 8, 6 or 4 bits as a vector of i32."""
    registers = (8, 8, 6, 6, 4)[number_format]
    given = value_of(name, value)
    wanted = 8 if bits_of(given.type) == 256 else registers
    return as_type(name, value, ir.VectorType.get([wanted], Int32.ir_type))


def _described(function: Callable[..., Any], name: str, text: str) -> Callable[..., Any]:
    return described(function, name, f"Matrix multiply-add of a wave. {text}")


def _spread(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The form with a trailing underscore in its name, which takes the operands one by one."""

    def instruction(res: Any, *operands: Any) -> Any:
        return function(res, operands)

    return _described(instruction, f"{name}_", f"The operands of `{name}`, not in a list.")


# Names that FlyDSL's documents have for instructions. The fp8 is the target's.
_OTHER_NAMES = {
    "mfma_f32_16x16x16_f16": "mfma_f32_16x16x16f16",
    "mfma_f32_16x16x32_fp8": "mfma_f32_16x16x32_fp8_fp8",
    "mfma_i32_16x16x32i8": "mfma_i32_16x16x32_i8",
}
FUNCTIONS = {i.name: _named(i) for i in MATRIX_INTRINSICS.values()} | {
    name: _scaled(name) for name in SCALED_MATRIX_INTRINSICS
}
FUNCTIONS |= {other: FUNCTIONS[name] for other, name in _OTHER_NAMES.items()}
FUNCTIONS |= {f"{name}_": _spread(name, function) for name, function in FUNCTIONS.items()}
__all__ = list(FUNCTIONS)
globals().update(FUNCTIONS)
