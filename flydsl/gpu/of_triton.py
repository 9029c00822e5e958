"""Triton while a GPU poses: its launches go to the simulator, and its benchmarks read the GPU's clock.

Triton is imported by the program, or not at all: what is changed in it is changed when its modules are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any
from weakref import WeakSet

import torch

from flydsl.gpu.import_hook import Replacements
from flydsl.gpu.streams import benchmark, time_ms
from flydsl.gpu.waiting import WAITING


def changes(replaced: Replacements) -> dict[str, Callable[[ModuleType], None]]:
    """The changes to Triton's modules."""

    def launch_on_simulator(module: Any) -> None:
        from flydsl import triton

        driver = triton.simulator_driver()
        replaced.replace(driver, "get_benchmarker", lambda: chosen_by)
        replaced.replace(module.driver, "_active", driver)

    def unload(module: Any) -> None:
        """Forget the kernels that were loaded: Triton would ask its driver to unload them, and then has no driver."""
        loaded: WeakSet[Any] = WeakSet()
        load = module.CompiledKernel._init_handles

        def load_and_keep(kernel: Any) -> None:
            load(kernel)
            loaded.add(kernel)

        def unload_all() -> None:
            for kernel in loaded:
                kernel.module = kernel.function = kernel._run = None

        replaced.replace(module.CompiledKernel, "_init_handles", load_and_keep)
        replaced.at_the_end(unload_all)

    def read_the_clock(module: Any) -> None:
        replaced.replace(module, "do_bench", do_bench)
        replaced.replace(module, "do_bench_cudagraph", do_bench)

    return {
        "triton.compiler.compiler": unload,
        "triton.runtime.driver": launch_on_simulator,
        "triton.testing": read_the_clock,
    }


def chosen_by(call: Callable[[], Any], *, quantiles: Sequence[float] | None = None, **options: Any) -> Any:
    """The benchmark of Triton's autotuner, which asks for no results: as often as there are quantiles."""
    count = len(WAITING)
    found = time_ms(call, is_trial=True)
    WAITING.discard_after(count)
    return found if quantiles is None else [found] * len(quantiles)


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
    with benchmark():
        fn()
    for tensor in grad_to_none or ():
        tensor.grad = None
    found = time_ms(fn)
    if quantiles is not None:
        return [found] * len(quantiles)
    return [found] if return_mode == "all" else found
