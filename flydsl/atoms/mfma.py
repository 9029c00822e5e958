"""The matrix instructions of CDNA: v_mfma_*.

Register layouts follow "Matrix Arithmetic Instructions" of the CDNA 3 ISA and AMD's matrix instruction calculator
(github.com/ROCm/amd_matrix_instruction_calculator).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from flydsl.atoms.matrix_intrinsics import MATRIX_INTRINSICS, MatrixIntrinsic
from flydsl.atoms.mma import MatrixOp
from flydsl.errors import ArgumentError
from flydsl.layout import Layout

_WAVE = 64
_TEXT = re.compile(r"(\d+)x(\d+)x(\d+), \((\w+), (\w+)\) -> (\w+)$")

# What the names of instructions call their elements: architecture -> MLIR's name. CDNA 3 has formats of its own for
# fp8 and bf8 (CDNA 3 ISA, "Data formats"), later ones those of the OCP.
_FNUZ = {"fp8": "f8E4M3FNUZ", "bf8": "f8E5M2FNUZ"}
_OCP = {"fp8": "f8E4M3FN", "bf8": "f8E5M2"}
_FORMATS = {"gfx942": _FNUZ, "gfx950": _OCP}


@dataclass(frozen=True)
class MatrixInstruction:
    """A matrix instruction on elements of MLIR types. archs: the architectures that have it for these types."""

    intrinsic: MatrixIntrinsic
    a: str
    b: str
    archs: tuple[str, ...]

    @property
    def key(self) -> tuple[int, int, int, str, str]:
        """The key of the instruction: shape and operand types."""
        return (self.intrinsic.m, self.intrinsic.n, self.intrinsic.k, self.a, self.b)

    @property
    def c(self) -> str:
        """The element type of the result."""
        return self.intrinsic.elements[2]


def _instructions() -> Iterator[MatrixInstruction]:
    for intrinsic in MATRIX_INTRINSICS.values():
        a, b, _ = intrinsic.elements
        if intrinsic.sparse:
            continue
        if a not in _FNUZ:
            yield MatrixInstruction(intrinsic, a.removeprefix("x"), b.removeprefix("x"), intrinsic.archs)
            continue
        for arch in intrinsic.archs:
            formats = _FORMATS[arch]
            archs = intrinsic.archs if formats is _FNUZ else (arch,)  # FlyDSL's kernels name FNUZ's everywhere
            yield MatrixInstruction(intrinsic, formats[a], formats[b], archs)


def _by_key() -> dict[tuple[int, int, int, str, str], MatrixInstruction]:
    """The first instruction of each shape and types. gfx90a has two 32x32x4 of bf16; the later one stayed."""
    found: dict[tuple[int, int, int, str, str], MatrixInstruction] = {}
    for instruction in _instructions():
        found.setdefault(instruction.key, instruction)
    return found


INSTRUCTIONS = _by_key()


@dataclass(frozen=True)
class MFMA(MatrixOp):
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
            raise ArgumentError(f"{body!r} is not an MFMA", hint="write 16x16x4, (f32, f32) -> f32, for example")
        return cls(int(match[1]), int(match[2]), int(match[3]), match[4], match[5], match[6])

    @cached_property
    def instruction(self) -> MatrixInstruction:
        """The instruction's row of the table."""
        return INSTRUCTIONS[self.m, self.n, self.k, self.a, self.b]

    @property
    def archs(self) -> tuple[str, ...]:
        return self.instruction.archs

    def read_as(self, arch: str) -> tuple[str, str]:
        """The formats that an architecture takes the bits of A and B for: FNUZ's are the OCP's where those are not.

        >>> MFMA(16, 16, 32, "f8E4M3FNUZ", "f8E5M2FNUZ", "f32").read_as("gfx950")
        ('f8E4M3FN', 'f8E5M2')
        """
        given = {fnuz: _FORMATS.get(arch, {}).get(name, fnuz) for name, fnuz in _FNUZ.items()}
        return given.get(self.a, self.a), given.get(self.b, self.b)

    @property
    def blocks(self) -> int:
        """Number of independent products that the instruction computes."""
        return self.instruction.intrinsic.blocks

    @cached_property
    def layout_tv_a(self) -> Layout:
        return self._operand_layout(self.m)

    @cached_property
    def layout_tv_b(self) -> Layout:
        return self._operand_layout(self.n)

    def _operand_layout(self, rows: int) -> Layout:
        """Lane -> row, block, first k. Each lane holds consecutive k."""
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
    """The (extent, stride) pairs whose extent is not 1."""
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
        shapes = (f"{'x'.join(map(str, row.key[:3]))} ({row.archs[0]})" for row in rows)
        return f"of these types: {', '.join(shapes)}"
    types = dict.fromkeys(f"({row.a}, {row.b}) -> {row.c}" for row in INSTRUCTIONS.values())
    return f"types: {', '.join(types)}"
