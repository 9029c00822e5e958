"""Two variants of a kernel that differ in one thing: the model knows which is faster."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from flydsl.arch import get_arch
from flydsl.simulator import tracing
from flydsl.simulator.timing import Stall, Trace
from flydsl.simulator.timing.hot_spots import costs, total
from kernels.hgemm_splitk import compile_hgemm_kernel
from kernels.preshuffle_gemm import compile_preshuffle_gemm_a8
from tests.simulator.timing.loops import CDNA3, RDNA4, Target, busy_us, lines, trace_of

pytestmark = pytest.mark.slow

on_each_target = pytest.mark.parametrize("target", [CDNA3, RDNA4], ids=lambda target: target.arch)


def stall_cycles(trace: Trace, reason: Stall) -> int:
    """The cycles that all waves of a trace waited for a reason."""
    return total(costs(trace)).stalls[reason]


def rows_of_128_bytes(target: Target, *, stride: int = 128, swizzled: bool = False) -> Trace:
    """Lanes read 16 bytes of rows of 128 bytes, as the fragments of a matrix instruction are read."""
    row, chunk = "v40", "v41"
    place = lines(
        f"v_and_b32 {row}, 15, $1", f"v_bfe_u32 {chunk}, $1, 4, 2",
        *([f"v_and_b32 v42, 7, {row}", f"v_xor_b32 {chunk}, {chunk}, v42"] if swizzled else []),
        f"v_lshlrev_b32 {chunk}, 4, {chunk}", f"v_mul_u32_u24 {row}, {stride}, {row}",
        f"{target.add} {row}, {row}, {chunk}",
    )  # fmt: skip
    reads = lines(f"{target.read} v[16:19], {row}", times=16)
    body = "\\0A".join([place, reads, lines(target.reads_wait)])
    size: dict[str, Any] = {"repeats": 10, "workgroups": target.compute_units, "arch": target.arch}
    return trace_of(body, "v[16:19] v[40:42]", **size)


def test_a_swizzle_avoids_bank_conflicts() -> None:
    """Measured ways of conflicts on CDNA 3 without and with the swizzle: 4 and 1 (nod-ai, empirical LDS)."""
    plain, swizzled = rows_of_128_bytes(CDNA3), rows_of_128_bytes(CDNA3, swizzled=True)
    assert 2 < busy_us(plain) / busy_us(swizzled) < 4
    assert stall_cycles(plain, Stall.WAIT_LDS) > 2 * stall_cycles(swizzled, Stall.WAIT_LDS)


@pytest.mark.parametrize(("target", "least", "most"), [(CDNA3, 1.4, 2), (RDNA4, 4, 8)], ids=["gfx942", "gfx1201"])
def test_padding_avoids_bank_conflicts(target: Target, least: float, most: float) -> None:
    """Ways of conflicts without and with 16 bytes between rows: 4 and 2 on CDNA 3, 8 and 1 on RDNA 4 (nod-ai)."""
    plain, padded = rows_of_128_bytes(target), rows_of_128_bytes(target, stride=144)
    assert least < busy_us(plain) / busy_us(padded) < most


@pytest.mark.parametrize(("access", "apart"), [("ds_write_b32", 132), ("ds_write_b16", 130), ("ds_add_u32", 4)])
def test_a_bank_serves_one_lane_at_a_time(access: str, apart: int) -> None:
    """Stores to rows of 128 bytes all go to one bank, those to padded rows do not; atomics also meet at an address."""
    rows = 0 if access == "ds_add_u32" else 128
    times = []
    for stride in (rows, apart):
        place = [f"v_mul_u32_u24 v40, {stride}, $1", "v_and_b32 v40, 0x3ffe, v40"]
        times.append(busy_us(traced_steps(CDNA3, [*place, *[f"{access} v40, v20"] * 8, CDNA3.reads_wait])))
    assert times[0] > 4 * times[1]


NEXT_LINE = ["v_lshlrev_b32 v40, 4, $1", "s_lshl_b32 s40, $3, 12"]
CLOBBERS = "v[16:23] v40 s40 scc"


def next_line(target: Target) -> list[str]:
    """v40 is where a thread's 16 bytes of the next 4096 are."""
    return [*NEXT_LINE, f"{target.add} v40, s40, v40"]


def load(target: Target, dwords: int, place: str = "v40") -> str:
    """A load into v20 and what follows."""
    width = {"global_load_dword": {1: "", 4: "x4"}, "global_load_b32": {1: "", 4: "b128"}}[target.load][dwords]
    name = target.load.replace("b32", width) if width.startswith("b") else target.load + width
    return f"{name} {'v20' if dwords == 1 else 'v[20:23]'}, {place}, $0"


def traced_steps(target: Target, steps: list[str], *, repeats: int = 20, times: int = 1, **options: Any) -> Trace:
    """A loop of some steps; as many workgroups as there are compute units, some times."""
    size: dict[str, Any] = {"repeats": repeats, "workgroups": times * target.compute_units, "arch": target.arch}
    return trace_of(lines(*steps), f"{CLOBBERS} {target.clobbers}", **size, **options)


def loads_and_products(target: Target, *, ahead: bool) -> Trace:
    """A loop that loads and multiplies. ahead: the load of the next repetition is under way meanwhile."""
    take = [f"v_mov_b32 v{16 + i}, v{20 + i}" for i in range(4)]
    products, fetch = list(target.products) * 8, [*next_line(target), load(target, 4)]
    wait = target.loads_wait
    return traced_steps(target, [wait, *take, *fetch, *products] if ahead else [*fetch, wait, *take, *products])


