"""Find out quickly if a lock-step run ends: native code runs ahead, on copies of everything."""

from __future__ import annotations

from flydsl.arch.launch_limits import Dim3
from flydsl.errors import SimulatorError
from flydsl.simulator.errors import InstructionLimit
from flydsl.simulator.lockstep.machine import Machine
from flydsl.simulator.modes import FloatMode
from flydsl.simulator.native.group import WorkgroupSlot
from flydsl.simulator.native.machine import Execution
from flydsl.simulator.native.turns import Turns
from flydsl.simulator.waves import ENDED, Waves


def run_ahead(machine: Machine, workgroups: int, limit: int) -> None:
    """Raise InstructionLimit if one of a machine's first workgroups has a wave that does not end within `limit`.

    Other errors are ignored here: the machine itself raises them.
    """
    work = _Continuation(machine, workgroups)
    execution = _Continued(work, limit)
    groups = [
        execution.continued_group(i) for i in range(workgroups // machine.waves.cluster_size) if work.is_running(i)
    ]
    try:
        execution.take_turns(Turns(*groups))
        execution.raise_first_error()
    except InstructionLimit:
        raise
    except SimulatorError:
        return


class _Continuation:
    """`Work` for the native machine: the first workgroups of a lock-step machine, from their present state.

    Here a workgroup or cluster has the id (i, 0, 0) for the i-th one of the machine.
    """

    def __init__(self, machine: Machine, workgroups: int) -> None:
        self.program, self.symbols = machine.program, dict(machine.symbols)
        self.memory = machine.memory.with_copied_content()
        self.state = machine.waves
        self.grid, self.cluster = (workgroups, 1, 1), (self.state.cluster_size, 1, 1)
        self.mode = FloatMode(int(self.state.mode[0, 0]))
        self.vgprs, self.agprs = self.state.vgprs, self.state.agprs

    def waves(self, workgroup_ids: list[Dim3]) -> Waves:
        state = self.state
        return Waves(
            workgroup_ids,
            state.block,
            vgprs=self.vgprs,
            agprs=self.agprs,
            lds_bytes=state.lds_bytes,
            scratch_bytes=state.scratch_bytes,
            entry=0,
            mode=self.mode.bits,
            lanes=state.lanes,
            cluster_size=state.cluster_size,
        )

    def workgroups_of(self, cluster: Dim3) -> list[Dim3]:
        size = self.state.cluster_size
        return list(self.state.workgroup_ids[size * cluster[0] : size * (cluster[0] + 1)])

    workgroup_id_yz_bytes = 4

    def workgroup_id_places(self) -> tuple[None, None, None]:
        return None, None, None  # no workgroup starts

    def waves_of(self, number: int) -> slice:
        count = self.state.waves_per_workgroup * self.state.cluster_size
        return slice(number * count, (number + 1) * count)

    def is_running(self, number: int) -> bool:
        return bool((self.state.status[self.waves_of(number)] != ENDED).any())


class _Continued(Execution):
    """An execution whose workgroups have all started."""

    def __init__(self, work: _Continuation, limit: int) -> None:
        super().__init__(work, limit)
        self._continuation = work
        self.launch.block.next = self.launch.group_count

    def continued_group(self, number: int) -> WorkgroupSlot:
        """A workgroup, or cluster, with its state in the lock-step machine."""
        state, chosen = self._continuation.state, self._continuation.waves_of(number)
        group = WorkgroupSlot(self.launch.template, self.launch.block)
        group.block.number, group.block.active = number, 1
        for w in range(group.wave_count):
            self.launch.fill_wave(group.wave(w), 0)
        shared = self._shared(group)
        for name in ("sgpr", "scc", "mode", "status", "executed", "pc", "may_pass", "may_pass_cluster"):
            getattr(shared, name)[:] = getattr(state, name)[chosen]
        shared.vgpr[: len(state.vgpr)] = state.vgpr[:, chosen]
        workgroups = state.workgroups_of_cluster(number * state.cluster_size)
        for name in ("lds", "scratch"):
            of_each = getattr(state, name).reshape(len(state.workgroup_ids), -1)
            of_group = of_each[workgroups.start : workgroups.stop].reshape(-1)
            getattr(shared, name)[: of_group.size] = of_group
        for name in ("signals", "cluster_signals"):
            getattr(shared, name)[:] = getattr(state, name)[workgroups.start : workgroups.stop]
        for w in range(group.wave_count):
            self._resume(shared, group, w)
        return group
