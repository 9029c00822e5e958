"""Launch a kernel on the simulator."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from typing import TYPE_CHECKING, Any

from flydsl import env
from flydsl.arch import Arch, launch_limits
from flydsl.arch.launch_limits import Dim3
from flydsl.errors import ArchError, LaunchError, SimulatorError
from flydsl.hsaco import KernelInfo
from flydsl.progress import Task
from flydsl.simulator import checks
from flydsl.simulator.counters.raw import no_counts
from flydsl.simulator.counters.session import Counting, current_counting
from flydsl.simulator.decoding.program import Program
from flydsl.simulator.dispatch import Dispatch, LaunchStatistics, LdsSize, PreparedKernel
from flydsl.simulator.memory.buffers import Memory
from flydsl.simulator.observers import ObservedLaunch, current_observers
from flydsl.simulator.timing.session import TracedLaunch, current_tracing

if TYPE_CHECKING:
    from flydsl.simulator.arrays import Array
    from flydsl.simulator.timing.session import Tracing
    from flydsl.simulator.timing.trace import Trace

_MOST_SCRATCH_BYTES = 131_056
"""The most scratch that LLVM's back end for gfx9 gives a thread."""
_MOST_WORKGROUPS_YZ = 1 << 16
"""The register whose halves hold the workgroup's y and z."""
_MOST_PREPARED = 16
"""The kernels with their sizes that are kept ready, of a program."""


def launch(
    program: Program,
    kernel_name: str,
    *,
    grid: Dim3,
    block: Dim3,
    kernarg: bytes,
    memory: Memory,
    dynamic_lds_bytes: int = 0,
    instruction_limit: int | None = None,
    backend: str | None = None,
    threads: int | None = None,
) -> LaunchStatistics:
    """Run a kernel to its end, with the checks that `checks.checking` enabled, counted inside `counting`.

    grid counts workgroups, block threads. kernarg holds the explicit arguments at the offsets of the kernel's
    metadata; pointers in it are addresses of `memory`. instruction_limit is per wave, by default what
    `checks.limited` says.

    backend: "native" executes compiled code on up to `threads` threads, "lockstep" computes with numpy; their results
    are equal to the bit. The defaults are FLYDSL_SIMULATOR_BACKEND and FLYDSL_SIMULATOR_THREADS, else native on every
    core. A launch with checks uses "lockstep"; where races are all that is looked for, "native" first tries to prove
    that there are none.

    Raises LaunchError for a configuration that no device accepts, and SimulatorError (see `flydsl.simulator.errors`)
    for an error of the program. Ctrl-C ends a launch within a tenth of a second; the message says how many workgroups
    were done.
    """
    dispatch = prepare(
        program,
        kernel_name,
        grid=grid,
        block=block,
        kernarg=kernarg,
        memory=memory,
        dynamic_lds_bytes=dynamic_lds_bytes,
    )
    _refuse_repetition(dispatch)
    _tell_observers(dispatch)
    limit, backend = instruction_limit or checks.instruction_limit(), _backend(backend)

    def run() -> LaunchStatistics:
        return _run(dispatch, limit, backend, threads)

    return run() if _around is None else _around(dispatch, kernarg, memory, run)


Around = Callable[[Dispatch, bytes, Memory, Callable[[], LaunchStatistics]], LaunchStatistics]
_around: Around | None = None


def put_around(around: Around | None) -> Around | None:
    """Have every launch of the process made by a function, or by none (None). Returns what made them before.

    The function gets the launch, its arguments, its memory, and what runs it.
    """
    global _around
    before, _around = _around, around
    return before


def _run(dispatch: Dispatch, limit: int, backend: str, threads: int | None) -> LaunchStatistics:
    """Run a launch that is prepared, timed and counted as the sessions around it ask."""
    name, grid, block = dispatch.kernel_name, dispatch.grid, dispatch.block
    tracing, trace, untimed = current_tracing(), None, ""
    if tracing is not None:
        trace, untimed = _timed(dispatch, limit, threads or env.simulator_threads(), tracing)
    if tracing is not None and trace is not None:
        tracing.launches.append(TracedLaunch(name, grid, block, trace))
        if not tracing.execute:
            return LaunchStatistics(dispatch.workgroup_count * dispatch.waves_per_workgroup, 0)
    counting = _counting()
    counts = None if counting is None else no_counts(len(dispatch.program.instructions))
    statistics = _execute(dispatch, limit, backend, threads, counts)
    if counting is not None and counts is not None:
        from flydsl.simulator.counters.report import LaunchCounters  # which most launches do without

        counting.launches.append(
            LaunchCounters(name, grid, block, statistics, dispatch.program, counts, trace, untimed, dispatch.lds_bytes)
        )
    return statistics


