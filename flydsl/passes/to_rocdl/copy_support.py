"""A check that the target supports the copy instructions of a program."""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from flydsl.arch import Arch
from flydsl.dialect.location import source_location
from flydsl.dialect.types import fly_type
from flydsl.errors import CompileError
from flydsl.passes.rewriting import fly_name


def require_supported(ops: Iterable[ir.Operation], arch: Arch) -> None:
    """Raise CompileError for a copy instruction that the target does not have."""
    for op in ops:
        if fly_name(op) != "make_copy_atom":
            continue
        copy = fly_type(op.results[0].type).op
        if copy.archs is not None and arch.name not in copy.archs:
            raise CompileError(
                f"{arch.name} has no {copy}; it is on {', '.join(copy.archs)}",
                at=source_location(op.location),
                hint="use a copy that this architecture has, such as fx.UniversalCopy(32), or compile for another",
            )
