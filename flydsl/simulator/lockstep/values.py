"""Arithmetic of the builder on numpy arrays: one element per lane, (waves, 64), or per wave, (waves, 1).

Integers are unsigned arrays; signed operations look at them through a signed view. numpy's own float arithmetic rounds
to nearest even, as the machine does by default; for what numpy does not have (fma), see `exact`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from flydsl.simulator.arrays import Array
from flydsl.simulator.isa import elementary
from flydsl.simulator.lockstep import exact, rounding
from flydsl.simulator.modes import LARGEST_F16, FloatMode

DTYPES: dict[str, Any] = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.uint8),
    "i16": np.dtype(np.uint16),
    "i32": np.dtype(np.uint32),
    "i64": np.dtype(np.uint64),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
DEFAULT_NAN = {DTYPES["f16"]: 0x7E00, DTYPES["f32"]: 0x7FC00000, DTYPES["f64"]: 0x7FF8 << 48}
"""The NaN, as bits, that an invalid operation without a NaN operand returns."""
_SIGNED = {np.dtype(f"u{n}"): np.dtype(f"i{n}") for n in (1, 2, 4, 8)}
_COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_NEAREST_AND_DENORMALS = 0xF0
_FLOAT_OPERATIONS = {"fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide}
_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


def signed(x: Array) -> Array:
    return x.view(_SIGNED[x.dtype])


def constant(type_: str, value: int | float) -> Array:
    """A (1, 1) array: never zero-dimensional, because numpy 1 promotes those by value."""
    return np.full((1, 1), value, DTYPES[type_])


class NumpyValues:
    """The part of `Builder` whose only state is the float modes."""

    def __init__(self) -> None:
        self.mode = FloatMode(_NEAREST_AND_DENORMALS)
        self.saturate_f16 = False

    # --- constants and conversions

    def const(self, type_: str, value: int | float) -> Array:
        if isinstance(value, int) and value < 0:
            value &= (1 << 8 * DTYPES[type_].itemsize) - 1
        return constant(type_, value)

    def bitcast(self, x: Array, type_: str) -> Array:
        return x.view(DTYPES[type_])

    def trunc(self, x: Array, type_: str) -> Array:
        if type_ == "i1":
            return (x & x.dtype.type(1)).astype(np.bool_)
        return x.astype(DTYPES[type_])

    def zext(self, x: Array, type_: str) -> Array:
        return x.astype(DTYPES[type_])

    def sext(self, x: Array, type_: str) -> Array:
        target = DTYPES[type_]
        return signed(x).astype(_SIGNED[target]).view(target)

    def fpext(self, x: Array, type_: str) -> Array:
        # numpy does not make the NaNs of f16 quiet on every host.
        x = exact.quiet(x) if x.dtype == np.float16 else x
        return self._flush_out(self._flush_in(x).astype(DTYPES[type_]))

    def fptrunc(self, x: Array, type_: str) -> Array:
        if type_ == "f16":
            x = exact.quiet(x)
            x = np.where(np.isinf(x), x, np.clip(x, -LARGEST_F16, LARGEST_F16)) if self.saturate_f16 else x
        target = DTYPES[type_]
        return self._flush_out(rounding.narrowed(self._flush_in(x), target, self._rounding(target)))

    def sitofp(self, x: Array, type_: str) -> Array:
        return self.uitofp(signed(x), type_)

    def uitofp(self, x: Array, type_: str) -> Array:
        target = DTYPES[type_]
        result = rounding.from_integer(x, target, self._rounding(target))
        return np.minimum(result, target.type(LARGEST_F16)) if target == np.float16 and self.saturate_f16 else result

    def fptosi(self, x: Array, type_: str) -> Array:
        bits = 8 * DTYPES[type_].itemsize
        return exact.to_integer(x, -(1 << (bits - 1)), (1 << (bits - 1)) - 1).astype(DTYPES[type_])

    def fptoui(self, x: Array, type_: str) -> Array:
        return exact.to_integer(x, 0, (1 << 8 * DTYPES[type_].itemsize) - 1).astype(DTYPES[type_])

    def join(self, dwords: Sequence[Array]) -> Array:
        """One i32, or two joined to an i64, the low one first."""
        if len(dwords) == 1:
            return dwords[0]
        low, high = (d.astype(np.uint64) for d in dwords)
        return low | high << np.uint64(32)

    def split(self, x: Array) -> tuple[Array, ...]:
        if x.dtype == np.uint32:
            return (x,)
        return x.astype(np.uint32), (x >> np.uint64(32)).astype(np.uint32)

    # --- integers

    def add(self, x: Array, y: Array) -> Array:
        return x + y

    def sub(self, x: Array, y: Array) -> Array:
        return x - y

    def mul(self, x: Array, y: Array) -> Array:
        return x * y

    def and_(self, x: Array, y: Array) -> Array:
        return x & y

    def or_(self, x: Array, y: Array) -> Array:
        return x | y

    def xor(self, x: Array, y: Array) -> Array:
        return x ^ y

    def not_(self, x: Array) -> Array:
        return ~x

    def shl(self, x: Array, amount: Array) -> Array:
        return x << amount

    def lshr(self, x: Array, amount: Array) -> Array:
        return x >> amount

    def ashr(self, x: Array, amount: Array) -> Array:
        return (signed(x) >> signed(amount)).view(x.dtype)

    def ctpop(self, x: Array) -> Array:
        return self._byte_bits(x).sum(axis=-1).astype(x.dtype)

    def ctlz(self, x: Array) -> Array:
        """The number of zeros above the highest one; the width for 0."""
        return self._leading(self._byte_bits(x)[..., ::-1]).astype(x.dtype)

    def cttz(self, x: Array) -> Array:
        return self._leading(self._byte_bits(x)).astype(x.dtype)

    def bitreverse(self, x: Array) -> Array:
        reversed_bits = np.packbits(self._byte_bits(x)[..., ::-1], axis=-1, bitorder="little")
        return reversed_bits.view(x.dtype)[..., 0]

    @staticmethod
    def _byte_bits(x: Array) -> Array:
        """The bits of x, lowest first, along a new last axis."""
        as_bytes = np.ascontiguousarray(x)[..., None].view(np.uint8)
        return np.unpackbits(as_bytes, axis=-1, bitorder="little")

    @staticmethod
    def _leading(bits: Array) -> Array:
        return np.where(bits.any(axis=-1), bits.argmax(axis=-1), bits.shape[-1])

    def icmp(self, predicate: str, x: Array, y: Array) -> Array:
        if predicate[0] == "s":
            return np.asarray(_COMPARE[predicate[1:]](signed(x), signed(y)))
        return np.asarray(_COMPARE[predicate.lstrip("u")](x, y))

    def select(self, condition: Array, x: Array, y: Array) -> Array:
        return np.where(condition, x, y)

    # --- floats

    def fadd(self, x: Array, y: Array) -> Array:
        if self._rounding(x.dtype) != rounding.NEAREST:
            return self.fma(x, x.dtype.type(1), y)
        x, y = self._flush_in(x), self._flush_in(y)
        return self._flush_out(self.settle_nan(self._saturate(x + y, x, y), x, y))

    def fsub(self, x: Array, y: Array) -> Array:
        return self.fadd(x, -y)

    def fmul(self, x: Array, y: Array) -> Array:
        if self._rounding(x.dtype) != rounding.NEAREST:
            product_sign = np.signbit(x) ^ np.signbit(y)
            return self.fma(x, y, np.where(product_sign, x.dtype.type(-0.0), x.dtype.type(0)))
        x, y = self._flush_in(x), self._flush_in(y)
        return self._flush_out(self.settle_nan(self._saturate(x * y, x, y), x, y))

    def float_op(self, operation: str, x: Array, y: Array) -> Array:
        """fadd, fsub, fmul or fdiv, independent of the float mode."""
        return np.asarray(_FLOAT_OPERATIONS[operation](x, y))

    def float_round(self, x: Array) -> Array:
        """roundeven, independent of the float mode."""
        return np.rint(x)

    def fma(self, x: Array, y: Array, z: Array) -> Array:
        x, y, z = self._flush_in(x), self._flush_in(y), self._flush_in(z)
        result = self._saturate(rounding.fma(x, y, z, self._rounding(x.dtype)), x, y, z)
        return self._flush_out(self.settle_nan(result, x, y, z))

    def scaled_fma(self, x: Array, y: Array, z: Array, exponent: Array) -> Array:
        result = rounding.scaled_fma(x, y, z, signed(exponent), self._rounding(x.dtype))
        return self._flush_out(self.settle_nan(result, x, y, z))

    def settle_nan(self, result: Array, *operands: Array) -> Array:
        """The result; if that is NaN, the first NaN operand, made quiet, or else the default NaN."""
        is_nan = np.isnan(result)
        if not is_nan.any():
            return result
        chosen = constant(f"i{8 * result.itemsize}", DEFAULT_NAN[result.dtype]).view(result.dtype)
        for x in reversed(operands):
            chosen = np.where(np.isnan(x), exact.quiet(x), chosen)
        return np.where(is_nan, chosen, result)

    def fneg(self, x: Array) -> Array:
        return -x

    def fabs(self, x: Array) -> Array:
        return np.abs(x)

    def fcmp(self, predicate: str, x: Array, y: Array) -> Array:
        """Compare two floats. With a NaN, an ordered predicate ("olt") is false, an unordered one ("ult") true."""
        return self.float_compare(predicate, self._flush_in(x), self._flush_in(y))

    def float_compare(self, predicate: str, x: Array, y: Array) -> Array:
        """fcmp, independent of the float mode."""
        if predicate == "uno":
            return np.isnan(x) | np.isnan(y)
        if predicate == "ord":
            return ~(np.isnan(x) | np.isnan(y))
        relation = predicate[1:]
        if predicate == "one":
            return np.asarray((x < y) | (x > y))
        if predicate == "une":
            return np.asarray(x != y)
        if predicate[0] == "o":
            return np.asarray(_COMPARE[relation](x, y))
        if predicate == "ueq":
            return np.asarray(~((x < y) | (x > y)))
        return np.asarray(~_COMPARE[_NEGATED[relation]](x, y))

    def canonicalize(self, x: Array) -> Array:
        """x with a signalling NaN made quiet, and denormals flushed if the mode requires it."""
        return self._flush_out(exact.quiet(self._flush_in(x)))

    def floor(self, x: Array) -> Array:
        return exact.quiet(np.floor(self._flush_in(x)))

    def ceil(self, x: Array) -> Array:
        return exact.quiet(np.ceil(self._flush_in(x)))

    def ftrunc(self, x: Array) -> Array:
        return exact.quiet(np.trunc(self._flush_in(x)))

    def roundeven(self, x: Array) -> Array:
        return exact.quiet(np.rint(self._flush_in(x)))

    def sqrt(self, x: Array) -> Array:
        return self._through_double(np.sqrt, x)

    def rcp(self, x: Array) -> Array:
        return self._through_double(lambda v: 1.0 / v, x)

    def rsq(self, x: Array) -> Array:
        return self._through_double(lambda v: np.where(v == 0, np.copysign(np.inf, v), 1.0 / np.sqrt(v)), x)

    def exp2(self, x: Array) -> Array:
        return self._through_double(partial(elementary.exp2, self), x)

    def log2(self, x: Array) -> Array:
        return self._through_double(partial(elementary.log2, self), x)

    def sin_turns(self, x: Array) -> Array:
        """sin(2 pi x)."""
        return self._through_double(partial(elementary.sin_turns, self), x)

    def cos_turns(self, x: Array) -> Array:
        return self._through_double(partial(elementary.cos_turns, self), x)

    def ldexp(self, x: Array, exponent: Array) -> Array:
        """x times two to the (signed) exponent, rounded once."""
        bounded = np.clip(signed(exponent).astype(np.int32), -4096, 4096)
        x = self._flush_in(x)
        result = self._saturate(rounding.ldexp(x, bounded, self._rounding(x.dtype)), x)
        return self._flush_out(self.settle_nan(result, x))

    def frexp(self, x: Array) -> tuple[Array, Array]:
        """Mantissa in [0.5, 1) and i32 exponent; for 0, infinity and NaN the value itself and 0."""
        mantissa, exponent = np.frexp(self._flush_in(x))
        special = ~np.isfinite(x)
        return np.where(special, x, mantissa), np.where(special, 0, exponent).astype(np.int32).view(np.uint32)

    def _through_double(self, function: Any, x: Array) -> Array:
        """Evaluate in f64 and round once: within 0.51 ulp for narrower types, inside what the ISA documents."""
        x = self._flush_in(x)
        result = np.asarray(function(x.astype(np.float64))).astype(x.dtype)
        result = self._saturate(result, np.where(x == 0, x.dtype.type(np.inf), x))  # 1 / 0 is no overflow
        return self._flush_out(self.settle_nan(result, x))

    def _saturate(self, result: Array, *operands: Array) -> Array:
        """The largest f16 instead of an infinity that finite operands gave, where MODE.FP16_OVFL asks for it."""
        if not (self.saturate_f16 and result.dtype == np.float16):
            return result
        overflowed = np.isinf(result)
        for x in operands:
            overflowed = overflowed & np.isfinite(x)
        return np.where(overflowed, np.copysign(np.float16(LARGEST_F16), result), result)

    def _rounding(self, dtype: Any) -> int:
        return self.mode.rounding_f32 if dtype == np.float32 else self.mode.rounding_f16_f64

    def _denormals(self, dtype: Any) -> int:
        return self.mode.denormals_f32 if dtype == np.float32 else self.mode.denormals_f16_f64

    def _flush_in(self, x: Array) -> Array:
        return x if self._denormals(x.dtype) & 1 else exact.flush_denormals(x)

    def _flush_out(self, x: Array) -> Array:
        return x if self._denormals(x.dtype) & 2 else exact.flush_denormals(x)
