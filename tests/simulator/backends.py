"""Running the same instructions in both backends and comparing every bit that they leave behind."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from flydsl.arch.launch_limits import Dim3
from flydsl.simulator import LaunchStatistics, Memory, Program, counting, launch
from flydsl.simulator.arrays import Array
from flydsl.simulator.lockstep.bind import bind_program
from flydsl.simulator.lockstep.machine import Machine
from flydsl.simulator.modes import FloatMode
from flydsl.simulator.native.group import WorkgroupSlot
from flydsl.simulator.native.machine import Execution
from flydsl.simulator.waves import Waves

INSTRUCTION_LIMIT = 1_000_000


@dataclass
class OneWorkgroup:
    """`Work` for the native machine: the waves of a single workgroup, in a given state."""

    program: Program
    memory: Memory
    symbols: dict[str, int]
    state: Waves
    grid: Dim3 = (1, 1, 1)
    cluster: Dim3 = (1, 1, 1)
    entry: int = 0
    vgprs: int = 256
    agprs: int = 256
    workgroup_id_yz_bytes: int = 4
    mode: FloatMode = field(init=False)

    def __post_init__(self) -> None:
        self.mode = FloatMode(int(self.state.mode[0, 0]))

    def waves(self, workgroup_ids: list[Dim3]) -> Waves:
        return self.state

    def workgroups_of(self, cluster: Dim3) -> list[Dim3]:
        return [cluster]

    def workgroup_id_places(self) -> tuple[None, None, None]:
        return None, None, None


def run_native(program: Program, waves: Waves, memory: Memory, symbols: dict[str, int]) -> Waves:
    """The state that the native backend ends in."""
    work = OneWorkgroup(program, memory, symbols, waves, vgprs=waves.vgprs, agprs=waves.agprs)
    execution = Execution(work, INSTRUCTION_LIMIT)
    group = WorkgroupSlot(waves, execution.launch.block)
    state = group.waves([(0, 0, 0)])
    for name in ("sgpr", "scc", "vgpr", "lds", "scratch", "may_pass"):
        getattr(state, name)[: len(getattr(waves, name))] = getattr(waves, name)
    for w in range(waves.count):
        execution.launch.fill_wave(group.wave(w), int(waves.pc[w]))
    execution.launch.block.next = 1
    group.block.active = 1
    execution.execute(group)
    return group.waves([(0, 0, 0)])


def run_both(program: Program, waves: Waves, memory: Memory, symbols: dict[str, int]) -> None:
    """Run to the end in both backends; `waves` and `memory` are left as the lock-step machine leaves them.

    Both end in the same state, or both raise the same error.
    """
    buffers = [buffer for buffer in memory.buffers().values() if buffer.writable]
    before = [buffer.storage.copy() for buffer in buffers]
    started = copy.deepcopy(waves)
    results: list[Waves] = []
    native_error = _error_of(lambda: results.append(run_native(program, started, memory, symbols)))
    after = [buffer.storage.copy() for buffer in buffers]
    for buffer, content in zip(buffers, before, strict=True):
        buffer.storage[:] = content
    machine = Machine(program, bind_program(program), waves, memory, symbols, INSTRUCTION_LIMIT)
    expected = _error_of(machine.run)
    assert (type(native_error), str(native_error)) == (type(expected), str(expected)), "the backends disagree"
    if expected is not None:
        raise expected
    (native,) = results
    for name in ("sgpr", "scc", "mode"):
        check_equal(getattr(native, name), getattr(waves, name), name)
    rows = min(len(native.vgpr), len(waves.vgpr))
    if not np.array_equal(native.vgpr[:rows], waves.vgpr[:rows]):
        for row, (got, wanted) in enumerate(zip(native.vgpr, waves.vgpr, strict=False)):
            check_equal(got, wanted, f"row {row} of the vector registers")
    check_equal(native.lds[: waves.lds.size], waves.lds, "LDS")
    check_equal(native.scratch, waves.scratch, "scratch")
    for buffer, content in zip(buffers, after, strict=True):
        check_equal(content, buffer.storage, buffer.name)


def check_equal(got: Array, wanted: Array, name: str) -> None:
    """Fail with the elements that differ. That they are equal, as they nearly always are, is seen much quicker."""
    if not np.array_equal(got, wanted):
        np.testing.assert_array_equal(got, wanted, err_msg=f"{name} differs")


def _error_of(call: Callable[[], Any]) -> Exception | None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever it is, both backends shall raise it
        return error.with_traceback(None)  # which is where an error has its place from: that of the backend's call
    return None


def launch_both(program: Program, kernel: str, *, memory: Memory, **options: Any) -> LaunchStatistics:
    """Launch natively, in lock-step and natively with counters: the same memory and counts, or the same error."""
    buffers = [buffer for buffer in memory.buffers().values() if buffer.writable]
    before = [buffer.storage.copy() for buffer in buffers]

    def start(backend: str, *, counts: bool) -> _Outcome:
        for buffer, content in zip(buffers, before, strict=True):
            buffer.storage[:] = content
        with counting() if counts else nullcontext() as counters:
            statistics: list[LaunchStatistics] = []
            run = partial(launch, program, kernel, memory=memory, backend=backend, **options)
            error = _error_of(lambda: statistics.append(run()))
        raw = counters.launches[0].counts if counters and not error else None
        return _Outcome(error, statistics, [buffer.storage.copy() for buffer in buffers], raw)

    native, counted = start("native", counts=False), start("native", counts=True)
    expected = start("lockstep", counts=True)
    for got in (native, counted):
        assert (type(got.error), str(got.error)) == (type(expected.error), str(expected.error)), "the backends disagree"
    if expected.error is not None:
        raise expected.error
    for got in (native, counted):
        assert got.statistics == expected.statistics
        for buffer, content, wanted in zip(buffers, got.memory, expected.memory, strict=True):
            check_equal(content, wanted, buffer.name)
    check_equal(counted.counts, expected.counts, "the number of executions")
    return expected.statistics[0]


@dataclass(frozen=True)
class _Outcome:
    """The outcome of a launch."""

    error: Exception | None
    statistics: list[LaunchStatistics]
    memory: list[Array]
    counts: Array | None
