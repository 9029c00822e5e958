"""Matrix instructions of RDNA and gfx1250 called by name: `rocdl.wmma_f32_16x16x16_f16(res, a, b, c)`.

The operands stand in a list or one by one. Every lane of a wave of 32 passes its part of the matrices, in the registers
that the target's form of the instruction has (`flydsl.atoms.wmma_intrinsics`); they may hold their elements in any form
of the right width, so BFloat16 does for 16-bit integers. Modifiers are keywords, part of the instruction, and 0 where
left out:

- signA, signB: the integers are signed; for floats of gfx1250, the operand is negated. clamp: saturate the result.
- opsel: the result's halves of registers on RDNA 3. modC: 1 negates C, 2 takes its absolute value, 3 both.
- reuseA, reuseB: hints that the next instruction has the same operand (gfx1250).

`swmmac_...` takes a, b, c, index. `wmma_scale_...` takes a, b, c, scaleA, scaleB, with fmtA and fmtB (0 fp8, 1 bf8,
2 fp6, 3 bf6, 4 fp4), scaleAType and scaleBType (0: the scales of lanes 0 to 15, 1: of 16 to 31), fmtScaleA and
fmtScaleB (0 E8M0, 1 E5M3, 2 E4M3). A scale is 4 of 8 bits in 32, or 8 in 64 for `wmma_scale16_...`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlir import ir

from flydsl.atoms.instruction_sets import GFX1250
from flydsl.atoms.wmma_intrinsics import SCALED_WMMA, WMMA_NAMES, WmmaIntrinsic, wmma_archs, wmma_intrinsic
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import argument_error
from flydsl.errors import how_to_make
from flydsl.expr.numeric import Boolean, Int16, Int32, Int64
from flydsl.expr.rocdl.intrinsic import (
    as_type,
    bits_of,
    call,
    call_intrinsic,
    intrinsic_result,
    ir_type,
    operand,
    require_target,
    result_type_first,
    value_of,
)
from flydsl.expr.tracing.described import described
from flydsl.expr.tracing.emit import target_name
from flydsl.expr.tracing.immediates import immediate

# Modifier -> its largest value and the width of its attribute.
_MODIFIERS = {
    "signA": (1, 1), "signB": (1, 1), "clamp": (1, 1), "opsel": (1, 1), "reuseA": (1, 1), "reuseB": (1, 1),
    "modC": (3, 16), "fmtA": (4, 32), "fmtB": (4, 32), "scaleAType": (1, 32), "scaleBType": (1, 32),
    "fmtScaleA": (2, 32), "fmtScaleB": (2, 32),
}  # fmt: skip
_SCALED_MODIFIERS = ("modC", "scaleAType", "fmtScaleA", "scaleBType", "fmtScaleB", "reuseA", "reuseB")
_INDEX = {16: Int16, 32: Int32, 64: Int64}


def _named(name: str) -> Callable[..., Any]:
    archs = wmma_archs(name)

    @result_type_first
    def instruction(res: Any, *operands: Any, **modifiers: Any) -> Any:
        require_target(name, archs)
        form = wmma_intrinsic(name, target_name())
        listed = _listed(name, operands, 3 + form.sparse)
        _check_result(name, res, form.d)
        numbers = _numbers(name, modifiers, form.modifiers)
        types = [ir.Type.parse(text) for text in (form.a, form.b, form.c)]
        matrices = [
            as_type(f"operand {matrix} of {name}", value, kind)
            for matrix, value, kind in zip("abc", listed, types, strict=False)
        ]
        if form.sparse:
            return intrinsic_result(_sparse(form, matrices, listed[3], numbers))
        return call(form.operation.removeprefix("rocdl."), matrices, ir.Type.parse(form.d), _attributes(numbers))

    return _described(instruction, name, f"For {', '.join(archs)}.")


def _listed(name: str, operands: tuple[Any, ...], count: int) -> list[Any]:
    """The operands, which may be given as one list."""
    given = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], list | tuple) else list(operands)
    if len(given) != count:
        raise argument_error(f"{name} takes {count} operands, not {len(given)}", "its docstring has them in order")
    return given


def _check_result(name: str, res: Any, kind: str) -> None:
    if res is not None and ir_type(name, res) != ir.Type.parse(kind):
        raise argument_error(f"{name}: the result is {kind}, not {ir_type(name, res)}", how_to_make.RESULT)


def _numbers(name: str, given: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, int]:
    """The modifiers as integers; None is as if left out."""
    given = {key: value for key, value in given.items() if value is not None}
    unknown = [key for key in given if key not in known]
    if unknown:
        hint = f"modifiers: {', '.join(known)}" if known else "it has no modifiers"
        raise argument_error(f"{name} has no {', '.join(unknown)} on {target_name()}", hint)
    return {key: immediate(f"{key} of {name}", value, 0, _MODIFIERS[key][0]) for key, value in given.items()}


def _attributes(numbers: Mapping[str, int]) -> dict[str, ir.Attribute]:
    return {
        key: ir.IntegerAttr.get(element_type(f"i{_MODIFIERS[key][1]}"), number) if _MODIFIERS[key][1] > 1
        else ir.BoolAttr.get(bool(number))
        for key, number in numbers.items()
    }  # fmt: skip


def _sparse(form: WmmaIntrinsic, matrices: list[ir.Value], index: Any, numbers: Mapping[str, int]) -> ir.Value:
    """A sparse instruction, for which ROCDL has no operation: in LLVM a sign comes before the matrix that it is of."""

    def flags(*names: str) -> list[ir.Value]:
        return [Boolean(bool(numbers.get(key, 0))).ir_value() for key in names if key in form.modifiers]

    a, b, c = matrices
    operands = [*flags("signA"), a, *flags("signB"), b, c, _index(form, index), *flags("reuseA", "reuseB", "clamp")]
    return call_intrinsic(f"llvm.amdgcn.{form.name.replace('_', '.')}", operands, ir.Type.parse(form.d))


def _index(form: WmmaIntrinsic, index: Any) -> ir.Value:
    """The index operand. One of 16 bits may be the lower half of an Int32."""
    wanted = _INDEX[form.index_bits]
    what = f"the index of {form.name}"
    if wanted is Int16 and not isinstance(index, int) and bits_of(value_of(what, index).type) == Int32.width:
        return Int16(Int32.of(as_type(what, index, Int32.ir_type))).ir_value()
    return operand(what, index, wanted) if isinstance(index, int) else as_type(what, index, wanted.ir_type)


def _scaled(name: str, scale_bits: int) -> Callable[..., Any]:
    is_fp4 = name.endswith("_f4")
    result = "vector<16xf32>" if is_fp4 else "vector<8xf32>"
    known = _SCALED_MODIFIERS if is_fp4 else ("fmtA", "fmtB", *_SCALED_MODIFIERS)

    @result_type_first
    def instruction(res: Any, *operands: Any, **modifiers: Any) -> Any:
        require_target(name, GFX1250)
        a, b, c, scale_a, scale_b = _listed(name, operands, 5)
        _check_result(name, res, result)
        numbers = _numbers(name, modifiers, known)
        words = (16, 8) if is_fp4 else tuple(_WORDS[numbers.get(key, 0)] for key in ("fmtA", "fmtB"))
        kinds = [*(f"vector<{count}xi32>" for count in words), result]
        values = [
            as_type(f"operand {matrix} of {name}", value, ir.Type.parse(kind))
            for matrix, value, kind in zip("abc", (a, b, c), kinds, strict=True)
        ]
        scales = [_scale(name, side, value, scale_bits) for side, value in (("A", scale_a), ("B", scale_b))]
        return call(name.replace("_", "."), [*values, *scales], ir.Type.parse(result), _attributes(numbers))

    return _described(instruction, name, f"Scaled, of {'4-bit' if is_fp4 else '8, 6 or 4-bit'} floats. {GFX1250[0]}.")


# 32-bit words in which a lane holds 64 numbers of each format: fp8, bf8, fp6, bf6, fp4.
_WORDS = (16, 16, 12, 12, 8)


def _scale(name: str, side: str, value: Any, bits: int) -> ir.Value:
    what = f"the scale of {side} of {name}"
    if isinstance(value, int):
        return _INDEX[bits](value - (1 << bits) if value >> (bits - 1) == 1 else value).ir_value()
    return as_type(what, value, _INDEX[bits].ir_type)


def _described(function: Callable[..., Any], name: str, text: str) -> Callable[..., Any]:
    return described(function, name, f"Matrix multiply-add of a wave of 32 lanes. {text}")


FUNCTIONS = {name: _named(name) for name in WMMA_NAMES} | {name: _scaled(name, b) for name, b in SCALED_WMMA.items()}
FUNCTIONS |= {f"{name}_": function for name, function in FUNCTIONS.items()}
__all__ = list(FUNCTIONS)
globals().update(FUNCTIONS)
