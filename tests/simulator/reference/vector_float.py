"""VOP1, VOP2, VOP3: floating-point arithmetic."""

from __future__ import annotations

from tests.simulator.reference import ieee
from tests.simulator.reference.case import M16, Case, case, s16, s32
from tests.simulator.reference.ieee import DOWN, F16, F32, F64, NEAREST, UP, ZERO, Format, Mode

CASES: dict[str, Case] = {}


def fract(mode: Mode, f: Format, x: int) -> int:
    """x - floor(x), at most the number below 1."""
    below = ieee.integral(mode, f, x, DOWN)
    result = ieee.add(mode, f, x, below ^ f.sign_bit) if not ieee.is_nan(f, below) else below
    if not ieee.is_nan(f, result) and ieee.order(f, result) >= f.one:
        return f.one - 1
    return result


def median(mode: Mode, f: Format, x: int, y: int, z: int) -> int:
    """As the document has it: take away the (first) largest, and of the others the larger one."""

    def equal(a: int, b: int) -> bool:
        return ieee.order(f, mode.flush_in(f, a)) == ieee.order(f, mode.flush_in(f, b))

    smallest = ieee.minimum(mode, f, ieee.minimum(mode, f, x, y), z)
    if any(ieee.is_nan(f, v) for v in (x, y, z)):
        return smallest
    largest = ieee.maximum(mode, f, ieee.maximum(mode, f, x, y), z)
    if equal(largest, x):
        return ieee.maximum(mode, f, y, z)
    if equal(largest, y):
        return ieee.maximum(mode, f, x, z)
    return ieee.maximum(mode, f, x, y)


def fraction_exponent(mode: Mode, f: Format, x: int) -> tuple[int, int]:
    """frexp: mantissa in [0.5, 1) as a bit pattern, and exponent."""
    x = mode.flush_in(f, x)
    if ieee.is_nan(f, x) or ieee.is_infinite(f, x) or ieee.is_zero(f, x):
        return x, 0
    m, e = ieee.number(f, x)
    length = m.bit_length()
    return ieee.encode(f, m, -length), e + length


def scale(mode: Mode, f: Format, x: int, exponent: int) -> int:
    x = mode.flush_in(f, x)
    if ieee.is_nan(f, x):
        return ieee.quiet(f, x)
    if ieee.is_infinite(f, x) or ieee.is_zero(f, x):
        return x
    m, e = ieee.number(f, x)
    bounded = max(-5000, min(5000, exponent))
    return mode.flush_out(f, ieee.encode(f, m, e + bounded, mode.rounding(f)))


def unfused(mode: Mode, f: Format, x: int, y: int, z: int) -> int:
    return ieee.add(mode, f, ieee.multiply(mode, f, x, y), z)


for _t, _f in ieee.FORMATS.items():
    _keep = _t + ("~" if _t == "f16" else "")
    _one, _two, _three = f"{_t} = {_t}", f"{_t} = {_t} {_t}", f"{_keep} = {_t} {_t} {_t}"
    CASES[f"v_add_{_t}"] = case(_two, lambda mode, x, y, f=_f: ieee.add(mode, f, x, y))
    CASES[f"v_mul_{_t}"] = case(_two, lambda mode, x, y, f=_f: ieee.multiply(mode, f, x, y))
    CASES[f"v_min_{_t}"] = case(_two, lambda mode, x, y, f=_f: ieee.minimum(mode, f, x, y), exact_nan=True)
    CASES[f"v_max_{_t}"] = case(_two, lambda mode, x, y, f=_f: ieee.maximum(mode, f, x, y), exact_nan=True)
    CASES[f"v_fma_{_t}"] = case(_three, lambda mode, x, y, z, f=_f: ieee.fma(mode, f, x, y, z))
    for _name, _rounding in (("floor", DOWN), ("ceil", UP), ("trunc", ZERO), ("rndne", NEAREST)):
        CASES[f"v_{_name}_{_t}"] = case(_one, lambda mode, x, f=_f, r=_rounding: ieee.integral(mode, f, x, r))
    CASES[f"v_fract_{_t}"] = case(_one, lambda mode, x, f=_f: fract(mode, f, x))
    CASES[f"v_frexp_mant_{_t}"] = case(_one, lambda mode, x, f=_f: fraction_exponent(mode, f, x)[0])
    _i = "i16" if _t == "f16" else "i32"
    CASES[f"v_frexp_exp_{_i}_{_t}"] = case(f"{_i} = {_t}", lambda mode, x, f=_f: fraction_exponent(mode, f, x)[1])
    _to_int = s16 if _t == "f16" else s32
    CASES[f"v_ldexp_{_t}"] = case(
        f"{_t} = {_t} exponent{'16' if _t == 'f16' else ''}",
        lambda mode, x, e, f=_f, s=_to_int: scale(mode, f, x, s(e)),
    )

