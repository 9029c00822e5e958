"""The error of waves that wait at a barrier which is never completed."""

from __future__ import annotations

import numpy as np

from flydsl.simulator.decoding.program import Program
from flydsl.simulator.errors import BarrierDeadlock
from flydsl.simulator.waves import AT_CLUSTER_BARRIER, ENDED, Waves


def deadlock(program: Program, waves: Waves, stuck: int) -> BarrierDeadlock:
    """The error for a wave that waits, and with it others, where no wave can go on."""
    barrier = program.instructions[int(waves.pc[stuck]) - 1]
    at_cluster = waves.status[stuck] == AT_CLUSTER_BARRIER
    return BarrierDeadlock(
        (_story_of_cluster if at_cluster else _story_of_workgroup)(waves, stuck)
        + f"\n  instruction: {barrier.listed.text} (ISA line {barrier.listed.line})",
        at=barrier.location,
        hint="every workgroup of the cluster must signal the barrier"
        if at_cluster
        else "a barrier must be reached by every thread of the workgroup",
    )


def _story_of_workgroup(waves: Waves, stuck: int) -> str:
    workgroup, count = int(waves.workgroup[stuck]), waves.waves_per_workgroup
    of_workgroup = np.flatnonzero(waves.workgroup == workgroup)
    status = waves.status[of_workgroup]
    here = np.flatnonzero(status == waves.status[stuck])
    elsewhere = np.flatnonzero(status == AT_CLUSTER_BARRIER)
    story = (
        f"waves {elsewhere.tolist()} have not reached: they wait at their cluster's"
        if elsewhere.size
        else f"{int(waves.signals[workgroup])} of {count} waves have signalled"
    )
    return f"workgroup {waves.workgroup_ids[workgroup]}: waves {here.tolist()} wait at a barrier that {story}"


def _story_of_cluster(waves: Waves, stuck: int) -> str:
    workgroups = waves.workgroups_of_cluster(int(waves.workgroup[stuck]))
    missing = [w for w in workgroups if not waves.cluster_signals[w]]
    ended = [w for w in missing if (waves.status[waves.workgroup == w] == ENDED).all()]
    story = f"workgroup {waves.workgroup_ids[missing[0]]} " + (
        "ended without signalling" if missing[0] in ended else "has not signalled"
    )
    return (
        f"workgroup {waves.workgroup_ids[int(waves.workgroup[stuck])]} waits at the barrier of its cluster of "
        f"{len(workgroups)}, which {len(workgroups) - len(missing)} have signalled: {story}"
    )
