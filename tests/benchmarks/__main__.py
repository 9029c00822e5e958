"""`make bench`: what the compiler, a warm call and the simulator cost. Prints a table and writes build/bench.json.

Every row has name, value, unit, target and whether the target is met; rows without a target are there to be watched.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WARM_CALLS = 2000
ELEMENTS = 1_000_000


@dataclass(frozen=True)
class Row:
    """One measurement. met: None where there is no target. target: the most that `value` may be."""

    name: str
    value: float
    unit: str
    target: float | None = None

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.value <= self.target

    def __str__(self) -> str:
        verdict = "" if self.target is None else f"<= {self.target:<6g} {'met' if self.met else 'MISSED'}"
        return f"{self.name:52} {self.value:10.3f} {self.unit:8} {verdict}".rstrip()


def examples() -> Any:
    """The vector adds that the tests of the kernels run."""
    sys.path.insert(0, str(ROOT / "tests" / "kernels"))
    import examples

    return examples


# --- in a fresh process ----------------------------------------------------------------------------------------------

_IMPORT = """
import torch, time
start = time.perf_counter()
import flydsl.compiler, flydsl.expr
print(time.perf_counter() - start)
"""
_FIRST_CALL = f"""
import sys, time
sys.path.insert(0, {str(ROOT / "tests" / "kernels")!r})
import examples, torch
A, B, C = examples.vectors(128, torch.float32)
start = time.perf_counter()
examples.vectorAdd(A, B, C, 128, 129)
print(time.perf_counter() - start)
assert torch.equal(C, A + B)
"""


_TILED_COPY = f"""
import sys, time
sys.path.insert(0, {str(ROOT / "tests" / "kernels")!r})
import examples, torch
A, B = torch.randn(24, 120), torch.zeros(24, 120)
start = time.perf_counter()
MEASURED
print(time.perf_counter() - start)
"""


def in_fresh_processes(program: str, times: int = 3, environment: Mapping[str, str] = os.environ) -> float:
    """The median of the seconds that a program prints."""
    command = [sys.executable, "-c", program]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
        for _ in range(times)
    ]
    return statistics.median(float(run.stdout) for run in runs)


def _example_02(method: str) -> str:
    return _TILED_COPY.replace("MEASURED", f"examples.tiledCopy.{method}(A, B)")


def start_up() -> list[Row]:
    compiled_before = os.environ | {"FLYDSL_RUNTIME_ENABLE_CACHE": "1"}
    in_fresh_processes(_example_02("__call__"), 1, compiled_before)
    return [
        Row("import of flydsl, after torch", in_fresh_processes(_IMPORT), "s", 0.5),
        Row("first call of the README's vector add", in_fresh_processes(_FIRST_CALL), "s", 0.25),
        Row("first trace of example 02", in_fresh_processes(_example_02("lower")) * 1e3, "ms", 60),
        Row("first call of example 02", in_fresh_processes(_example_02("__call__")), "s", 0.35),
        Row("the same, compiled before", in_fresh_processes(_example_02("__call__"), 3, compiled_before), "s"),
    ]


def documents_examples() -> list[Row]:
    """First calls of examples 03 and 04, and the share of each stage."""
    from tests.benchmarks import bench_examples

    rows = []
    for example in bench_examples.EXAMPLES:
        rows.append(Row(f"first call of {example.name}", bench_examples.first_call_s(example), "s", example.target_s))
        number = example.name.split(",")[0].removeprefix("example ")
        rows += [Row(f"{number} {name}"[:52], share, "%") for name, share in bench_examples.shares(example)]
    return rows


# --- in this process -------------------------------------------------------------------------------------------------


def stages() -> list[Row]:
    """The median time of each stage for the README's vector add."""
    import torch

    module = examples()
    A, B, C = module.vectors(4096, torch.float32)
    traces, runs = [], []
    for _ in range(5):
        start = time.perf_counter()
        pipeline = module.vectorAdd.lower(A, B, C, 4096, 4097)
        traces.append((time.perf_counter() - start) * 1e3)
        runs.append(pipeline.run())
    rows = [Row("trace", statistics.median(traces), "ms")]
    for stage in runs[0]:
        times = [run[stage.index].time_ms or 0.0 for run in runs]
        rows.append(Row(f"stage {stage.index:2} {', '.join(stage.passes)}"[:52], statistics.median(times), "ms"))
    return [*rows, Row("all stages", sum(row.value for row in rows[1:]), "ms")]