for _t, _f in (("f16", F16), ("f32", F32)):
    _keep = _t + ("~" if _t == "f16" else "")
    _two, _three = f"{_t} = {_t} {_t}", f"{_keep} = {_t} {_t} {_t}"
    CASES[f"v_sub_{_t}"] = case(_two, lambda mode, x, y, f=_f: ieee.subtract(mode, f, x, y))
    CASES[f"v_subrev_{_t}"] = case(_two, lambda mode, x, y, f=_f: ieee.subtract(mode, f, y, x))
    CASES[f"v_min3_{_t}"] = case(
        _three, lambda mode, x, y, z, f=_f: ieee.minimum(mode, f, ieee.minimum(mode, f, x, y), z), exact_nan=True
    )
    CASES[f"v_max3_{_t}"] = case(
        _three, lambda mode, x, y, z, f=_f: ieee.maximum(mode, f, ieee.maximum(mode, f, x, y), z), exact_nan=True
    )
    CASES[f"v_med3_{_t}"] = case(_three, lambda mode, x, y, z, f=_f: median(mode, f, x, y, z), exact_nan=True)

for _t, _f in (("f32", F32), ("f64", F64)):
    CASES[f"v_fmac_{_t}"] = case(f"{_t} = {_t} {_t} old", lambda mode, x, y, z, f=_f: ieee.fma(mode, f, x, y, z))

CASES["v_mac_f16"] = case("f16 = f16 f16 old", lambda mode, x, y, z: unfused(mode, F16, x, y, z & M16))
CASES["v_mad_f16"] = case("f16~ = f16 f16 f16", lambda mode, x, y, z: unfused(mode, F16, x, y, z))
for _name, _function in (("mad", unfused), ("fma", ieee.fma)):
    CASES[f"v_{_name}_legacy_f16"] = case("f16 = f16 f16 f16", lambda mode, x, y, z, g=_function: g(mode, F16, x, y, z))
_K32, _K16 = 0x40490FDB, 0x4248
CASES["v_fmamk_f32"] = case("f32 = f32 0x40490fdb f32", lambda mode, x, y: ieee.fma(mode, F32, x, _K32, y))
CASES["v_fmaak_f32"] = case("f32 = f32 f32 0x40490fdb", lambda mode, x, y: ieee.fma(mode, F32, x, y, _K32))
CASES["v_madmk_f16"] = case("f16 = f16 0x4248 f16", lambda mode, x, y: unfused(mode, F16, x, _K16, y))
CASES["v_madak_f16"] = case("f16 = f16 f16 0x4248", lambda mode, x, y: unfused(mode, F16, x, y, _K16))


def multiply_legacy(mode: Mode, x: int, y: int) -> int:
    """DirectX 9: zero times anything is +0."""
    if any(ieee.is_zero(F32, mode.flush_in(F32, v)) for v in (x, y)):
        return 0
    return ieee.multiply(mode, F32, x, y)


CASES["v_mul_legacy_f32"] = case("f32 = f32 f32", multiply_legacy)


# --- cube maps


def _axis(mode: Mode, x: int, y: int, z: int) -> tuple[str, bool]:
    """The axis of the largest component, and whether that component is below zero."""
    values = {name: mode.flush_in(F32, v) for name, v in zip("xyz", (x, y, z), strict=True)}
    ax, ay, az = (v & ~F32.sign_bit for v in values.values())
    axis = "z" if az >= ax and az >= ay else "y" if ay >= ax else "x"
    return axis, ieee.order(F32, values[axis]) < 0


def cube_id(mode: Mode, x: int, y: int, z: int) -> int:
    axis, negative = _axis(mode, x, y, z)
    return ieee.encode(F32, {"x": 0, "y": 2, "z": 4}[axis] + negative, 0)


def _negated(x: int) -> int:
    return x ^ F32.sign_bit


def cube_sc(mode: Mode, x: int, y: int, z: int) -> int:
    axis, negative = _axis(mode, x, y, z)
    if axis == "y":
        return x
    if axis == "z":
        return _negated(x) if negative else x
    return z if negative else _negated(z)


def cube_tc(mode: Mode, x: int, y: int, z: int) -> int:
    axis, negative = _axis(mode, x, y, z)
    if axis != "y":
        return _negated(y)
    return _negated(z) if negative else z


def cube_ma(mode: Mode, x: int, y: int, z: int) -> int:
    axis, _ = _axis(mode, x, y, z)
    return ieee.multiply(mode, F32, {"x": x, "y": y, "z": z}[axis], ieee.encode(F32, 2, 0))


for _name, _function in (("id", cube_id), ("sc", cube_sc), ("tc", cube_tc), ("ma", cube_ma)):
    CASES[f"v_cube{_name}_f32"] = case("f32 = number number number", _function)
