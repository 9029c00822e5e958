"""What kernels of every family share: element types by name, and numbers of launches."""

from __future__ import annotations

from typing import Any

import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.expr.emit import target_name

LOG2_E = 1.4426950408889634

ELEMENT_TYPES: dict[str, Any] = {
    "f32": fx.Float32, "f16": fx.Float16, "bf16": fx.BFloat16, "i8": fx.Int8,
}  # fmt: skip
TORCH_NAMES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i8": "int8"}


def element_type(dtype_str: str) -> Any:
    """The DSL's type of a short name: f32, f16, bf16, i8."""
    if dtype_str not in ELEMENT_TYPES:
        raise ArgumentError(f"element type {dtype_str!r}", hint=f"types: {', '.join(ELEMENT_TYPES)}")
    return ELEMENT_TYPES[dtype_str]


def dtype_str(tensor: Any) -> str:
    """The short name of a torch tensor's type, or torch's own where there is none."""
    name = str(tensor.dtype).removeprefix("torch.")
    return next((short for short, known in TORCH_NAMES.items() if known == name), name)


def fp8_type() -> Any:
    """The 8-bit float of the target's instructions: E4M3FNUZ on gfx942 (at most 240), E4M3FN after it (448)."""
    return fx.Float8E4M3FNUZ if target_name() == "gfx942" else fx.Float8E4M3FN


def ceil_div(number: int, divisor: int) -> int:
    """The quotient, rounded up."""
    return -(-number // divisor)


def power_of_two(number: int) -> int:
    """The smallest power of two that is not below a number from 1 on."""
    return 1 << (number - 1).bit_length()