def warm_call() -> list[Row]:
    """A call whose signature is compiled, on a device that does nothing, and of a small kernel on the simulator."""
    import torch

    from flydsl.codegen import CodeObject
    from flydsl.runtime.device import use_device
    from flydsl.runtime.interface import Device, LoadedCode

    class Nothing(LoadedCode):
        def launch(self, *_: Any) -> None:
            """Does nothing."""

    class Null(Device):
        name = "null"

        def address(self, name: str, tensor: Any, session: Any) -> int:
            return int(tensor.data_ptr())

        def stream_handle(self, stream: Any) -> int:
            return 0

        def load(self, code: CodeObject) -> LoadedCode:
            return Nothing()

    module = examples()
    A, B, C = module.vectors(4096, torch.float32)
    with use_device(Null()):
        micros = best_of(5, lambda: module.vectorAdd(A, B, C, 4096, 4097), WARM_CALLS) * 1e6
    small = module.vectors(1024, torch.float32)
    small_micros = best_of(5, lambda: module.vectorAdd(*small, 1024, 1025), WARM_CALLS) * 1e6
    return [
        Row("warm call, on a device that does nothing", micros, "us", 10),
        Row("warm call, of 1024 elements on the simulator", small_micros, "us", 100),
    ]


def simulator() -> list[Row]:
    """A million elements on the simulator, once compiled, and the kernels of `bench_simulator`."""
    import torch

    from kernels.vector_add import vector_add
    from tests.benchmarks import bench_simulator

    module, rows = examples(), []
    A, B, C = module.vectors(ELEMENTS, torch.float32)
    calls: dict[str, Callable[[], Any]] = {
        "README": lambda: module.vectorAdd(A, B, C, ELEMENTS, ELEMENTS),
        "kernels/vector_add": lambda: vector_add(A, B, C),
    }
    for name, call in calls.items():
        median = median_of(15, call, lambda: C.fill_(float("nan")), lambda: torch.equal(C, A + B))
        rows.append(Row(f"simulator, {ELEMENTS} elements f32, {name}", median * 1e3, "ms", 12))
    return [*rows, _preshuffle_gemm(512), *(Row(*measured) for measured in bench_simulator.run())]


def _preshuffle_gemm(n: int) -> Row:
    """An f16 GEMM that the project compiles; whole numbers, so that its result is exact."""
    import torch

    from kernels.preshuffle_gemm_v2 import preshuffle_gemm, shuffle

    A, B = (torch.randint(-3, 4, (n, n)).half() for _ in range(2))
    shuffled, C, expected = shuffle(B), torch.empty(n, n, dtype=torch.float16), (A.float() @ B.float().T).half()
    median = median_of(
        15, lambda: preshuffle_gemm(A, shuffled, C), lambda: C.fill_(float("nan")), lambda: torch.equal(C, expected)
    )
    return Row(f"simulator, f16 GEMM {n} x {n} x {n}, preshuffle_gemm", median * 1e3, "ms", 40)


def emulators_suite() -> list[Row]:
    """The shapes of AMD's suites for its emulator."""
    from tests.benchmarks import bench_emulator

    return [Row(*measured) for measured in bench_emulator.run()]


def model_of_time() -> list[Row]:
    from tests.benchmarks import bench_timing

    return [Row(*measured) for measured in bench_timing.run()]


def layout_algebra() -> list[Row]:
    from tests.benchmarks import bench_layout

    results = bench_layout.run()
    rows = [Row(f"layout {result['name']}", result["ours_us"], "us") for result in results]
    ratio = bench_layout.summary(results)
    return rows if ratio is None else [*rows, Row("layout, time over the fastest other, median", 1 / ratio, "", 1 / 3)]


def layout_views() -> list[Row]:
    from tests.benchmarks import bench_layout_views

    return [Row(**result) for result in bench_layout_views.run()]


def in_the_browser() -> list[Row]:
    from tests.benchmarks import bench_browser

    return [Row(**result) for result in bench_browser.run()]


def compilation_views() -> list[Row]:
    """The workbench's views of a kernel of thousands of operations."""
    from tests.benchmarks import bench_views

    return [Row(name, value, unit, target) for name, value, unit, target in bench_views.run()]


def best_of(repeats: int, call: Callable[[], Any], number: int) -> float:
    """Seconds per call in the fastest of several repeats."""
    call()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(number):
            call()
        seconds.append((time.perf_counter() - start) / number)
    return min(seconds)


def median_of(repeats: int, call: Callable[[], Any], poison: Callable[[], Any], is_right: Callable[[], bool]) -> float:
    """Seconds per call, after a first one; the output is poisoned before every call and verified after it."""
    seconds = []
    for _ in range(repeats + 1):
        poison()
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
        assert is_right()
    return statistics.median(seconds[1:])


def main() -> None:
    """Measure, print and write."""
    os.environ["FLYDSL_RUNTIME_ENABLE_CACHE"] = "0"  # what is compiled anew each time is what is measured
    rows = [
        *start_up(),
        *documents_examples(),
        *stages(),
        *warm_call(),
        *simulator(),
        *emulators_suite(),
        *model_of_time(),
        *layout_algebra(),
        *layout_views(),
        *in_the_browser(),
        *compilation_views(),
    ]
    print("\n".join(map(str, rows)))
    host = {"python": platform.python_version(), "system": platform.system(), "machine": platform.machine()}
    results = {"host": host, "rows": [asdict(row) | {"met": row.met} for row in rows]}
    out = ROOT / "build" / "bench.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
