"""Conversions to and from scaled 8, 6 and 4-bit floats: `rocdl.cvt_scalef32_pk_f32_fp4(res, src, scale, 0)`.

The operands are those of `flydsl.atoms.scaled_conversions`, in that order, then the numbers that are part of the
instruction: which byte or half of a register. The result type comes first and may be left out. A scale is an f32, of
which the exponent counts, or for `cvt_scale_...` of gfx1250 an i32 of scales of 8 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir

from flydsl.atoms.scaled_conversions import SCALED_CONVERSIONS, ScaledConversion
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import argument_error
from flydsl.errors import how_to_make
from flydsl.expr.rocdl.intrinsic import as_type, call, ir_type, is_type, operand, require_target
from flydsl.expr.tracing.described import described
from flydsl.expr.tracing.immediates import immediate

__all__ = list(SCALED_CONVERSIONS)


def _function(conversion: ScaledConversion) -> Callable[..., Any]:
    name = conversion.name
    parameters = [key for key, _ in conversion.operands] + [key for key, *_ in conversion.immediates]

    def convert(*arguments: Any, **named: Any) -> Any:
        require_target(name, conversion.archs)
        given = list(arguments)
        res = given.pop(0) if given and (given[0] is None or is_type(given[0])) else named.pop("res", None)
        result = ir.Type.parse(conversion.result)
        if res is not None and ir_type(name, res) != result:
            raise argument_error(f"{name}: the result is {result}, not {ir_type(name, res)}", how_to_make.RESULT)
        values = _bound(name, parameters, given, named)
        operands = [_operand(f"{key} of {name}", values[key], ir.Type.parse(kind)) for key, kind in conversion.operands]
        attributes = {
            attribute: _attribute(immediate(f"{key} of {name}", values[key], 0, most), bits)
            for key, attribute, bits, most in conversion.immediates
        }
        return call(conversion.operation.removeprefix("rocdl."), operands, result, attributes)

    return described(convert, name, f"{name}({', '.join(parameters)}). {', '.join(conversion.archs)}.")


def _bound(name: str, parameters: list[str], given: list[Any], named: dict[str, Any]) -> dict[str, Any]:
    values = {**dict(zip(parameters, given, strict=False)), **named}
    if len(given) > len(parameters) or set(values) != set(parameters):
        raise argument_error(f"{name} takes ({', '.join(parameters)})", "pass each of them once, in this order")
    return values


def _operand(what: str, value: Any, kind: ir.Type) -> ir.Value:
    is_number = isinstance(value, int | float)
    return operand(what, value, kind) if is_number else as_type(what, value, kind)


def _attribute(number: int, bits: int) -> ir.Attribute:
    return ir.BoolAttr.get(bool(number)) if bits == 1 else ir.IntegerAttr.get(element_type(f"i{bits}"), number)


globals().update({name: _function(conversion) for name, conversion in SCALED_CONVERSIONS.items()})
