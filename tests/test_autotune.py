"""Choosing compile-time arguments by trying them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.autotune import Autotuner, Config, do_bench
from flydsl.errors import ArgumentError, LaunchError


@flyc.kernel
def add_kernel(A: fx.Tensor, n: fx.Int32, vector: fx.Constexpr[int], threads: fx.Constexpr[int]):
    start = (fx.block_idx.x * threads + fx.thread_idx.x) * vector
    for i in fx.range_constexpr(vector):
        if start + i < n:
            A[start + i] = A[start + i] + 1


@flyc.jit
def add(A: fx.Tensor, n: fx.Int32, threads: fx.Constexpr[int], vector: fx.Constexpr[int] = 1):
    add_kernel(A, n, vector, threads).launch(grid=(n + threads * vector - 1) // (threads * vector), block=threads)


def tuned(**options: Any) -> Autotuner:
    configs = options.pop("configs", [Config(threads=64), Config(threads=256, vector=2)])
    return flydsl.autotune(configs=configs, **options)(add)


def timed(times: dict[int, float], calls: list[int]) -> Callable[..., float]:
    """A benchmark with times of our own, by the number of threads; it notes the configurations that it runs."""

    def bench(call: Any, warmup: int, rep: int) -> float:
        call()
        calls.append(call.args[0].kwargs["threads"])
        return times[calls[-1]]

    return bench


def test_the_fastest_runs_and_is_kept_for_its_key() -> None:
    calls: list[int] = []
    launch = tuned(key=["n"], restore_value=["A"], do_bench=timed({64: 2.0, 256: 1.0}, calls))
    a = torch.zeros(100)
    launch(a, 100)
    assert torch.equal(a, torch.ones(100))
    launch(a, n=100)
    launch(a, 50)
    assert torch.equal(a, torch.cat([torch.full((50,), 3.0), torch.full((50,), 2.0)]))
    assert calls == [64, 256] * 2
    launch(a.int(), 100)
    assert calls == [64, 256] * 3
    assert {config.kwargs["threads"] for config in launch.cache.values()} == {256}


def test_configurations_are_needed() -> None:
    with pytest.raises(ArgumentError, match=r"without configurations\n(?s:.*)  hint: @flydsl.autotune\(configs=\["):
        flydsl.autotune(add)  # type: ignore[arg-type]


def test_the_simulator_is_estimated() -> None:
    """Four elements per thread side by side touch every line of memory in several accesses, one in a single one."""
    launch = tuned(configs=[Config(threads=64, vector=4), Config(threads=64)], restore_value=["A"])
    a = torch.zeros(4096)
    launch(a, 4096)
    assert torch.equal(a, torch.ones(4096))
    assert [config.kwargs for config in launch.cache.values()] == [{"threads": 64}]
    assert do_bench(lambda: add(a, 4096, 64)) > 0
    with pytest.raises(ArgumentError, match="launched nothing"):
        do_bench(lambda: None)


def test_tensors_are_reset_and_hooks_called() -> None:
    seen: list[int] = []
    launch = tuned(
        configs=[Config(threads=64, pre_hook=lambda arguments: seen.append(arguments["n"]))], reset_to_zero=["A"]
    )
    a = torch.full((64,), 9.0)
    launch(a, 64)
    launch(a, 64)
    assert torch.equal(a, torch.ones(64))
    assert seen == [64] * 3


def test_configurations_that_do_not_compile() -> None:
    launch = tuned(configs=[Config(threads=2048), Config(threads=64)], restore_value=["A"])
    a = torch.zeros(64)
    launch(a, 64)
    assert torch.equal(a, torch.ones(64))
    ((config, error),) = next(iter(launch.failures.values()))
    assert config.kwargs == {"threads": 2048}
    assert "takes at most 1024" in str(error)
    with pytest.raises(LaunchError, match="takes at most 1024"):
        tuned(configs=[Config(threads=2048)])(a, 64)
    with pytest.raises(ArgumentError, match="no configuration is left"):
        tuned(prune_configs_by=lambda configs, arguments: [])(a, 64)


def test_wrong_use() -> None:
    with pytest.raises(ArgumentError, match="it has no parameter width"):
        tuned(configs=[Config(width=3)])
    with pytest.raises(ArgumentError, match="configs="):
        tuned(configs=[])
    with pytest.raises(ArgumentError, match="threads: autotune chooses it"):
        tuned()(torch.zeros(4), 4, threads=64)


def test_compiler_hints_of_a_configuration() -> None:
    seen: list[str] = []

    def bench(call: Callable[[], Any], warmup: int, rep: int) -> float:
        call()
        seen.append(flyc.compile(scale, torch.zeros(64), 64).code.llvm_ir)
        return float(len(seen))

    @flyc.kernel
    def kernel(A: fx.Tensor, threads: fx.Constexpr[int]):
        A[fx.thread_idx.x] = threads

    @flyc.jit
    def scale(A: fx.Tensor, threads: fx.Constexpr[int]):
        kernel(A, threads).launch(grid=1, block=threads)

    configs = [Config(threads=64, waves_per_eu=2, maxnreg=48), Config(threads=64)]
    assert configs[0].to_dict() == {"threads": 64, "waves_per_eu": 2, "maxnreg": 48}
    tuned = Autotuner(scale, configs, do_bench_fn=bench)
    tuned(torch.zeros(64))
    marked = ['"amdgpu-waves-per-eu"="2"' in flyc.compile[hints](scale, torch.zeros(64), 64).code.llvm_ir
              for hints in (configs[0].compiler_opts, {})]  # fmt: skip
    assert marked == [True, False]
    assert next(iter(tuned.cache.values())) is configs[0]


def test_a_default_where_nothing_compiles() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, threads: fx.Constexpr[int]):
        A[fx.thread_idx.x] = threads

    @flyc.jit
    def fill(A: fx.Tensor, threads: fx.Constexpr[int]):
        kernel(A, threads).launch(grid=1, block=threads)

    a = torch.zeros(64)
    flydsl.autotune([Config(threads=4096)], default=Config(threads=64))(fill)(a)
    assert (a == 64).all()
