"""Floats of the builder as LLVM IR, in the rounding and denormal mode that the handler is generated for.

The methods are those of `lockstep.exact` and `lockstep.values`; see there for their sources.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from flydsl.simulator.isa import elementary
from flydsl.simulator.modes import LARGEST_F16, FloatMode
from flydsl.simulator.native.builder.ir import LlvmValue, constant
from flydsl.simulator.native.builder.values import NativeValues, bits_of

_TINY = {"f16": 2.0**-14, "f32": 2.0**-126, "f64": 2.0**-1022}
_QUIET_BIT = {"f16": 1 << 9, "f32": 1 << 22, "f64": 1 << 51}
_DEFAULT_NAN = {"f16": 0x7E00, "f32": 0x7FC00000, "f64": 0x7FF8 << 48}


class NativeFloats(NativeValues):
    """The part of `Builder` that depends on the float mode."""

    def __init__(self, mode: FloatMode, lane_count: int) -> None:
        super().__init__(lane_count)
        self._mode = mode

    def ieee_mode(self) -> bool:
        return self._mode.ieee

    def dx10_clamp(self) -> bool:
        return self._mode.dx10_clamp

    def overflow_saturates(self) -> bool:
        return self._mode.overflow_saturates

    def _denormals(self, type_: str) -> int:
        return self._mode.denormals_f32 if type_ == "f32" else self._mode.denormals_f16_f64

    def keeps_denormal_results(self, type_: str) -> bool:
        return bool(self._denormals(type_) & 2)

    def flush_in(self, x: LlvmValue) -> LlvmValue:
        return x if self._denormals(x.type) & 1 else self._flushed(x)

    def flush_out(self, x: LlvmValue) -> LlvmValue:
        return x if self._denormals(x.type) & 2 else self._flushed(x)

    def _flushed(self, x: LlvmValue) -> LlvmValue:
        """x with denormals replaced by zeros of their sign."""
        is_small = self.float_compare("olt", self.fabs(x), constant(x.type, _TINY[x.type]))
        return self.select(is_small, self.copysign(constant(x.type, 0.0), x), x)

    def _check_mode(self, type_: str) -> None:
        """Check that the mode rounds to nearest even, as the host does. The lock-step machine runs the rare others."""
        rounding = self._mode.rounding_f32 if type_ == "f32" else self._mode.rounding_f16_f64
        if rounding:
            raise NotImplementedError(f"{type_} in rounding mode {rounding}")

    def _saturate(self, result: LlvmValue, *operands: LlvmValue) -> LlvmValue:
        """The largest f16 instead of an infinity that finite operands gave, where MODE.FP16_OVFL asks for it."""
        if not (self._mode.overflow_saturates and result.type == "f16"):
            return result
        infinity = constant("f16", math.inf)
        overflowed = self.float_compare("oeq", self.fabs(result), infinity)
        for x in operands:
            overflowed = self.and_(overflowed, self.float_compare("olt", self.fabs(x), infinity))
        return self.select(overflowed, self.copysign(constant("f16", LARGEST_F16), result), result)

    def settle_nan(self, result: LlvmValue, *operands: LlvmValue) -> LlvmValue:
        integer = f"i{bits_of(result.type)}"
        chosen = constant(integer, _DEFAULT_NAN[result.type])
        for x in reversed(operands):
            chosen = self.select(self.is_nan(x), self.integer_bits(x), chosen)
        quiet = self.or_(chosen, constant(integer, _QUIET_BIT[result.type])) if operands else chosen
        return self.select(self.is_nan(result), self.bitcast(quiet, result.type), result)

    # --- arithmetic

    def fadd(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        self._check_mode(x.type)
        x, y = self.flush_in(x), self.flush_in(y)
        return self.flush_out(self.settle_nan(self._saturate(self.float_op("fadd", x, y), x, y), x, y))

    def fsub(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        return self.fadd(x, self.fneg(y))

    def fmul(self, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        self._check_mode(x.type)
        x, y = self.flush_in(x), self.flush_in(y)
        return self.flush_out(self.settle_nan(self._saturate(self.float_op("fmul", x, y), x, y), x, y))

    def fma(self, x: LlvmValue, y: LlvmValue, z: LlvmValue) -> LlvmValue:
        self._check_mode(x.type)
        x, y, z = self.flush_in(x), self.flush_in(y), self.flush_in(z)
        if x.type == "f16":
            total = self._convert("fptrunc", self._sum_to_odd(x, y, z, "f32"), "f16")
        else:
            total = self.intrinsic("fma", x, y, z)
        return self.flush_out(self.settle_nan(self._saturate(total, x, y, z), x, y, z))

    def scaled_fma(self, x: LlvmValue, y: LlvmValue, z: LlvmValue, exponent: LlvmValue) -> LlvmValue:
        self._check_mode(x.type)
        if x.type == "f64":
            return self._scaled_fma_f64(x, y, z, exponent)
        total = self._sum_to_odd(x, y, z, "f64")
        result = self.fptrunc_exactly(self.scale(total, exponent), x.type)
        return self.flush_out(self.settle_nan(result, x, y, z))

    def _scaled_fma_f64(self, x: LlvmValue, y: LlvmValue, z: LlvmValue, exponent: LlvmValue) -> LlvmValue:
        """A scaled f64 fma. If scaling makes a denormal, which would round twice, the lock-step machine executes it."""
        total = self.intrinsic("fma", x, y, z)
        result = self.scale(total, exponent)
        zero = constant("f64", 0.0)
        nearly_denormal = self.float_compare("olt", self.fabs(result), constant("f64", 2.0**-1021))
        no_product = self.or_(self.float_compare("oeq", x, zero), self.float_compare("oeq", y, zero))
        really_zero = self.and_(no_product, self.float_compare("oeq", total, zero))
        self.fall_back_where(self.and_(nearly_denormal, self.not_(really_zero)))
        return self.flush_out(self.settle_nan(result, x, y, z))

    def fall_back_where(self, condition: LlvmValue) -> None:
        raise NotImplementedError

    def _sum_to_odd(self, x: LlvmValue, y: LlvmValue, z: LlvmValue, wide: str) -> LlvmValue:
        """x * y + z in a wider type in which the product is exact, the sum rounded to odd."""
        x, y, z = (self._convert("fpext", v, wide) for v in (x, y, z))
        product = self.float_op("fmul", x, y)
        total = self.float_op("fadd", product, z)
        z_part = self.float_op("fsub", total, product)
        product_error = self.float_op("fsub", product, self.float_op("fsub", total, z_part))
        error = self.float_op("fadd", product_error, self.float_op("fsub", z, z_part))
        bits, zero = self.integer_bits(total), constant(wide, 0.0)
        even = self.icmp("eq", self.and_(bits, constant(bits.type, 1)), constant(bits.type, 0))
        finite = self.float_compare("olt", self.fabs(total), constant(wide, math.inf))
        adjust = self.and_(self.and_(self.float_compare("une", error, zero), even), finite)
        outward = self.icmp("eq", self.float_compare("ogt", error, zero), self.float_compare("ogt", total, zero))
        step = self.select(outward, constant(bits.type, 1), constant(bits.type, -1))
        moved = self.add(bits, self.select(adjust, step, constant(bits.type, 0)))
        return self.bitcast(moved, wide)

    def fcmp(self, predicate: str, x: LlvmValue, y: LlvmValue) -> LlvmValue:
        return self.float_compare(predicate, self.flush_in(x), self.flush_in(y))

    def canonicalize(self, x: LlvmValue) -> LlvmValue:
        x = self.flush_in(x)
        bits = self.integer_bits(x)
        quiet = self.or_(bits, constant(bits.type, _QUIET_BIT[x.type]))
        return self.flush_out(self.bitcast(self.select(self.is_nan(x), quiet, bits), x.type))

    # --- conversions

    def fpext(self, x: LlvmValue, type_: str) -> LlvmValue:
        return self.flush_out(self._convert("fpext", self.flush_in(x), type_))

    def fptrunc(self, x: LlvmValue, type_: str) -> LlvmValue:
        self._check_mode(type_)
        x = self.flush_in(x)
        if type_ == "f16" and self._mode.overflow_saturates:
            limit = constant(x.type, LARGEST_F16)
            magnitude = self.fabs(x)
            beyond = self.float_compare("ogt", magnitude, limit)
            infinite = self.float_compare("oeq", magnitude, constant(x.type, math.inf))
            clamped = self.select(beyond, self.copysign(limit, x), x)
            x = self.select(infinite, x, clamped)
        return self.flush_out(self.fptrunc_exactly(x, type_))

    def fptrunc_exactly(self, x: LlvmValue, type_: str) -> LlvmValue:
        """x rounded once. The host cannot convert f64 to f16: it goes through an f32 rounded to odd."""
        if x.type == "f64" and type_ == "f16":
            x = self._f32_to_odd(x)
        return self._convert("fptrunc", x, type_)

    def _f32_to_odd(self, x: LlvmValue) -> LlvmValue:
        nearest = self._convert("fptrunc", x, "f32")
        back = self._convert("fpext", nearest, "f64")
        bits = self.integer_bits(nearest)
        beyond = self.float_compare("ogt", self.fabs(back), self.fabs(x))
        below = self.select(beyond, self.sub(bits, constant("i32", 1)), bits)
        inexact = self.and_(
            self.float_compare("une", back, x), self.float_compare("olt", self.fabs(x), constant("f64", math.inf))
        )
        odd = self.or_(below, constant("i32", 1))
        return self.bitcast(self.select(inexact, odd, bits), "f32")

    def sitofp(self, x: LlvmValue, type_: str) -> LlvmValue:
        return self._from_integer("sitofp", x, type_)

    def uitofp(self, x: LlvmValue, type_: str) -> LlvmValue:
        return self._from_integer("uitofp", x, type_)

    def _from_integer(self, operation: str, x: LlvmValue, type_: str) -> LlvmValue:
        self._check_mode(type_)
        result = self._convert(operation, x, type_)
        if type_ == "f16" and self._mode.overflow_saturates:
            largest = constant("f16", LARGEST_F16)
            result = self.select(self.float_compare("ogt", result, largest), largest, result)
        return result

    # --- whole numbers and exponents

    def floor(self, x: LlvmValue) -> LlvmValue:
        return self._whole("floor", x)

    def ceil(self, x: LlvmValue) -> LlvmValue:
        return self._whole("ceil", x)

    def ftrunc(self, x: LlvmValue) -> LlvmValue:
        return self._whole("trunc", x)

    def roundeven(self, x: LlvmValue) -> LlvmValue:
        return self._whole("roundeven", x)

    def _whole(self, intrinsic: str, x: LlvmValue) -> LlvmValue:
        x = self.flush_in(x)
        return self.settle_nan(self.intrinsic(intrinsic, x), x)

    def ldexp(self, x: LlvmValue, exponent: LlvmValue) -> LlvmValue:
        self._check_mode(x.type)
        x = self.flush_in(x)
        if x.type == "f64":
            return self.flush_out(self.settle_nan(self._ldexp_f64(x, exponent), x))
        wide = self._convert("fpext", x, "f64")
        bounded = self._clamp_signed(exponent, -1000, 900)
        result = self._saturate(self.fptrunc_exactly(self.scale(wide, bounded), x.type), x)
        return self.flush_out(self.settle_nan(result, x))

    def _ldexp_f64(self, x: LlvmValue, exponent: LlvmValue) -> LlvmValue:
        """In steps that fit an f64's exponent. Only the last one may round: before it, a number that a step of -969
        makes denormal has at least another -54 to go, and ends as zero."""
        remaining = self._clamp_signed(exponent, -3000, 3000)
        for _ in range(2):
            far_down = self.icmp("slt", remaining, constant("i32", -1022))
            step = self.select(far_down, constant("i32", -969), self._clamp_signed(remaining, -1022, 1000))
            x, remaining = self.scale(x, step), self.sub(remaining, step)
        return self.scale(x, self._clamp_signed(remaining, -1022, 1000))

    def scale(self, x: LlvmValue, exponent: LlvmValue) -> LlvmValue:
        """x (f64) times two to the i32 exponent, which is within -1022 and 1023."""
        biased = self.zext(self.add(exponent, constant("i32", 1023)), "i64")
        return self.float_op("fmul", x, self.bitcast(self.shl(biased, constant("i64", 52)), "f64"))

    def _clamp_signed(self, x: LlvmValue, low: int, high: int) -> LlvmValue:
        x = self.intrinsic("smax", x, self.const(x.type, low))
        return self.intrinsic("smin", x, self.const(x.type, high))

    def frexp(self, x: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
        """By the bits of an f64, or of an f64 scaled up where it may be denormal."""
        x = self.flush_in(x)
        wide = self._convert("fpext", x, "f64")
        tiny = self.float_compare("olt", self.fabs(wide), constant("f64", _TINY["f64"]))
        scaled = self.float_op("fmul", wide, constant("f64", 2.0**54))
        bits = self.integer_bits(self.select(tiny, scaled, wide))
        field = self.and_(self.trunc(self.lshr(bits, constant("i64", 52)), "i32"), constant("i32", 0x7FF))
        bias = self.select(tiny, constant("i32", 1022 + 54), constant("i32", 1022))
        kept = self.and_(bits, constant("i64", 0x800F_FFFF_FFFF_FFFF))
        mantissa = self.bitcast(self.or_(kept, constant("i64", 0x3FE0_0000_0000_0000)), "f64")
        magnitude = self.fabs(x)
        ordinary = self.and_(
            self.float_compare("olt", magnitude, constant(x.type, math.inf)),
            self.float_compare("ogt", magnitude, constant(x.type, 0.0)),
        )
        exponent = self.select(ordinary, self.sub(field, bias), constant("i32", 0))
        return self.select(ordinary, self.fptrunc_exactly(mantissa, x.type), x), exponent

    # --- roots and transcendentals: evaluated in f64 and rounded once

    def sqrt(self, x: LlvmValue) -> LlvmValue:
        return self._through_double(lambda wide: self.intrinsic("sqrt", wide), x)

    def rcp(self, x: LlvmValue) -> LlvmValue:
        return self._through_double(lambda wide: self.float_op("fdiv", constant("f64", 1.0), wide), x)

    def rsq(self, x: LlvmValue) -> LlvmValue:
        return self._through_double(self._rsq_f64, x)

    def _rsq_f64(self, x: LlvmValue) -> LlvmValue:
        root = self.float_op("fdiv", constant("f64", 1.0), self.intrinsic("sqrt", x))
        zero = self.float_compare("oeq", x, constant("f64", 0.0))
        return self.select(zero, self.copysign(constant("f64", math.inf), x), root)

    def exp2(self, x: LlvmValue) -> LlvmValue:
        return self._through_double(partial(elementary.exp2, self), x)

    def log2(self, x: LlvmValue) -> LlvmValue:
        return self._through_double(partial(elementary.log2, self), x)

    def sin_turns(self, x: LlvmValue) -> LlvmValue:
        return self._through_double(partial(elementary.sin_turns, self), x)

    def cos_turns(self, x: LlvmValue) -> LlvmValue:
        return self._through_double(partial(elementary.cos_turns, self), x)

    def _through_double(self, function: Callable[[LlvmValue], LlvmValue], x: LlvmValue) -> LlvmValue:
        x = self.flush_in(x)
        result = self.fptrunc_exactly(function(self._convert("fpext", x, "f64")), x.type)
        is_zero = self.float_compare("oeq", x, constant(x.type, 0.0))
        result = self._saturate(result, self.select(is_zero, constant(x.type, math.inf), x))  # 1 / 0 is no overflow
        return self.flush_out(self.settle_nan(result, x))
