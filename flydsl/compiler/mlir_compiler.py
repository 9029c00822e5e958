"""Compiling a module that no launcher was traced into."""

from __future__ import annotations

from mlir import ir

from flydsl import env
from flydsl.arch import get_arch
from flydsl.compiler.compilation import Compilation
from flydsl.compiler.stages import stages
from flydsl.dialect.context import context, lock
from flydsl.dialect.text import verify_types
from flydsl.errors import CompileError
from flydsl.runtime.device import target_arch


class MlirCompiler:
    """The pipeline as a function of modules."""

    @classmethod
    def compile(cls, module: ir.Module, *, arch: str = "", func_name: str = "") -> ir.Module:
        """A copy of a module after all stages: kernels are machine code, the launcher is in the LLVM dialect.

        module: as fly-opt prints it before the first stage, in the dialect's context. arch: by default that of a launch
        on CPU tensors. func_name: what errors call it. Raises CompileError if the module is not valid, or if a stage
        fails.
        """
        target = get_arch(arch or target_arch("cpu"))
        with lock, context(), ir.Location.unknown():
            verify_types(module.operation)
            copy = ir.Module.parse(module.operation.get_asm(enable_debug_info=True))
            compilation = Compilation(copy.operation, target, env.opt_level(), env.debug_info())
            for spec in stages(target):
                try:
                    spec.run(compilation)
                except ir.MLIRError as error:
                    raise CompileError(f"{func_name or 'module'}: {spec.passes[0]}: {error}") from None
            return copy
