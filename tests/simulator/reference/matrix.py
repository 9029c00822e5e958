"""The matrix instructions of each GPU: their shapes, and where the registers of a wave hold the elements.

Source: AMD's matrix instruction calculator. A is M x K, B is K x N, C and D are M x N (N = M here), in `blocks`
independent products. Of A (and B alike) a lane holds consecutive k; of a sparse A it holds two of every four.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

BITS = {"f64": 64, "f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8}


@dataclass(frozen=True)
class Case:
    """`k` counts the dense elements. format_a and format_b are those of A and B, result that of C and D.

    arch: a GPU that has the instruction, in whose formats of 8 bits the elements are.
    """

    mnemonic: str
    m: int
    k: int
    blocks: int
    format_a: str
    format_b: str
    result: str
    arch: str = "gfx942"

    @property
    def k_per_lane(self) -> int:
        return self.k * self.m * self.blocks // 64

    @property
    def results_per_lane(self) -> int:
        return self.m * self.m * self.blocks // 64

    def place_source(self, i: int, k: int, block: int) -> tuple[int, int]:
        """Lane, and element in the lane, of A[i, k] (or B[k, i])."""
        return i + self.m * block + self.m * self.blocks * (k // self.k_per_lane), k % self.k_per_lane

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
SPARSE_OF_GFX950 = _on(
    "gfx950",
    (
        *(_sparse(m, k, f) for f in ("f16", "bf16") for m, k in ((32, 32), (16, 64))),
        *(_sparse(m, k, "i8", "i32") for m, k in ((32, 64), (16, 128))),
        *(_sparse(m, k, f) for f in _FLOAT8 for m, k in ((32, 64), (16, 128))),
    ),
)
