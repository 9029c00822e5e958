"""`flyc`: decorators and the compiler behind them.

import flydsl.compiler as flyc
"""

from flydsl.system.garbage import collection_paused, move_to_oldest_generation

with collection_paused():
    from flydsl.compiler.arguments.custom_argument import JitArgumentRegistry
    from flydsl.compiler.arguments.pointer_argument import from_c_void_p
    from flydsl.compiler.arguments.tensor_spec import TensorSpec
    from flydsl.compiler.artifact import CompiledArtifact
    from flydsl.compiler.backends import BaseBackend, GPUTarget, compile_backend_name, get_backend, register_backend
    from flydsl.compiler.caching.saved import load, save
    from flydsl.compiler.capture import Launch, capture_launches
    from flydsl.compiler.custom_op import custom_op
    from flydsl.compiler.jit_argument import from_dlpack, from_torch_tensor
    from flydsl.compiler.jit_function import JitFunction, compile, jit
    from flydsl.compiler.kernel_function import KernelFunction, KernelLauncher, kernel
    from flydsl.compiler.pipeline import Pipeline, Stage
    from flydsl.compiler.trace import CompilationContext
    from flydsl.compiler.user_fork import install as _wait_before_forks
    from flydsl.expr.flydsl_names.names import unknown_name as _unknown_name

    move_to_oldest_generation()  # before a collection, which would look at all of it

__getattr__ = _unknown_name(__name__, globals())

_wait_before_forks()

CompiledFunction = CompiledArtifact

__all__ = [
    "BaseBackend", "CompilationContext", "CompiledArtifact", "CompiledFunction", "GPUTarget", "JitArgumentRegistry",
    "JitFunction", "KernelFunction", "KernelLauncher", "Launch", "Pipeline", "Stage", "TensorSpec", "capture_launches",
    "compile", "compile_backend_name", "custom_op", "from_c_void_p", "from_dlpack", "from_torch_tensor", "get_backend",
    "jit", "kernel", "load", "register_backend", "save",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
