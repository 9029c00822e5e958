"""The state that the stages of the compiler pass on to each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir

from flydsl.arch import Arch
from flydsl.codegen import CodeObject


@dataclass
class Compilation:
    """The state that the stages work on.

    module: the builtin.module, rewritten in place. code: the machine code, once phase C has made it.
    is_large: whether MLIR's passes may take long on it; then they run in another process, which can be ended.
    llvm_options: options of LLVM's command line. libraries: bitcode that the kernels are linked with.
    meanwhile: called while LLVM compiles in another process.
    """

    module: ir.Operation
    arch: Arch
    opt_level: int
    debug_info: bool
    code: CodeObject | None = None
    is_large: bool = False
    llvm_options: tuple[str, ...] = ()
    libraries: tuple[bytes, ...] = ()
    meanwhile: Callable[[], None] = lambda: None
