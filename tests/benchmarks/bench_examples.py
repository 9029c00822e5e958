"""The first call of the documents' examples, in a fresh process, and what each stage of the compiler takes of it."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
REPEATS = 3


@dataclass(frozen=True)
class Example:
    """A launch. setup: makes `launcher` and `arguments`. launches: whether it is run, or compiled only.

    target_s: seconds that the first call may take, import of torch and flydsl excluded.
    """

    name: str
    setup: str
    launches: bool
    target_s: float


EXAMPLES = (
    Example(
        "example 03",
        """
import torch
from tests.kernels import examples
launcher, arguments = examples.tiledMma, (torch.randn(64, 8), torch.randn(64, 8), torch.zeros(64, 64))
""",
        True,
        0.4,
    ),
    Example(
        "example 04, M = N = K = 4096, not launched",
        """
import torch, flydsl.expr as fx
from kernels import preshuffle_gemm_v2 as gemm
n = 4096
A, B, C = (torch.empty(shape, dtype=torch.float16) for shape in ((n, n), (n * n,), (n, n)))
launcher, arguments = gemm.launch, (A, B, C, gemm.Plan(n, n, fx.Float16))
""",
        False,
        1.5,
    ),
)

_FIRST_CALL = """
import time
start = time.perf_counter()
{call}
print(time.perf_counter() - start)
"""
_STAGES = """
import json, time
start = time.perf_counter()
pipeline = launcher.lower(*arguments)
trace_ms = (time.perf_counter() - start) * 1e3
stages = pipeline.run()
times = [["trace", trace_ms]]
times += [[f"stage {stage.index:2} {', '.join(stage.passes)}", stage.time_ms or 0.0] for stage in stages]
print(json.dumps(times))
"""


def in_a_fresh_process(program: str) -> Any:
    """The JSON value that a program prints."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(done.stdout)


def first_call_s(example: Example) -> float:
    """Median seconds of the first call; of its compilation, where it is not launched."""
    call = "launcher(*arguments)" if example.launches else "launcher.lower(*arguments).artifact"
    program = example.setup + _FIRST_CALL.format(call=call)
    return statistics.median(float(in_a_fresh_process(program)) for _ in range(REPEATS))


def shares(example: Example) -> list[tuple[str, float]]:
    """(stage, its share of trace and compilation in percent), of median times."""
    runs = [in_a_fresh_process(example.setup + _STAGES) for _ in range(REPEATS)]
    medians = [(names[0][0], statistics.median(time for _, time in names)) for names in zip(*runs, strict=True)]
    total = sum(time for _, time in medians)
    return [(name, 100 * time / total) for name, time in medians]
