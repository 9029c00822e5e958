"""Errors about names and modules that are missing: FlyDSL's that are unsupported, and misspelt ones."""

from __future__ import annotations

import dis
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType

from flydsl.errors import MissingImport, MissingName

_IMPORT_FROM = dis.opmap["IMPORT_FROM"]

# Modules of FlyDSL 0.2 to 0.4.2, and of its development since, that are unsupported; those below them are, too.
UNSUPPORTED_MODULES = frozenset({
    "flydsl._mlir._mlir_libs._mlirDialectsFly", "flydsl._mlir._mlir_libs._mlirDialectsFlyROCDL",
    "flydsl._mlir.dialects._fly_ktrace_ops_gen", "flydsl._mlir.dialects._fly_ops_gen",
    "flydsl._mlir.dialects._fly_rocdl_ops_gen", "flydsl._mlir.dialects.ext", "flydsl._mlir.dialects.fly_ktrace",
    "flydsl.compiler._aot", "flydsl.compiler.backends._rocm_ktrace", "flydsl.compiler.backends._rocm_ktrace_trace",
    "flydsl.compiler.backends.ktrace", "flydsl.compiler.diagnostics", "flydsl.compiler.external_llvm",
    "flydsl.compiler.link_utils", "flydsl.compiler.mlir_utils", "flydsl.compiler.scf_control_flow",
    "flydsl.expr.experimental", "flydsl.expr.iket", "flydsl.expr.iket_emit", "flydsl.expr.ktrace",
    "flydsl.expr.ktrace_common", "flydsl.expr.lowlevel", "flydsl.expr.nvvm", "flydsl.expr.pinned_vgpr",
    "flydsl.expr.register", "flydsl.expr.rocdl.experimental",
    "flydsl.expr.rocdl.ktrace_emit", "flydsl.expr.rocdl.ktrace_format", "flydsl.expr.rocdl.memory",
    "flydsl.expr.rocdl.random", "flydsl.expr.rocdl.utils", "flydsl.expr.signal_ops",
    "flydsl.runtime.device_runtime.base",
    "flydsl.runtime.device_runtime.rocm", "flydsl.runtime.device_runtime.rocm_ktrace_buffer",
    "flydsl.expr.utils.expand_ops", "flydsl.extension.flytrace", "flydsl.extension.random.rocdl", "flydsl.utils._elf",
    "flydsl.utils.file", "flydsl.utils.kernel_info", "flydsl.utils.named_barrier_allocator",
})  # fmt: skip

# Packages of FlyDSL with a module for each operation, and these: here each has what its package has.
_PARTS = {
    "flydsl.extension.coop.block": "adjacent_difference discontinuity exchange histogram load merge_sort radix_rank"
    " radix_sort reduce run_length_decode scan shuffle store topk",
    "flydsl.extension.coop.warp": "bitonic_sort exchange load merge_sort reduce reduce_batched rocdl scan store",
}

_FLY = "flydsl._mlir.dialects.fly and fly_rocdl have the operations that programs use, and flydsl.expr all of them"
_TDM = "fx.rocdl.make_tdm_atom(tile, extents, num_warps=1) makes a copy of a tile in either direction"
_TRACE = "workbench.trace(launcher, *arguments) shows what each wave does and when, and the kernel stays as it is"

# Unsupported names and modules -> what to use instead.
INSTEAD: dict[str, str] = {
    name: hint
    for hint, names in {
        _TDM: "TDM",
        _FLY: "_mlirDialectsFly _mlirDialectsFlyROCDL _fly_ops_gen _fly_rocdl_ops_gen",
        _TRACE: "ktrace ktrace_common ktrace_emit ktrace_format fly_ktrace _fly_ktrace_ops_gen iket iket_emit flytrace",
        "flyc.compile(launcher, ...).kernels[0].resources has registers and LDS, .occupancy the waves": "kernel_info",
        "fx.E(0) is a step of one along mode 0": "BasisType",
        "fx.rocdl.swmmac_f32_16x16x32_f16(...) and its kin multiply sparse matrices": "SWMMAC",
        "fx.rocdl.WMMA(16, 16, 16, fx.Float16) is the instruction of every target that has it": "WMMA_RDNA3",
        "value.to(fx.Float32) converts": "fp_to_fp fp_to_int int_to_fp int_to_int",
    }.items()
    for name in names.split()
}


def unsupported(name: str) -> str:
    """The text for a name that FlyDSL has.

    >>> unsupported("flydsl.expr.ktrace")
    "flydsl.expr.ktrace is part of FlyDSL's API, but unsupported"
    """
    return f"{name} is part of FlyDSL's API, but unsupported"


def name_error(text: str, hint: str | None = None) -> MissingName | MissingImport:
    """The error that a module's `__getattr__` raises: an AttributeError, or an ImportError where an `import` asks.

    Of an AttributeError, `from module import name` makes an ImportError of its own, which would lose the text.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name == "__getattr__":
        frame = frame.f_back
    if frame is not None and frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM:
        return MissingImport(text, hint=hint)
    return MissingName(text, hint=hint)


class _Part:
    """The loader of a module that has the names of its package."""

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Leave the module to Python."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        package = sys.modules[module.__name__.rpartition(".")[0]]
        names = ("__all__", "__getattr__", *package.__all__)
        vars(module).update({name: getattr(package, name) for name in names})


class _Finder:
    """The last finder of modules: says of FlyDSL's modules that they are unsupported."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        parent, _, last = name.rpartition(".")
        if last in _PARTS.get(parent, "").split():
            return ModuleSpec(name, _Part)  # type: ignore[arg-type]  # a class whose methods are static
        if name in UNSUPPORTED_MODULES or parent in UNSUPPORTED_MODULES or parent in _PARTS:
            hint = f"import what it has from {parent}" if parent in _PARTS else INSTEAD.get(last)
            error = MissingImport(unsupported(name), hint=hint)
            error.name = name  # which tells Python that it is this module, and none that it imports
            raise error
        return None


def install() -> None:
    """Have imports of FlyDSL's modules say that they are unsupported."""
    if _Finder not in sys.meta_path:
        sys.meta_path.append(_Finder)
