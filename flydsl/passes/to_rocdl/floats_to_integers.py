"""Floats that become integers, outside of the integers' range, too: as the hardware's instructions do.

These saturate at 32 bits, from f16 to i16 at 16, and make 0 of NaN; other narrow integers are the lower bits of 32.
Upstream, the result is poison, from which LLVM may conclude that the code around it never runs: it then leaves out the
end of a kernel. A fence hides the float's value from LLVM, which gives the same instructions. Launchers, which have an
intrinsic for it, compute the same up to 32 bits; they saturate at 64, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from flydsl.dialect.elements import scalar_of
from flydsl.passes.rewriting import create
from flydsl.passes.to_rocdl.arith_builder import ElementwiseValue

_CONVERSIONS = {"arith.fptosi": "fptosi", "arith.fptoui": "fptoui"}


def expand(ops: Iterable[ir.Operation], *, in_kernel: bool) -> bool:
    """Replace every conversion of a kernel's or launcher's floats to integers. Return whether there is one."""
    convert = _on_device if in_kernel else _on_host
    conversions = [op for op in ops if op.name in _CONVERSIONS]
    for op in conversions:
        x = ElementwiseValue(op.operands[0], op.location)
        with ir.InsertionPoint(op):
            op.result.replace_all_uses_with(convert(op.name, x, op.result.type))
        op.erase()
    return bool(conversions)


def _on_device(name: str, x: ElementwiseValue, kind: ir.Type) -> ir.Value:
    number = ElementwiseValue(x.llvm("arithmetic.fence").value, x.at)
    converted = _frozen(number.op(name, kind=_saturated_at(x, kind)).value, x.at)
    return _lower_bits(converted, kind, x.at)


def _on_host(name: str, x: ElementwiseValue, kind: ir.Type) -> ir.Value:
    return _lower_bits(x.llvm(f"{_CONVERSIONS[name]}.sat", kind=_saturated_at(x, kind)).value, kind, x.at)


def _saturated_at(x: ElementwiseValue, kind: ir.Type) -> ir.Type:
    """The integers at which a conversion saturates; the result is their lower bits."""
    from_half_to_16_bits = isinstance(x.element, ir.F16Type) and _width(kind) == 16  # v_cvt_i16_f16
    return kind if from_half_to_16_bits or _width(kind) >= 32 else x.like("i32")


def _lower_bits(value: ir.Value, kind: ir.Type, at: ir.Location) -> ir.Value:
    return value if value.type == kind else create("arith.trunci", [value], [kind], at).result


def _frozen(value: ir.Value, at: ir.Location) -> ir.Value:
    return create("llvm.freeze", [value], [value.type], at).result


def _width(kind: ir.Type) -> int:
    element = scalar_of(kind)
    return int(element.width)