def _refuse_repetition(dispatch: Dispatch) -> None:
    """Raise LaunchError where checks run workgroups several times and others see what they write."""
    others = dispatch.memory.others
    if others is None:
        return
    shares = f"kernel {dispatch.kernel_name!r} shares memory with {others}, so it cannot be checked for"
    if "uninitialized" in checks.enabled_checks():
        raise LaunchError(
            f"{shares} reads of undefined memory, for which workgroups run three times",
            hint='choose other checks: checking("races", "alignment")',
        )
    if len(checks.in_turn()) > 1:
        raise LaunchError(f"{shares} NaNs beside others, for which it would run twice", hint='checking("nan") alone')


def _tell_observers(dispatch: Dispatch) -> None:
    """Tell observers of a launch. LaunchError inside of a block that looks at it in another way."""
    observers = current_observers()
    if observers and (checks.enabled_checks() or current_counting() or current_tracing()):
        raise LaunchError(
            f"kernel {dispatch.kernel_name!r} cannot be observed and checked, counted or timed at once",
            hint="launch it twice, once in each block",
        )
    for observer in observers:
        observer.launch(ObservedLaunch(dispatch.kernel_name, dispatch.grid, dispatch.block, dispatch.program))


_NATIVE = (frozenset[str](), frozenset({"races"}))
"""The sets of checks that native code can perform, the second one as far as it proves that there is no race."""


def _backend(name: str | None) -> str:
    """The backend of that name, by default what FLYDSL_SIMULATOR_BACKEND says; the one that has checks under checks."""
    name = name or env.simulator_backend()
    if name not in env.SIMULATOR_BACKENDS:
        raise LaunchError(
            f"there is no simulator backend {name!r}", hint=f"it is one of {', '.join(env.SIMULATOR_BACKENDS)}"
        )
    return name if not current_observers() and checks.enabled_checks() in _NATIVE else "lockstep"


def _execute(
    dispatch: Dispatch, limit: int, backend: str, threads: int | None, counts: Array | None
) -> LaunchStatistics:
    """Run all workgroups, with a line of progress. Where a check goes after the others, they run on a copy before."""
    *before, last = checks.in_turn()
    for enabled in before:
        with checks.only(enabled), redirect_stdout(io.StringIO()):
            _run_all(dispatch.with_copied_memory(), limit, backend, threads, None)
    with checks.only(last) if before else nullcontext():
        return _run_all(dispatch, limit, backend, threads, counts)


def _run_all(
    dispatch: Dispatch, limit: int, backend: str, threads: int | None, counts: Array | None
) -> LaunchStatistics:
    what = f"{dispatch.kernel_name} on the simulator"
    with Task(what, dispatch.workgroup_count, "workgroups", kind="simulation") as task:
        if backend == "native" and checks.enabled_checks():
            from flydsl.simulator.native.races import run_without_races  # brings LLVM, which lock-step does not need

            statistics = run_without_races(dispatch, limit, task)
            if statistics is not None:
                return statistics
            backend = "lockstep"
        if backend == "lockstep":
            from flydsl.simulator.lockstep.run import run_in_lockstep  # which a native launch does without

            return run_in_lockstep(dispatch, dispatch.workgroup_ids(), limit, counts, task)
        from flydsl.simulator.native.machine import run  # brings LLVM, which lock-step does not need

        threads = threads or env.simulator_threads()
        return run(dispatch, limit, threads, counts, task)


def _timed(dispatch: Dispatch, limit: int, threads: int | None, tracing: Tracing) -> tuple[Trace | None, str]:
    """The trace of a launch, or why there is none, where `tracing` says that it need not have one."""
    try:
        with Task(f"{dispatch.kernel_name}, its time", kind="simulation"):
            return _trace(dispatch, limit, threads, tracing), ""
    except (ArchError, SimulatorError) as reason:
        if not tracing.only_known:
            if tracing.left_out is not None and tracing.left_out.concerns(dispatch.memory):
                reason.hint = "earlier launches of the block were not carried out; with tracing(execute=True) they are"
            raise
        return None, reason.message


def _trace(dispatch: Dispatch, limit: int, threads: int | None, tracing: Tracing) -> Trace:
    """The trace of a launch that `tracing` asks for."""
    if checks.enabled_checks():
        raise LaunchError(
            "a launch cannot be checked and timed at once",
            hint="launch twice: once inside tracing(), once inside checking()",
        )
    from flydsl.simulator.timing.estimating import estimate  # brings LLVM, too
    from flydsl.simulator.timing.left_out import LeftOut

    if not tracing.execute:
        tracing.left_out = tracing.left_out or LeftOut()
    return estimate(dispatch, limit, threads, tracing.left_out, tracing.product, cold=tracing.cold)


def _counting() -> Counting | None:
    counting = current_counting()
    if counting is not None and checks.enabled_checks():
        raise LaunchError(
            "a launch cannot be checked and counted at once: checks run every workgroup several times",
            hint="launch twice: once inside counting(), once inside checking()",
        )
    return counting


