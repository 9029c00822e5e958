"""The list of cases, and how many there are for each GPU."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flydsl.simulator.arrays import Array
from tests.simulator.conftest import Registers, run_instructions

Check = Callable[[str], None]
CDNA = "gfx90a gfx942 gfx950"
EVERY = f"{CDNA} gfx1100 gfx1201 gfx1250"
RDNA3_ON, RDNA4_ON = "gfx1100 gfx1201 gfx1250", "gfx1201 gfx1250"


@dataclass(frozen=True)
class Case:
    """One test of the corpus on one GPU.

    refused: what the error names, if the simulator does not execute it; differs: the check is of what was observed on
    hardware, which is not what the corpus says; in_sweep: `make test` leaves it out.
    """

    name: str
    arch: str
    check: Check
    refused: str = ""
    differs: bool = False
    in_sweep: bool = False


_listed: dict[tuple[str, str], Case] = {}


def conforms(
    name: str, archs: str, *, refused: str = "", differs: bool = False, in_sweep: bool = False
) -> Callable[[Check], Check]:
    """List a function of a GPU's name as the test `name` of the corpus."""

    def listed(check: Check) -> Check:
        _listed.update({(name, arch): Case(name, arch, check, refused, differs, in_sweep) for arch in archs.split()})
        return check

    return listed


def cases() -> list[Case]:
    """All that the modules of this folder list."""
    for found in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if not found.name.startswith(("test_", "__")):
            importlib.import_module(f"{__package__}.{found.name}")
    return list(_listed.values())


def table() -> str:
    """The lines about each GPU, as COVERAGE.md has them."""
    found = Counter((c.arch, "refused" if c.refused else "differs" if c.differs else "passes") for c in cases())
    counts = {arch: [found[arch, what] for what in ("passes", "refused", "differs")] for arch in EVERY.split()}
    rows = [f"| {arch} | {sum(count)} | {' | '.join(map(str, count))} |" for arch, count in counts.items()]
    heads = "| GPU | cases | pass | refused by name | otherwise |", "| --- | --- | --- | --- | --- |"
    return "\n".join([*heads, *rows])


def registers(rows: Iterable[Iterable[int]], *widths: int) -> list[Array]:
    """Operands by rows, each of 32 bits or as wide as given, as registers."""
    columns = list(zip(*rows, strict=True))
    dtypes = [{32: np.uint32, 64: np.uint64}[width] for width in widths or [32] * len(columns)]
    return [np.array(column, dtype) for column, dtype in zip(columns, dtypes, strict=True)]


def execute(text: str, arch: str, vectors: dict[int, Any], **options: Any) -> Registers:
    """Run instructions on vector registers."""
    return run_instructions(text, v=vectors, arch=arch, **options)


def expect(got: Array, wanted: Iterable[int], what: str) -> None:
    """Compare the first lanes of a register of unsigned numbers."""
    numbers = list(wanted)
    mask = (1 << 8 * got.itemsize) - 1
    assert [hex(x) for x in got[: len(numbers)].tolist()] == [hex(x & mask) for x in numbers], what
