"""Values that MLIR returns during tracing, with the operators and methods of the DSL."""

from __future__ import annotations

from mlir import ir

from flydsl.compiler.trace import is_tracing
from flydsl.dialect.context import context
from flydsl.expr.tracing.traced_value import TracedValue

# One type of each kind that MLIR tells apart; a vector's elements and an integer's width do not matter.
_KINDS = ("i32", "index", "f16", "bf16", "f32", "f64", "f8E4M3", "f8E4M3FN", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E5M2",
          "f8E5M2FNUZ", "f8E8M0FNU", "f6E2M3FN", "f6E3M2FN", "f4E2M1FN", "vector<1xi32>")  # fmt: skip


def register() -> None:
    """Make MLIR return scalar and vector values as `TracedValue` while a kernel is being traced."""
    with context():
        for text in _KINDS:
            ir.register_value_caster(ir.Type.parse(text).typeid, replace=True)(_cast)


def _cast(value: ir.Value) -> ir.Value:
    return TracedValue(value) if is_tracing() else value
