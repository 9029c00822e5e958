"""The MODE register: how a wave rounds and treats denormals and NaNs (ISA, "MODE register")."""

from __future__ import annotations

from dataclasses import dataclass

from flydsl.hsaco import KernelDescriptor

_ROUND = ("near_even", "plus_infinity", "minus_infinity", "zero")
_DENORM = ("flush_src_dst", "flush_dst", "flush_src", "flush_none")
_DX10_CLAMP_BIT, _IEEE_BIT, _FP16_OVERFLOW_BIT = 8, 9, 23
LARGEST_F16 = 65504.0


@dataclass(frozen=True)
class FloatMode:
    """Bits: 1:0 f32 rounding, 3:2 f16 and f64 rounding, 5:4 f32 denormals, 7:6 f16 and f64 denormals, 8 DX10_CLAMP
    (clamp takes NaN to 0), 9 IEEE, 23 FP16_OVFL (an f16 result that overflows is the largest number; infinite operands
    and divisions by zero give infinity: LLVM, "User Guide for AMDGPU Backend", FP16_OVFL)."""

    bits: int

    @classmethod
    def of(cls, descriptor: KernelDescriptor) -> FloatMode:
        """The initial mode of a kernel."""
        return cls(
            _ROUND.index(descriptor.round_mode_32)
            | _ROUND.index(descriptor.round_mode_16_64) << 2
            | _DENORM.index(descriptor.denorm_mode_32) << 4
            | _DENORM.index(descriptor.denorm_mode_16_64) << 6
            | (descriptor.dx10_clamp is not False) << _DX10_CLAMP_BIT  # which GPUs without the bit always do
            | bool(descriptor.ieee_mode) << _IEEE_BIT
            | descriptor.fp16_overflow << _FP16_OVERFLOW_BIT
        )

    @property
    def rounding_f32(self) -> int:
        """0 to 3: to nearest even, towards +inf, towards -inf, towards zero."""
        return self.bits & 3

    @property
    def rounding_f16_f64(self) -> int:
        return (self.bits >> 2) & 3

    @property
    def denormals_f32(self) -> int:
        """Two bits: denormals are kept on input (1), and on output (2)."""
        return (self.bits >> 4) & 3

    @property
    def denormals_f16_f64(self) -> int:
        return (self.bits >> 6) & 3

    @property
    def dx10_clamp(self) -> bool:
        return bool((self.bits >> _DX10_CLAMP_BIT) & 1)

    @property
    def ieee(self) -> bool:
        return bool((self.bits >> _IEEE_BIT) & 1)

    @property
    def overflow_saturates(self) -> bool:
        return bool((self.bits >> _FP16_OVERFLOW_BIT) & 1)
