"""What a launch takes beside its work: its arguments come from memory, and the launch of an idle GPU takes longer."""

from __future__ import annotations

import numpy as np
import pytest

from flydsl.arch import get_arch
from flydsl.arch.timing import timing
from flydsl.simulator.timing import Trace
from tests.simulator.timing.loops import CDNA3, RDNA4, Target, copy_kernel, lines, trace_of, traced

pytestmark = pytest.mark.slow

on_each_target = pytest.mark.parametrize("target", [CDNA3, RDNA4], ids=lambda target: target.arch)


@on_each_target
def test_every_wave_waits_for_arguments_that_come_from_memory(target: Target) -> None:
    """A scalar load of what is already on its way ends no sooner than the one that asked for it."""
    trace = trace_of("s_nop 0", "memory", repeats=1, workgroups=2 * target.compute_units, arch=target.arch)
    first = next(i for i, one in enumerate(trace.instructions) if one.text.startswith("s_load"))
    loads = trace.events[trace.events["instruction"] == first]
    figures = timing(get_arch(target.arch))
    from_memory = figures.memory_latency_ns.value * figures.clock_mhz.value / 1000
    arrivals = loads["issue"] + loads["latency"]
    assert len(loads) > 4
    assert (arrivals >= from_memory).all()


def test_scalar_loads_of_a_line_that_is_there_hit() -> None:
    """Of 64 bytes, whichever instruction asks for them."""
    loads = [f"s_load_dword s20, $0, {at:#x}" for at in (0x100, 0x104, 0x900, 0x108)]
    body = lines(*(text for load in loads for text in (load, "s_waitcnt lgkmcnt(0)")))
    trace = trace_of(body, "s20", repeats=1, workgroups=1)
    own = [i for i, one in enumerate(trace.instructions) if one.text.startswith("s_load_dword s20")]
    latencies = trace.events["latency"][(trace.events["wave"] == 0) & np.isin(trace.events["instruction"], own)]
    figures = timing(get_arch("gfx942"))
    hit, miss = figures.scalar_cache_latency.value, figures.memory_latency_ns.value * figures.clock_mhz.value / 1000
    assert latencies.tolist() == pytest.approx([miss, hit, miss, hit], rel=0.01)


def test_what_a_launch_has_written_is_in_memory_when_it_ends() -> None:
    """10 MB that all waves store early stay in the caches of the dies until then."""
    address = ("s_lshl_b32 s20, $2, 12", "v_lshl_add_u32 v20, $1, 4, s20")
    later = "s_sleep 100"
    workgroups = 8 * CDNA3.compute_units
    size = workgroups << 12
    stores, nothing = (
        trace_of(lines(*address, *store, later), "s20 v20 v[24:27]", repeats=1, workgroups=workgroups, size_bytes=size)
        for store in (["global_store_dwordx4 v20, v[24:27], $0"], [])
    )
    assert stores.memory is not None
    assert stores.memory.hbm_write_bytes == pytest.approx(size, rel=0.01)
    rate = timing(get_arch("gfx942")).memory_write_bytes_per_second.value * 1e-6
    assert stores.time_us - nothing.time_us == pytest.approx(size / rate, rel=0.25)


def test_empty_workgroups_that_are_launched_alone_take_what_is_published() -> None:
    """TransferBench: at least 4.04 us for 256 workgroups of 256 between two events."""
    assert empty(256, cold=True).time_us == pytest.approx(4.04, rel=0.15)


def empty(workgroups: int, *, cold: bool = False) -> Trace:
    return trace_of("s_nop 0", "memory", repeats=1, workgroups=workgroups, cold=cold)


def test_a_trace_says_whether_the_launch_is_one_of_many() -> None:
    alone, among = empty(1, cold=True), empty(1)
    assert alone.sampling.startswith("launched alone, with cold caches")
    assert among.sampling.startswith("one of repeated launches")
    figures = timing(get_arch("gfx942"))
    difference = figures.cold_launch_us.value - figures.launch_us.value
    assert alone.time_us - among.time_us == pytest.approx(difference, rel=0.01)


def test_an_empty_cache_takes_what_a_kernel_writes() -> None:
    """32 MB are read from memory either way; what is written need not go there if no dirty lines are in its way."""
    size = 16 << 20
    alone, among = (traced(copy_kernel(), size // 16384, size, size, cold=cold) for cold in (True, False))
    assert alone.memory is not None
    assert among.memory is not None
    assert alone.memory.hbm_read_bytes == pytest.approx(among.memory.hbm_read_bytes)
    assert alone.memory.hbm_write_bytes == 0 < among.memory.hbm_write_bytes
