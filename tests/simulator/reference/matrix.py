"""The matrix instructions of each GPU: their shapes, and where the registers of a wave hold the elements.

Source: AMD's matrix instruction calculator. A is M x K, B is K x N, C and D are M x N (N = M here), in `blocks`
independent products. Of A (and B alike) a lane holds consecutive k; of a sparse A it holds two of every four. The
sparse products that gfx950 has with twice the K are those of the tests of AMD's emulator (ROCm/rocjitsu-test-corpus,
cts/test_cases/cdna4/mfma_gfx950_smfmac_test.cpp), which say that they are an MI350's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

BITS = {"f64": 64, "f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8}


@dataclass(frozen=True)
class Case:
    """`k` counts the dense elements. format_a and format_b are those of A and B, result that of C and D.

    arch: a GPU that has the instruction, in whose formats of 8 bits the elements are. is_doubled: a sparse product with
    twice the K that CDNA 3 has.
    """

    mnemonic: str
    m: int
    k: int
    blocks: int
    format_a: str
    format_b: str
    result: str
    arch: str = "gfx942"
    is_doubled: bool = False

    @property
    def k_per_lane(self) -> int:
        return self.k * self.m * self.blocks // 64

    @property
    def results_per_lane(self) -> int:
        return self.m * self.m * self.blocks // 64

    def place_source(self, i: int, k: int, block: int) -> tuple[int, int]:
        """Lane, and element in the lane, of A[i, k] (or B[k, i]); of a doubled product B's alone."""
        if self.is_doubled:
            turn, within = divmod(k, 8 * (64 // self.m))
            return i + self.m * (within // 8), 8 * turn + within % 8
        return i + self.m * block + self.m * self.blocks * (k // self.k_per_lane), k % self.k_per_lane

    def fours_of_pair(self, lane: int, pair: int) -> int:
        """The first of the four k of which a lane's `pair`-th two elements of a sparse A are."""
        group = lane // self.m
        if not self.is_doubled:
            return group * self.k_per_lane + 4 * pair
        if self.format_a in ("f16", "bf16"):
            return 16 * group + 4 * pair
        upper, middle, lower = pair >> 2 & 1, pair >> 1 & 1, pair & 1
        if self.m == 32:
            return 4 * (8 * group + 4 * middle + 2 * upper + lower)
        return 4 * (16 * (group // 2) + 8 * middle + 4 * (group % 2) + 2 * upper + lower)

    def place_result(self, i: int, j: int, block: int) -> tuple[int, int]:
        """Lane, and element in the lane, of C and D."""
        if self.result == "f64":
            return (j + 16 * (i % 4), i // 4) if self.m == 16 else (j + 4 * block + 16 * i, 0)
        if self.m == 4:
            return j + 4 * block, i
        if self.m == 16:
            return j + 16 * (i // 4), 4 * block + i % 4
        return j + 32 * (i // 4 % 2), 16 * block + 4 * (i // 8) + i % 4


def _dense(m: int, k: int, blocks: int, formats: str, result: str = "f32") -> Case:
    first, _, second = formats.partition("_")
    block_text = f"_{blocks}b" if blocks > 1 else ""
    return Case(f"v_mfma_{result}_{m}x{m}x{k}{block_text}_{formats}", m, k, blocks, first, second or first, result)


def _sparse(m: int, k: int, formats: str, result: str = "f32") -> Case:
    first, _, second = formats.partition("_")
    return Case(f"v_smfmac_{result}_{m}x{m}x{k}_{formats}", m, k, 1, first, second or first, result)


_FLOAT8 = ("fp8_fp8", "fp8_bf8", "bf8_fp8", "bf8_bf8")

DENSE = [
    *(_dense(m, 1, blocks, "f32") for m, blocks in ((32, 2), (16, 4), (4, 16))),
    *(_dense(m, k, 1, "f32") for m, k in ((32, 2), (16, 4))),
    *(_dense(m, k, 1, "xf32") for m, k in ((32, 4), (16, 8))),
    *(_dense(m, 4, blocks, f) for f in ("f16", "bf16") for m, blocks in ((32, 2), (16, 4), (4, 16))),
    *(_dense(m, k, 1, f) for f in ("f16", "bf16") for m, k in ((32, 8), (16, 16))),
    *(_dense(m, 4, blocks, "i8", "i32") for m, blocks in ((32, 2), (16, 4), (4, 16))),
    *(_dense(m, k, 1, "i8", "i32") for m, k in ((32, 16), (16, 32))),
    *(_dense(m, k, 1, f) for f in _FLOAT8 for m, k in ((32, 16), (16, 32))),
    _dense(16, 4, 1, "f64", "f64"),
    _dense(4, 4, 4, "f64", "f64"),
]
SPARSE = [
    *(_sparse(m, k, f) for f in ("f16", "bf16") for m, k in ((32, 16), (16, 32))),
    *(_sparse(m, k, "i8", "i32") for m, k in ((32, 32), (16, 64))),
    *(_sparse(m, k, f) for f in _FLOAT8 for m, k in ((32, 32), (16, 64))),
]


def _on(arch: str, cases: Iterable[Case]) -> list[Case]:
    return [replace(case, arch=arch) for case in cases]


_OLDER = [_dense(m, k, blocks, "bf16") for m, k, blocks in ((32, 2, 2), (16, 2, 4), (4, 2, 16), (32, 4, 1), (16, 8, 1))]
DENSE_OF_GFX90A = _on(
    "gfx90a",
    (
        *(replace(case, mnemonic=f"v_mfma_f32_{case.m}x{case.m}x{case.k}bf16") for case in _OLDER),
        *(_dense(m, k, 1, "i8", "i32") for m, k in ((32, 8), (16, 16))),
    ),
)
DENSE_OF_GFX950 = _on(
    "gfx950",
    (
        *(_dense(m, k, 1, f) for f in ("f16", "bf16") for m, k in ((32, 16), (16, 32))),
        *(_dense(m, k, 1, "i8", "i32") for m, k in ((32, 32), (16, 64))),
        *(_dense(m, k, 1, f) for f in _FLOAT8 for m, k in ((32, 16), (16, 32))),
    ),
)
_DOUBLED = (
    *(_sparse(m, k, f) for f in ("f16", "bf16") for m, k in ((32, 32), (16, 64))),
    *(_sparse(m, k, f) for f in _FLOAT8 for m, k in ((32, 64), (16, 128))),
)
SPARSE_OF_GFX950 = _on("gfx950", (replace(case, is_doubled=True) for case in _DOUBLED))