@on_each_target
def test_prefetching_hides_latency(target: Target) -> None:
    """Both wait for the kernel's arguments first, which takes as long as a load of the loop."""
    late, early = loads_and_products(target, ahead=False), loads_and_products(target, ahead=True)
    assert busy_us(late) > 1.25 * busy_us(early)
    waits = [stall_cycles(trace, Stall.WAIT_VECTOR_MEMORY) for trace in (late, early)]
    assert waits[0] > 1.3 * waits[1]


@on_each_target
def test_occupancy_hides_latency(target: Target) -> None:
    """Waves that wait for a load at a time: with half the LDS four instead of two workgroups fit on a compute unit."""
    steps = [*next_line(target), load(target, 4), target.loads_wait, *target.products]
    pool = get_arch(target.arch).lds_pool_bytes
    one, two = (traced_steps(target, steps, times=4, lds_bytes=pool * part // 100) for part in (45, 22))
    assert busy_us(one) > 1.2 * busy_us(two)


@on_each_target
def test_wide_loads_hide_more_latency(target: Target) -> None:
    """Loads of 16 bytes a lane need a quarter of the round trips that loads of 4 bytes need."""
    steps = {dwords: [*next_line(target), load(target, dwords), target.loads_wait] for dwords in (1, 4)}
    narrow, wide = (traced_steps(target, steps[d], repeats=r) for d, r in ((1, 40), (4, 10)))
    assert busy_us(narrow) > 1.5 * busy_us(wide)


@on_each_target
def test_lanes_next_to_each_other_share_lines(target: Target) -> None:
    """Lanes that are 256 bytes apart touch a line each: the vector cache and the L2 serve as many."""
    steps = [[f"v_lshlrev_b32 v40, {log2}, $1", *[load(target, 1)] * 4, target.loads_wait] for log2 in (2, 8)]
    together, apart = (traced_steps(target, one, repeats=40) for one in steps)
    assert busy_us(apart) > 2 * busy_us(together)


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


@on_each_target
def test_a_barrier_for_each_step_costs(target: Target) -> None:
    """Waves of a workgroup that meet after each load wait for the slowest."""
    steps = [*next_line(target), load(target, 4), target.loads_wait, *target.products]
    free, bound = traced_steps(target, steps), traced_steps(target, [*steps, *target.barrier])
    assert busy_us(bound) > busy_us(free)
    assert stall_cycles(bound, Stall.BARRIER) > 0
    assert stall_cycles(free, Stall.BARRIER) == 0


def test_work_between_the_halves_of_a_barrier_hides_it() -> None:
    """On RDNA 4 a wave that has come to a barrier can go on until it needs that the others have."""
    signal, wait = RDNA4.barrier
    steps = [*next_line(RDNA4), load(RDNA4, 4), RDNA4.loads_wait]
    products = list(RDNA4.products) * 2
    at_once = traced_steps(RDNA4, [*steps, signal, wait, *products])
    apart = traced_steps(RDNA4, [*steps, signal, *products, wait])
    assert stall_cycles(apart, Stall.BARRIER) < stall_cycles(at_once, Stall.BARRIER)


@pytest.mark.parametrize(
    ("target", "instruction", "cycles"),
    [
        (CDNA3, "v_fma_f32 v20, v21, v22, v20", 4),
        (CDNA3, "v_exp_f32 v20, v20", 16),
        (RDNA4, "v_fma_f32 v20, v21, v22, v20", 5),
        (RDNA4, "v_exp_f32 v20, v20", 9),
        (RDNA4, "v_fma_f64 v[20:21], v[22:23], v[22:23], v[20:21]", 38),
    ],
)
def test_dependent_vector_instructions(target: Target, instruction: str, cycles: int) -> None:
    """Four cycles for 64 lanes, transcendental functions have a quarter of the rate; on RDNA what LLVM says."""
    trace = trace_of(lines(instruction, times=64), "v[20:23]", repeats=4, workgroups=8, arch=target.arch)
    distances = issue_distances(trace, instruction[:6])
    assert sorted(distances)[len(distances) // 2] == cycles


def test_other_work_is_issued_beside_transcendental_functions() -> None:
    """RDNA has lanes for them: a SIMD starts one in four cycles, and others in the three between."""
    one = ["v_exp_f32 v{0}, v{0}", *[f"v_fma_f32 v{{{i}}}, v16, v17, v18" for i in (1, 2, 3)]]
    body = lines(*[text.format(20, 21, 22, 23) for text in one], times=16)
    trace = trace_of(body, "v[16:23]", repeats=4, workgroups=1, arch="gfx1201")
    alone = trace_of(lines("v_exp_f32 v20, v20", times=16), "v[16:23]", repeats=4, workgroups=1, arch="gfx1201")
    assert trace.cycles < 1.2 * alone.cycles


def issue_distances(trace: Trace, text: str) -> list[int]:
    """Cycles between instructions of a wave that begin so and follow each other."""
    executed = [e for e in trace.events.tolist() if trace.instructions[e[1]].text.startswith(text)]
    return [b[2] - a[2] for a, b in itertools.pairwise(executed) if a[0] == b[0]]


def test_lanes_add_to_the_same_lines_at_once() -> None:
    """An atomic operation takes the L2 as long, whether 16 lanes or 4 add to its 64 bytes."""
    c, a, b = (torch.zeros(size, dtype=torch.float16) for size in (128 * 512, 128 * 1024, 512 * 1024))
    times = []
    for width in (2, 8):
        words = torch.zeros(64, dtype=torch.int32)
        launch = compile_hgemm_kernel("f16", 512, 1024, TILE_M=32, TILE_N=64, SPLIT_K=4, ADD_VEC=width)
        with tracing() as traced:
            launch(c, a, b, c, 128, words, words)
        times.append(traced.time_us)
    assert times[0] < 0.85 * times[1]
