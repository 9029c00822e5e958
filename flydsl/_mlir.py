"""Not here: FlyDSL's own build of MLIR's Python bindings, with operation classes that its kernels may use directly.

Raises ImportError, so that a kernel which needs them says so at its first line.
"""

raise ImportError(
    "flydsl._mlir is FlyDSL's own build of MLIR, which this package does not have: its MLIR is the upstream package "
    "`mlir`, whose values have none of the DSL's operators. In a kernel use fx.arith, fx.math, fx.vector, fx.rocdl, "
    "fx.buffer_ops and Python's own `if` and `for` instead; fx.T has MLIR's types, and value.ir_value() is the ir.Value"
)
