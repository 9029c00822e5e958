"""Compiling a module that no launcher was traced into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from mlir import ir

from flydsl import env
from flydsl.arch import get_arch
from flydsl.compiler.artifact import CompiledArtifact
from flydsl.compiler.lowering.compilation import Compilation
from flydsl.compiler.stages import stages
from flydsl.dialect.context import context, lock
from flydsl.dialect.text import to_text, verify_types
from flydsl.errors import CompileError, LaunchError
from flydsl.runtime.device import target_arch
from flydsl.runtime.interface import Device

if TYPE_CHECKING:
    from flydsl.compiler.pipeline import Pipeline


class MlirCompiler:
    """The pipeline as a function of modules.

    A program that sets its own `compile` here, as one that looks at traced modules does, gets those of its launchers,
    which then compile to what it returns and cannot be launched (see COMPILE_ONLY).
    """

    @classmethod
    def compile(cls, module: ir.Module, *, arch: str = "", func_name: str = "", link_libs: Any = None) -> ir.Module:
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


_OWN = MlirCompiler.compile.__func__  # type: ignore[attr-defined]


def is_replaced() -> bool:
    """True if a program has set its own `MlirCompiler.compile`."""
    return getattr(MlirCompiler.compile, "__func__", None) is not _OWN


class ReplacedArtifact(CompiledArtifact):
    """The result of a program's own `MlirCompiler.compile` for a launcher."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        with lock, context(), ir.Location.unknown():
            traced = ir.Module.parse(pipeline.origin_bytecode)
            self.module = MlirCompiler.compile(traced, arch=pipeline.arch.name, func_name=pipeline.name)

    @property
    def ir(self) -> str:
        """The module that it returned."""
        return to_text(self.module)

    def launch_payloads(self, payloads: Sequence[Any], device: Device | None = None) -> NoReturn:
        """Raise LaunchError."""
        raise LaunchError(
            f"{self.pipeline.name}: the program's own MlirCompiler.compile made this, which is not machine code",
            hint="with COMPILE_ONLY=1 nothing is launched",
        )

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self.launch_payloads([])

    def __repr__(self) -> str:
        return f"<ReplacedArtifact {self.pipeline.name}>"
