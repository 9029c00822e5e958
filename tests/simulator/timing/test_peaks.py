"""Published peaks: the model comes within a tenth of them with kernels that do nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from flydsl.arch import get_arch
from flydsl.arch.instruction_costs import mfma_operations
from flydsl.arch.timing import timing
from flydsl.simulator.timing import Trace
from tests.simulator.timing.loops import busy_us, lines, trace_of
from tests.simulator.timing.peaks import WORKGROUPS, added_giga, copy_tera, l2_tera, lds_bytes_per_cycle, matrix_tera

pytestmark = pytest.mark.slow

WAVES_OF_RDNA = 8


@pytest.mark.parametrize(("lane_bytes", "giga"), [(4, 351), (16, 88)])
def test_atomics(lane_bytes: int, giga: float) -> None:
    """An operation holds a channel for 14 cycles, whether 16 lanes or 4 add to its 64 bytes."""
    assert added_giga("gfx950", lane_bytes) == pytest.approx(giga, rel=0.1)


@pytest.mark.parametrize(
    ("arch", "instruction", "registers", "tera"),
    [
        ("gfx942", "v_mfma_f32_32x32x8_f16", 2, 1307.4),
        ("gfx942", "v_mfma_f32_16x16x16_bf16", 2, 1307.4),
        ("gfx942", "v_mfma_f32_16x16x32_fp8_fp8", 2, 2614.9),
        ("gfx942", "v_mfma_i32_32x32x16_i8", 2, 2614.9),
        ("gfx942", "v_mfma_f32_16x16x4_f32", 1, 163.4),
        ("gfx942", "v_mfma_f64_16x16x4_f64", 2, 163.4),
        ("gfx90a", "v_mfma_f32_32x32x8f16", 2, 191.5),
        ("gfx950", "v_mfma_f32_16x16x32_f16", 4, 2516.6),
        ("gfx950", "v_mfma_f32_16x16x128_f8f6f4", 8, 5033.2),
    ],
)
@pytest.mark.diagonal(2)
def test_matrix_instructions(arch: str, instruction: str, registers: int, tera: float) -> None:
    """AMD's data sheets of the MI250X (half of it), MI300X and MI355X, dense."""
    assert matrix_tera(arch, instruction, registers) == pytest.approx(tera, rel=0.1)


@pytest.mark.parametrize(
    ("instruction", "registers", "tera"),
    [
        ("v_wmma_f32_16x16x16_f16", (4, 4), 194.6),
        ("v_wmma_f32_16x16x16_bf16", (4, 4), 194.6),
        ("v_wmma_f32_16x16x16_fp8_fp8", (2, 2), 389.3),
        ("v_wmma_i32_16x16x16_iu8", (2, 2), 389.3),
        ("v_wmma_i32_16x16x32_iu4", (2, 2), 778.6),
        ("v_swmmac_f32_16x16x32_f16", (4, 8), 389.3),
    ],
)
@pytest.mark.diagonal(3)
def test_matrix_instructions_of_rdna4(instruction: str, registers: tuple[int, int], tera: float) -> None:
    """AMD's specifications of the RX 9070 XT: 195 TFLOPS of f16 matrices, twice that of FP8 or with a sparse A."""
    assert wmma_tera("gfx1201", instruction, registers) == pytest.approx(tera, rel=0.1)


@pytest.mark.parametrize(("arch", "tera"), [("gfx1100", 122.9), ("gfx1151", 59.4)])
@pytest.mark.diagonal(2)
def test_matrix_instructions_of_rdna3(arch: str, tera: float) -> None:
    """512 operations of f16 in a clock of a compute unit: 96 at 2.5 GHz and 40 at 2.9 GHz."""
    assert wmma_tera(arch, "v_wmma_f32_16x16x16_f16", (8, 8)) == pytest.approx(tera, rel=0.1)


def wmma_tera(arch: str, instruction: str, registers: tuple[int, int]) -> float:
    """10**12 operations a second of a matrix instruction whose A and B have so many registers."""
    a, b = (f"v[{first}:{first + count - 1}]" for first, count in zip((16, 24), registers, strict=True))
    sums = [f"v[{64 + 8 * i}:{71 + 8 * i}]" for i in range(4)]
    last = "v15" if "swmmac" in instruction else None
    one = [", ".join([f"{instruction} {s}", a, b, last or s]) for s in sums]
    trace = trace_of_rdna(lines(*one, times=8), "v[15:31] v[64:95]", arch)
    return mfma_operations(instruction) * 32 * 20 * WAVES_OF_RDNA * WORKGROUPS[arch] / busy_us(trace) * 1e-6


def trace_of_rdna(body: str, clobbers: str, arch: str = "gfx1201", **options: Any) -> Trace:
    """Two workgroups of eight waves on each workgroup processor."""
    return trace_of(body, clobbers, repeats=20, workgroups=WORKGROUPS[arch], arch=arch, **options)


