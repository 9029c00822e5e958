"""Write the README's table of GPUs: what compiles for each, what the simulator runs and times, its matrix instructions.

python -m tools.arch_table
"""

from __future__ import annotations

import re
from pathlib import Path

from flydsl.arch import ARCHS, get_arch
from flydsl.arch.timing import is_timed
from flydsl.atoms.instruction_sets import GFX1250
from flydsl.atoms.matrix_intrinsics import MATRIX_INTRINSICS, SCALED_ARCHS
from flydsl.atoms.wmma_intrinsics import WMMA_INTRINSICS

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- Written by `python -m tools.arch_table`. -->\n", "<!-- End of the table. -->"

_GPUS = {
    "MI200 series": ("gfx90a",),
    "MI300X, MI300A, MI325X": ("gfx942",),
    "MI350X, MI355X": ("gfx950",),
    "Radeon RX 7000, 700M": ("gfx1100", "gfx1101", "gfx1102", "gfx1103"),
    "Radeon 800M, 8000S": ("gfx1150", "gfx1151", "gfx1152"),
    "gfx1153": ("gfx1153",),
    "Radeon RX 9000": ("gfx1200", "gfx1201"),
    "gfx1250": ("gfx1250",),
}
_HEADER = "| GPU | architecture | compile | simulate | time | matrix instructions |\n|---|---|---|---|---|---|\n"
# The names that instructions have for their elements, in the order of the table.
_ELEMENTS = {"f64": "f64", "f32": "f32", "xf32": "xf32", "f16": "f16", "bf16": "bf16", "fp8": "fp8", "bf8": "fp8"}
_ELEMENTS |= {"i8": "i8", "iu8": "i8", "iu4": "i4"}


def matrix_instructions(arch: str) -> str:
    """The kind of an architecture's matrix instructions and the elements that they multiply."""
    mfma = [i for i in MATRIX_INTRINSICS.values() if arch in i.archs]
    found = mfma or [i for i in WMMA_INTRINSICS.values() if arch in i.archs]
    held = {i.elements[0] for i in found}
    elements = list(dict.fromkeys(shown for name, shown in _ELEMENTS.items() if name in held))
    if arch in (*SCALED_ARCHS, *GFX1250):
        elements.append("scaled fp8, fp6, fp4")
    if any(i.sparse for i in found):
        elements.append("sparse")
    return f"{'MFMA' if mfma else 'WMMA'}: {', '.join(elements)}"


def _row(gpu: str, archs: tuple[str, ...]) -> str:
    (timed,) = {is_timed(get_arch(arch)) for arch in archs}
    (matrix,) = {matrix_instructions(arch) for arch in archs}
    names = f"{archs[0]} to {archs[-1]}" if len(archs) > 2 else ", ".join(archs)
    return f"| {gpu} | {names} | yes | yes | {_mark(timed)} | {matrix} |\n"


def _mark(there: bool) -> str:
    return "yes" if there else "no"


def table() -> str:
    """The table, with a row for each kind of GPU. Every architecture is in one of them."""
    listed = [arch for archs in _GPUS.values() for arch in archs]
    assert sorted(listed) == sorted(arch.name for arch in ARCHS), "a GPU of flydsl.arch has no row here"
    return _HEADER + "".join(_row(gpu, archs) for gpu, archs in _GPUS.items())


def with_table(readme: str) -> str:
    """The README with the table as it is now."""
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: f"{BEGIN}\n{table()}\n{END}", readme, flags=re.S)


if __name__ == "__main__":
    README.write_text(with_table(README.read_text("utf-8")), "utf-8")
