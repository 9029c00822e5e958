"""The matrix instructions of RDNA 3, RDNA 4 and gfx1250: their shapes, and which registers hold which elements.

A is M x K, B is K x N, C and D are M x N, with N = 16. Sources: "RDNA 4 Instruction Set Architecture" (WMMA; storage of
matrices in VGPRs), AMD's article "Using the Matrix Cores of AMD RDNA 4 architecture GPUs", Mesa's notes on its layouts
for wave64, and LLVM's tests for the operands; of RDNA 3 its ISA document, and AMD's article "How to accelerate AI
applications on RDNA 3 using WMMA". Of gfx1250 no document of AMD's is public: there the sources are LLVM's
definitions and tests, and the layouts that Triton and Composable Kernel load.

The order in which lanes hold k is visible only where A and B have different formats, where A is sparse, or where blocks
of k have scales of their own; elsewhere any order that A and B share gives the same products.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

BITS = {"f32": 32, "f16": 16, "bf16": 16, "iu8": 8, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "iu4": 4, "fp4": 4}
RESULT_BITS = {"f32": 32, "i32": 32, "f16": 16, "bf16": 16}
_FIRST_ROW = {32: (0, 8), 64: (0, 8, 4, 12)}
"""The first row of C and D that each group of 16 lanes holds, by the number of lanes."""


@dataclass(frozen=True)
class Case:
    """`k` counts the dense elements. a and b are the formats of A and B, result that of D, c that of C.

    lanes: of a wave. run: consecutive k that a lane holds before those of the next group of lanes follow.
    """

    mnemonic: str
    k: int
    a: str
    b: str
    result: str
    c: str
    lanes: int = 32
    arch: str = "gfx1201"
    is_sparse: bool = False
    m: int = 16
    run: int = 0

    @property
    def id(self) -> str:
        formats = f"-{self.a}_{self.b}" if self.run else ""
        return f"{self.mnemonic}{formats}-wave{self.lanes}-{self.arch}"

    @property
    def of_b(self) -> Case:
        """The same with the places of B's elements in `run`."""
        return replace(self, run=RUNS[self.b]) if self.run else self

    def place_scale(self, i: int, second: bool) -> int:
        """The lane with the scales of row i of A (or column of B). second: the upper 16 lanes hold those of 16."""
        return i if self.m == 32 and i >= 16 else i + 16 * second

    @property
    def groups(self) -> int:
        return self.lanes // 16

    @property
    def is_repeated(self) -> bool:
        """Every lane holds a whole row of A and column of B, and of C and D one element in each register: RDNA 3."""
        return self.arch == "gfx1100"

    @property
    def per_lane(self) -> int:
        """Elements of a row of A (dense) or of a column of B that a lane holds."""
        return self.k if self.is_repeated else self.k // self.groups

    def result_bits(self, format_: str) -> int:
        """The bits from one element of C or D in a lane to the next."""
        return 32 if self.is_repeated else RESULT_BITS[format_]

    @property
    def results_per_lane(self) -> int:
        return self.m * 16 // self.lanes

    def place_source(self, i: int, k: int) -> tuple[int, int]:
        """Lane, and element in the lane, of A[i, k] for i < 16, or B[k, i]."""
        run = self.run or self.per_lane
        turn, within = divmod(k, run * self.groups)
        return i + 16 * (within // run), turn * run + within % run

    def places_source(self, i: int, k: int) -> list[tuple[int, int]]:
        """All places of A[i, k] or B[k, i]."""
        if self.is_repeated:
            return [(i + 16 * group, k) for group in range(self.groups)]
        return [self.place_source(i, k)]

    def place_result(self, i: int, j: int) -> tuple[int, int]:
        """Lane, and element in the lane, of C and D. Of two rows of tiles the second follows the first."""
        if self.is_repeated:
            return j + 16 * (i % self.groups), i // self.groups
        tile, row = divmod(i, 16)
        size = 256 // self.lanes
        return j + 16 * _FIRST_ROW[self.lanes].index(row - row % size), tile * size + row % size


_FLOAT8 = [(a, b) for a in ("fp8", "bf8") for b in ("fp8", "bf8")]


def _rdna3() -> Iterator[Case]:
    for lanes in (32, 64):
        for name in ("f16", "bf16"):
            for result in ("f32", name):
                name_ = f"v_wmma_{result}_16x16x16_{name}"
                yield Case(name_, 16, name, name, result, result, lanes, "gfx1100")
        for name in ("iu8", "iu4"):
            yield Case(f"v_wmma_i32_16x16x16_{name}", 16, name, name, "i32", "i32", lanes, "gfx1100")


def _rdna4() -> Iterator[Case]:
    for lanes in (32, 64):
        for name, k in (("f16", 16), ("bf16", 16)):
            for result in ("f32", name):
                yield Case(f"v_wmma_{result}_16x16x16_{name}", k, name, name, result, result, lanes)
        for a, b in _FLOAT8:
            yield Case(f"v_wmma_f32_16x16x16_{a}_{b}", 16, a, b, "f32", "f32", lanes)
        yield Case("v_wmma_i32_16x16x16_iu8", 16, "iu8", "iu8", "i32", "i32", lanes)
        yield Case("v_wmma_i32_16x16x16_iu4", 16, "iu4", "iu4", "i32", "i32", lanes)
        yield Case("v_wmma_i32_16x16x32_iu4", 32, "iu4", "iu4", "i32", "i32", lanes)


def _rdna4_sparse() -> Iterator[Case]:
    for lanes in (32, 64):
        for name in ("f16", "bf16"):
            for result in ("f32", name):
                mnemonic = f"v_swmmac_{result}_16x16x32_{name}"
                yield Case(mnemonic, 32, name, name, result, result, lanes, is_sparse=True)
        for a, b in _FLOAT8:
            yield Case(f"v_swmmac_f32_16x16x32_{a}_{b}", 32, a, b, "f32", "f32", lanes, is_sparse=True)
        for name, k in (("iu8", 32), ("iu4", 32), ("iu4", 64)):
            yield Case(f"v_swmmac_i32_16x16x{k}_{name}", k, name, name, "i32", "i32", lanes, is_sparse=True)


def _gfx1250() -> Iterator[Case]:
    def of(types: str, k: int, text: str, a: str, b: str, result: str, c: str) -> Case:
        return Case(f"v_wmma_{types}_16x16x{k}_{text}", k, a, b, result, c, arch="gfx1250")

    yield of("f32", 4, "f32", "f32", "f32", "f32", "f32")
    for name in ("f16", "bf16"):
        for result in ("f32", name):
            yield of(result, 32, name, name, name, result, result)
    yield of("bf16f32", 32, "bf16", "bf16", "bf16", "bf16", "f32")
    for a, b in _FLOAT8:
        for k in (64, 128):
            for result in ("f32", "f16"):
                yield of(result, k, f"{a}_{b}", a, b, result, result)
    yield of("i32", 64, "iu8", "iu8", "iu8", "i32", "i32")


def _gfx1250_sparse() -> Iterator[Case]:
    """`run` is that of B; of the stored elements of A it is half as long."""

    def of(k: int, text: str, a: str, b: str, result: str) -> Case:
        name = f"v_swmmac_{result}_16x16x{k}_{text}"
        return Case(name, k, a, b, result, result, arch="gfx1250", is_sparse=True, run=k // 4)

    for name in ("f16", "bf16"):
        for result in ("f32", name):
            yield of(64, name, name, name, result)
    for a, b in _FLOAT8:
        for result in ("f32", "f16"):
            yield of(128, f"{a}_{b}", a, b, result)
    yield of(128, "iu8", "iu8", "iu8", "i32")


MICROSCALING = ("fp8", "bf8", "fp6", "bf6", "fp4")
RUNS = {"fp8": 16, "bf8": 16, "fp6": 32, "bf6": 32, "fp4": 32}
"""The consecutive k of a row that a lane of gfx1250 has in a piece."""


def _mixed(scale: str) -> Iterator[Case]:
    """The products of any two formats: A and B differ in `run`, which is A's here; `side` gives B's."""
    for a in MICROSCALING:
        for b in MICROSCALING:
            yield Case(f"v_wmma_{scale}f32_16x16x128_f8f6f4", 128, a, b, "f32", "f32", arch="gfx1250", run=RUNS[a])
    yield Case(f"v_wmma_{scale}f32_32x16x128_f4", 128, "fp4", "fp4", "f32", "f32", arch="gfx1250", m=32, run=32)


DENSE = [*_rdna3(), *_rdna4(), *_gfx1250()]
MIXED, SCALED, FINELY_SCALED = list(_mixed("")), list(_mixed("scale_")), list(_mixed("scale16_"))
SPARSE, SPARSE_OF_GFX1250 = list(_rdna4_sparse()), list(_gfx1250_sparse())
