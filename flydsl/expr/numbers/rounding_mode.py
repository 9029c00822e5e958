"""Rounding modes, which some operations on floats take. The hardware is set to the nearest, ties to even."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from flydsl.dialect.location import argument_error


class RoundingMode(IntEnum):
    """The modes of IEEE 754. Operations support `to_nearest_even`, which they have by default."""

    to_nearest_even = 0
    downward = 1
    upward = 2
    toward_zero = 3
    to_nearest_away = 4


def check_rounding(what: str, mode: Any) -> None:
    """Raise ArgumentError for another mode than the nearest with ties to even, or None, which means it."""
    if mode is None or mode is RoundingMode.to_nearest_even:
        return
    if isinstance(mode, RoundingMode):
        raise argument_error(
            f"{what}: the rounding mode {mode.name} is unsupported",
            "to_nearest_even, which is the default; fx.floor, fx.ceil and fx.trunc round to integers, and"
            " fx.rocdl.cvt_pkrtz gives two f16 rounded toward zero",
        )
    raise argument_error(
        f"{what}: the rounding mode must be a fx.RoundingMode, got {mode!r}", "pass fx.RoundingMode.to_nearest_even"
    )


def check_rounded_conversion(source: Any, target: Any, mode: Any) -> None:
    """Raise ArgumentError for a rounding mode of a conversion that is none between floats, or for another mode."""
    if mode is not None and not (source.is_float and target.is_float):
        raise argument_error(
            f"rounding_mode= of a conversion from {source.__name__} to {target.__name__}",
            "it is for conversions between floats; leave it out",
        )
    check_rounding(f"conversion from {source.__name__} to {target.__name__}", mode)
