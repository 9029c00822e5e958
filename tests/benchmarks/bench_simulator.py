"""Speed of the simulator: memory, matrix cores, cross-lane work, and the first launch on a machine.

Outputs are poisoned before every repetition and verified after it. Times are wall-clock, of `launch` alone.
"""

from __future__ import annotations

import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flydsl.arch import GFX942
from flydsl.codegen import CodeObject, compile_llvm_ir
from flydsl.simulator import LaunchStatistics, Memory, Program, counting, launch
from flydsl.simulator.arrays import Array
from tests.benchmarks import simulated_kernels

ROOT = Path(__file__).parents[2]

SOFTMAX_ROWS, SOFTMAX_COLUMNS = 256, 1000
EMULATORS_PER_SECOND = 80_000
"""Wave-instructions per second of the fastest published emulator in Python."""


@dataclass(frozen=True)
class Workload:
    """A kernel with its operands. `verify` raises AssertionError for a wrong output."""

    code: CodeObject
    kernel: str
    inputs: Sequence[Array]
    output: Array
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    verify: Callable[[], None]

    def run(self, program: Program) -> tuple[float, LaunchStatistics]:
        """Seconds of one launch, and what it executed."""
        self.output.view(np.uint8)[...] = 0xFF
        memory = Memory()
        pointers = [memory.map_array(a, name=f"p{i}") for i, a in enumerate((*self.inputs, self.output))]
        kernarg = struct.pack(f"<{len(pointers)}Q", *pointers)
        start = time.perf_counter()
        executed = launch(program, self.kernel, grid=self.grid, block=self.block, kernarg=kernarg, memory=memory)
        seconds = time.perf_counter() - start
        self.verify()
        return seconds, executed


def gemm(n: int) -> Workload:
    """Small whole numbers, so that the result is exact in any order of accumulation."""
    rng = np.random.default_rng(n)
    a, b = (rng.integers(-4, 5, (n, n)).astype(np.float16) for _ in range(2))
    c = np.empty((n, n), np.float32)
    expected = a.astype(np.float32) @ b.astype(np.float32).T
    tiles = n // simulated_kernels.TILE
    code = compile_llvm_ir(simulated_kernels.gemm(n), GFX942)
    return Workload(
        code, "gemm", (a, b), c, (tiles, tiles, 1), (256, 1, 1), lambda: np.testing.assert_array_equal(c, expected)
    )


def softmax() -> Workload:
    x = np.random.default_rng(0).standard_normal((SOFTMAX_ROWS, SOFTMAX_COLUMNS)).astype(np.float32)
    y = np.empty_like(x)
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    expected = powers / powers.sum(1, keepdims=True)
    code = compile_llvm_ir(simulated_kernels.softmax(SOFTMAX_COLUMNS), GFX942)
    return Workload(
        code,
        "softmax",
        (x,),
        y,
        (SOFTMAX_ROWS, 1, 1),
        (64, 1, 1),
        lambda: np.testing.assert_allclose(y, expected, rtol=2e-6),
    )


def steady(workload: Workload, repetitions: int) -> tuple[float, LaunchStatistics]:
    """The median of several launches after a first one."""
    program = Program.load(workload.code.hsaco, workload.code.listing)
    workload.run(program)
    runs = [workload.run(program) for _ in range(repetitions)]
    return statistics.median(seconds for seconds, _ in runs), runs[0][1]


def vector_add(n: int) -> Workload:
    a, b = (np.random.default_rng(seed).standard_normal(n).astype(np.float32) for seed in (0, 1))
    c = np.empty(n, np.float32)
    code = compile_llvm_ir(simulated_kernels.vector_add(), GFX942)
    blocks = n // 256
    return Workload(
        code, "vector_add", (a, b), c, (blocks, 1, 1), (256, 1, 1), lambda: np.testing.assert_array_equal(c, a + b)
    )


def counting_factor(workload: Workload, repetitions: int = 15) -> float:
    """How many times longer a launch takes with counters: the quickest of each kind, taken in turns."""
    program = Program.load(workload.code.hsaco, workload.code.listing)
    plain, counted = [], []
    for _ in range(repetitions + 1):
        plain.append(workload.run(program)[0])
        with counting():
            counted.append(workload.run(program)[0])
    return min(counted[1:]) / min(plain[1:])


_FIRST_LAUNCH = """
import pathlib, struct, sys, time
import numpy as np
from flydsl.simulator import Memory, Program, launch
folder, n = pathlib.Path(sys.argv[1]), int(sys.argv[2])
a, b, expected = (np.load(folder / f"{name}.npy") for name in ("a", "b", "expected"))
c, memory = np.full((n, n), np.nan, "f4"), Memory()
kernarg = struct.pack("<3Q", *(memory.map_array(x, name=name) for x, name in ((a, "a"), (b, "b"), (c, "c"))))
start = time.perf_counter()
program = Program.load((folder / "k.hsaco").read_bytes(), (folder / "k.s").read_text())
launch(program, "gemm", grid=(n // 64, n // 64, 1), block=(256, 1, 1), kernarg=kernarg, memory=memory)
print(time.perf_counter() - start)
assert (c == expected).all()
"""


def first_launch(n: int, repetitions: int = 3) -> float:
    """The median time to load and launch a GEMM in a fresh process that finds no cache."""
    workload = gemm(n)
    a, b = workload.inputs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "a.npy", a)
        np.save(folder / "b.npy", b)
        np.save(folder / "expected.npy", a.astype(np.float32) @ b.astype(np.float32).T)
        (folder / "k.hsaco").write_bytes(workload.code.hsaco)
        (folder / "k.s").write_text(workload.code.listing)
        seconds = [_in_fresh_process(folder, n, i) for i in range(repetitions)]
    return statistics.median(seconds)


def _in_fresh_process(folder: Path, n: int, run: int) -> float:
    environment = {**os.environ, "FLYDSL_RUNTIME_CACHE_DIR": str(folder / f"cache{run}"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", _FIRST_LAUNCH, str(folder), str(n)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(result.stdout)


def run() -> list[tuple[str, float, str, float | None]]:
    """Name, value, unit and target of every measurement."""
    small, softmax_seconds = steady(gemm(512), 15), steady(softmax(), 15)[0]
    nanoseconds = small[0] / small[1].wave_instructions * 1e9
    return [
        ("simulator, first launch of a 512 GEMM, cold cache", first_launch(512), "s", 0.3),
        ("simulator, f16 GEMM 512 x 512 x 512", small[0] * 1e3, "ms", 40),
        ("simulator, f16 GEMM 2048 x 2048 x 2048", steady(gemm(2048), 3)[0], "s", 3),
        ("simulator, softmax 256 x 1000", softmax_seconds * 1e3, "ms", 8),
        ("simulator, counters on, GEMM 512: times slower", counting_factor(gemm(512)), "x", 1.5),
        ("simulator, counters on, softmax: times slower", counting_factor(softmax()), "x", 1.5),
        ("simulator, counters on, vector add: times slower", counting_factor(vector_add(1 << 20)), "x", 1.5),
        # A fiftieth of what the fastest emulator in Python takes.
        ("simulator, time per wave-instruction of the GEMM", nanoseconds, "ns", 1e9 / EMULATORS_PER_SECOND / 50),
    ]


if __name__ == "__main__":
    for name, value, unit, target in run():
        print(f"{name:52} {value:10.3f} {unit:8} <= {target}")
