"""Machine code for the host's CPU, from LLVM IR: compile it, load it, look functions up.

Results must not depend on the host, so code is generated for one of a few fixed *tiers*, not for the present CPU: the
same IR gives the same machine code on all CPUs of a tier, whatever else they can do. A tier lists the features that it
may use:

- x86-64: the levels v3 (AVX2, FMA, F16C) and v4 (AVX-512 F, BW, CD, DQ, VL). All of their float instructions are those
  of IEEE 754 to the bit. Arithmetic on f16 (AVX512-FP16) and bf16 is in neither: LLVM's conversions of f16 NaNs to
  integers are wrong with it, and bf16 instructions flush denormals. An f16 is widened, which is exact, and rounded
  once.
- arm64: what every ARMv8 has (NEON, with FMA and conversions of f16), and not the arithmetic on f16 of ARMv8.2.

CPUs of these tiers differ only in NaNs: which operand's NaN an operation passes on, and the sign of a new one.
Therefore the builder fixes both (`settle_nan`). No flag allows LLVM to reassociate or to contract,
except a product that is exact; no function of a mathematical library is called (`isa.elementary`).
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from flydsl import env
from flydsl.errors import ArgumentError, SimulatorError
from flydsl.system.interrupts import interrupt_afterwards


@dataclass(frozen=True)
class Tier:
    """A set of CPUs that share the same code. needs: the features, in LLVM's names, that such a CPU must have.

    vector_bytes, vector_registers: how large its vector registers are, and how many there are.
    """

    name: str
    cpu: str
    features: str
    needs: tuple[str, ...]
    vector_bytes: int
    vector_registers: int


_AVX2 = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt")
_AVX512 = (*_AVX2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_X86 = (Tier("avx2", "x86-64-v3", "", _AVX2, 32, 16), Tier("avx512", "x86-64-v4", "", _AVX512, 64, 32))
_ARM = (Tier("neon", "generic", "+neon,+fp-armv8", (), 16, 32),)
TIERS = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}
"""By the machine's name, the least demanding one first."""


class UnsupportedHost(SimulatorError):
    """This CPU cannot run the simulator's native code."""


@cache
def _binding() -> ModuleType:
    import llvmlite.binding as binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@cache
def available_tiers() -> tuple[Tier, ...]:
    """The tiers that this CPU can run, the least demanding one first. UnsupportedHost if there are none."""
    tiers = TIERS.get(platform.machine().lower(), ())
    features = _binding().get_host_cpu_features() if any(tier.needs for tier in tiers) else {}
    able = tuple(tier for tier in tiers if all(features.get(need) for need in tier.needs))
    if able:
        return able
    missing = [need for tier in tiers[:1] for need in tier.needs if not features.get(need)]
    raise UnsupportedHost(
        f"the simulator's native code needs a CPU with {', '.join(missing) or 'AVX2 or NEON'}",
        hint='use the lock-step backend: backend="lockstep" or FLYDSL_SIMULATOR_BACKEND=lockstep',
    )


@cache
def tier() -> Tier:
    """The tier of this process: the best that the CPU can run, or the one that FLYDSL_SIMULATOR_HOST names."""
    able, name = available_tiers(), env.simulator_host()
    if name == "native":
        return able[-1]
    for candidate in able:
        if candidate.name == name:
            return candidate
    names = ", ".join(["native", *(t.name for t in able)])
    raise ArgumentError(
        f"FLYDSL_SIMULATOR_HOST must be one of {names}, got {name!r}", hint="choose one that this CPU can run"
    )


def triple() -> str:
    """The target triple of native code, as LLVM names it."""
    return str(_binding().get_default_triple())


def description() -> str:
    """Everything outside of our own source that compiled code depends on."""
    binding = _binding()
    import llvmlite

    version = ".".join(map(str, binding.llvm_version_info))
    chosen = tier()
    return "\n".join([llvmlite.__version__, version, triple(), chosen.name, chosen.cpu, chosen.features])


@interrupt_afterwards()  # what a traceback keeps is freed in any order: llvmlite's modules after their context, a crash
def compile_module(llvm_ir: str, *, optimize: bool) -> bytes:
    """An object file. No passes run on the IR: handlers are written in final form, and clang has run its own passes.

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
    target, chosen = _binding().Target.from_default_triple(), tier()
    return target.create_target_machine(
        cpu=chosen.cpu, features=chosen.features, opt=opt_level, jit=True, codemodel="jitdefault"
    )


class Loader:
    """Object files loaded into this process. They may call each other's functions, and are never unloaded."""

    @interrupt_afterwards()
    def __init__(self) -> None:
        binding = _binding()
        # An engine of its own target machine: LLVM does not bear sharing one.
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _target_machine(0))
        self._lock = threading.Lock()

    @interrupt_afterwards()
    def load(self, obj: bytes, names: Iterable[str]) -> dict[str, int]:
        """Load an object and return the addresses of its functions."""
        with self._lock:
            self._engine.add_object_file(_binding().ObjectFileRef.from_data(obj))
            self._engine.finalize_object()
            return {name: self._engine.get_function_address(name) for name in names}
