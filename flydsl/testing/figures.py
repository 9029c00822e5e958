"""The figures of kernels: of their machine code, and of what the simulator counts and estimates when they run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flydsl.simulator.counters import LaunchCounters


@dataclass(frozen=True)
class KernelFigures:
    """The figures of one launch. values: name -> value, as `baseline` keeps them."""

    kernel: str
    arch: str
    llvm: str
    values: dict[str, float]


def measure(call: Callable[[], Any]) -> list[KernelFigures]:
    """The figures of each launch that a call makes, on the simulator. Checks are off meanwhile.

    Raises LaunchError if the call launches nothing on the simulator.
    """
    from flydsl.errors import LaunchError
    from flydsl.simulator import counting, tracing
    from flydsl.simulator.checks import no_checks

    with no_checks(), counting() as counted, tracing(execute=True, only_known=True):
        call()
    if not counted.launches:
        raise LaunchError(
            "the call launches nothing on the simulator, and has no figures",
            hint="call a @flyc.jit function with CPU tensors",
        )
    return [_figures(launch) for launch in counted.launches]


def _figures(launch: LaunchCounters) -> KernelFigures:
    values = {**_of_code(launch), **_of_run(launch)}
    return KernelFigures(launch.kernel, launch.program.arch.name, _llvm_version(), values)


def _of_code(launch: LaunchCounters) -> dict[str, float]:
    from flydsl.arch.occupancy import occupancy
    from flydsl.simulator.counters.instruction_class import instruction_class

    info, arch = launch.program.kernels[launch.kernel], launch.program.arch
    x, y, z = launch.block
    resources = {"vgprs": info.vgprs, "agprs": info.agprs, "sgprs": info.sgprs, "lds_bytes": info.lds_bytes}
    waves = occupancy(arch, **resources, workgroup_size=x * y * z, wave_size=info.wave_size).waves_per_simd
    classes = Counter(instruction_class(instruction.mnemonic) for instruction in launch.program.instructions)
    instructions = {f"instructions, {name}": count for name, count in sorted(classes.items())}
    spills = info.vgpr_spills + info.sgpr_spills
    return {**resources, "scratch_bytes": info.scratch_bytes, "spills": spills, "waves per SIMD": waves, **instructions}


def _of_run(launch: LaunchCounters) -> dict[str, float]:
    totals = launch.totals
    counted: dict[str, float] = {
        "executed instructions": totals.executions,
        "lines of memory": totals.global_lines,
        "cycles of bank conflicts": totals.lds_conflicts,
    }
    return counted if launch.estimate is None else {**counted, "time_us": round(launch.estimate.time_us, 3)}


def _llvm_version() -> str:
    import llvmlite.binding as llvm

    return ".".join(map(str, llvm.llvm_version_info))
