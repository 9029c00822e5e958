"""The simulator's speed on the shapes that AMD measures its own emulator with, in wave instructions per second.

The shapes are those of its suites (ROCm/rocm-systems, emulation/rocjitsu/benchmarks: `nightly.toml`, the workloads of
Triton, hipBLASLt and HIP), for gfx950; the kernels are the library's, and a copy of our own. Not here are AMD's
transpose, its gather and its contended atomics, which the library has no kernels for, and products of ragged or batched
matrices.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl import env
from flydsl.simulator import counting
from kernels.flash_attn_generic import build_flash_attn_func_module
from kernels.preshuffle_gemm import compile_preshuffle_gemm_a8
from kernels.rmsnorm_kernel import build_rmsnorm_module
from kernels.softmax_kernel import build_softmax_module
from kernels.vector_add import vector_add

_ARCH = "gfx950"
_REPETITIONS = 5
_COPY_THREADS, _COPY_BLOCKS = 256, 256


@flyc.kernel
def copy_kernel(source: fx.Tensor, target: fx.Tensor, vectors: fx.Int32) -> None:
    """Copy vectors of 16 bytes, in steps of the whole grid."""
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), source.dtype)
    held = fx.make_rmem_tensor(4, source.dtype)
    sources, targets = (fx.logical_divide(tensor, fx.make_layout(4, 1)) for tensor in (source, target))
    for i in range(fx.block_idx.x * _COPY_THREADS + fx.thread_idx.x, vectors, _COPY_THREADS * _COPY_BLOCKS):
        fx.copy_atom_call(atom, fx.slice(sources, (None, i)), held)
        fx.copy_atom_call(atom, held, fx.slice(targets, (None, i)))


@flyc.jit
def copy(source: fx.Tensor, target: fx.Tensor, stream: fx.Stream = fx.Stream(None)) -> None:
    copy_kernel(source, target, source.shape[0] // 4).launch(grid=_COPY_BLOCKS, block=_COPY_THREADS, stream=stream)


def _copy(elements: int) -> Callable[[], None]:
    source, target = torch.ones(elements), torch.empty(elements)
    return lambda: copy(source, target)


def _add(elements: int) -> Callable[[], None]:
    a, b, c = torch.ones(elements), torch.ones(elements), torch.empty(elements)
    return lambda: vector_add(a, b, c)


def _softmax(rows: int, columns: int) -> Callable[[], None]:
    launch, a = build_softmax_module(rows, columns, "f16"), torch.ones(rows, columns).half()
    c = torch.empty_like(a)
    return lambda: launch(a, c, rows)


def _rmsnorm(rows: int, columns: int) -> Callable[[], None]:
    launch, x = build_rmsnorm_module(rows, columns, "bf16"), torch.ones(rows, columns).bfloat16()
    weight, y = torch.ones(columns).bfloat16(), torch.empty_like(x)
    return lambda: launch(x, weight, y, rows)


def _gemm(n: int, k: int, dtype: str, bits: int) -> Callable[[], None]:
    tile = 128 if n >= 256 else 64
    launch = compile_preshuffle_gemm_a8(
        K=k, tile_m=tile, tile_n=128, tile_k=1024 // bits, in_dtype=dtype, out_dtype="bf16"
    )
    kind = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}[dtype]
    a, b = (torch.zeros(n * k * bits // 8, dtype=torch.uint8).view(kind) for _ in range(2))
    c, none, scales = torch.empty(n * n, dtype=torch.bfloat16), torch.empty(0, dtype=torch.bfloat16), torch.ones(n)
    return lambda: launch(c, a, b, scales, scales, none, n, n)


def _attention(heads: int, kv_heads: int, length: int, dtype: str, *, causal: bool) -> Callable[[], None]:
    launch = build_flash_attn_func_module(heads, 64, causal=causal, num_kv_heads=kv_heads, dtype_str=dtype)
    kind = {"f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    q, o = (torch.ones(length * heads * 64, dtype=kind) for _ in range(2))
    k, v = (torch.ones(length * kv_heads * 64, dtype=kind) for _ in range(2))
    return lambda: launch(q, k, v, o, 1, length)


CASES: dict[str, Callable[[], Callable[[], None]]] = {
    "copy of 32 MiB": lambda: _copy(8_388_608),
    "addition of 8388611 f32": lambda: _add(8_388_611),
    "addition of 1048583 f32": lambda: _add(1_048_583),
    "softmax f16 64 x 4096": lambda: _softmax(64, 4096),
    "softmax f16 64 x 4097": lambda: _softmax(64, 4097),
    "RMS norm bf16 128 x 4096": lambda: _rmsnorm(128, 4096),
    "RMS norm bf16 128 x 2880": lambda: _rmsnorm(128, 2880),
    "GEMM f16 512 x 512 x 512": lambda: _gemm(512, 512, "fp16", 16),
    "GEMM bf16 256 x 256 x 512": lambda: _gemm(256, 512, "bf16", 16),
    "GEMM fp8 128 x 128 x 128": lambda: _gemm(128, 128, "fp8", 8),
    "attention f16 8 x 128 x 64": lambda: _attention(8, 8, 128, "f16", causal=False),
    "attention bf16 64 over 8 x 128 x 64": lambda: _attention(64, 8, 128, "bf16", causal=True),
}


def run() -> Iterator[tuple[str, float, str]]:
    """Name, value and unit of each row: every case on one thread, and on as many as there are cores."""
    with env.replaced({"FLYDSL_GPU_ARCH": _ARCH}):
        for name, make in CASES.items():
            launch = make()
            with counting() as counted:
                launch()
            instructions = sum(one.statistics.wave_instructions for one in counted.launches)
            for threads, text in (("1", "1 thread"), ("", "all threads")):
                with env.replaced({"FLYDSL_SIMULATOR_THREADS": threads} if threads else {}):
                    yield f"AMD's {name}, {text}", instructions / _quickest(launch) / 1e6, "M/s"


def _quickest(launch: Callable[[], Any]) -> float:
    """Seconds of the quickest of some launches."""
    seconds = []
    for _ in range(_REPETITIONS):
        start = time.perf_counter()
        launch()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    for name, value, unit in run():
        print(f"{name:60} {value:8.2f} {unit}")
