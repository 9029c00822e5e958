"""Triton while a GPU poses: its launches go to the simulator, and its benchmarks read the GPU's clock.

Triton is imported by the program, or not at all: what is changed in it is changed when its modules are loaded.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch

_missing = object()


class TritonHook(importlib.abc.MetaPathFinder):
    """Changes modules of Triton when they are imported, and at once those that are. `end` restores them."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []
        self._changes: dict[str, Callable[[ModuleType], None]] = {
            "triton.runtime.driver": self._launch_on_simulator,
            "triton.testing": self._read_the_clock,
        }

    def begin(self) -> None:
        sys.meta_path.insert(0, self)
        for name, change in self._changes.items():
            if name in sys.modules:
                change(sys.modules[name])

    def end(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for place, name, value in reversed(self._before):
            setattr(place, name, value)
        self._before.clear()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._changes:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_change(module: ModuleType) -> None:
                load(module)
                self._changes[fullname](module)

            spec.loader.exec_module = load_and_change  # type: ignore[method-assign]
        return spec

    def _launch_on_simulator(self, module: Any) -> None:
        from flydsl import triton

        self._replace(module.driver, "_active", triton.simulator_driver())

    def _read_the_clock(self, module: Any) -> None:
        self._replace(module, "do_bench", do_bench)
        self._replace(module, "do_bench_cudagraph", do_bench)

    def _replace(self, place: Any, name: str, value: Any) -> None:
        self._before.append((place, name, getattr(place, name)))
        setattr(place, name, value)


def do_bench(
    fn: Callable[[], Any],
    warmup: int = 25,
    rep: int = 100,
    grad_to_none: Sequence[torch.Tensor] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """`triton.testing.do_bench`: the milliseconds of a call on the GPU's clock, which do not vary. It is called twice:
    the first call may compile, or try variants."""
    fn()
    for tensor in grad_to_none or ():
        tensor.grad = None
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    fn()
    end.record()
    torch.cuda.synchronize()
    time_ms = start.elapsed_time(end)
    if quantiles is not None:
        return [time_ms] * len(quantiles)
    return [time_ms] if return_mode == "all" else time_ms
