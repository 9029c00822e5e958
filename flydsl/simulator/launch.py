"""Launch a kernel on the simulator."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol
from weakref import WeakKeyDictionary

from flydsl import env
from flydsl.arch import GFX942, Arch, launch_limits
from flydsl.errors import ArchError, LaunchError
from flydsl.hsaco import KernelInfo
from flydsl.simulator import checks
from flydsl.simulator.counters import Counting, LaunchCounters, current_counting
from flydsl.simulator.counters.raw import no_counts
from flydsl.simulator.dispatch import Dim3, Dispatch, LaunchStatistics, LdsSize
from flydsl.simulator.errors import RegisterFault
from flydsl.simulator.lockstep.bind import bind_program
from flydsl.simulator.lockstep.checked.machine import CheckedMachine
from flydsl.simulator.lockstep.checked.races import RaceHistory
from flydsl.simulator.lockstep.counting import CountingMachine
from flydsl.simulator.lockstep.machine import Machine, Step
from flydsl.simulator.lockstep.values import Array
from flydsl.simulator.memory import Memory
from flydsl.simulator.program import Program
from flydsl.simulator.waves import LANES

_WAVES_PER_BATCH = 512
_STATE_BYTES_PER_BATCH = 1 << 28
_MOST_SCRATCH_BYTES = 131_056
"""What LLVM's back end for gfx9 gives a thread at most."""
BACKENDS = ("native", "lockstep")


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
    """Run a kernel to its end, under the checks that `checks.checking` turned on, and counted inside `counting`.

    grid counts workgroups, block threads. kernarg holds the explicit arguments at the offsets of the kernel's
    metadata; pointers in it are addresses of `memory`. instruction_limit is per wave, by default what
    `checks.limited` says.

    backend: "native" executes compiled code on up to `threads` threads, "lockstep" numpy arrays; both do the same to
    the bit. By default what FLYDSL_SIMULATOR_BACKEND and FLYDSL_SIMULATOR_THREADS say, else native on every core.
    A launch with checks is executed by "lockstep" in any case.

    LaunchError for a configuration that no device accepts; SimulatorError (see `flydsl.simulator.errors`) for what
    the program does wrong. Ctrl-C ends a launch within a tenth of a second.
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
    limit, backend = instruction_limit or checks.instruction_limit(), backend or env.simulator_backend()
    if backend not in BACKENDS:
        raise LaunchError(f"there is no simulator backend {backend!r}", hint=f"it is one of {', '.join(BACKENDS)}")
    counting = _counting()
    counts = None if counting is None else no_counts(len(program.instructions))
    if backend == "lockstep" or checks.enabled_checks():
        statistics = run_in_lockstep(dispatch, dispatch.workgroup_ids(), limit, counts)
    else:
        from flydsl.simulator.native.machine import run

        threads = threads or env.simulator_threads()
        statistics = run(dispatch, limit, threads, lambda: bound_steps(dispatch), counts)
    if counting is not None and counts is not None:
        counting.launches.append(LaunchCounters(kernel_name, grid, block, statistics, program, counts))
    return statistics


def _counting() -> Counting | None:
    counting = current_counting()
    if counting is not None and checks.enabled_checks():
        raise LaunchError(
            "a launch under checks runs every workgroup several times, and is not counted",
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
    """A launch of which nothing has run yet.

    LaunchError for a configuration that no device accepts, ArchError for code of another GPU than the simulated one.
    """
    if program.arch != GFX942:
        raise ArchError(f"the simulator runs {GFX942.name}, and {kernel_name!r} was compiled for {program.arch.name}")
    kernel = _kernel(program, kernel_name)
    if dynamic_lds_bytes < 0:
        raise LaunchError(f"kernel {kernel_name!r} with {dynamic_lds_bytes} bytes of dynamic LDS: at least 0")
    lds = LdsSize(kernel.lds_bytes, dynamic_lds_bytes)
    _check_configuration(program.arch, kernel, grid, block, lds.total_bytes)
    return Dispatch(program, kernel, grid, block, kernarg, memory, lds)


def run_in_lockstep(
    dispatch: Dispatch,
    workgroup_ids: Iterable[Dim3],
    instruction_limit: int | None = None,
    counts: Array | None = None,
) -> LaunchStatistics:
    """Run some workgroups of a launch: as many at a time as keep the arrays in the host's cache.

    counts: what to add to what every instruction does (`counters.raw`), if it is to be counted.
    """
    statistics, races = LaunchStatistics(0, 0), _new_races(dispatch)
    for batch in _batches(workgroup_ids, _workgroups_per_batch(dispatch)):
        machine = new_machine(dispatch, batch, instruction_limit, counts, races)
        machine.run()
        executed = machine.waves.executed[: len(batch) * dispatch.waves_per_workgroup]
        statistics = LaunchStatistics(
            statistics.waves + executed.size, statistics.wave_instructions + int(executed.sum())
        )
    return statistics


def new_machine(
    dispatch: Dispatch,
    workgroup_ids: Sequence[Dim3],
    instruction_limit: int | None = None,
    counts: Array | None = None,
    races: RaceHistory | None = None,
) -> Machine:
    """A machine whose first waves are those of the workgroups; it does the checks that are turned on, or counts.

    races: what other workgroups of the launch did before, if races are checked and there were any.
    """
    steps, limit = bound_steps(dispatch), instruction_limit or checks.instruction_limit()
    if enabled := checks.enabled_checks():
        return CheckedMachine(dispatch, steps, workgroup_ids, limit, enabled, races or _new_races(dispatch))
    waves = dispatch.waves(workgroup_ids)
    machine = (dispatch.program, steps, waves, dispatch.memory, dispatch.symbols, limit)
    return Machine(*machine) if counts is None else CountingMachine(*machine, counts=counts)


def _new_races(dispatch: Dispatch) -> RaceHistory | None:
    return RaceHistory(dispatch) if "races" in checks.enabled_checks() else None


_bound: WeakKeyDictionary[Program, list[Step]] = WeakKeyDictionary()


class _HasRegisters(Protocol):
    program: Program
    vgprs: int
    agprs: int


def bound_steps(work: _HasRegisters) -> Sequence[Step]:
    """The program's instructions as callables, bound at the first launch, for waves with so many registers."""
    program = work.program
    if program not in _bound:
        _bound[program] = bind_program(program)
    beyond = program.beyond(work.vgprs, work.agprs)
    if not beyond:
        return _bound[program]
    steps = list(_bound[program])
    for i in beyond:
        steps[i] = _refusing(program.instructions[i].beyond(work.vgprs, work.agprs))
    return steps


