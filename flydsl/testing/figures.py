"""The figures of kernels: of their machine code, and of what the simulator counts and estimates when they run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flydsl.compiler import CompiledArtifact, Launch
    from flydsl.simulator.counters import LaunchCounters
    from flydsl.testing.code import Code

LARGER_IS_BETTER = frozenset({"waves_per_simd"})
"""The figures of which more is better; of all others less is."""

_UNCOUNTED = "other"
"""The class of hints such as s_delay_alu, and of the end. More hints are neither better nor worse; the time is."""


@dataclass(frozen=True)
class KernelFigures:
    """The figures of one launch. values: name -> value, as `baseline` keeps them. code: of the kernel.

    artifact: the compilation that it comes from; None for what was not compiled here, such as a module that was opened.
    """

    kernel: str
    arch: str
    llvm: str
    values: dict[str, float]
    code: Code = field(repr=False)
    artifact: CompiledArtifact | None = field(default=None, repr=False)


def measure(call: Callable[[], Any], root: Path) -> list[KernelFigures]:
    """The figures of each launch that a call makes, on the simulator. root: what files of the source are called from.

    Under checks the call is made twice: under them, after which its tensors have the content again that they had, and
    without. Raises LaunchError if the call launches nothing on the simulator, and what a check finds.
    """
    __tracebackhide__ = True
    from flydsl.compiler import capture_launches
    from flydsl.errors import LaunchError
    from flydsl.runtime.rehearsal import undone
    from flydsl.simulator import counting, tracing
    from flydsl.simulator.checks import are_enabled, no_checks

    if are_enabled():
        with undone():
            call()
    with (
        no_checks(),
        counting() as counted,
        tracing(execute=True, only_known=True),
        capture_launches(with_stages=False) as launches,
    ):
        call()
    if not counted.launches:
        raise LaunchError(
            "the call launches nothing on the simulator, and has no figures",
            hint="call a @flyc.jit function with CPU tensors",
        )
    artifacts = _by_kernel(launches)
    return [_figures(launch, root, artifacts.get(launch.kernel)) for launch in counted.launches]


def _by_kernel(launches: list[Launch]) -> dict[str, CompiledArtifact]:
    artifacts = [launch.artifact for launch in launches]
    return {kernel.name: artifact for artifact in artifacts for kernel in artifact.kernels}


def _figures(launch: LaunchCounters, root: Path, artifact: CompiledArtifact | None) -> KernelFigures:
    from flydsl.testing.code import code_of

    values, code = {**_of_code(launch), **_of_run(launch)}, code_of(launch, root)
    return KernelFigures(launch.kernel, launch.program.arch.name, llvm_version(), values, code, artifact)


def _of_code(launch: LaunchCounters) -> dict[str, float]:
    from flydsl.arch.occupancy import occupancy
    from flydsl.simulator.counters.instruction_class import instruction_class

    info, arch = launch.program.kernels[launch.kernel], launch.program.arch
    x, y, z = launch.block
    resources = {"vgprs": info.vgprs, "agprs": info.agprs, "sgprs": info.sgprs, "lds_bytes": launch.lds_bytes}
    waves = occupancy(arch, **resources, workgroup_size=x * y * z, wave_size=info.wave_size).waves_per_simd
    classes = Counter(instruction_class(one.mnemonic) for one in launch.program.instructions_of(launch.kernel))
    del classes[_UNCOUNTED]
    instructions = {f"{name.replace(' ', '_')}_instructions": count for name, count in sorted(classes.items())}
    spills = info.vgpr_spills + info.sgpr_spills
    return {**resources, "scratch_bytes": info.scratch_bytes, "spills": spills, "waves_per_simd": waves, **instructions}


def _of_run(launch: LaunchCounters) -> dict[str, float]:
    totals = launch.totals
    counted: dict[str, float] = {
        "executed_instructions": totals.executions - totals.by_class.get(_UNCOUNTED, 0),
        "memory_lines": totals.global_lines,
        "bank_conflict_cycles": totals.lds_conflicts,
    }
    if totals.lds_unknown:  # accesses whose banks are not published, which the conflicts leave out
        counted["uncounted_lds_accesses"] = totals.lds_unknown
    return counted if launch.estimate is None else {**counted, "time_us": round(launch.estimate.time_us, 3)}


def llvm_version() -> str:
    """The version of the LLVM that compiles."""
    import llvmlite.binding as llvm

    return ".".join(map(str, llvm.llvm_version_info))
