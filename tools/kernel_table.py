"""Write `kernels/README.md`: every kernel with the figures of its machine code beside the original's.

python -m tools.kernel_table
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from flydsl.atoms.instruction_sets import CDNA
from flydsl.simulator.estimates import Estimate
from flydsl.sweeps.bench import estimated
from tests.benchmarks import amd_times
from tests.kernels.cases import ARCHS, Case, Figures, every_case, known_misses, measured, originals

TABLE = Path(__file__).parents[1] / "kernels" / "README.md"

_HEADER = """# Kernels

Each module has the builder or launcher of its kernels, `reference` in torch, and `SHAPES` that its test runs on the
simulator. `make table` writes this page.

Figures: instructions / VGPRs / LDS bytes / waves per SIMD, of this compiler and, in brackets, of FlyDSL 0.2.2's kernel
for the same configuration; matrix instructions follow where there are any (MFMA; on Radeon and gfx1250 WMMA).
`tests/kernels/test_figures.py` holds them: no more instructions, registers and scratch, no less occupancy; where that
is missed, the table says why. The time is the model's estimate for an MI300X of the size that the case runs with
([`tests/kernels/cases`](../tests/kernels/cases)). ± is what 9 of 10 launches of the kind that were compared with a GPU
are within, ± ~ what the uncertainty of the model's figures makes where none was, ± ? is not known
([`ACCURACY.md`](../flydsl/simulator/timing/ACCURACY.md)).

Against AMD's: the times of our kernel and of AMD's for the same task, both by the model, at a size that models have
([`amd_times.py`](../tests/benchmarks/amd_times.py)). AMD's are FlyDSL's kernels of August 2026, or of its release
0.2.2, and aiter's of August to November 2026, run unchanged. When FlyDSL's were timed, the model had no time for
atomics in the L2, by which results are added in rows with *, nor for the wait for kernel arguments, 0.6 us a launch:
there, and in short rows, the ratio is too high. How far the model is to be trusted is in this plot: times of our
kernels by the model, over those that FlyDSL's took on an MI355X with the same tiles (`python -m tools.measured_plot`).

![modelled against measured times](../docs/images/measured.svg)
"""


def _cells(figures: Figures, matrix_name: str) -> str:
    matrix = f" / {figures.mfma} {matrix_name}" if figures.mfma else ""
    scratch = f" / scratch {figures.scratch_bytes}" if figures.scratch_bytes else ""
    return f"{figures.instructions} / {figures.vgprs} / {figures.lds_bytes} / {figures.occupancy}{matrix}{scratch}"


def machine_code_cells(name: str, arch: str, figures: Figures) -> str:
    """The part of a case's line that shows its machine code."""
    original = originals().get((name, arch))
    matrix_name = "MFMA" if arch in CDNA else "WMMA"
    beside = f" ({_cells(original, matrix_name)})" if original else ""
    return f"| `{name}` | {arch} | {_cells(figures, matrix_name)}{beside} |"


def estimate(case: Case) -> Estimate:
    """The estimated time of a case's launches on the architecture that the simulator executes."""
    launcher, arguments = case.make()
    return estimated(lambda: launcher(*arguments)).estimate


def _line(name: str, case: Case, arch: str) -> str:
    time = str(estimate(case)) if arch == ARCHS[0] else ""
    why = known_misses().get((name, arch), "")
    return f"{machine_code_cells(name, arch, measured(case, arch))} {case.types} | {time} | {why} |"


def amd_line(row: amd_times.Row, ours: float) -> str:
    """A size's line."""
    star = " *" if row.adds else ""
    return f"| {row.size} | {row.arch} | {ours:.4g} us | {row.amd_us:.4g} us | {ours / row.amd_us:.2f}{star} |"


def against_amd(lines: list[str]) -> str:
    """The lines of a kernel as a table; empty where there are none."""
    head = "\n| size | arch | ours | AMD's | ours / AMD's |\n|---|---|---|---|---|\n"
    return head + "\n".join([*lines, ""]) if lines else ""


def _section(kernel: str, cases: dict[str, Case]) -> str:
    first_line = (importlib.import_module(f"kernels.{kernel}").__doc__ or "").partition("\n")[0]
    tests = ", ".join(sorted({f"[`{c.test_file}`](../tests/kernels/{c.test_file})" for c in cases.values()}))
    lines = [_line(name, case, arch) for name, case in cases.items() for arch in case.archs]
    head = "| configuration | arch | machine code | types | estimate | missed because |\n|---|---|---|---|---|---|"
    compared = against_amd([amd_line(row, row.our_us()) for row in amd_times.ROWS if row.kernel == kernel])
    begin = [f"## [`{kernel}`]({kernel}.py)\n", f"{first_line} Tests: {tests}.\n", head]
    return "\n".join([*begin, *lines, ""]) + compared


def _written() -> dict[str, str]:
    """The sections of the page as it is: kernel -> text."""
    _, *sections = TABLE.read_text().split("\n## [`") if TABLE.exists() else [""]
    return {text.partition("`")[0]: f"## [`{text}".rstrip("\n") + "\n" for text in sections}


def main() -> None:
    """Write the sections of the kernels named on the command line, or all; the others stay as they are."""
    by_kernel: dict[str, dict[str, Case]] = {}
    for name, case in every_case().items():
        by_kernel.setdefault(case.kernel, {})[name] = case
    wanted, sections = sys.argv[1:] or list(by_kernel), _written()
    sections |= {kernel: _section(kernel, by_kernel[kernel]) for kernel in wanted}
    TABLE.write_text("\n".join([_HEADER, *(sections[kernel] for kernel in by_kernel if kernel in sections)]))


if __name__ == "__main__":
    main()
