"""SOP1, SOP2, SOPC: floating-point arithmetic on scalar registers, which RDNA has from generation 3.5 on.

Each computes what the vector instruction of the same name computes for a lane. A result of 16 bits clears the upper
half of its register.
"""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa import convert, transcendental, vector_float
from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.compare import FLOAT_RELATIONS
from flydsl.simulator.isa.table import ENTERED, define

_FAMILIES = (convert, transcendental, vector_float)
"""The modules that define the vector instructions, which come before this one."""
_RENAMED = {"s_cvt_pk_rtz_f16_f32": "v_cvt_pkrtz_f16_f32"}


def _define_like_vector(name: str, signature: str) -> None:
    """Define a scalar instruction with the semantics of the vector instruction of this name."""
    vector = ENTERED[_RENAMED.get(name, "v_" + name.removeprefix("s_"))]
    if "modifiers" in vector.sources:
        signature += " modifiers"
    assert len(vector.sources) == len(signature.partition("=")[2].split())
    define(name, signature, vector.evaluate, of="rdna")


for _type in ("f16", "f32"):
    for _name in ("add", "sub", "mul"):
        _define_like_vector(f"s_{_name}_{_type}", f"{_type} = {_type} {_type}")
    for _name in ("ceil", "floor", "trunc", "rndne"):
        _define_like_vector(f"s_{_name}_{_type}", f"{_type} = {_type}")
    for _name in ("min", "max"):
        define(f"s_{_name}_{_type}", f"{_type} = {_type} {_type}", ENTERED[f"v_{_name}_{_type}"].evaluate, of="rdna3.5")
    define(f"s_fmac_{_type}", f"{_type} = {_type} {_type} dst", lambda b, x, y, z: b.fma(x, y, z), of="rdna")
    for _relation, _predicate in FLOAT_RELATIONS.items():
        _compare: Any = lambda b, x, y, p=_predicate: b.fcmp(p, x, y)  # noqa: E731 - one for each
        define(f"s_cmp_{_relation}_{_type}", f"scc = {_type} {_type}", _compare, of="rdna")
define("s_fmaak_f32", "f32 = f32 f32 f32", lambda b, x, y, k: b.fma(x, y, k), of="rdna")
define("s_fmamk_f32", "f32 = f32 f32 f32", lambda b, x, k, y: b.fma(x, k, y), of="rdna")

_define_like_vector("s_cvt_f32_i32", "f32 = i32")
_define_like_vector("s_cvt_f32_u32", "f32 = i32")
_define_like_vector("s_cvt_f16_f32", "f16 = f32")
_define_like_vector("s_cvt_f32_f16", "f32 = f16")
_define_like_vector("s_cvt_pk_rtz_f16_f32", "i32 = f32 f32")
define("s_cvt_i32_f32", "i32 = f32", lambda b, x: b.fptosi(x, "i32"), of="rdna")
define("s_cvt_u32_f32", "i32 = f32", lambda b, x: b.fptoui(x, "i32"), of="rdna")


def _upper_half(b: Builder, x: Value) -> Value:
    half = b.bitcast(b.trunc(b.lshr(x, b.const("i32", 16)), "i16"), "f16")
    return b.fpext(half, "f32")


define("s_cvt_hi_f32_f16", "f32 = i32", _upper_half, of="rdna")

# --- reciprocals, roots, exponentials and logarithms, which the vector ALU computes for scalar registers

for _name in ("exp", "log", "rcp", "rsq", "sqrt"):
    define(f"v_s_{_name}_f32", "f32 = f32", ENTERED[f"v_{_name}_f32"].evaluate, of="rdna")
    define(f"v_s_{_name}_f16", "f16 = f16", ENTERED[f"v_{_name}_f16"].evaluate, of="rdna")
