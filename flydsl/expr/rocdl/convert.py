"""Conversion instructions between f32 and packed formats.

fp8 and bf8 are the target's own: E4M3FNUZ and E5M2FNUZ on gfx942, the OCP formats E4M3FN and E5M2 after it. Four of
them share an i32; `word_sel` names the half, `byte_sel` the byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir

from flydsl.atoms.instruction_sets import FROM_CDNA3, GFX12
from flydsl.dialect.location import argument_error
from flydsl.errors import how_to_make
from flydsl.expr.numbers.vector_value import Vector
from flydsl.expr.numeric import BFloat16, Float32, Int32
from flydsl.expr.rocdl.intrinsic import (
    as_type,
    call,
    call_intrinsic,
    i32_attribute,
    ir_type,
    operand,
    require_target,
    result_type_first,
)
from flydsl.expr.tracing.described import described
from flydsl.expr.tracing.immediates import immediate

__all__ = [
    "cvt_f32_bf8", "cvt_f32_fp8", "cvt_off_f32_i4", "cvt_pk_bf8_f32", "cvt_pk_bf16_f32", "cvt_pk_f32_bf8",
    "cvt_pk_f32_fp8", "cvt_pk_fp8_f32", "cvt_pkrtz", "cvt_sr_bf8_f32", "cvt_sr_fp8_f32",
]  # fmt: skip

_ARCHS = (*FROM_CDNA3, *GFX12)


def _check(name: str, res: Any, kind: ir.Type) -> ir.Type:
    require_target(name, _ARCHS)
    if res is not None and ir_type(name, res) != kind:
        raise argument_error(f"{name}: the result is {kind}, not {ir_type(name, res)}", how_to_make.RESULT)
    return kind


def _word(name: str, word_sel: Any) -> dict[str, ir.Attribute]:
    return {"wordSel": ir.BoolAttr.get(bool(immediate(f"word_sel of {name}", word_sel, 0, 1)))}


def _byte(name: str, byte_sel: Any) -> dict[str, ir.Attribute]:
    return {"byteSel": i32_attribute(immediate(f"byte_sel of {name}", byte_sel, 0, 3))}


def _floats(name: str, *values: Any) -> list[ir.Value]:
    return [operand(name, value, Float32) for value in values]


def _packed(name: str, value: Any) -> ir.Value:
    """Four bytes as an i32, or as a vector with the same number of bits."""
    return operand(name, value, Int32) if isinstance(value, int) else as_type(name, value, Int32.ir_type)


def _unpack(fmt: str) -> Callable[..., Any]:
    name = f"cvt_f32_{fmt}"

    @result_type_first
    def convert(res: Any, src_a: Any, byte_sel: Any) -> Any:
        kind = _check(name, res, Float32.ir_type)
        return call(name.replace("_", "."), [_packed(name, src_a)], kind, _byte(name, byte_sel))

    return described(convert, name, f"One {fmt} number, byte `byte_sel` of an i32, as f32.")


def _unpack_pair(fmt: str) -> Callable[..., Any]:
    name = f"cvt_pk_f32_{fmt}"

    @result_type_first
    def convert(res: Any, src: Any, word_sel: Any) -> Any:
        kind = _check(name, res, ir.VectorType.get([2], Float32.ir_type))
        return call(name.replace("_", "."), [_packed(name, src)], kind, _word(name, word_sel))

    return described(convert, name, f"Two {fmt} numbers, half `word_sel` of an i32, as a vector of f32.")


def _pack_pair(fmt: str) -> Callable[..., Any]:
    name = f"cvt_pk_{fmt}_f32"

    @result_type_first
    def convert(res: Any, src_a: Any, src_b: Any, old: Any, word_sel: Any) -> Any:
        kind = _check(name, res, Int32.ir_type)
        operands = [*_floats(name, src_a, src_b), _packed(name, old)]
        return call(name.replace("_", "."), operands, kind, _word(name, word_sel))

    return described(convert, name, f"`old` with half `word_sel` replaced by two f32 rounded to {fmt}.")


def _pack_stochastic(fmt: str) -> Callable[..., Any]:
    name = f"cvt_sr_{fmt}_f32"

    @result_type_first
    def convert(res: Any, src_a: Any, src_b: Any, old: Any, byte_sel: Any) -> Any:
        kind = _check(name, res, Int32.ir_type)
        operands = [*_floats(name, src_a), operand(name, src_b, Int32), _packed(name, old)]
        return call(name.replace("_", "."), operands, kind, _byte(name, byte_sel))

    doc = f"`old` with byte `byte_sel` replaced by f32 `src_a`, rounded to {fmt} at random by the bits of `src_b`."
    return described(convert, name, doc)


cvt_f32_fp8, cvt_f32_bf8 = _unpack("fp8"), _unpack("bf8")
cvt_pk_f32_fp8, cvt_pk_f32_bf8 = _unpack_pair("fp8"), _unpack_pair("bf8")
cvt_pk_fp8_f32, cvt_pk_bf8_f32 = _pack_pair("fp8"), _pack_pair("bf8")
cvt_sr_fp8_f32, cvt_sr_bf8_f32 = _pack_stochastic("fp8"), _pack_stochastic("bf8")


def cvt_pk_bf16_f32(src_a: Any, src_b: Any) -> Any:
    """Round two f32 to bf16. The first is in the lower half of an Int32."""
    pair = [Float32.of(value) for value in _floats("cvt_pk_bf16_f32", src_a, src_b)]
    return Vector.from_elements(pair).to(BFloat16).bitcast(Int32)[0]


def cvt_off_f32_i4(src: Any, byte_sel: Any = None) -> Any:
    """n / 16 as f32, for the signed number n in the lowest 4 bits of an i32, or of its byte `byte_sel`."""
    byte = 0 if byte_sel is None else immediate("byte_sel of cvt_off_f32_i4", byte_sel, 0, 3)
    word = Int32.of(operand("cvt_off_f32_i4", src, Int32)) >> (8 * byte)
    if byte in (1, 2):  # then the backend reads the byte where it is
        word = word & 0xFF
    return Float32.of(call_intrinsic("llvm.amdgcn.cvt.off.f32.i4", [word.ir_value()], Float32.ir_type))


@result_type_first
def cvt_pkrtz(res: Any, src_a: Any, src_b: Any) -> Any:
    """Convert two f32 to a vector of f16, rounded towards zero."""
    kind = ir.VectorType.get([2], ir.F16Type.get())
    if res is not None and ir_type("cvt_pkrtz", res) != kind:
        raise argument_error(f"cvt_pkrtz: the result is {kind}, not {ir_type('cvt_pkrtz', res)}", how_to_make.RESULT)
    return call("cvt.pkrtz", _floats("cvt_pkrtz", src_a, src_b), kind)
