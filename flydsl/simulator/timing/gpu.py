"""The figures of an accelerator in the units of the replay: cycles, and bytes a cycle of a die's share."""

from __future__ import annotations

from dataclasses import replace

from flydsl.arch import Arch
from flydsl.arch.products import Product
from flydsl.arch.timing import Timing, timing
from flydsl.arch.timing_figures import published
from flydsl.simulator.timing.replay import layout

_LINE_BYTES = 128


def timing_of(arch: Arch, product: Product | None = None) -> Timing:
    """The figures for kernels on a product, by default the one that stands for an architecture.

    One in CU mode has the two halves of a workgroup processor.
    """
    figures = timing(arch, product)
    if figures.vector_caches.value == 1 or arch.has_cu_mode:
        return figures
    units = figures.compute_units_per_xcd
    one = published(1, "of a half", "CU mode: RDNA")
    halves = replace(units, value=2 * units.value, unit="compute units")
    return replace(figures, compute_units_per_xcd=halves, vector_caches=one, lds_pipes=one)


def die(
    timing: Timing,
    *,
    simds: int,
    dies_at_work: float,
    workgroups_per_compute_unit: int,
    footprint_bytes: int,
    cold: bool = False,
) -> layout.Gpu:
    """A die while `dies_at_work` work, of which one counts in part that works for part of the time.

    simds: of a compute unit. footprint_bytes: what the launch reads and writes.
    cold: the Infinity Cache is empty. Among repeated launches it is full of what the last one wrote.
    """
    hertz = timing.clock_mhz.value * 1e6

    def cycles(nanoseconds: float) -> int:
        return round(nanoseconds * 1e-9 * hertz)

    def share(bytes_per_second: float) -> float:
        return bytes_per_second / hertz / dies_at_work

    l1_lines = int(timing.l1_bytes.value) // _LINE_BYTES
    l1_ways = min(int(timing.l1_ways.value), l1_lines)
    assert l1_lines <= layout.L1_LINES, "the replay has room for so many lines"
    cache = timing.infinity_cache_bytes.value
    keeps = min(1.0, cache / footprint_bytes) if footprint_bytes else 1.0
    return layout.Gpu(
        compute_units=int(timing.compute_units_per_xcd.value),
        simds=simds,
        l1_caches=int(timing.vector_caches.value),
        lds_pipes=int(timing.lds_pipes.value),
        workgroups_per_compute_unit=workgroups_per_compute_unit,
        dispatch_cycles=int(timing.dispatch_cycles_per_wave.value),
        start_cycles=int(timing.workgroup_start_cycles.value),
        branch_cycles=int(timing.branch_cycles.value),
        barrier_cycles=int(timing.barrier_cycles.value),
        lds_latency=int(timing.lds_latency.value),
        lds_bytes_per_cycle=timing.lds_bytes_per_cycle.value,
        scalar_hit_latency=int(timing.scalar_cache_latency.value),
        scalar_miss_latency=int(timing.scalar_miss_latency.value),
        l1_sets=l1_lines // l1_ways,
        l1_ways=l1_ways,
        l1_latency=int(timing.l1_latency.value),
        l1_bytes_per_cycle=timing.l1_bytes_per_cycle.value,
        l1_fill_bytes_per_cycle=timing.l1_fill_bytes_per_cycle.value,
        l2_sets=int(timing.l2_bytes.value) // _LINE_BYTES // int(timing.l2_ways.value),
        l2_ways=int(timing.l2_ways.value),
        l2_channels=int(timing.l2_channels.value),
        l2_atomic_cycles=int(timing.l2_atomic_cycles.value),
        l2_latency=int(timing.l2_latency.value),
        l2_dirty_lines=int(timing.l2_bytes.value) // _LINE_BYTES,
        l2_read_bytes=timing.l2_read_bytes_per_cycle.value,
        l2_write_bytes=timing.l2_write_bytes_per_cycle.value,
        cache_latency=cycles(timing.infinity_cache_latency_ns.value),
        cache_bytes_per_cycle=share(timing.infinity_cache_bytes_per_second.value),
        cache_keeps=keeps,
        cache_takes=keeps if cold else 0.0,
        memory_latency=cycles(timing.memory_latency_ns.value),
        read_bytes_per_cycle=share(timing.memory_read_bytes_per_second.value),
        write_bytes_per_cycle=share(timing.memory_write_bytes_per_second.value),
    )
