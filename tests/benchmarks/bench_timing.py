"""The model of time: how far off it is, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch

from flydsl import env
from flydsl.simulator import counting, tracing
from kernels.preshuffle_gemm import compile_preshuffle_gemm_a8
from tests.benchmarks import timing_accuracy

_EVERY = 24
"""Of the measured rows; `python -m tests.benchmarks.timing_accuracy` takes all; and `hgemm` names others."""
_EVERY_MIXTURE = 60
"""The measured mixtures of experts, whose kernels take seconds each."""


def run() -> Iterator[tuple[str, float, str, float | None]]:
    """Name, value, unit and target of each row."""
    pairs = list(timing_accuracy.compared("preshuffle_gemm", _EVERY))
    mixtures = list(timing_accuracy.compared("mixed_moe", _EVERY_MIXTURE, 4))
    with env.replaced(timing_accuracy.GFX950):
        yield "model of time, seconds for a GEMM of 4096 cubed", _gemm_seconds(4096), "s", 20
        yield "tracing over counting, on the same workgroups", _tracing_over_counting(), "", 10
    long = [pair for pair in pairs if pair.kind != "short"]
    yield "model of time, 1 - Spearman over measured GEMMs", 1 - timing_accuracy.rank_correlation(pairs), "", 0.05
    yield "model of time, median error over 10 us", 100 * timing_accuracy.median_error(long), "%", 25
    yield "model of time, median error of mixtures of experts", 100 * timing_accuracy.median_error(mixtures), "%", 25


def _gemm(n: int) -> tuple[Any, tuple[Any, ...]]:
    launch = compile_preshuffle_gemm_a8(K=n, tile_m=128, tile_n=128, tile_k=128, in_dtype="fp8", out_dtype="bf16")
    a, b = (torch.zeros(n * n, dtype=torch.uint8).view(torch.float8_e4m3fn) for _ in range(2))
    c, bias = torch.empty(n * n, dtype=torch.bfloat16), torch.empty(0, dtype=torch.bfloat16)
    return launch, (c, a, b, torch.ones(n), torch.ones(n), bias, n, n)


def _gemm_seconds(n: int) -> float:
    """To compile and time a GEMM."""
    start = time.perf_counter()
    launch, arguments = _gemm(n)
    with tracing():
        launch(*arguments)
    return time.perf_counter() - start


def _tracing_over_counting() -> float:
    """For a grid of which all workgroups are replayed."""
    launch, arguments = _gemm(1024)
    seconds = []
    for session in (counting, tracing):
        with session():
            launch(*arguments)
            start = time.perf_counter()
            launch(*arguments)
            seconds.append(time.perf_counter() - start)
    return seconds[1] / seconds[0]
