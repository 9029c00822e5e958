"""What the stages of the compiler hand on to each other."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from flydsl.arch import Arch
from flydsl.codegen import CodeObject


@dataclass
class Compilation:
    """What the stages work on.

    module: the builtin.module, rewritten in place. code: the machine code, once phase C has made it.
    """

    module: ir.Operation
    arch: Arch
    opt_level: int
    debug_info: bool
    code: CodeObject | None = None