@pytest.mark.parametrize(("name", "operations", "tera"), [("fmac_f32", 2, 48.7), ("dot2acc_f32_f16", 4, 97.3)])
@pytest.mark.diagonal(2)
def test_pairs_of_vector_instructions(name: str, operations: int, tera: float) -> None:
    """AMD's specifications of the RX 9070 XT: two operations of every lane in a cycle."""
    pairs = [f"v_dual_{name} v{40 + 2 * i}, v16, v17 :: v_dual_{name} v{41 + 2 * i}, v18, v19" for i in range(8)]
    trace = trace_of_rdna(lines(*pairs, times=16), "v[16:19] v[40:55]")
    every = 2 * operations * 32 * len(pairs) * 16 * 20 * WAVES_OF_RDNA * WORKGROUPS["gfx1201"]
    assert every / busy_us(trace) * 1e-6 == pytest.approx(tera, rel=0.1)


def test_waves_of_64_lanes() -> None:
    """What pairs are made of is executed for all lanes in a cycle, other operations for one half after the other."""
    times = []
    for name in ("fmac_f32", "xad_u32"):
        extra = "" if name == "fmac_f32" else ", v18"
        body = lines(*[f"v_{name} v{40 + i}, v16, v17{extra}" for i in range(16)], times=8)
        trace = trace_of_rdna(body, "v[16:19] v[40:55]", features="+wavefrontsize64")
        assert len(trace.waves) == 2 * WAVES_OF_RDNA // 2
        times.append(busy_us(trace))
    assert times[1] / times[0] == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize(
    ("features", "units"), [("", "32 of 32 workgroup processors"), ("+cumode", "64 of 64 compute units")]
)
@pytest.mark.diagonal(2)
def test_lds_of_rdna(features: str, units: str) -> None:
    """128 bytes a cycle of each half of a workgroup processor's LDS: the RDNA white paper."""
    body = lines("v_lshlrev_b32 v40, 4, $1") + "\\0A" + lines("ds_load_b128 v[16:19], v40", times=32)
    trace = trace_of_rdna(body, "v[16:19] v40", features=features)
    assert units in trace.sampling
    bytes_ = 512 * 32 * 20 * WAVES_OF_RDNA * WORKGROUPS["gfx1201"]
    assert bytes_ / busy_us(trace) * 1e-6 == pytest.approx(2 * 128 * 32 * 2.97e-3, rel=0.1)


def test_lds() -> None:
    """128 bytes a cycle of each compute unit: the CDNA 3 white paper."""
    assert lds_bytes_per_cycle("gfx942") == pytest.approx(128, rel=0.1)


@pytest.mark.parametrize(("store", "part"), [("ds_write_b32 v40, v16", 0.5), ("ds_write_b128 v40, v[16:19]", 0.8)])
@pytest.mark.diagonal(2)
def test_stores_to_lds(store: str, part: float) -> None:
    """ROCm Compute Profiler: 64 stores of 4 bytes take 8 cycles of a port, half of its peak; those of 16 bytes 20."""
    width = int(store.partition("_b")[2].split()[0]) // 8
    place = lines(f"v_lshlrev_b32 v40, {width.bit_length() - 1}, $1")
    trace = trace_of(place + "\\0A" + lines(store, times=32), "v[16:19] v40", repeats=20, workgroups=304)
    bytes_ = 64 * width * 32 * 20 * 4 * 304
    assert bytes_ / busy_us(trace) * 1e-6 == pytest.approx(part * 128 * 304 * 2.1e-3, rel=0.1)


@pytest.mark.parametrize(
    ("arch", "tera"), [pytest.param("gfx90a", 6.96, marks=pytest.mark.sweep), ("gfx942", 34.4), ("gfx950", 39.3)]
)
def test_l2(arch: str, tera: float) -> None:
    """128 bytes a cycle of each of the 16 channels of a die, 32 of CDNA 2's: the white papers.

    All read 512 KiB, more than L1 has.
    """
    assert l2_tera(arch) == pytest.approx(tera, rel=0.1)


@pytest.mark.parametrize(("arch", "tera"), [("gfx942", 4.2), ("gfx950", 6.3), ("gfx1151", 0.215), ("gfx1201", 0.64)])
@pytest.mark.diagonal(2)
def test_copy_of_memory(arch: str, tera: float) -> None:
    """What copies reach on an MI300X, 79 % of the peak; the same part of an MI355X's. The peak of an RX 9070 XT."""
    assert copy_tera(arch) == pytest.approx(tera, rel=0.1)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1201"])
@pytest.mark.diagonal(3)
def test_memory_that_is_changed_in_place_is_read_and_written_back(arch: str) -> None:
    """Reads and writes share the memory's bus, wherever in the caches the lines were when they were stored to."""
    assert copy_tera(arch, in_place=True) == pytest.approx(copy_tera(arch), rel=0.1)


def test_empty_kernel() -> None:
    """A launch takes a while even if it does nothing."""
    trace = trace_of("s_nop 0", "memory", repeats=1, workgroups=1)
    assert trace.time_us == pytest.approx(timing(get_arch("gfx942")).launch_us.value, rel=0.6)
