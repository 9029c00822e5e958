"""Run workgroups of a launch in lock-step, a batch of them at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from flydsl.arch.launch_limits import Dim3
from flydsl.errors import LaunchError
from flydsl.progress import Task
from flydsl.simulator import checks
from flydsl.simulator.arrays import Array
from flydsl.simulator.dispatch import Dispatch, LaunchStatistics
from flydsl.simulator.lockstep.bind import bound_steps
from flydsl.simulator.lockstep.checked.late import LateMachine
from flydsl.simulator.lockstep.checked.machine import CheckedMachine
from flydsl.simulator.lockstep.checked.nans import NanHistory, NanMachine
from flydsl.simulator.lockstep.checked.races import RaceHistory
from flydsl.simulator.lockstep.counting import CountingMachine
from flydsl.simulator.lockstep.machine import Machine
from flydsl.simulator.observers import current_observers

_WAVES_PER_BATCH, _MOST_WAVES_PER_BATCH = 512, 8192
_STATE_BYTES_PER_BATCH = 1 << 28


def run_in_lockstep(
    dispatch: Dispatch,
    workgroup_ids: Iterable[Dim3],
    instruction_limit: int | None = None,
    counts: Array | None = None,
    task: Task | None = None,
) -> LaunchStatistics:
    """Run some workgroups of a launch, in batches that keep the arrays in the host's cache.

    counts: the array that accumulates the per-instruction counters (`counters.raw`); None: do not count. task: gets a
    function that returns how many workgroups have ended, for the progress display.
    """
    statistics, races = LaunchStatistics(0, 0), _new_races(dispatch)
    nans = NanHistory(dispatch.memory) if checks.enabled_checks() == checks.NAN else None
    if task is not None:
        task.done = lambda: statistics.waves // dispatch.waves_per_workgroup
    for batch in _batches(workgroup_ids, _workgroups_per_batch(dispatch)):
        machine = new_machine(dispatch, batch, instruction_limit, counts, races, nans)
        machine.run()
        executed = machine.waves.executed[: len(batch) * dispatch.waves_per_workgroup]
        statistics = LaunchStatistics(
            statistics.waves + executed.size, statistics.wave_instructions + int(executed.sum())
        )
    if nans is not None:
        nans.check()
    return statistics


def new_machine(
    dispatch: Dispatch,
    workgroup_ids: Sequence[Dim3],
    instruction_limit: int | None = None,
    counts: Array | None = None,
    races: RaceHistory | None = None,
    nans: NanHistory | None = None,
) -> Machine:
    """A machine whose first waves are those of the workgroups. It runs the enabled checks, or counts.

    races, nans: the history of the workgroups that ran before in the same launch; None to begin a new one. Raises
    LaunchError if the enabled checks need more than one machine.
    """
    machine = _machine(dispatch, workgroup_ids, instruction_limit or checks.instruction_limit(), counts, races, nans)
    machine.run_ahead = _run_ahead
    return machine


def _machine(
    dispatch: Dispatch,
    workgroup_ids: Sequence[Dim3],
    limit: int,
    counts: Array | None,
    races: RaceHistory | None,
    nans: NanHistory | None,
) -> Machine:
    steps = bound_steps(dispatch)
    enabled, *others = checks.in_turn()
    if others:
        raise LaunchError(
            "a launch that is stepped through cannot be checked for NaNs and others at once",
            hint='step through it with checking("nan") alone, or without it',
        )
    if enabled == checks.LATE:
        return LateMachine(dispatch, steps, workgroup_ids, limit)
    if enabled == checks.NAN:
        return NanMachine(dispatch, steps, workgroup_ids, limit, nans or NanHistory(dispatch.memory))
    if enabled:
        return CheckedMachine(dispatch, steps, workgroup_ids, limit, enabled, races or _new_races(dispatch))
    waves = dispatch.waves(workgroup_ids)
    arguments = (dispatch.program, steps, waves, dispatch.memory, dispatch.symbols, limit)
    if observers := current_observers():
        from flydsl.simulator.lockstep.observed import ObservedMachine  # few launches need it

        return ObservedMachine(observers, *arguments)
    return Machine(*arguments) if counts is None else CountingMachine(*arguments, counts=counts)


def _run_ahead(machine: Machine, workgroups: int, limit: int) -> None:
    """Call `native.run_ahead`, which loads LLVM: it is imported only once a machine has run for a while."""
    from flydsl.simulator.native.run_ahead import run_ahead

    run_ahead(machine, workgroups, limit)


def _new_races(dispatch: Dispatch) -> RaceHistory | None:
    return None if checks.enabled_checks().isdisjoint(("races", "waits")) else RaceHistory(dispatch)


def _workgroups_per_batch(dispatch: Dispatch) -> int:
    """The size of a batch in workgroups, a multiple of the cluster.

    Waves are few enough for the host's cache, and their state for `_STATE_BYTES_PER_BATCH`. With global atomics
    workgroups may wait for each other, so that a batch then has as many as are on a large GPU at once.
    """
    waves = dispatch.waves_per_workgroup
    most_waves = _MOST_WAVES_PER_BATCH if dispatch.program.has_global_atomics else _WAVES_PER_BATCH
    bytes_per_lane = dispatch.scratch_bytes + 4 * (dispatch.vgprs + dispatch.agprs)
    bytes_per_workgroup = dispatch.lds_bytes + waves * dispatch.lanes * bytes_per_lane
    fitting = max(min(most_waves // waves, _STATE_BYTES_PER_BATCH // bytes_per_workgroup), 1)
    return max(fitting // dispatch.cluster_size, 1) * dispatch.cluster_size


def _batches(workgroup_ids: Iterable[Dim3], size: int) -> Iterator[list[Dim3]]:
    ids = iter(workgroup_ids)
    while batch := list(itertools.islice(ids, size)):
        yield batch
