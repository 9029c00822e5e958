"""Dot products of short vectors in 32 bits, added to a number: `v_dot2`, `v_dot4` and `v_dot8`.

    total = rocdl.udot4(packed_a, packed_b, total)     # four products of bytes

The names are those of MLIR's operations. The result type, `res`, may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir

from flydsl.atoms.instruction_sets import CDNA, CDNA4, RDNA3, RDNA4
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import argument_error
from flydsl.expr.numeric import Boolean
from flydsl.expr.rocdl.intrinsic import (
    call_intrinsic,
    intrinsic_result,
    ir_type,
    operand,
    require_target,
    result_type_first,
)
from flydsl.expr.tracing.described import described
from flydsl.expr.tracing.emit import target_name
from flydsl.expr.tracing.immediates import immediate

__all__ = [
    "dot4_f32_bf8_bf8", "dot4_f32_bf8_fp8", "dot4_f32_fp8_bf8", "dot4_f32_fp8_fp8", "fdot2", "fdot2_bf16_bf16",
    "fdot2_f16_f16", "fdot2_f32_bf16", "sdot2", "sdot4", "sdot8", "sudot4", "sudot8", "udot2", "udot4", "udot8",
]  # fmt: skip

_RDNA = (*RDNA3, *RDNA4)


def _kind(name: str) -> ir.Type:
    """An MLIR type by its name; `2xf16` is a vector."""
    count, _, element = name.rpartition("x")
    return ir.VectorType.get([int(count)], element_type(element)) if count else element_type(name)


def _dot(
    name: str, factor: str, total: str, archs: Sequence[str], what: str, clamps: bool = True
) -> Callable[..., Any]:
    """factor, total: the types of the vectors and of the sum."""

    def emitted(res: Any, a: Any, b: Any, c: Any, tail: Sequence[ir.Value]) -> Any:
        require_target(name, archs)
        if res is not None and ir_type(name, res) != _kind(total):
            raise argument_error(f"{name} with the result {res}", f"it is {total}; the type may be left out")
        factors = [operand(f"a factor of {name}", value, _kind(factor)) for value in (a, b)]
        operands = [*factors, operand(f"the sum of {name}", c, _kind(total)), *tail]
        found = call_intrinsic(f"llvm.amdgcn.{name.replace('_', '.')}", operands, _kind(total))
        return intrinsic_result(found)

    if clamps:

        @result_type_first
        def function(res: Any, a: Any, b: Any, c: Any, *, clamp: bool | None = None) -> Any:
            return emitted(res, a, b, c, [_flag(f"clamp of {name}", clamp)])

    else:

        @result_type_first
        def function(res: Any, a: Any, b: Any, c: Any) -> Any:
            return emitted(res, a, b, c, [])

    limits = "; clamp: the sum stays at the limits of its type" if clamps else ""
    return described(function, name, f"{what}, and c ({total}). a, b: {factor}{limits}. {', '.join(archs)}.")


def _flag(what: str, value: Any) -> ir.Value:
    return Boolean(bool(immediate(what, 0 if value is None else value, 0, 1))).ir_value()


def _mixed(name: str, count: int) -> Callable[..., Any]:
    @result_type_first
    def function(
        res: Any, a: Any, b: Any, c: Any, *, sign_a: bool | None = None, sign_b: bool | None = None,
        clamp: bool | None = None,
    ) -> Any:  # fmt: skip
        require_target(name, _RDNA)
        i32 = element_type("i32")
        first, second = (operand(f"a factor of {name}", value, i32) for value in (a, b))
        signs = [_flag(f"sign of {name}", sign) for sign in (sign_a, sign_b)]
        total = operand(f"the sum of {name}", c, i32)
        operands = [signs[0], first, signs[1], second, total, _flag(f"clamp of {name}", clamp)]
        return intrinsic_result(call_intrinsic(f"llvm.amdgcn.{name}", operands, i32))

    return described(
        function,
        name,
        f"The sum of {count} products of integers of {32 // count} bits, and c. sign_a, sign_b: read them with a sign. "
        f"clamp: the sum stays at the limits of 32 bits. {', '.join(_RDNA)}.",
    )


def _signed(name: str, count: int, mixed: Callable[..., Any]) -> Callable[..., Any]:
    """The product of integers with signs, which RDNA has as one of the mixed ones."""
    on_cdna = _dot(name, "i32", "i32", CDNA, "")

    @result_type_first
    def function(res: Any, a: Any, b: Any, c: Any, *, clamp: bool | None = None) -> Any:
        if target_name() in _RDNA:
            return mixed(res, a, b, c, sign_a=True, sign_b=True, clamp=clamp)
        return on_cdna(res, a, b, c, clamp=clamp)

    return described(
        function,
        name,
        f"The sum of {count} products of integers of {32 // count} bits with signs, and c (i32). clamp: the sum stays "
        f"at the limits of 32 bits. {', '.join((*CDNA, *_RDNA))}.",
    )


_TWO = "The sum of two products"
fdot2 = _dot("fdot2", "2xf16", "f32", (*CDNA, *_RDNA), _TWO)
fdot2_f32_bf16 = _dot("fdot2_f32_bf16", "2xbf16", "f32", (*CDNA4, *_RDNA), _TWO)
fdot2_f16_f16 = _dot("fdot2_f16_f16", "2xf16", "f16", _RDNA, _TWO, clamps=False)
fdot2_bf16_bf16 = _dot("fdot2_bf16_bf16", "2xbf16", "bf16", _RDNA, _TWO, clamps=False)
sdot2 = _dot("sdot2", "2xi16", "i32", CDNA, f"{_TWO} with signs")
udot2 = _dot("udot2", "2xi16", "i32", CDNA, f"{_TWO} without signs")
udot4 = _dot("udot4", "i32", "i32", (*CDNA, *_RDNA), "The sum of four products of bytes without signs")
udot8 = _dot("udot8", "i32", "i32", (*CDNA, *_RDNA), "The sum of eight products of integers of 4 bits without signs")
sudot4, sudot8 = _mixed("sudot4", 4), _mixed("sudot8", 8)
sdot4, sdot8 = _signed("sdot4", 4, sudot4), _signed("sdot8", 8, sudot8)
dot4_f32_fp8_fp8, dot4_f32_fp8_bf8, dot4_f32_bf8_fp8, dot4_f32_bf8_bf8 = (
    _dot(f"dot4_f32_{a}_{b}", "i32", "f32", RDNA4, f"The sum of four products of {a} and {b}", clamps=False)
    for a in ("fp8", "bf8")
    for b in ("fp8", "bf8")
)
