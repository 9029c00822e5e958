"""The simulator's speed on the shapes that AMD measures its own emulator with, in wave instructions per second.

The shapes are those of its suites (ROCm/rocm-systems, emulation/rocjitsu/benchmarks: `nightly.toml`, the workloads of
Triton, hipBLASLt and HIP), for gfx950. The kernels are the library's, or, where it has none, those of
`emulator_kernels`. AMD's launch of an empty kernel is not here: a warm call has its own row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from flydsl import env
from flydsl.simulator import counting
from kernels import flash_attn_generic, preshuffle_gemm, rmsnorm_kernel, softmax_kernel
from kernels.shuffles import shuffle_weight
from kernels.vector_add import vector_add
from tests.benchmarks import emulator_kernels as plain

_ARCH = "gfx950"
_REPETITIONS = 5


class Case(NamedTuple):
    """A launch, the tensor that it writes, and what must be in it afterwards."""

    launch: Callable[[], Any]
    result: torch.Tensor
    expected: torch.Tensor

    def check(self) -> None:
        """Raise AssertionError unless the last launch wrote what it should, within the roundings of 16 bits."""
        result = self.result.view(self.expected.shape).float()
        torch.testing.assert_close(result, self.expected.float(), rtol=0.02, atol=0.02)


def _copy(elements: int) -> Case:
    source, target = torch.randn(elements), torch.zeros(elements)
    return Case(lambda: plain.copy(source, target), target, source)


def _add(elements: int) -> Case:
    a, b, c = torch.randn(elements), torch.randn(elements), torch.zeros(elements)
    return Case(lambda: vector_add(a, b, c), c, a + b)


def _transpose(rows: int, columns: int) -> Case:
    source, target = torch.randn(rows, columns).half(), torch.zeros(columns, rows).half()
    return Case(lambda: plain.transpose(source, target), target, source.T)


def _gather(sources: int, elements: int, stride: int, offset: int) -> Case:
    source, target = torch.randn(sources), torch.zeros(elements)
    indices = (torch.arange(elements) * stride + offset) % sources
    return Case(lambda: plain.gather(source, indices, target), target, source[indices])


def _add_to_buckets(elements: int, buckets: int) -> Case:
    values, sums = torch.rand(elements), torch.zeros(buckets)

    def launch() -> None:
        sums.zero_()
        plain.add_to_buckets(values, sums)

    return Case(launch, sums, values.view(-1, buckets).sum(0))


def _softmax(rows: int, columns: int) -> Case:
    launch, a = softmax_kernel.build_softmax_module(rows, columns, "f16"), 4 * torch.randn(rows, columns).half()
    c = torch.zeros_like(a)
    return Case(lambda: launch(a, c, rows), c, softmax_kernel.reference(a))


def _rmsnorm(rows: int, columns: int) -> Case:
    launch, x = rmsnorm_kernel.build_rmsnorm_module(rows, columns, "bf16"), torch.randn(rows, columns).bfloat16()
    weight, y = torch.randn(columns).bfloat16(), torch.zeros_like(x)
    return Case(lambda: launch(x, weight, y, rows), y, rmsnorm_kernel.reference(x, weight))


def _gemm(n: int, k: int, dtype: str, bits: int) -> Case:
    tile = 128 if n >= 256 else 64
    launch = preshuffle_gemm.compile_preshuffle_gemm_a8(
        K=k, tile_m=tile, tile_n=128, tile_k=1024 // bits, in_dtype=dtype, out_dtype="bf16"
    )
    kind = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}[dtype]
    a, b = (torch.randn(n, k).to(kind) for _ in range(2))
    shuffled = shuffle_weight(b)
    c, none, scales = torch.zeros(n * n, dtype=torch.bfloat16), torch.empty(0, dtype=torch.bfloat16), torch.ones(n)
    return Case(lambda: launch(c, a, shuffled, scales, scales, none, n, n), c, preshuffle_gemm.reference(a, b))


def _batched_gemm(batches: int, m: int, n: int, k: int) -> Case:
    a, b = torch.randn(batches, m, k).bfloat16(), torch.randn(batches, n, k).bfloat16()
    c = torch.zeros(batches, m, n).bfloat16()
    return Case(lambda: plain.product(a, b, c), c, a.float() @ b.float().mT)


def _attention(heads: int, kv_heads: int, length: int, dtype: str, *, causal: bool) -> Case:
    launch = flash_attn_generic.build_flash_attn_func_module(
        heads, 64, causal=causal, num_kv_heads=kv_heads, dtype_str=dtype
    )
    kind = {"f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    q, k, v = (torch.randn(1, length, count, 64).to(kind) for count in (heads, kv_heads, kv_heads))
    o = torch.zeros_like(q)
    expected = flash_attn_generic.reference(q, k, v, causal=causal)
    return Case(lambda: launch(q.flatten(), k.flatten(), v.flatten(), o.view(-1), 1, length), o, expected)


CASES: dict[str, Callable[[], Case]] = {
    "copy of 32 MiB": lambda: _copy(8_388_608),
    "addition of 8388611 f32": lambda: _add(8_388_611),
    "addition of 1048583 f32": lambda: _add(1_048_583),
    "transpose f16 2048 x 2048": lambda: _transpose(2048, 2048),
    "gather of 4194307 f32": lambda: _gather(8_388_608, 4_194_307, 104_729, 17),
    "atomic additions of 131072 f32 to 256": lambda: _add_to_buckets(131_072, 256),
    "softmax f16 64 x 4096": lambda: _softmax(64, 4096),
    "softmax f16 64 x 4097": lambda: _softmax(64, 4097),
    "RMS norm bf16 128 x 4096": lambda: _rmsnorm(128, 4096),
    "RMS norm bf16 128 x 2880": lambda: _rmsnorm(128, 2880),
    "GEMM f16 512 x 512 x 512": lambda: _gemm(512, 512, "fp16", 16),
    "GEMM bf16 256 x 256 x 512": lambda: _gemm(256, 512, "bf16", 16),
    "GEMM bf16 250 x 250 x 510": lambda: _batched_gemm(1, 250, 250, 510),
    "GEMM bf16 16 x 256 x 77 x 160": lambda: _batched_gemm(16, 256, 77, 160),
    "GEMM fp8 128 x 128 x 128": lambda: _gemm(128, 128, "fp8", 8),
    "attention f16 8 x 128 x 64": lambda: _attention(8, 8, 128, "f16", causal=False),
    "attention bf16 64 over 8 x 128 x 64": lambda: _attention(64, 8, 128, "bf16", causal=True),
}


def run() -> Iterator[tuple[str, float, str]]:
    """Name, value and unit of each row: every case on one thread, and on as many as there are cores.

    Raises AssertionError for a case with a wrong result.
    """
    with env.replaced({"FLYDSL_GPU_ARCH": _ARCH}):
        for name, make in CASES.items():
            torch.manual_seed(0)
            case = make()
            with counting() as counted:
                case.launch()
            case.check()
            instructions = sum(one.statistics.wave_instructions for one in counted.launches)
            for threads, text in (("1", "1 thread"), ("", "all threads")):
                with env.replaced({"FLYDSL_SIMULATOR_THREADS": threads} if threads else {}):
                    yield f"AMD's {name}, {text}", instructions / _quickest(case.launch) / 1e6, "M/s"


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