def prepare(
    program: Program,
    kernel_name: str,
    *,
    grid: Dim3,
    block: Dim3,
    kernarg: bytes,
    memory: Memory,
    dynamic_lds_bytes: int = 0,
) -> Dispatch:
    """A launch that has not started. Raises LaunchError for a configuration that no device accepts."""
    _check_extents(grid, block)
    key = (kernel_name, grid, block, dynamic_lds_bytes, memory.slot_count)
    prepared = program.prepared.get(key)
    if prepared is None:
        kernel = _kernel(program, kernel_name)
        if dynamic_lds_bytes < 0:
            raise LaunchError(
                f"the dynamic LDS of kernel {kernel_name!r} must be 0 bytes or more, got {dynamic_lds_bytes}"
            )
        lds = LdsSize(kernel.lds_bytes, dynamic_lds_bytes)
        _check_configuration(program.arch, kernel, grid, block, lds.total_bytes)
        prepared = PreparedKernel(program, kernel, grid, block, lds, memory)
        _keep(program.prepared, key, prepared)
    return Dispatch(prepared, kernarg, memory)


def _keep(kept: dict[Any, PreparedKernel], key: Any, prepared: PreparedKernel) -> None:
    """Keep a kernel that is ready; if there are too many, instead of the oldest one."""
    if len(kept) >= _MOST_PREPARED:
        kept.pop(next(iter(kept.copy())), None)  # of a copy: other threads may launch, too
    kept[key] = prepared


def _kernel(program: Program, name: str) -> KernelInfo:
    if name not in program.kernels:
        raise LaunchError(f"the program has no kernel {name!r}", hint=f"it has {', '.join(program.kernels)}")
    kernel = program.kernels[name]
    if kernel.wave_size not in program.arch.vgpr_files:
        sizes = " or ".join(map(str, program.arch.vgpr_files))
        raise LaunchError(f"kernel {name!r} has waves of {kernel.wave_size} lanes; {program.arch.name} has {sizes}")
    return kernel


def _check_extents(grid: Dim3, block: Dim3) -> None:
    """Check the types of extents, which those of an earlier launch may equal without having them."""
    for name, sizes in (("grid", grid), ("block", block)):
        # (isinstance, without a generator: every launch comes here.)
        if not isinstance(sizes, tuple) or len(sizes) != 3 or not all(map(int.__instancecheck__, sizes)):
            raise LaunchError(f"{name} must be a tuple of three integers, such as (4, 1, 1), got {sizes!r}")


def _check_configuration(arch: Arch, kernel: KernelInfo, grid: Dim3, block: Dim3, lds_bytes: int) -> None:
    launch_limits.check_extents("grid", grid)
    launch_limits.check_extents("block", block)
    _check_registers(arch, kernel)
    launch_limits.check_block(arch, block)
    launch_limits.check_grid(grid, block)
    if arch.ids_in_trap_registers and max(grid[1:]) > _MOST_WORKGROUPS_YZ:
        raise LaunchError(
            f"grid={grid}: {arch.name} numbers at most {_MOST_WORKGROUPS_YZ} workgroups along y and z",
            hint="use the first dimension of the grid for the longest one",
        )
    launch_limits.check_cluster(arch, kernel.cluster or (1, 1, 1), grid)
    threads = block[0] * block[1] * block[2]
    if threads > kernel.max_workgroup_size:
        raise LaunchError(
            f"block {block} has {threads} threads, but {kernel.name!r} was compiled for at most "
            f"{kernel.max_workgroup_size}"
        )
    if kernel.required_workgroup_size not in (None, block):
        raise LaunchError(
            f"kernel {kernel.name!r} was compiled for block {kernel.required_workgroup_size}, not {block}"
        )
    if kernel.scratch_bytes > _MOST_SCRATCH_BYTES:
        raise LaunchError(
            f"kernel {kernel.name!r} asks for {kernel.scratch_bytes} bytes of scratch; a thread has at most "
            f"{_MOST_SCRATCH_BYTES}"
        )
    launch_limits.check_lds(arch, lds_bytes)


def _check_registers(arch: Arch, kernel: KernelInfo) -> None:
    """Check that the metadata, from which register counts are read, agrees with the descriptor, which decides."""
    granted = kernel.descriptor.vgpr_granules * arch.vgpr_files[kernel.wave_size].encoding_granule
    first_agpr = kernel.descriptor.accum_offset or 0
    if kernel.total_vgprs > granted or (kernel.agprs and first_agpr + kernel.agprs > granted):
        raise LaunchError(
            f"kernel {kernel.name!r} has {kernel.vgprs} VGPRs and {kernel.agprs} AGPRs by its metadata, and by its "
            f"descriptor {granted} of both"
        )
    if max(kernel.vgprs, kernel.agprs) > arch.addressable_vgprs:
        raise LaunchError(
            f"kernel {kernel.name!r} has {kernel.vgprs} VGPRs and {kernel.agprs} AGPRs; an instruction can name "
            f"{arch.addressable_vgprs} of each"
        )
