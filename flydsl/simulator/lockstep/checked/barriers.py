"""Hints about barriers that part of a workgroup does not reach: waves that end before, lanes in another branch."""

from __future__ import annotations

import numpy as np

from flydsl.simulator.arrays import Array
from flydsl.simulator.checks import BarrierHint, DivergentBarrierHint, current_findings
from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.waves import AT_BARRIER, ENDED, Waves


def hint_at_ended_waves(program: Program, waves: Waves, complete: Array) -> None:
    """Add a hint for a barrier that is passed though some waves have ended. complete: (workgroups), which pass one."""
    status = waves.status.reshape(-1, waves.waves_per_workgroup)
    passed = complete & (status == AT_BARRIER).any(axis=1) & (status == ENDED).any(axis=1)
    for workgroup in np.flatnonzero(passed)[:1]:
        waiting, ended = (tuple(np.flatnonzero(status[workgroup] == s).tolist()) for s in (AT_BARRIER, ENDED))
        first = int(workgroup) * waves.waves_per_workgroup + waiting[0]
        barrier = program.instructions[int(waves.pc[first]) - 1]
        listed, id_ = barrier.listed, waves.workgroup_ids[int(workgroup)]
        hint = BarrierHint(listed.text, listed.line, barrier.location, id_, waiting, ended)
        current_findings().add_barrier(hint)


def hint_at_inactive_lanes(barrier: Instruction, waves: Waves, numbers: Array, active: Array) -> None:
    """Add a hint if waves come to a barrier without some of their lanes.

    numbers: (waves), of those at the barrier. active: (waves, lanes) bool.
    """
    x, y, z = waves.block
    first_thread = numbers % waves.waves_per_workgroup * waves.lanes
    there = first_thread[:, None] + np.arange(waves.lanes) < x * y * z
    missing = there & ~active
    if not missing.any():
        return
    row = int(missing.any(axis=1).argmax())
    wave = int(numbers[row])
    listed = barrier.listed
    current_findings().add_barrier(
        DivergentBarrierHint(
            listed.text, listed.line, barrier.location, waves.workgroup_ids[int(waves.workgroup[wave])],
            wave % waves.waves_per_workgroup, waves.thread(wave, int(missing[row].argmax())),
            int(missing[row].sum()), int(there[row].sum()),
        )
    )  # fmt: skip
