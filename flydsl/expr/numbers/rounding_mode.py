"""Rounding modes of conversions between floats. The hardware is set to the nearest, ties to even."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from flydsl.dialect.location import argument_error

_SUPPORTED = ("f32", "f16", "bf16")


class RoundingMode(IntEnum):
    """The modes of IEEE 754. `x.to(fx.Float16, rounding_mode=...)` takes all but `to_nearest_away`."""

    to_nearest_even = 0
    downward = 1
    upward = 2
    toward_zero = 3
    to_nearest_away = 4


def require_nearest(what: str, mode: Any) -> None:
    """Raise ArgumentError for another mode than the nearest with ties to even, or None, which means it."""
    if mode is not None and mode is not RoundingMode.to_nearest_even:
        raise argument_error(
            f"{what}: the rounding mode {getattr(mode, 'name', repr(mode))} is unsupported",
            "pass fx.RoundingMode.to_nearest_even, which is the default",
        )


def direction_of(source: Any, target: Any, mode: Any) -> RoundingMode | None:
    """The direction in which a conversion from one float type to another rounds: none if that is the nearest, or exact.

    Raises ArgumentError for types that are no floats, and for what is unsupported.
    """
    what = f"conversion from {source.__name__} to {target.__name__}"
    if not isinstance(mode, RoundingMode):
        raise argument_error(
            f"{what}: the rounding mode must be a fx.RoundingMode, got {mode!r}", "pass fx.RoundingMode.upward"
        )
    if not (source.is_float and target.is_float):
        raise argument_error(f"rounding_mode= of a {what}", "it is for conversions between floats; leave it out")
    if mode is RoundingMode.to_nearest_even:
        return None
    if mode is RoundingMode.to_nearest_away or target.mlir_name not in (*_SUPPORTED, "f64"):
        raise argument_error(
            f"{what}: the rounding mode {mode.name} is unsupported",
            "upward, downward and toward_zero round to Float32, Float16 and BFloat16",
        )
    is_exact = target.width > source.width or source is target
    return None if is_exact else mode
