"""Choosing compile-time arguments by trying them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import flydsl
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.autotune import Autotuner, Config, do_bench
from flydsl.errors import ArgumentError, LaunchError
from flydsl.utils import env


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


def test_tensors_with_a_layout_of_their_own_are_reset_and_restored() -> None:
    a = torch.zeros(64)
    tuned(restore_value=["A"])(flyc.from_dlpack(a), 64)
    assert torch.equal(a, torch.ones(64))
    tuned(reset_to_zero=["A"])(flyc.from_dlpack(a), 64)
    assert torch.equal(a, torch.ones(64))


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
    with pytest.raises(ArgumentError, match=r"must be a list of flydsl\.Config, got"):
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


def by_threads(seen: list[Any]) -> Callable[..., float]:
    """A benchmark that calls once and takes the number of threads as the time."""

    def bench(call: Any, warmup: int, rep: int) -> float:
        call()
        seen.append(call.args[0].kwargs["threads"])
        return float(seen[-1])

    return bench


def test_configurations_and_a_choice_that_depend_on_the_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    launch = tuned(
        key=["n"],
        configs=lambda A, n: [Config(threads=64), Config(threads=n)],
        default=lambda A, n: Config(threads=192),
        do_bench=by_threads(seen),
    )
    assert launch.resolve_config(torch.zeros(32), 32).kwargs == {"threads": 192}
    assert seen == []
    monkeypatch.setenv("FLYDSL_AUTOTUNE", "1")
    a = torch.zeros(128)
    assert launch.resolve_config(a, n=128).kwargs == {"threads": 64}
    assert seen == [64, 128]


def test_hooks_stand_around_the_launches_of_trials() -> None:
    events: list[Any] = []
    launch = tuned(
        restore_value=["A"],
        pre_hook=lambda given: events.append(("before", given["threads"], given["A"].sum().item())),
        post_hook=lambda given: events.append(("after", given["threads"], given["A"].sum().item())),
        do_bench=by_threads([]),
    )
    a = torch.zeros(10)
    launch(a, 10)
    assert events == [("before", 64, 0), ("after", 64, 10), ("before", 256, 0), ("after", 256, 10)]
    assert a.sum() == 10


def test_a_configuration_that_is_not_valid_cannot_win() -> None:
    @contextlib.contextmanager
    def is_right(given: dict[str, Any]) -> Iterator[None]:
        yield
        assert given["A"].sum() == 10
        assert given["threads"] != 64, "of 64 threads"

    launch = tuned(restore_value=["A"], validate_hook=is_right, do_bench=by_threads([]))
    assert launch.resolve_config(torch.zeros(10), 10).kwargs["threads"] == 256
    ((_, failures),) = launch.failures.items()
    assert "of 64 threads" in str(failures[0][1])


def test_a_function_selects_among_what_was_measured() -> None:
    launch = tuned(restore_value=["A"], select_config=lambda pairs: max(pairs, key=lambda p: p[1]))
    launch.bench = by_threads([])
    assert launch.resolve_config(torch.zeros(10), 10).kwargs["threads"] == 256
    other = tuned(select_config=lambda pairs: (Config(threads=1), 0.0), do_bench=by_threads([]))
    with pytest.raises(ArgumentError, match="one of the pairs"):
        other(torch.zeros(10), 10)


def test_a_choice_is_kept_in_a_file_for_other_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLYDSL_AUTOTUNE_CONFIG_DIR", str(tmp_path))
    seen: list[Any] = []
    options: dict[str, Any] = {"key": ["n"], "artifact_name": "add", "do_bench": by_threads(seen)}
    tuned(**options)(torch.zeros(10), 10)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("FLYDSL_AUTOTUNE", "1")
    tuned(**options)(torch.zeros(10), 10)
    (file,) = tmp_path.iterdir()
    record = json.loads(file.read_text())
    assert record["identity"]["key"] == {"n": 10}
    assert record["identity"]["device"]["arch"] == "gfx942"
    assert record["config"] == {"threads": 64}
    assert env.autotune.config_dir == str(tmp_path)

    monkeypatch.delenv("FLYDSL_AUTOTUNE")
    file.write_text(file.read_text().replace('"threads": 64', '"threads": 128'))
    before = list(seen)
    assert tuned(**options).resolve_config(torch.zeros(10), 10).kwargs == {"threads": 128}
    assert seen == before
    tuned(**options)(torch.zeros(20), 20)
    assert seen == [*before, 64, 256]
    file.write_text("{")
    with pytest.warns(UserWarning, match="chosen anew"):
        assert tuned(**options).resolve_config(torch.zeros(10), 10).kwargs == {"threads": 64}


def test_what_does_not_fit_into_a_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("", "a/b", "..", "x" * 65):
        with pytest.raises(ArgumentError, match="artifact_name"):
            tuned(artifact_name=name)
    monkeypatch.setenv("FLYDSL_AUTOTUNE_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("FLYDSL_AUTOTUNE", "1")
    hooked = tuned(
        artifact_name="add", configs=[Config(threads=64, pre_hook=lambda given: None)], do_bench=by_threads([])
    )
    with pytest.raises(ArgumentError, match="does not fit into add-"):
        hooked(torch.zeros(10), 10)


def test_quantiles_of_a_benchmark() -> None:
    a = torch.zeros(64)
    times = do_bench(lambda: add(a, 64, 64), quantiles=[0.2, 0.5])
    assert times == [do_bench(lambda: add(a, 64, 64))] * 2
