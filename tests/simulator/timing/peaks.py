"""What the model reaches with kernels that do nothing else."""

from __future__ import annotations

from typing import Any

from flydsl.arch import get_arch
from flydsl.arch.instruction_costs import mfma_operations
from flydsl.arch.timing import timing
from tests.simulator.timing.loops import busy_us, copy_kernel, lines, trace_of, traced

WORKGROUPS = {"gfx90a": 110, "gfx942": 304, "gfx950": 256, "gfx1100": 96, "gfx1151": 40, "gfx1201": 64}


def matrix_tera(arch: str, instruction: str, registers: int, modifiers: str = "", formats: str = "fp8_fp8") -> float:
    """Teraoperations a second of four waves on each compute unit that do nothing else. registers: of a source."""
    size = {"32x32": 16, "16x16": 8 if "f64" in instruction else 4}[instruction.split("_")[3][:5]]
    end = registers - 1
    sources = (f"v[16:{16 + end}]", f"v[32:{32 + end}]") if registers > 1 else ("v16", "v32")
    sums = [f"a[{size * i}:{size * i + size - 1}]" for i in range(4)]
    one = [f"{instruction} {s}, {sources[0]}, {sources[1]}, {s} {modifiers}" for s in sums]
    body = lines(*one, times=8)
    trace = trace_of(body, "a[0:63] v[16:39]", repeats=20, workgroups=WORKGROUPS[arch], arch=arch)
    name = f"{instruction}/{formats}" if "f8f6f4" in instruction else instruction
    return mfma_operations(name) * 32 * 20 * 4 * WORKGROUPS[arch] / busy_us(trace) * 1e-6


def lds_bytes_per_cycle(arch: str) -> float:
    """What a compute unit reads, 16 bytes a lane."""
    body = lines("v_lshlrev_b32 v40, 4, $1") + "\\0A" + lines("ds_read_b128 v[16:19], v40", times=32)
    trace = trace_of(body, "v[16:19] v40", repeats=20, workgroups=WORKGROUPS[arch], arch=arch)
    return 1024 * 32 * 20 * 4 / (busy_us(trace) * timing(get_arch(arch)).clock_mhz.value)


def l2_tera(arch: str) -> float:
    """Terabytes a second that all dies read from their L2."""
    place = lines(
        "v_lshlrev_b32 v40, 4, $1", "s_and_b32 s40, $3, 3", "s_lshl_b32 s40, s40, 17", "v_add_u32 v40, s40, v40"
    )
    loads = lines("global_load_dwordx4 v[16:19], v40, $0", "v_add_u32 v40, 0x1000, v40", times=32)
    body = place + "\\0A" + loads
    size: dict[str, Any] = {"workgroups": WORKGROUPS[arch], "arch": arch, "size_bytes": 1 << 19}
    few, many = (trace_of(body, "v[16:19] v40 s40 scc", repeats=repeats, **size) for repeats in (8, 16))
    bytes_ = 1024 * 32 * 8 * 4 * WORKGROUPS[arch]  # the first repetitions wait for memory
    return bytes_ / (many.time_us - few.time_us) * 1e-6


def added_giga(arch: str, lane_bytes: int) -> float:
    """Billions of dwords a second that all lanes add to memory, each lane lane_bytes after the one before."""
    place = lines(
        f"v_mul_u32_u24 v40, {lane_bytes}, $1", "s_and_b32 s40, $2, 255", "s_lshl_b32 s40, s40, 12",
        "v_add_u32 v40, s40, v40",
    )  # fmt: skip
    body = place + "\\0A" + lines("global_atomic_add v40, v16, $0", times=8)
    size: dict[str, Any] = {"workgroups": WORKGROUPS[arch], "arch": arch, "size_bytes": 1 << 20}
    few, many = (trace_of(body, "v16 v40 s40 scc", repeats=repeats, **size) for repeats in (4, 12))
    return 256 * 8 * 8 * WORKGROUPS[arch] / (many.time_us - few.time_us) * 1e-3


def copy_tera(arch: str, *, in_place: bool = False) -> float:
    """Terabytes a second that a copy of 256 MiB, or changing as much in place, reads and writes."""
    workgroups = 16384
    sizes = [workgroups * 16384] * 2
    trace = traced(copy_kernel(in_place=in_place), workgroups, *sizes, arch=arch)
    return 2 * workgroups * 16384 / busy_us(trace) * 1e-6
