"""Alias of `fx.arith` under FlyDSL's other name, with conversions of MLIR's numbers by kind."""

from flydsl.expr.arith import *  # noqa: F403
from flydsl.expr.arith import _to_raw as _to_raw
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.numbers.bare_numbers import *  # noqa: F403
from flydsl.expr.numbers.fastmath_flags import current_fastmath as current_fastmath

__getattr__ = unknown_name(__name__, globals())
