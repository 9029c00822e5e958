"""Every stage of the compiler, in order. Passes are added here.

Phase A lowers the fly dialect to ROCDL, phase B everything to the LLVM dialect, phase C makes machine code. Names and
order are those of the architecture guide, section 3.2.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from mlir import ir
from mlir.passmanager import PassManager

from flydsl import env
from flydsl.arch import Arch
from flydsl.codegen.isolate import run_isolated
from flydsl.compiler.lowering.compilation import Compilation
from flydsl.compiler.lowering.gpu_module_to_binary import gpu_module_to_binary
from flydsl.dialect.context import lock
from flydsl.dialect.location import source_location
from flydsl.dialect.text import written_form
from flydsl.errors import ArgumentError, CompileError, did_you_mean
from flydsl.passes import (
    PASSES,
    blocks_apart,
    convert_fly_to_rocdl,
    float_remainder,
    fly_canonicalize,
    fly_convert_atom_call_to_ssa_form,
    fly_int_swizzle_simplify,
    fly_layout_lowering,
    fly_promote_regmem_to_vectorssa,
    fly_rewrite_func_signature,
    fly_rocdl_cluster_attr,
    printf_to_buffer,
)

Step = str | ModuleType | Callable[[Compilation], None]
"""An upstream pipeline in MLIR's syntax, a pass of `flydsl.passes`, or a function of the compilation."""


@dataclass(frozen=True)
class StageSpec:
    """One stage: its name, its phase, its purpose, and its steps."""

    name: str
    phase: str
    summary: str
    steps: tuple[Step, ...]

    @property
    def passes(self) -> tuple[str, ...]:
        """The names of the passes in it, without options."""
        bare = re.sub(r"\{[^}]*\}", "", self.name).removeprefix("gpu.module(").removesuffix(")")
        return tuple(part.strip() for part in bare.split(","))

    @property
    def file_name(self) -> str:
        """The stage's name in dump files: its passes, without those that only attach attributes."""
        names = [name for name in self.passes if name != fly_rocdl_cluster_attr.name]
        return "_".join(names).replace("-", "_")

    @property
    def is_verified(self) -> bool:
        """True if MLIR verifies the module at the end of the stage: after each of its own passes it does."""
        return isinstance(self.steps[-1], str)

    def run(self, compilation: Compilation) -> None:
        """Run the stage's steps on a compilation."""
        for step in self.steps:
            if isinstance(step, str):
                _run_upstream(compilation, step)
            elif isinstance(step, ModuleType):
                step.apply(compilation.module, compilation.arch)
            else:
                step(compilation)


class PassesFailedError(CompileError):
    """The error of passes that failed, from MLIR's diagnostics, at the user's line."""

    @classmethod
    def of(cls, error: ir.MLIRError) -> PassesFailedError:
        """The error that MLIR raised, with its diagnostics."""
        diagnostics = error.error_diagnostics
        at = next((found for d in diagnostics if (found := source_location(d.location)) is not None), None)
        return cls("; ".join(written_form(d.message) for d in diagnostics) or str(error), at=at)


def _run_upstream(compilation: Compilation, passes: str) -> None:
    """Run MLIR's own passes. One call in C++ cannot be interrupted, so a large module goes through a child process."""
    manager = _manager(passes)
    if not compilation.is_large:
        manager.run(compilation.module)
        return

    def work() -> bytes | PassesFailedError:
        try:
            manager.run(compilation.module)
        except ir.MLIRError as error:
            return PassesFailedError.of(error)
        written = io.BytesIO()
        compilation.module.write_bytecode(written)
        return written.getvalue()

    result, _ = run_isolated(work, lock=lock)
    if isinstance(result, PassesFailedError):
        raise result
    _replace_contents(compilation.module, ir.Module.parse(result))


@cache
def _manager(passes: str) -> PassManager:
    """The manager of MLIR's passes. Its patterns are made at its first run, which takes longer than a small module."""
    return PassManager.parse(f"builtin.module({passes})")


def _replace_contents(module: ir.Operation, source: ir.Module) -> None:
    """Replace the operations and attributes of a module by those of another, which loses them."""
    body = module.regions[0].blocks[0]
    for op in list(body.operations):
        op.operation.erase()
    for op in list(source.body.operations):
        op.operation.detach_from_parent()
        body.append(op)
    for name in source.operation.attributes:
        module.attributes[name] = source.operation.attributes[name]


def _fly(pass_: ModuleType, summary: str) -> StageSpec:
    return StageSpec(pass_.name, "A", summary, (pass_,))


