"""`torch.cuda.graph`: the launches and operators of a block are kept, and `replay` makes them again.

A GPU only records while it captures. Here the block runs as well, so its results are there before the first replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from flydsl.gpu.memory import MEMORY
from flydsl.gpu.refusals import refusing
from flydsl.gpu.tensor import GpuTensor


class CUDAGraph:
    """The work that was captured, in order. It keeps the tensors that it works on."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._work: list[Callable[[], Any]] = []

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        if MEMORY.captured is not None:
            raise RuntimeError("a graph is being captured already")
        self._work.clear()
        MEMORY.captured = self._work

    def capture_end(self) -> None:
        MEMORY.captured = None

    def replay(self) -> None:
        """Do the work again, on what is in memory now."""
        for work in self._work:
            work()

    def reset(self) -> None:
        self._work.clear()

    def instantiate(self) -> None:
        pass

    debug_dump = enable_debug_mode = refusing(
        "torch.cuda.CUDAGraph.debug_dump", "flydsl.gpu.report() lists the launches"
    )

    def pool(self) -> tuple[int, int]:
        return (0, id(self))


@contextmanager
def graph(
    cuda_graph: CUDAGraph, pool: Any = None, stream: Any = None, capture_error_mode: str = "global"
) -> Iterator[None]:
    """Capture the work of the `with` block."""
    cuda_graph.capture_begin(pool)
    try:
        yield
    finally:
        cuda_graph.capture_end()


def capture_operator(func: Any, args: Any, kwargs: Any, found: Any) -> None:
    """Keep an operator that has run: to be repeated into the same results."""
    if MEMORY.captured is not None:
        results = [found] if isinstance(found, torch.Tensor) else [*found] if isinstance(found, list | tuple) else []
        MEMORY.captured.append(lambda: _repeat(func, args, kwargs, results))


def _repeat(func: Any, args: Any, kwargs: Any, results: list[Any]) -> None:
    with torch._C._AutoDispatchBelowAutograd():  # where it was captured
        again = func(*args, **kwargs)
    for old, new in zip(results, again if isinstance(again, list | tuple) else [again], strict=True):
        if isinstance(old, GpuTensor) and new.data_ptr() != old.data_ptr():
            old.copy_(new)
