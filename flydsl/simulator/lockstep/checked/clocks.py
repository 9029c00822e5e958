"""The order of events in a launch: barriers order the waves of a workgroup, atomics any two waves.

Every wave has a time, which advances at barriers, and at atomics, by which others may learn what the wave did. For each
other wave it knows the time up to which that wave's accesses are ordered before its own. This is a vector clock for
each wave (Mattern 1989). Only the part for the workgroup exists from the start; the part for the whole launch is added
at the first atomic by which the wave learns of others.

An atomic of any kind and scope orders: what a wave did before one comes before what another wave does after it has
accessed the same address atomically. Whether the hardware needs fences, cache operations or scopes is not checked.
Where nothing marks an atomic store (CDNA 2, RDNA 3), any store of one number tells an atomic load of its address.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flydsl.simulator.arrays import Array

_LANE_BITS, _PC_BITS, _TIME_BITS, _WAVE_BITS = 6, 18, 19, 20
_TIME_SHIFT = _LANE_BITS + _PC_BITS
_WAVE_SHIFT = _TIME_SHIFT + _TIME_BITS
_TABLE_BYTES = 1 << 26

LIMITS = {"waves": (1 << _WAVE_BITS) - 1, "instructions": 1 << _PC_BITS}
"""The most waves and instructions that a stamp has room for."""

NEVER = 0
"""The stamp of what has not happened."""


class Clocks:
    """The clocks of all waves of a launch, by their number in it."""

    def __init__(self, waves: int, waves_per_workgroup: int) -> None:
        self._per_workgroup = waves_per_workgroup
        self.time = np.ones(waves, np.int64)
        self._signalled = np.zeros(waves, np.int64)
        self._known = np.zeros((waves, waves_per_workgroup), np.int64)
        self._elsewhere: dict[int, Array] = {}  # by wave; the waves of a workgroup may share one after a barrier
        self._places: dict[object, int] = {}
        self._told: list[Array] = []  # by place: what those that accessed it knew

    def stamps(self, waves: Array, lanes: Array, pc: int) -> Array:
        """One number for each access that (n,) lanes make now."""
        return ((waves + 1) << _WAVE_SHIFT) | (self.time[waves] << _TIME_SHIFT) | (pc << _LANE_BITS) | lanes

    def are_before(self, stamps: Array, waves: Array) -> Array:
        """True where a stamp is ordered before the wave. Its own accesses always are, and so is NEVER."""
        others = (stamps >> _WAVE_SHIFT) - 1
        before = np.asarray((others == waves) | (stamps == NEVER))
        if before.all():
            return before
        count = self._per_workgroup
        times = stamps >> _TIME_SHIFT & (1 << _TIME_BITS) - 1
        waves = np.broadcast_to(waves, stamps.shape)
        before |= (others // count == waves // count) & (self._known[waves, others % count] >= times)
        if self._elsewhere and not before.all():
            for wave in np.unique(waves[~before]):
                row = self._elsewhere.get(int(wave))
                if row is not None:
                    chosen = ~before & (waves == wave)
                    before[chosen] = row[others[chosen]] >= times[chosen]
        return before

    def pass_barrier(self, workgroup: int) -> None:
        """Let the waves of a workgroup know of each other's accesses before their signals, and of what any knew."""
        waves = np.arange(self._per_workgroup) + workgroup * self._per_workgroup
        self._known[waves] = np.maximum(self._known[waves], self._signalled[waves])
        rows = [self._elsewhere[int(wave)] for wave in waves if int(wave) in self._elsewhere]
        if rows:
            together = np.maximum.reduce(rows)
            self._elsewhere.update((int(wave), together) for wave in waves)

    def signal_barrier(self, waves: Array) -> None:
        """Waves arrive at their barrier: what they do from now on does not belong to what others learn there."""
        self._signalled[waves] = self.time[waves]
        self._tick(waves)

    def acquire(self, wave: int, place: object) -> None:
        """Let the wave learn what the waves that released the place knew."""
        told = self._told[self._places[place]] if place in self._places else None
        if told is None:
            return
        mine = self._elsewhere.get(wave)
        self._elsewhere[wave] = told.copy() if mine is None else np.maximum(mine, told)
        np.maximum(self._known[wave], told[self._workgroup_of(wave)], out=self._known[wave])

    def release(self, wave: int, place: object) -> None:
        """Let waves that acquire the place from now on learn what the wave did and knows."""
        told = self._told[self._place(place)]
        if wave in self._elsewhere:
            np.maximum(told, self._elsewhere[wave], out=told)
        workgroup = self._workgroup_of(wave)
        np.maximum(told[workgroup], self._known[wave], out=told[workgroup])
        told[wave] = self.time[wave]

    def end_release(self, waves: Array) -> None:
        """Start a new time for the waves: later accesses do not belong to the release."""
        self._tick(waves)

    def forget(self) -> None:
        """Forget what each wave knew: the waves so far have ended."""
        self._elsewhere.clear()

    def _tick(self, waves: Array) -> None:
        # At its limit the time stands still: then less is found, and nothing wrong.
        self.time[waves] = np.minimum(self.time[waves] + 1, (1 << _TIME_BITS) - 1)

    def _workgroup_of(self, wave: int) -> slice:
        first = wave // self._per_workgroup * self._per_workgroup
        return slice(first, first + self._per_workgroup)

    def _place(self, place: object) -> int:
        """The row of a place. Too many places share rows: then fewer races are found, and no false ones."""
        if place not in self._places:
            limit = max(_TABLE_BYTES // (8 * self.time.size), 1)
            if len(self._told) < limit:
                self._told.append(np.zeros(self.time.size, np.int64))
            self._places[place] = len(self._places) % limit
        return self._places[place]


def wave_of(stamp: Any) -> Any:
    """The number of the wave in the launch; -1 of NEVER."""
    return (stamp >> _WAVE_SHIFT) - 1


def pc_of(stamp: Any) -> Any:
    """The index of the instruction."""
    return stamp >> _LANE_BITS & (1 << _PC_BITS) - 1


def time_of(stamp: Any) -> Any:
    """The time of the wave."""
    return stamp >> _TIME_SHIFT & (1 << _TIME_BITS) - 1


def lane_of(stamp: Any) -> Any:
    return stamp & (1 << _LANE_BITS) - 1
