"""The functions of a kernel body: layout algebra, tensors, copies, matrix products, and compile-time values."""

# ruff: noqa: F403 - each family of calls has its module; this is the namespace of all of them

from __future__ import annotations

from typing import TYPE_CHECKING

from flydsl.dialect.inference import algebra_value
from flydsl.dialect.location import argument_error, trace_error
from flydsl.dialect.types import (
    ComposedLayoutType,
    CoordSwizzleType,
    CopyAtomType,
    FlyType,
    IntTupleType,
    LayoutType,
    MemRefType,
    MmaAtomType,
    PointerType,
    SwizzleType,
    TiledCopyType,
    TiledMmaType,
    TileType,
)
from flydsl.errors import FlyError
from flydsl.errors.places import user_location
from flydsl.expr.atoms.atom_values import *
from flydsl.expr.atoms.atom_values import __all__ as _atom_values
from flydsl.expr.atoms.copies import *
from flydsl.expr.atoms.copies import __all__ as _copies
from flydsl.expr.atoms.mma import *
from flydsl.expr.atoms.mma import __all__ as _mma
from flydsl.expr.flydsl_names.keywords import accept_keywords
from flydsl.expr.flydsl_names.names import unknown_name
from flydsl.expr.layouts.algebra import *
from flydsl.expr.layouts.algebra import __all__ as _algebra
from flydsl.expr.layouts.coord_tensor import *
from flydsl.expr.layouts.coord_tensor import __all__ as _coord_tensor
from flydsl.expr.memory.atomics import *
from flydsl.expr.memory.atomics import __all__ as _atomics
from flydsl.expr.memory.tensors import *
from flydsl.expr.memory.tensors import __all__ as _memory
from flydsl.expr.printing.assertions import device_assert
from flydsl.expr.printing.printf import printf, refuse
from flydsl.expr.tracing.operands import is_runtime
from flydsl.expr.typing import T

if TYPE_CHECKING:
    from flydsl.expr.kinds import Result

__all__ = [
    "ComposedLayoutType", "CoordSwizzleType", "CopyAtomType", "IntTupleType", "LayoutType", "MemRefType", "MmaAtomType",
    "PointerType", "SwizzleType", "T", "TileType", "TiledCopyType", "TiledMmaType", "const_expr", "device_assert",
    "printf", "range", "range_constexpr", "refuse", "static",
    *_algebra, *_atom_values, *_atomics, *_coord_tensor, *_copies, *_memory, *_mma,
]  # fmt: skip


def range_constexpr(*arguments: int) -> range:
    """A range that is unrolled: the loop body is traced once per value. Its bounds must be known at compile time."""
    for argument in arguments:
        if is_runtime(argument):
            raise trace_error(
                f"range_constexpr of a runtime {type(argument).__name__} cannot be unrolled",
                "`for i in range(n):` is a loop on the device; a parameter annotated fx.Constexpr[int] is known at "
                "compile time",
            )
    try:
        return range(*(argument.__index__() for argument in arguments))
    except (AttributeError, TypeError, ValueError) as error:
        if isinstance(error, FlyError):
            raise error.located(user_location()) from None
        raise argument_error(
            f"range_constexpr{arguments!r}: {error}",
            "it takes what Python's range takes, known at compile time; range(...) is a loop on the device",
        ) from None


# Under FlyDSL's name; in a kernel a loop over it is one on the device.
range = range


def const_expr(value: object) -> Result:
    """Mark a value as known at compile time; raises TraceError for a runtime value."""
    if is_runtime(value):
        raise trace_error("const_expr of a runtime value", "pass it as fx.Constexpr to know it when compiling")
    return value


def static(value: object) -> Result:
    """A layout, tile, swizzle or tuple as a constant of the program, given as a value or as its fly type."""
    return algebra_value(value) if isinstance(value, FlyType) else value


accept_keywords(globals(), __all__)

__getattr__ = unknown_name(
    __name__,
    globals(),
    dict.fromkeys(
        ("CopyOpUniversalAtomicType", "CopyOpUniversalCopyType", "MmaOpUniversalFMAType"),
        "flydsl.expr.rocdl.instruction_types",
    ),
)
