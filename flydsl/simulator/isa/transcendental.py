"""Reciprocals, roots, exponentials, logarithms, sine and cosine.

They are evaluated in f64 and rounded once, which is within the accuracy the ISA documents (1 ulp for f32 and f16), and
closer than hardware is.
"""

from __future__ import annotations

from typing import Any

from flydsl.simulator.builder import Builder, Value
from flydsl.simulator.isa.table import define

for _type in ("f16", "f32", "f64"):
    for _name in ("rcp", "rsq", "sqrt"):
        define(f"v_{_name}_{_type}", f"{_type} = {_type}", lambda b, x, n=_name: getattr(b, n)(x))
define("v_rcp_iflag_f32", "f32 = f32", lambda b, x: b.rcp(x))

for _type in ("f16", "f32"):
    define(f"v_exp_{_type}", f"{_type} = {_type}", lambda b, x: b.exp2(x))
    define(f"v_log_{_type}", f"{_type} = {_type}", lambda b, x: b.log2(x))
define("v_exp_legacy_f32", "f32 = f32", lambda b, x: b.exp2(x))
define("v_log_legacy_f32", "f32 = f32", lambda b, x: b.log2(x))


def _periodic(operation: str, type_: str, beyond: float) -> Any:
    """The argument is in turns; outside of [-256, 256] the result is that of 0."""

    def evaluate(b: Builder, x: Value) -> Value:
        inside = b.fcmp("ole", b.fabs(x), b.const(type_, 256.0))
        value = getattr(b, operation)(x)
        finite = b.fcmp("olt", b.fabs(x), b.const(type_, float("inf")))
        return b.select(b.or_(inside, b.xor(finite, b.const("i1", True))), value, b.const(type_, beyond))

    return evaluate


for _type in ("f16", "f32"):
    define(f"v_sin_{_type}", f"{_type} = {_type}", _periodic("sin_turns", _type, 0.0))
    define(f"v_cos_{_type}", f"{_type} = {_type}", _periodic("cos_turns", _type, 1.0))