def _mlir(phase: str, pipeline: str, summary: str) -> StageSpec:
    return StageSpec(pipeline, phase, summary, (pipeline,))


def stages(arch: Arch) -> list[StageSpec]:
    """The pipeline for an architecture."""
    to_branches = "convert-scf-to-cf,cse"
    to_rocdl = (
        f"convert-gpu-to-rocdl{{chipset={arch.name} index-bitwidth=0 runtime=HIP use-bare-ptr-memref-call-conv=true}}"
    )
    in_gpu_module = StageSpec(
        f"gpu.module({to_branches},{to_rocdl},{fly_rocdl_cluster_attr.name})",
        "A",
        "structured control flow to branches, GPU intrinsics to ROCDL",
        (
            f"gpu.module({to_branches})",
            blocks_apart,
            f"gpu.module({to_rocdl})",
            float_remainder,
            fly_rocdl_cluster_attr,
        ),
    )
    bare = "{use-bare-pointers-for-host=true use-bare-pointers-for-kernels=true}"
    debug = [_mlir("B", "ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly}", "debug scopes")]
    return [
        _fly(fly_rewrite_func_signature, "tensors at function boundaries to pointers and packed structs"),
        _fly(fly_canonicalize, "fold static layout algebra, remove dead operations"),
        _fly(fly_layout_lowering, "layout algebra to integer arithmetic"),
        _fly(fly_int_swizzle_simplify, "shorten swizzle arithmetic"),
        _mlir("A", "canonicalize", "constant folding, dead code"),
        _fly(fly_convert_atom_call_to_ssa_form, "copies to loads and stores of vectors"),
        _fly(fly_promote_regmem_to_vectorssa, "register tensors to vector values"),
        StageSpec(
            convert_fly_to_rocdl.name,
            "A",
            "pointers, atoms and printf to LLVM and ROCDL",
            (convert_fly_to_rocdl, printf_to_buffer),
        ),
        _mlir("A", "canonicalize", "constant folding, dead code"),
        in_gpu_module,
        _mlir("B", f"rocdl-attach-target{{chip={arch.name}}}", "the target, on the GPU module"),
        _mlir("B", "convert-scf-to-cf", "the launcher's control flow to branches"),
        _mlir("B", "convert-cf-to-llvm", "branches to LLVM"),
        _mlir("B", f"gpu-to-llvm{bare}", "launches to calls of the device runtime"),
        _mlir("B", "convert-vector-to-llvm", "vectors to LLVM"),
        _mlir("B", "convert-arith-to-llvm", "arithmetic to LLVM"),
        _mlir("B", "convert-func-to-llvm", "functions to LLVM"),
        _mlir("B", "reconcile-unrealized-casts", "remove leftover casts"),
        *(debug if env.debug_info() else []),
        StageSpec("gpu-module-to-binary{format=fatbin}", "C", "machine code", (gpu_module_to_binary,)),
    ]


def stage_of(name: str, usual: Sequence[StageSpec]) -> StageSpec:
    """The stage of a name: the usual one that is called so, a pass of ours, or a pipeline of MLIR's own passes."""
    found = next((spec for spec in usual if spec.name == name), None)
    if found is not None:
        return found
    return _fly(PASSES[name], f"{name}, as the backend asks") if name in PASSES else _mlir("A", name, "MLIR's passes")


def matching(specs: Sequence[StageSpec], key: int | str) -> list[int]:
    """The numbers, from 1, of the stages with a number, a name, a pass of that name or a dump file of that name.

    Raises ArgumentError where there are none.
    """
    if isinstance(key, int):
        if 1 <= key <= len(specs):
            return [key]
        raise ArgumentError(f"there is no stage {key}", hint=f"the stages are 1 to {len(specs)}")
    found = [
        number
        for number, spec in enumerate(specs, start=1)
        if key.removesuffix(".mlir") in (spec.name, *spec.passes, f"{number:02d}_{spec.file_name}")
    ]
    if not found:
        names = list(dict.fromkeys(name for spec in specs for name in spec.passes))
        raise ArgumentError(
            f"no stage is called {key!r}", hint=f"{did_you_mean(key, names)}the passes are {', '.join(names)}"
        )
    return found


def number_of(specs: Sequence[StageSpec], key: int | str) -> int:
    """The number of the one stage that is meant. Raises ArgumentError if several match, or none."""
    found = matching(specs, key)
    exact = [number for number in found if specs[number - 1].name == key]
    if len(found) > 1 and len(exact) != 1:
        raise ArgumentError(
            f"{key!r} names {len(found)} stages", hint=f"take its number: {' or '.join(map(str, found))}"
        )
    return (exact or found)[0]
