"""The configurations of the kernel library whose machine code is measured: one module per family.

Each has CASES: name of a row of `figures.json` -> Case, and MISSES: (name, architecture) -> why a figure is missed.
A case without a row has no figure to be compared with and is listed all the same.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ARCHS = ("gfx942", "gfx950")


@dataclass(frozen=True)
class Case:
    """A configuration. kernel: the module in `kernels`; types: as the table shows them.

    make: gives the launcher and its arguments, CPU tensors of a size that the simulator runs in a second.
    archs: those that it is compiled for. test: the file in tests/kernels, if it is not test_<kernel>.py.
    """

    kernel: str
    types: str
    make: Callable[[], tuple[Any, tuple[Any, ...]]]
    archs: tuple[str, ...] = ARCHS
    test: str = ""

    @property
    def test_file(self) -> str:
        return self.test or f"test_{self.kernel}.py"


@dataclass(frozen=True)
class Figures:
    """What a compiled kernel takes. vgprs: with AGPRs, as they are one file. mfma: matrix instructions, WMMA too."""

    instructions: int
    vgprs: int
    lds_bytes: int
    scratch_bytes: int
    occupancy: int
    mfma: int

    def with_another(self, other: Figures) -> Figures:
        """The figures of two kernels that are launched together: their sum, and the worst of what each takes."""
        return Figures(
            self.instructions + other.instructions, max(self.vgprs, other.vgprs), max(self.lds_bytes, other.lds_bytes),
            max(self.scratch_bytes, other.scratch_bytes), min(self.occupancy, other.occupancy), self.mfma + other.mfma,
        )  # fmt: skip

    def misses(self, other: Figures) -> list[str]:
        """The figures in which this is behind another."""
        found = [
            f"{name} {getattr(self, name)} > {getattr(other, name)}"
            for name in ("instructions", "vgprs", "scratch_bytes")
            if getattr(self, name) > getattr(other, name)
        ]
        if self.occupancy < other.occupancy:
            found.append(f"occupancy {self.occupancy} < {other.occupancy}")
        if self.mfma != other.mfma:
            found.append(f"mfma {self.mfma} != {other.mfma}")
        return found


@cache
def originals() -> dict[tuple[str, str], Figures]:
    """(case, architecture) -> FlyDSL 0.2.2's figures; of a case with several kernels as `measured` gives them."""
    found: dict[tuple[str, str], Figures] = {}
    for row in json.loads((Path(__file__).parents[1] / "figures.json").read_text()):
        place = row["case"], row["arch"]
        own = Figures(row["insts"], row["vgpr"], row["lds"], row["scratch"], row["occ"], row["mfma"])
        found[place] = found[place].with_another(own) if place in found else own
    return found


def measured(case: Case, arch: str) -> Figures:
    """The figures of a case compiled now; of a launcher with several kernels, their sum, and the worst occupancy."""
    launcher, arguments = case.make()
    artifact = launcher.lower(*arguments, arch=arch).artifact
    lines = instructions(artifact.isa)
    used = [kernel.resources for kernel in artifact.kernels]
    return Figures(
        instructions=len(lines),
        vgprs=max(-(-r.vgprs // 4) * 4 + r.agprs if r.agprs else r.vgprs for r in used),
        lds_bytes=max(r.lds_bytes for r in used),
        scratch_bytes=max(r.scratch_bytes for r in used),
        occupancy=min(kernel.occupancy.waves_per_simd for kernel in artifact.kernels),
        mfma=sum(line.startswith(("v_mfma", "v_smfmac", "v_wmma")) for line in lines),
    )


def instructions(isa: str) -> list[str]:
    """The machine instructions of a listing."""
    lines = (line.strip() for line in isa.splitlines() if line.startswith("\t"))
    return [line for line in lines if line and line[0] not in ".;"]


def every_case() -> dict[str, Case]:
    """The cases of all families, in the order of the table."""
    return {name: case for module in _families() for name, case in module.CASES.items()}


def known_misses() -> dict[tuple[str, str], str]:
    """(case, architecture) -> why a figure is missed."""
    return {place: why for module in _families() for place, why in module.MISSES.items()}


def _families() -> list[Any]:
    return [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
