"""The common parts of every family of kernels: element types by name, and numbers of launches."""

from __future__ import annotations

from functools import partial
from typing import Any

import flydsl.expr as fx
from flydsl import sizes
from flydsl.atoms.instruction_sets import CDNA4, GFX1250
from flydsl.errors import ArgumentError
from flydsl.errors.places import line_outside_of
from flydsl.expr.coop import warp_size
from flydsl.expr.tracing.emit import target_name

GFX942 = "gfx942"
LOG2_E = 1.4426950408889634

ELEMENT_TYPES: dict[str, Any] = {"f32": fx.Float32, "f16": fx.Float16, "bf16": fx.BFloat16}
FLOATS = tuple(ELEMENT_TYPES.values())
TORCH_NAMES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i8": "int8"}


def element_type(dtype_str: str) -> Any:
    """The DSL's type of a short name: f32, f16, bf16."""
    require(dtype_str in ELEMENT_TYPES, f"element type {dtype_str!r}", f"types: {', '.join(ELEMENT_TYPES)}")
    return ELEMENT_TYPES[dtype_str]


def dtype_str(tensor: Any) -> str:
    """The short name of a torch tensor's type, or torch's own where there is none."""
    name = str(tensor.dtype).removeprefix("torch.")
    return next((short for short, known in TORCH_NAMES.items() if known == name), name)


def fp8_type() -> Any:
    """The 8-bit float of the target's instructions: E4M3FNUZ on gfx942 (at most 240), E4M3FN after it (448)."""
    return fx.Float8E4M3FNUZ if target_name() == GFX942 else fx.Float8E4M3FN


def bytes_of(*dtypes: Any) -> tuple[Any, ...]:
    """Types that a tensor of 8-bit numbers may have: these, or bytes."""
    return *dtypes, fx.Int8, fx.Uint8


def bf16(v: Any) -> Any:
    """A vector of f32 rounded to bf16, to the nearest, ties to even, for numbers that come from bf16.

    Only CDNA 4 and gfx1250 have an instruction for it, and what the compiler makes of `to` must keep every NaN one. A
    NaN that comes from a bf16 has zeros in the bits that are cut off, so that rounding up cannot carry out of it: half
    the instructions.
    """
    if target_name() in (*CDNA4, *GFX1250):
        return v.to(fx.BFloat16)
    words = v.bitcast(fx.Uint32)
    words = words + (words >> 16 & 1) + 0x7FFF
    return words.bitcast(fx.BFloat16)[1::2]


def rounded(v: Any, dtype: Any) -> Any:
    """A vector of f32 in another type, rounded to the nearest, ties to even; to bf16 as `bf16` does it."""
    return bf16(v) if dtype is fx.BFloat16 else v.to(dtype)


def require(holds: bool, what: str, wanted: str) -> None:
    """Raise ArgumentError about `what`, at the caller's line, unless it holds; the hint is what is wanted instead."""
    if not holds:
        raise refusal(what, hint=wanted)


def refusal(what: str, *, hint: str | None = None) -> ArgumentError:
    """The error about `what`, at the caller's line."""
    return ArgumentError(what, at=line_outside_of("kernels"), hint=hint)


def require_waves_of_64(kernel: str) -> None:
    """Raise ArgumentError in a kernel for a target whose waves have 32 lanes."""
    require(warp_size() == 64, f"{kernel} for {target_name()}, whose waves have {warp_size()} lanes", "one of CDNA")


# What raises ArgumentError unless a tensor of a launcher, or an array of torch, fits: see `flydsl.sizes`.
require_tensor = partial(sizes.require_tensor, package="kernels")
require_tensors = partial(sizes.require_tensors, package="kernels")
require_array = partial(sizes.require_array, package="kernels")


def ceil_div(number: int, divisor: int) -> int:
    """The quotient, rounded up."""
    return -(-number // divisor)


def power_of_two(number: int) -> int:
    """The smallest power of two that is not below a number from 1 on."""
    return 1 << (number - 1).bit_length()
