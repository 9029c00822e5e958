"""What the workbench's views of a large kernel cost: an unrolled one of some 3,400 operations as traced."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import range_constexpr
from workbench.compilation_explorer import Explorer
from workbench.machine_code.listing import isa_html
from workbench.stages.alignment import parse
from workbench.stages.diff import Diff
from workbench.stages.levels import levels
from workbench.stages.pipeline import pipeline_html

STEPS = 200
REPEATS = 3


@flyc.kernel
def unrolled_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, steps: fx.Constexpr[int]) -> None:
    thread = fx.block_idx.x * 64 + fx.thread_idx.x
    for i in range_constexpr(steps):
        x = A[thread + i * 64] * fx.Float32(2 + i)
        y = B[thread + i * 128] + x
        C[thread + i * 64] = y * x + x


@flyc.jit
def unrolled(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, steps: fx.Constexpr[int]) -> None:
    unrolled_kernel(A, B, C, steps).launch(grid=1, block=64)


def compiled() -> Any:
    """A pipeline of which no text has been made; nothing is remembered of earlier ones."""
    forget()
    return unrolled.lower(*(torch.zeros(128 * STEPS) for _ in range(3)), STEPS).run()


def forget() -> None:
    """Empty the caches of the diff."""
    Diff.between.cache_clear()
    parse.cache_clear()


def run() -> Iterator[tuple[str, float, str, float | None]]:
    """Name, value, unit, target."""
    yield "pipeline view of 3,400 operations", fastest(pipeline_html, compiled), "s", 1.0
    yield "opening its explorer", fastest(Explorer, compiled), "s", 1.0
    yield "largest diff of a stage, with its listing", max(diffs()), "s", 0.2
    yield "ISA view", fastest(isa_html, lambda: compiled().artifact), "s", None
    yield "every level with its source lines", fastest(levels, compiled), "s", None
    pipeline = compiled()
    size = len(pipeline_html(pipeline)) + len(isa_html(pipeline.artifact))
    yield "pipeline and ISA views as saved", size / 1e6, "MB", 0.4


def diffs() -> Iterator[float]:
    """The seconds that the diff of each stage takes, once its two texts are there."""
    pipeline = compiled()
    texts = [pipeline.text_after(i) for i in range(len(pipeline) + 1)]
    for before, after in pairwise(texts):

        def diff(_: Any, before: str = before, after: str = after) -> str:
            return Diff.between(before, after, "mlir").html(max_lines=3000)

        yield fastest(diff, forget)


def fastest(measured: Callable[[Any], Any], prepare: Callable[[], Any]) -> float:
    """Seconds of the fastest of several runs, each on something new."""
    times = []
    for _ in range(REPEATS):
        value = prepare()
        start = time.perf_counter()
        measured(value)
        times.append(time.perf_counter() - start)
    return min(times)