def _refusing(error: RegisterFault) -> Step:
    def refuse(machine: Machine) -> None:
        raise error

    return refuse


def _kernel(program: Program, name: str) -> KernelInfo:
    if name not in program.kernels:
        raise LaunchError(f"the program has no kernel {name!r}", hint=f"it has {', '.join(program.kernels)}")
    kernel = program.kernels[name]
    if kernel.wave_size != LANES:
        raise LaunchError(f"kernel {name!r} has waves of {kernel.wave_size} lanes; the simulator executes waves of 64")
    return kernel


def _check_configuration(arch: Arch, kernel: KernelInfo, grid: Dim3, block: Dim3, lds_bytes: int) -> None:
    for name, sizes in (("grid", grid), ("block", block)):
        if not isinstance(sizes, tuple) or len(sizes) != 3 or not all(isinstance(size, int) for size in sizes):
            raise LaunchError(f"{name} {sizes!r} is not a tuple of three whole numbers, such as (4, 1, 1)")
        launch_limits.check_extents(name, sizes)
    _check_registers(arch, kernel)
    launch_limits.check_block(arch, block)
    launch_limits.check_grid(grid, block)
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
    """The metadata, from which everybody reads the numbers, must agree with the descriptor, which decides."""
    granted = kernel.descriptor.vgpr_granules * arch.vgpr_files[LANES].encoding_granule
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


def _workgroups_per_batch(dispatch: Dispatch) -> int:
    """As many as keep the arrays in the host's cache, and within the budget where the kernel uses much memory."""
    waves = dispatch.waves_per_workgroup
    bytes_ = dispatch.lds_bytes + waves * LANES * (dispatch.scratch_bytes + 4 * (dispatch.vgprs + dispatch.agprs))
    return max(min(_WAVES_PER_BATCH // waves, _STATE_BYTES_PER_BATCH // bytes_), 1)


def _batches(workgroup_ids: Iterable[Dim3], size: int) -> Iterator[list[Dim3]]:
    ids = iter(workgroup_ids)
    while batch := list(itertools.islice(ids, size)):
        yield batch
