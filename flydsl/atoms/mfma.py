"""The matrix instructions of CDNA: v_mfma_*.

Register layouts follow "Matrix Arithmetic Instructions" of the CDNA 3 ISA and AMD's matrix instruction calculator
(github.com/ROCm/amd_matrix_instruction_calculator).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from flydsl.atoms.mma import MmaOp
from flydsl.errors import ArgumentError
from flydsl.layout import Layout

_WAVE = 64
_TEXT = re.compile(r"(\d+)x(\d+)x(\d+), \((\w+), (\w+)\) -> (\w+)$")


@dataclass(frozen=True)
class Instruction:
    """One row of the instruction table.

    blocks: independent products of m x n x k that it computes at once.
    mnemonic: as in `rocdl.mfma.<mnemonic>` and `llvm.amdgcn.mfma.<mnemonic>`.
    archs: the architectures that have it.
    """

    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str
    c: str
    mnemonic: str
    archs: tuple[str, ...]

    @property
    def key(self) -> tuple[int, int, int, str, str]:
        """What names it: shape and operand types."""
        return (self.m, self.n, self.k, self.a, self.b)


_CDNA2_AND_LATER = ("gfx90a", "gfx942", "gfx950")
_CDNA3_AND_LATER = ("gfx942", "gfx950")
_EIGHT_BITS = {"f8E4M3FNUZ": "fp8", "f8E5M2FNUZ": "bf8"}
_EIGHT_BITS_OCP = {"f8E4M3FN": "fp8", "f8E5M2": "bf8"}


def _instructions() -> Iterator[Instruction]:
    # (m, n, k, blocks) of each family; the mnemonic is shape and suffix.
    families = [
        ("f32", "f32", "f32", _CDNA2_AND_LATER, [(32, 1, 2), (16, 1, 4), (4, 1, 16), (32, 2, 1), (16, 4, 1)]),
        ("f16", "f32", "f16", _CDNA2_AND_LATER, [(32, 4, 2), (16, 4, 4), (4, 4, 16), (32, 8, 1), (16, 16, 1)]),
        ("bf16", "f32", "bf16.1k", _CDNA2_AND_LATER, [(32, 4, 2), (16, 4, 4), (4, 4, 16), (32, 8, 1), (16, 16, 1)]),
        ("i8", "i32", "i8", _CDNA2_AND_LATER, [(32, 4, 2), (16, 4, 4), (4, 4, 16)]),
        ("f64", "f64", "f64", _CDNA2_AND_LATER, [(16, 4, 1), (4, 4, 4)]),
        ("xf32", "f32", ".xf32", ("gfx942",), [(32, 4, 1), (16, 8, 1)]),
        ("i8", "i32", ".i8", _CDNA3_AND_LATER, [(32, 16, 1), (16, 32, 1)]),
        ("f16", "f32", ".f16", ("gfx950",), [(32, 16, 1), (16, 32, 1)]),
        ("bf16", "f32", ".bf16", ("gfx950",), [(32, 16, 1), (16, 32, 1)]),
        ("i8", "i32", ".i8", ("gfx950",), [(32, 32, 1), (16, 64, 1)]),
    ]
    for element, result, suffix, archs, shapes in families:
        operand = "f32" if element == "xf32" else element
        for mn, k, blocks in shapes:
            mnemonic = f"{result}.{mn}x{mn}x{k}{suffix}"
            yield Instruction(mn, mn, k, blocks, operand, operand, result, mnemonic, archs)
    for names, archs in ((_EIGHT_BITS, ("gfx942",)), (_EIGHT_BITS_OCP, ("gfx950",))):
        for a, short_a in names.items():
            for b, short_b in names.items():
                for mn, k in ((32, 16), (16, 32)):
                    mnemonic = f"f32.{mn}x{mn}x{k}.{short_a}.{short_b}"
                    yield Instruction(mn, mn, k, 1, a, b, "f32", mnemonic, archs)


INSTRUCTIONS: dict[tuple[int, int, int, str, str], Instruction] = {row.key: row for row in _instructions()}


@dataclass(frozen=True)
class MFMA(MmaOp):
    """A matrix instruction of one wave.

    m, n, k: the shape of one block; a, b, c: element types of the operands and of the result, by their MLIR names.

    An instruction of several blocks multiplies each block of A with the block of B of the same number. The blocks
    stand below each other: A is (m * blocks, k), B is (n * blocks, k), and C and D are (m * blocks, n).

    f32 operands of 32x32x4 and 16x16x8 are rounded to xf32, of 10 bits mantissa. Raises ArgumentError for a
    combination that no architecture has.

    >>> op = MFMA(16, 16, 16, "f16", "f16", "f32")
    >>> print(op)
    !fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>
    >>> op.layout_tv_a
    ((16,4),4):((1,64),16)
    """

    name = "fly_rocdl.cdna3.mfma"
    threads = _WAVE

    m: int
    n: int
    k: int
    a: str
    b: str
    c: str

    def __post_init__(self) -> None:
        key = (self.m, self.n, self.k, self.a, self.b)
        row = INSTRUCTIONS.get(key)
        if row is None or row.c != self.c:
            raise ArgumentError(
                f"there is no MFMA {self.m}x{self.n}x{self.k} of {self.a} and {self.b} to {self.c}",
                hint=_known_shapes(self.a, self.b, self.c),
            )

    def __str__(self) -> str:
        return f"!{self.name}<{self.m}x{self.n}x{self.k}, ({self.a}, {self.b}) -> {self.c}>"

    @classmethod
    def parse_body(cls, body: str) -> MFMA:
        match = _TEXT.match(body)
        if match is None:
            raise ArgumentError(f"{body!r} is not an MFMA", hint="such as 16x16x4, (f32, f32) -> f32")
        return cls(int(match[1]), int(match[2]), int(match[3]), match[4], match[5], match[6])

    @cached_property
    def instruction(self) -> Instruction:
        """Its row of the instruction table."""
        return INSTRUCTIONS[self.m, self.n, self.k, self.a, self.b]

    @property
    def blocks(self) -> int:
        """Independent products that it computes at once."""
        return self.instruction.blocks

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        return (self.m, self.n, self.k)

    @property
    def elements(self) -> tuple[str, str, str]:
        return (self.a, self.b, self.c)

    @cached_property
    def layout_tv_a(self) -> Layout:
        return self._operand_layout(self.m)

    @cached_property
    def layout_tv_b(self) -> Layout:
        return self._operand_layout(self.n)

    def _operand_layout(self, rows: int) -> Layout:
        """Lane -> row, block, first of its k; each lane holds its k one after the other."""
        height = rows * self.blocks
        groups = _WAVE // height
        values = self.k // groups
        threads = _modes((rows, 1), (self.blocks, rows), (groups, values * height))
        return _layout(threads, [(values, height)])

    @cached_property
    def layout_tv_c(self) -> Layout:
        height = self.m * self.blocks
        groups = _WAVE // self.n
        if self.c == "f64":
            # Lanes take the rows in turn, one at a time.
            blocks = self.blocks
            threads = _modes((self.n, height), (blocks, self.m), (groups // blocks, 1))
            return _layout(threads, [(self.m * blocks // groups, groups)])
        if self.m == 4:
            # A lane holds one column of its block.
            return _layout(_modes((self.n, height), (groups, self.m)), [(4, 1)])
        # Lanes take the rows in turn, four at a time.
        values = [(4, 1), (self.m // (4 * groups), 4 * groups)]
        if self.blocks > 1:
            values.append((self.blocks, self.m))
        return _layout(_modes((self.n, height), (groups, 4)), values)


def _modes(*modes: tuple[int, int]) -> list[tuple[int, int]]:
    """(extent, stride) pairs without those of extent 1."""
    return [mode for mode in modes if mode[0] > 1]


def _layout(threads: list[tuple[int, int]], values: list[tuple[int, int]]) -> Layout:
    """The layout (thread, value) of these (extent, stride) modes."""
    pairs = (threads, values)
    shape, stride = (
        tuple(modes[0][part] if len(modes) == 1 else tuple(mode[part] for mode in modes) for modes in pairs)
        for part in (0, 1)
    )
    return Layout(shape, stride)


def _known_shapes(a: str, b: str, c: str) -> str:
    rows = [row for row in INSTRUCTIONS.values() if (row.a, row.b, row.c) == (a, b, c)]
    if rows:
        return f"of these types: {', '.join(f'{row.m}x{row.n}x{row.k} ({row.archs[0]})' for row in rows)}"
    types = dict.fromkeys(f"({row.a}, {row.b}) -> {row.c}" for row in INSTRUCTIONS.values())
    return f"types: {', '.join(types)}"
