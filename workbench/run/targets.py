"""One launch for several GPUs, side by side: machine code, registers, occupancy, what ran, and the estimated time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flydsl.codegen import Kernel
from flydsl.compiler import Pipeline
from flydsl.errors import ArchError
from flydsl.simulator.counters import LaunchCounters
from flydsl.simulator.estimates import LEGEND
from workbench.kit.html import code, escape, table, title
from workbench.machine_code.analysis import analyses
from workbench.run.measures import roofline

_HEADER = (
    *("target", "kernel", "lanes", "instructions", "VGPR", "AGPR", "SGPR", "LDS", "waves per SIMD", "limited by"),
    *("executed", "vector", "matrix", "lines of memory", "estimate", "bound by"),
)


@dataclass(frozen=True)
class Target:
    """A compilation for one GPU, the counters of its kernels' launches, and, without any, the reason."""

    pipeline: Pipeline
    counters: Sequence[LaunchCounters]
    reason: str = ""


class Targets:
    """As text a row for every kernel and target; in notebooks a table for each kernel, a column for each target."""

    def __init__(self, call: str, targets: Sequence[Target]) -> None:
        self._call = call
        self.rows = [row for target in targets for row in _rows(target)]
        self.notes = [f"{t.pipeline.arch.name} did not run: {t.reason}" for t in targets if t.reason]

    def _repr_html_(self) -> str:
        tables = "".join(map(self._kernel_html, dict.fromkeys(row[1] for row in self.rows)))
        notes = "".join(title(escape(note)) for note in [f"Estimate: {LEGEND}.", *self.notes])
        return f"<div>{title(f'<strong>{code(self._call)}</strong>')}{tables}{notes}</div>"

    def _kernel_html(self, kernel: str) -> str:
        targets = [row for row in self.rows if row[1] == kernel]
        amounts = list(zip(_HEADER, *targets, strict=True))[2:]
        header = [code(kernel), *(escape(row[0]) for row in targets)]
        return table(header, [list(map(escape, cells)) for cells in amounts], numbers=range(1, len(header)))

    def __repr__(self) -> str:
        widths = [max(map(len, column)) for column in zip(_HEADER, *self.rows, strict=True)]
        lines = ["  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)) for row in (_HEADER, *self.rows)]
        return "\n".join([self._call, *(line.rstrip() for line in lines), f"estimate: {LEGEND}", *self.notes])


def _rows(target: Target) -> list[tuple[str, ...]]:
    launched = {counters.kernel: counters for counters in target.counters}
    return [_row(target.pipeline, kernel, launched.get(kernel.name)) for kernel in target.pipeline.artifact.kernels]


def _row(pipeline: Pipeline, kernel: Kernel, counters: LaunchCounters | None) -> tuple[str, ...]:
    resources, now = kernel.resources, kernel.usage.occupancy
    instructions = sum(len(a.instructions) for a in analyses(pipeline.artifact.code) if a.kernel.name == kernel.name)
    amounts = (resources.vgprs, resources.agprs, resources.sgprs, kernel.usage.lds_bytes)
    compiled = (pipeline.arch.name, kernel.name, str(kernel.info.wave_size), str(instructions), *map(str, amounts))
    return (*compiled, f"{now.waves_per_simd} of {now.max_waves_per_simd}", now.limiter or "nothing", *_ran(counters))


def _ran(counters: LaunchCounters | None) -> tuple[str, ...]:
    if counters is None:
        return ("",) * 6
    totals = counters.totals
    counts = (totals.executions, totals.by_class.get("VALU", 0), totals.by_class.get("MFMA", 0), totals.global_lines)
    found = roofline(counters)
    bound = "" if isinstance(found, ArchError) else found.bound
    return (*map(str, counts), str(counters.estimate or "not known"), bound)
