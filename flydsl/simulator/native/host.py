"""Machine code for the host's CPU, from LLVM IR: compile it, load it, look functions up."""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterable
from functools import cache
from types import ModuleType
from typing import Any

from flydsl.errors import SimulatorError

_NEEDED_ON_X86 = ("f16c", "fma", "avx2")
"""Without these LLVM calls library functions that no process of ours has."""


class UnsupportedHost(SimulatorError):
    """This CPU cannot run the simulator's native code."""


@cache
def _binding() -> ModuleType:
    import llvmlite.binding as binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@cache
def _host() -> tuple[str, str]:
    """The CPU's name and features."""
    binding = _binding()
    features = binding.get_host_cpu_features()
    if platform.machine().lower() in ("x86_64", "amd64"):
        missing = [f for f in _NEEDED_ON_X86 if not features.get(f)]
        if missing:
            raise UnsupportedHost(
                f"the simulator's native code needs a CPU with {', '.join(missing)}",
                hint='use the lock-step backend: backend="lockstep" or FLYDSL_SIMULATOR_BACKEND=lockstep',
            )
    return str(binding.get_host_cpu_name()), str(features.flatten())


def description() -> str:
    """Everything outside of our own source that compiled code depends on."""
    binding = _binding()
    import llvmlite

    version = ".".join(map(str, binding.llvm_version_info))
    return "\n".join([llvmlite.__version__, version, binding.get_default_triple(), *_host()])


def compile_module(llvm_ir: str, *, optimize: bool) -> bytes:
    """An object file. No passes run on the IR: it is written as it shall be.

    optimize: let the backend look beyond single blocks. It takes three times as long, and straight code gains nothing.
    """
    binding = _binding()
    module = binding.parse_assembly(llvm_ir, binding.create_context())
    module.verify()
    return bytes(_compiling_machine(int(optimize)).emit_object(module))


@cache
def _compiling_machine(opt_level: int) -> Any:
    return _target_machine(opt_level)


def _target_machine(opt_level: int) -> Any:
    binding = _binding()
    cpu, features = _host()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=opt_level, jit=True, codemodel="jitdefault")


class Loader:
    """Object files in this process. They may call each other's functions; what is loaded stays."""

    def __init__(self) -> None:
        binding = _binding()
        # An engine of its own target machine: LLVM does not bear sharing one.
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _target_machine(0))
        self._lock = threading.Lock()

    def load(self, obj: bytes, names: Iterable[str]) -> dict[str, int]:
        """Load an object and return the addresses of its functions."""
        with self._lock:
            self._engine.add_object_file(_binding().ObjectFileRef.from_data(obj))
            self._engine.finalize_object()
            return {name: self._engine.get_function_address(name) for name in names}
