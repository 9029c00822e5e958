"""Matrix instructions on blocks of scaled 8, 6 and 4-bit floats: v_mfma_scale_* of CDNA 4, v_wmma_scale_* of gfx1250.

A scale of 8 bits (E8M0: a power of two) belongs to 32 elements of a row along k. Register layouts: CDNA 4 ISA, "Matrix
Arithmetic Instructions"; of gfx1250, what AMD's kernels for it load.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from flydsl.atoms.instruction_sets import CDNA4, GFX1250
from flydsl.atoms.mma import MatrixOp
from flydsl.atoms.wmma import pieces_in_turn
from flydsl.errors import ArgumentError
from flydsl.layout import Layout

# MLIR name -> code in the instruction, and bits.
FORMATS = {"f8E4M3FN": (0, 8), "f8E5M2": (1, 8), "f6E2M3FN": (2, 6), "f6E3M2FN": (3, 6), "f4E2M1FN": (4, 4)}
_TEXT = re.compile(r"(\d+)x(\d+)x(\d+), \((\w+), (\w+)\) -> (\w+), opselA = (\d), opselB = (\d)((?:, \w+ = \w+)*)$")


@dataclass(frozen=True)
class ScaledOp(MatrixOp):
    """A scaled matrix instruction. m, n, k: its shape; a, b, c: element types by their MLIR names.

    opsel_a, opsel_b: which of a lane's scales the instruction takes. A call's scales are its values `scale_a` and
    `scale_b`, 32 bits each; where they are not set, nothing is scaled.
    """

    value_names = ("scale_a", "scale_b")
    shapes: ClassVar[tuple[tuple[int, int, int], ...]]
    most_opsel: ClassVar[int]

    c: str = "f32"
    opsel_a: int = 0
    opsel_b: int = 0

    def __post_init__(self) -> None:
        shown = f"{type(self).__name__} {self.m}x{self.n}x{self.k} of {self.a} and {self.b} to {self.c}"
        if self.shape_mnk not in self.shapes:
            known = ", ".join("x".join(map(str, shape)) for shape in self.shapes)
            raise ArgumentError(f"there is no {shown}", hint=f"shapes: {known}")
        if self.a not in FORMATS or self.b not in FORMATS or self.c != "f32":
            raise ArgumentError(f"there is no {shown}", hint=f"operands: {', '.join(FORMATS)}; the result is f32")
        for opsel in (self.opsel_a, self.opsel_b):
            if type(opsel) is not int or not 0 <= opsel <= self.most_opsel:
                raise ArgumentError(f"opsel of {shown} must be 0 to {self.most_opsel}, got {opsel!r}")

    def __str__(self) -> str:
        shape, opsel = f"{self.m}x{self.n}x{self.k}", f"opselA = {self.opsel_a}, opselB = {self.opsel_b}"
        return f"!{self.name}<{shape}, ({self.a}, {self.b}) -> {self.c}, {opsel}>"

    @classmethod
    def parse_body(cls, body: str) -> ScaledOp:
        match = _TEXT.match(body)
        if match is None or not all(value in _UNCHANGED for value in match[9].split(", ")[1:]):
            hint = "write 16x16x128, (f8E4M3FN, f8E4M3FN) -> f32, opselA = 0, opselB = 0, for example"
            raise ArgumentError(f"{body!r} is not a scaled matrix instruction", hint=hint)
        m, n, k = (int(match[i]) for i in (1, 2, 3))
        return cls(m, n, k, match[4], match[5], match[6], int(match[7]), int(match[8]))

    @property
    @abstractmethod
    def operation(self) -> str:
        """The name of the ROCDL operation."""


# What FlyDSL's text adds to an instruction of gfx1250 that has none of these modifiers.
_UNCHANGED = ("modC = 0", "reuseA = false", "reuseB = false", "blockSize = 32")


class MFMAScale(ScaledOp):
    """A scaled matrix instruction of CDNA 4. opsel: the byte of a lane's 32-bit scale that scales its 32 elements.

    A lane holds two pieces of 16 elements, half of k apart, if they have 8 bits; narrower ones are 32 in a row.

    >>> op = MFMAScale(16, 16, 128, "f8E4M3FN", "f4E2M1FN")
    >>> print(op)
    !fly_rocdl.cdna4.mfma_scale<16x16x128, (f8E4M3FN, f4E2M1FN) -> f32, opselA = 0, opselB = 0>
    >>> op.layout_tv_a, op.layout_tv_b
    (((16,4),(16,2)):((1,256),(16,1024)), ((16,4),32):((1,512),16))
    """

    name = "fly_rocdl.cdna4.mfma_scale"
    threads = 64
    shapes = ((16, 16, 128), (32, 32, 64))
    most_opsel = 3

    @property
    def archs(self) -> tuple[str, ...]:
        return CDNA4

    @property
    def operation(self) -> str:
        """The name of the ROCDL operation."""
        return f"rocdl.mfma.scale.f32.{self.m}x{self.n}x{self.k}.f8f6f4"

    @property
    def layout_tv_a(self) -> Layout:
        return self._operand(self.a)

    @property
    def layout_tv_b(self) -> Layout:
        return self._operand(self.b)

    def _operand(self, element: str) -> Layout:
        groups = self.threads // self.m
        if FORMATS[element][1] == 8:
            return Layout(((self.m, groups), (16, 2)), ((1, 16 * self.m), (self.m, self.k // 2 * self.m)))
        return Layout(((self.m, groups), 32), ((1, 32 * self.m), self.m))

    @property
    def layout_tv_c(self) -> Layout:
        if self.m == 16:
            return Layout(((16, 4), 4), ((16, 4), 1))
        return Layout(((32, 2), (4, 4)), ((32, 4), (1, 8)))


class WMMAScale(ScaledOp):
    """A scaled matrix instruction of gfx1250. opsel: 0, the scales are those of lanes 0 to 15; 1, of lanes 16 to 31.

    A lane's scale is 4 bytes, of one row for each 32 elements of k. 32x16x128 takes 4-bit floats only.

    >>> WMMAScale(16, 16, 128, "f4E2M1FN", "f8E4M3FN").layout_tv_a
    ((16,2),(32,2)):((1,512),(16,1024))
    """

    name = "fly_rocdl.gfx1250.wmma_scale"
    threads = 32
    shapes = ((16, 16, 128), (32, 16, 128))
    most_opsel = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.m == 32 and (self.a, self.b) != ("f4E2M1FN", "f4E2M1FN"):
            where = f"there is no WMMAScale 32x16x128 of {self.a} and {self.b}"
            raise ArgumentError(where, hint="this shape takes f4E2M1FN only")

    @property
    def archs(self) -> tuple[str, ...]:
        return GFX1250

    @property
    def operation(self) -> str:
        """The name of the ROCDL operation."""
        return f"rocdl.wmma.scale.f32.{self.m}x{self.n}x{self.k}.{'f4' if self.m == 32 else 'f8f6f4'}"

    @property
    def layout_tv_a(self) -> Layout:
        if self.m == 32:
            return Layout(((16, 2), (32, 2, 2)), ((1, 32 * 32), (32, 64 * 32, 16)))
        return pieces_in_turn(self.k, FORMATS[self.a][1])

    @property
    def layout_tv_b(self) -> Layout:
        return pieces_in_turn(self.k, FORMATS[self.b][1])

    @property
    def layout_tv_c(self) -> Layout:
        if self.m == 32:
            return Layout(((16, 2), (8, 2)), ((32, 8), (1, 16)))
        return Layout(((16, 2), 8), ((16, 8), 1))
