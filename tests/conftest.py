"""The marks and fixtures that all tests share."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent
# Sweeps over many kernels, targets, formats, layouts or programs, tests that start a browser, a shell, a cluster or
# another compiler each, and those that load Jupyter's server. `make fast` does not even import these.
SLOW = [
    HERE / place
    for place in (
        "browser",
        "documents",
        "kernels",
        "workbench",
        "arch/test_occupancy.py",
        "atoms/test_mfma.py",
        "atoms/test_wmma.py",
        "binary/test_clang.py",
        "codegen/test_agreement.py",
        "codegen/test_code_object.py",
        "codegen/test_inline_assembly.py",
        "codegen/test_llvm_bugs.py",
        "codegen/test_llvm_process.py",
        "codegen/test_occupancy_is_llvms.py",
        "compiler/test_artifact_cache.py",
        "compiler/test_custom_op.py",
        "compiler/test_inline_assembly.py",
        "compiler/test_layout_readings.py",
        "compiler/test_printf.py",
        "compiler/test_random_programs.py",
        "expr/rocdl/test_async_copy.py",
        "expr/memory/test_atomics.py",
        "expr/test_buffer_copies.py",
        "expr/numbers/test_conversions.py",
        "expr/test_coop.py",
        "expr/numbers/test_operators.py",
        "expr/atoms/test_scaled_gemm.py",
        "expr/memory/test_shared_allocator.py",
        "expr/threads/test_shuffle.py",
        "expr/memory/test_smem_allocator.py",
        "expr/memory/test_struct_values.py",
        "expr/rocdl/test_transposing_copies.py",
        "expr/numbers/test_vectors.py",
        "fuzz/test_fuzz.py",
        "layout/test_admission.py",
        "layout/test_laws.py",
        "layout/test_readings.py",
        "mlir_compat/test_kernels.py",
        "mlir_compat/test_modules_by_hand.py",
        "mlir_compat/test_values.py",
        "passes/test_fly_promote_regmem_to_vectorssa.py",
        "passes/to_rocdl",
        "runtime/test_ranks.py",
        "runtime/test_shared_memory.py",
        "simulator/isa/test_cdna4.py",
        "simulator/isa/test_gfx1250.py",
        "simulator/isa/test_llvm_operations.py",
        "simulator/isa/test_matrix.py",
        "simulator/isa/test_rdna_lanes.py",
        "simulator/isa/test_wmma.py",
        "simulator/lockstep/checked/test_races.py",
        "simulator/native/test_agreement.py",
        "simulator/native/test_random_programs.py",
        "simulator/native/test_run_ahead.py",
        "simulator/memory/test_allocations.py",
        "simulator/test_compiled_kernels.py",
        "simulator/test_differential.py",
        "simulator/test_differential_cdna5.py",
        "simulator/test_differential_memory.py",
        "simulator/test_differential_rdna.py",
        "simulator/decoding/test_many_registers.py",
        "simulator/test_tiles_and_clusters.py",
        "simulator/timing/test_order.py",
        "simulator/timing/test_peaks.py",
        "sweeps/test_dask.py",
        "sweeps/test_workers.py",
        "test_lab.py",
        "test_readme.py",
        "test_wheel.py",
    )
]
assert all(place.exists() for place in SLOW)


collect_ignore = ["benchmarks"]  # no tests, and imports that take seconds


def pytest_configure() -> None:
    """Take Ctrl-C, which a shell has its background jobs ignore: several tests send one.

    Where several processes run tests, each takes one core: LLVM makes object and listing in one process, which takes
    less than two, and a launch has one thread. Tests of threads say how many.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.environ.setdefault("FLYDSL_SIMULATOR_THREADS", "1")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whether `make fast` need not even import a file."""
    return True if config.option.markexpr == "not slow" and collection_path in SLOW else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark slow tests, which `make fast` leaves out, and put their files first: the last ones to run are short, so no
    process is left with a long one while the others have nothing to do. Leave to the sweep what is its."""
    for_the_sweep = left_to_the_sweep(items)
    for item in for_the_sweep:
        item.add_marker(pytest.mark.sweep)
    if "sweep" not in config.option.markexpr:
        config.hook.pytest_deselected(items=for_the_sweep)
        items[:] = [item for item in items if not item.get_closest_marker("sweep")]
    draw_the_same_examples()
    in_slow = {path for path in {item.path for item in items} if any(path.is_relative_to(place) for place in SLOW)}
    for item in items:
        if item.path in in_slow:
            item.add_marker(pytest.mark.slow)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def draw_the_same_examples() -> None:
    """Have Hypothesis draw no constants of this project's sources: it would read all that are imported, which takes
    seconds, and draw others with every change and with every other test of the process."""
    if "hypothesis" in sys.modules:
        from hypothesis.internal.conjecture import providers

        providers.is_local_module_file = lambda path: False


def left_to_the_sweep(items: list[pytest.Item]) -> list[pytest.Item]:
    """Of tests that are marked `diagonal(n)` the combinations of parameters whose numbers do not add up to a multiple
    of n. Each value of a parameter stays, with a part of those of the others. A test that is asked for alone stays."""
    tests: dict[Any, list[Any]] = {}
    for item in items:
        if item.get_closest_marker("diagonal"):
            tests.setdefault((item.path, item.originalname), []).append(item)  # type: ignore[attr-defined]
    left = []
    for cases in tests.values():
        (step,) = cases[0].get_closest_marker("diagonal").args
        names = cases[0].callspec.indices  # parameters that are given together have the same numbers
        columns = {tuple(case.callspec.indices[name] for case in cases) for name in names}
        numbers = map(sum, zip(*columns, strict=True))
        left += [case for case, number in zip(cases, numbers, strict=True) if number % step and len(cases) > 1]
    return left


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Have each test draw the same random numbers, whichever tests this process ran before."""
    random.seed(0)
    np.random.seed(0)
    if "torch" in sys.modules:
        # torch.manual_seed would also look for GPUs, which takes half a millisecond.
        sys.modules["torch"].default_generator.manual_seed(0)


@pytest.fixture(autouse=True)
def without_artifacts_on_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each test trace and compile, whatever an earlier run left on disk, unless it is about that."""
    if not request.node.get_closest_marker("artifacts_on_disk"):
        monkeypatch.setattr("flydsl.compiler.jit_function.place_of", lambda *_: None)


@pytest.fixture(scope="session", autouse=True)
def cache_of_zig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give zig, by which some tests build libraries, a folder to keep its runtime in where there is no home."""
    with pytest.MonkeyPatch.context() as patch:
        if not os.access(os.environ.get("HOME", ""), os.W_OK):
            patch.setenv("ZIG_GLOBAL_CACHE_DIR", str(tmp_path_factory.mktemp("zig")))
        yield


def pytest_collection_finish() -> None:
    """Leave modules and tests, which live as long as the process, out of every later garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shell() -> Iterator[Any]:
    """The shell of this process. Whoever cleared it would have other tests print what they display."""
    from IPython.core.interactiveshell import InteractiveShell  # takes a third of a second
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    yield InteractiveShell.instance(config=config)
    InteractiveShell.clear_instance()
