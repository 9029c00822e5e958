"""Two variants of a kernel that differ in one thing: the model knows which is faster."""

from __future__ import annotations

import itertools

import pytest
import torch

from flydsl.simulator import tracing
from flydsl.simulator.timing import Stall, Trace
from flydsl.simulator.timing.hot_spots import costs, total
from kernels.preshuffle_gemm import compile_preshuffle_gemm_a8
from tests.simulator.timing.loops import busy_us, lines, trace_of

COMPUTE_UNITS = 304


def stall_cycles(trace: Trace, reason: Stall) -> int:
    """The cycles that all waves of a trace waited for a reason."""
    return total(costs(trace)).stalls[reason]


def rows_of_128_bytes(*, swizzled: bool) -> Trace:
    """Lanes read 16 bytes of rows of 128 bytes, as the fragments of a matrix instruction are read."""
    row, chunk = "v40", "v41"
    place = lines(
        f"v_and_b32 {row}, 15, $1", f"v_bfe_u32 {chunk}, $1, 4, 2",
        *([f"v_and_b32 v42, 7, {row}", f"v_xor_b32 {chunk}, {chunk}, v42"] if swizzled else []),
        f"v_lshlrev_b32 {chunk}, 4, {chunk}", f"v_lshl_add_u32 {row}, {row}, 7, {chunk}",
    )  # fmt: skip
    body = place + "\\0A" + lines(f"ds_read_b128 v[16:19], {row}", times=16) + "\\0A" + lines("s_waitcnt lgkmcnt(0)")
    return trace_of(body, "v[16:19] v[40:42]", repeats=20, workgroups=COMPUTE_UNITS)


@pytest.mark.slow
def test_a_swizzle_avoids_bank_conflicts() -> None:
    """Measured ways of conflicts on CDNA 3 without and with the swizzle: 4 and 1 (nod-ai, empirical LDS)."""
    plain, swizzled = rows_of_128_bytes(swizzled=False), rows_of_128_bytes(swizzled=True)
    assert 2 < busy_us(plain) / busy_us(swizzled) < 4
    assert stall_cycles(plain, Stall.WAIT_LDS) > 2 * stall_cycles(swizzled, Stall.WAIT_LDS)


LOAD = "global_load_dwordx4 v[{0}:{1}], v40, $0"
MULTIPLY = [f"v_mfma_f32_32x32x8_f16 {sums}, v[16:17], v[18:19], {sums}" for sums in ("a[0:15]", "a[16:31]")]
NEXT_LINE = ["v_lshlrev_b32 v40, 4, $1", "s_lshl_b32 s40, $3, 12", "v_add_u32 v40, s40, v40"]
CLOBBERS = "v[16:23] v40 a[0:31] s40 scc"


def loads_and_products(*, ahead: bool) -> Trace:
    """A loop that loads and multiplies. ahead: the load of the next repetition is under way meanwhile."""
    load, wait = LOAD.format(20, 23), "s_waitcnt vmcnt(0)"
    take = ["v_mov_b32 v16, v20", "v_mov_b32 v17, v21", "v_mov_b32 v18, v22", "v_mov_b32 v19, v23"]
    products = MULTIPLY * 8
    steps = [wait, *take, *NEXT_LINE, load, *products] if ahead else [*NEXT_LINE, load, wait, *take, *products]
    return trace_of(lines(*steps), CLOBBERS, repeats=40, workgroups=COMPUTE_UNITS)


@pytest.mark.slow
def test_prefetching_hides_latency() -> None:
    late, early = loads_and_products(ahead=False), loads_and_products(ahead=True)
    assert busy_us(late) > 1.3 * busy_us(early)
    waits = [stall_cycles(trace, Stall.WAIT_VECTOR_MEMORY) for trace in (late, early)]
    assert waits[0] > 1.3 * waits[1]


def chains_of_loads(lds_bytes: int) -> Trace:
    """Waves that wait for a load at a time; as many workgroups as fit twice on every compute unit by registers."""
    body = lines(*NEXT_LINE, LOAD.format(20, 23), "s_waitcnt vmcnt(0)", *MULTIPLY)
    return trace_of(body, CLOBBERS, repeats=20, workgroups=2 * COMPUTE_UNITS, lds_bytes=lds_bytes)


@pytest.mark.slow
def test_occupancy_hides_latency() -> None:
    one, two = chains_of_loads(40_000), chains_of_loads(20_000)
    assert busy_us(one) > 1.2 * busy_us(two)


@pytest.mark.slow
def test_two_buffers_hide_latency() -> None:
    """A GEMM whose A has two buffers in LDS loads one tile while it multiplies the other."""
    times = []
    for stages in (1, 2):
        n = 1024
        launch_gemm = compile_preshuffle_gemm_a8(
            K=n, tile_m=64, tile_n=128, tile_k=64, in_dtype="bf16", out_dtype="bf16", lds_stage=stages
        )
        a, b, c = (torch.zeros(n * n, dtype=torch.bfloat16) for _ in range(3))
        none = torch.empty(0)
        with tracing() as traced:
            launch_gemm(c, a, b, none, none, none.to(torch.bfloat16), n, n)
        times.append(traced.time_us)
    assert times[0] > 1.2 * times[1]


@pytest.mark.slow
def test_a_barrier_for_each_step_costs() -> None:
    """Waves of a workgroup that meet after each load wait for the slowest."""
    steps = [*NEXT_LINE, LOAD.format(20, 23), "s_waitcnt vmcnt(0)", *MULTIPLY]
    free, bound = (
        trace_of(lines(*steps, *barrier), CLOBBERS, repeats=20, workgroups=COMPUTE_UNITS)
        for barrier in ([], ["s_barrier"])
    )
    assert busy_us(bound) > busy_us(free)
    assert stall_cycles(bound, Stall.BARRIER) > 0
    assert stall_cycles(free, Stall.BARRIER) == 0


@pytest.mark.parametrize("unit", ["v_fma_f32 v20, v21, v22, v20", "v_exp_f32 v20, v20"])
def test_dependent_vector_instructions(unit: str) -> None:
    """Four cycles for 64 lanes; transcendental functions have a quarter of the rate."""
    trace = trace_of(lines(unit, times=64), "v[20:22]", repeats=4, workgroups=8)
    cycles = 16 if "exp" in unit else 4
    executed = [e for e in trace.events.tolist() if trace.instructions[e[1]].text.startswith(unit[:5])]
    distances = [b[2] - a[2] for a, b in itertools.pairwise(executed) if a[0] == b[0]]
    assert sorted(distances)[len(distances) // 2] == cycles
