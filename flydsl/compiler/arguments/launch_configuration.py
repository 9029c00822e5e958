"""The launch configuration, `grid`, `block` and `smem`, as numbers of the DSL."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from mlir import ir

from flydsl.arch import Arch, launch_limits
from flydsl.dialect.location import argument_error
from flydsl.errors import LaunchError
from flydsl.errors.places import user_location
from flydsl.expr.numeric import Boolean, Int32, Numeric, as_numeric
from flydsl.expr.tracing.operands import located


def known_block_size_of(size: Sequence[int]) -> tuple[int, ...]:
    """A block size of three dimensions. Raises ArgumentError or LaunchError for anything else."""
    what = f"known_block_size={size!r}"
    if not isinstance(size, tuple | list):
        raise argument_error(
            f"{what} must be a sequence of 3 positive integers", "pass known_block_size=[256, 1, 1], for example"
        )
    if len(size) != 3:
        raise LaunchError(
            f"{what} must have exactly 3 elements, got {len(size)}", at=user_location(), hint="add dimensions of 1"
        )
    for extent in size:
        if type(extent) is not int:
            raise argument_error(f"{what}: {extent!r} must be an int")
        if extent < 1:
            raise LaunchError(f"{what}: {extent} must be positive", at=user_location())
    return tuple(size)


def dimensions(what: str, value: Any) -> list[Any]:
    """1 to 3 launch dimensions as three scalars. Raises LaunchError for anything else, and for one below 1."""
    given = list(value) if isinstance(value, tuple | list) else [value]
    if not 1 <= len(given) <= 3:
        raise LaunchError(
            f"{what} must have 1 to 3 dimensions, got {value!r}",
            at=user_location(),
            hint="merge some of them, and take the index apart in the kernel with // and %",
        )
    numbers = [_dimension(what, value, item) for item in given]
    located(launch_limits.check_extents, what, [int(number) if number.is_static else None for number in numbers])
    return numbers + [Int32(1)] * (3 - len(numbers))


def _dimension(what: str, value: Any, item: Any) -> Any:
    number = _integer(item)
    if number is None:
        raise LaunchError(f"{what}={value!r}: {item!r} is not an integer", at=user_location(), hint=_whole(item))
    return number


def smem_bytes(smem: Any, allocated_bytes: int, arch: Arch) -> Int32:
    """The dynamic shared memory of a launch. allocated_bytes: what its kernel allocates of it.

    Raises LaunchError if it is not an integer, too large, or smaller than what is allocated.
    """
    number = _integer(allocated_bytes if smem is None else smem)
    if number is None:
        raise LaunchError(f"smem must be an integer, in bytes, got {smem!r}", at=user_location(), hint=_whole(smem))
    if number.is_static:
        located(launch_limits.check_lds, arch, 0, int(number))
        if int(number) < allocated_bytes:
            raise LaunchError(
                f"smem={smem!r}, and the kernel allocates {allocated_bytes} bytes of dynamic shared memory",
                at=user_location(),
                hint="omit smem, and the launch takes what the kernel allocates",
            )
    return Int32(number)


def _whole(given: Any) -> str:
    """The hint about a number that is not an integer, or about something that is not a number."""
    if isinstance(given, float) or getattr(given, "is_float", False):
        return "divide with //, which gives an integer; / gives a float"
    return "a Python integer, or a runtime one such as an fx.Int32 parameter of the launcher"


def _integer(value: Any) -> Any:
    """A number of the DSL from an integer of any kind; None for anything else."""
    if isinstance(value, bool) or not (isinstance(value, ir.Value | Numeric) or hasattr(value, "__index__")):
        return None
    number = as_numeric(value if isinstance(value, ir.Value | Numeric) else operator.index(value))
    return None if number.is_float or number.dtype is Boolean else number
