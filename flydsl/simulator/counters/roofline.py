"""The time that each resource of a GPU needs for a launch at its published peak rate, from the launch's counters.

It says which resource limits a launch, and is no estimate of its time: nothing has latencies, launches start at once,
and every line of every access comes from memory, as if no cache held it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from flydsl.arch import Arch
from flydsl.arch.instruction_costs import Peaks, peaks
from flydsl.simulator.counters.counts import Counts
from flydsl.simulator.counters.raw import LINE_BYTES

NO_ESTIMATE = (
    "no caches, no latencies and no launch, so no estimate of the time: products took 0.7 to 10 times as long on a GPU"
)
"""Its distance from a time on a GPU: `timing/ACCURACY.md` has the comparison."""


@dataclass(frozen=True)
class Roofline:
    """The time that each resource needs at its peak rate, in microseconds, with what the launch can use at once.

    memory_us: global lines at the peak bandwidth of the memory, as if there were no caches. mfma_us, valu_us: cycles
    of the SIMDs; lds_us: passes of the LDS, one a cycle. What the counters leave out (see `LaunchCounters.unknown`) is
    left out here. compute_units_used, simds_used: the most that can have work.
    """

    peaks: Peaks
    compute_units_used: int
    simds_used: int
    memory_us: float
    mfma_us: float
    valu_us: float
    lds_us: float
    mfma_operations: int
    memory_bytes: int

    @property
    def times_us(self) -> dict[str, float]:
        """The time of each resource."""
        return {"memory": self.memory_us, "MFMA": self.mfma_us, "VALU": self.valu_us, "LDS": self.lds_us}

    @property
    def time_us(self) -> float:
        """The longest of the times."""
        return max(self.times_us.values())

    @property
    def bound(self) -> str:
        """The name of the resource with the longest time."""
        return max(self.times_us, key=lambda name: self.times_us[name])

    @property
    def arithmetic_intensity(self) -> float | None:
        """Operations of matrix instructions per byte of global lines; None without global accesses."""
        return self.mfma_operations / self.memory_bytes if self.memory_bytes else None

    def with_memory_bytes(self, memory_bytes: int) -> Roofline:
        """The same with so many bytes from and to the memory: those that caches leave, where they are known."""
        memory_us = 1e6 * memory_bytes / self.peaks.memory_bytes_per_second
        return replace(self, memory_bytes=memory_bytes, memory_us=memory_us)

    def __str__(self) -> str:
        times = ", ".join(f"{name} {time:.3g}" for name, time in self.times_us.items())
        return (
            f"roofline of {self.peaks.product}: {self.time_us:.3g} us, bound by {self.bound} ({times} us at peak "
            f"rates; {self.compute_units_used} of {self.peaks.compute_units} compute units have work; {NO_ESTIMATE})"
        )


def roofline(arch: Arch, totals: Counts, workgroups: int, waves: int) -> Roofline:
    """The roofline of a launch. ArchError for an architecture whose peak figures are unknown."""
    peak = peaks(arch)
    compute_units = min(workgroups, peak.compute_units)
    simds = min(waves, compute_units * peak.simds_per_compute_unit)
    cycle_us = 1e6 / peak.clock_hz
    memory_bytes = LINE_BYTES * totals.global_lines
    return Roofline(
        peaks=peak,
        compute_units_used=compute_units,
        simds_used=simds,
        memory_us=1e6 * memory_bytes / peak.memory_bytes_per_second,
        mfma_us=cycle_us * totals.mfma_cycles / simds,
        valu_us=cycle_us * totals.valu_cycles / simds,
        lds_us=cycle_us * totals.lds_passes / compute_units,
        mfma_operations=totals.mfma_operations,
        memory_bytes=memory_bytes,
    )
