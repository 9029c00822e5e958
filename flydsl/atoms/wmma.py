"""The matrix instructions of RDNA and gfx1250, v_wmma_*, as atoms of a wave of 32 lanes.

Register layouts follow "Wave Matrix Multiply Accumulate" of the RDNA 3 and RDNA 4 ISA documents; of gfx1250, what
AMD's kernels for it load. A sum over k does not depend on the order of k, as long as A and B have the same one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from flydsl.atoms.instruction_sets import GFX1250, RDNA3, RDNA4
from flydsl.atoms.mma import MatrixOp
from flydsl.atoms.wmma_intrinsics import WMMA_INTRINSICS, WmmaIntrinsic
from flydsl.errors import ArgumentError
from flydsl.layout import Layout

_TEXT = re.compile(
    r"(\d+)x(\d+)x(\d+), \((\w+), (\w+)\) -> (\w+)"
    r"(?:, signA = (true|false), signB = (true|false), clamp = (true|false))?$"
)
# What the names of instructions call elements, by MLIR's name.
_NAMES = {"i8": "iu8", "i4": "iu4", "f8E4M3FN": "fp8", "f8E5M2": "bf8"}
_MLIR_NAMES = {name: element for element, name in _NAMES.items()}
_ROWS = 16


@dataclass(frozen=True)
class WMMA(MatrixOp):
    """A matrix instruction of one wave of 32 lanes; each generation has its own class.

    m, n, k: the shape; a, b, c: element types of the operands and of the result, by their MLIR names.
    sign_a, sign_b: integer operands are signed. clamp: an integer result saturates.

    >>> op = Gfx120xWMMA(16, 16, 16, "f16", "f16", "f32")
    >>> print(op)
    !fly_rocdl.gfx120x.wmma<16x16x16, (f16, f16) -> f32>
    >>> op.layout_tv_a, op.layout_tv_c
    (((16,2),8):((1,128),16), ((16,2),8):((16,8),1))
    """

    threads = 32
    generation: ClassVar[tuple[str, ...]]

    sign_a: bool = False
    sign_b: bool = False
    clamp: bool = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _BY_GENERATION[cls.generation] = cls

    def __post_init__(self) -> None:
        if self._found is None:
            raise ArgumentError(
                f"there is no WMMA {self.m}x{self.n}x{self.k} of {self.a} and {self.b} to {self.c} on "
                f"{', '.join(self.generation)}",
                hint=self._known_shapes(),
            )
        if (self.sign_a or self.sign_b or self.clamp) and self.c != "i32":
            raise ArgumentError(
                f"WMMA of {self.a} has no signs to choose and does not clamp", hint="only integers have them"
            )

    @cached_property
    def _found(self) -> WmmaIntrinsic | None:
        a, b = (_NAMES.get(element, element) for element in (self.a, self.b))
        elements = f"{a}_{b}" if a in ("fp8", "bf8") else a
        if (a != b and elements == a) or (b in ("fp8", "bf8")) != (elements != a):
            return None
        name = f"wmma_{self.c}_{self.m}x{self.n}x{self.k}_{elements}"
        found = WMMA_INTRINSICS.get((name, self.generation))
        return None if found is None or self.c not in self._results else found

    _results: ClassVar[tuple[str, ...]] = ("f32", "i32", "f16", "bf16")

    def _known_shapes(self) -> str:
        rows = [form for (_, archs), form in WMMA_INTRINSICS.items() if archs == self.generation and not form.sparse]
        found = [
            (f"{r.m}x{r.n}x{r.k}", tuple(_MLIR_NAMES.get(element, element) for element in r.elements))
            for r in rows
            if r.elements[2] in self._results
        ]
        shapes = [shape for shape, elements in found if elements == self.elements]
        if shapes:
            return f"of these types: {', '.join(shapes)}"
        return f"types: {', '.join(dict.fromkeys(f'({a}, {b}) -> {c}' for _, (a, b, c) in found))}"

    @property
    def intrinsic(self) -> WmmaIntrinsic:
        """The instruction's row of the table."""
        found = self._found
        assert found is not None
        return found

    def __str__(self) -> str:
        signs = {"signA": self.sign_a, "signB": self.sign_b, "clamp": self.clamp}
        listed = "".join(f", {key} = {str(value).lower()}" for key, value in signs.items())
        shown = listed if any(signs.values()) else ""
        return f"!{self.name}<{self.m}x{self.n}x{self.k}, ({self.a}, {self.b}) -> {self.c}{shown}>"

    @classmethod
    def parse_body(cls, body: str) -> WMMA:
        match = _TEXT.match(body)
        if match is None:
            raise ArgumentError(f"{body!r} is not a WMMA", hint="write 16x16x16, (f16, f16) -> f32, for example")
        signs = (match[i] == "true" for i in (7, 8, 9))
        return cls(int(match[1]), int(match[2]), int(match[3]), match[4], match[5], match[6], *signs)

    @property
    def archs(self) -> tuple[str, ...]:
        return self.generation

    @property
    def layout_tv_b(self) -> Layout:
        return self.layout_tv_a  # as many columns as rows

    @property
    def layout_tv_c(self) -> Layout:
        return Layout(((_ROWS, 2), 8), ((_ROWS, 8), 1))


_BY_GENERATION: dict[tuple[str, ...], type[WMMA]] = {}


class Gfx11WMMA(WMMA):
    """A WMMA of RDNA 3: every lane holds a whole row of A, lanes 16 to 31 those of lanes 0 to 15.

    Those with 16-bit results are not atoms: they leave every other half of a register alone. Call them by name.
    """

    name = "fly_rocdl.gfx11.wmma"
    generation = RDNA3
    _results = ("f32", "i32")

    @property
    def layout_tv_a(self) -> Layout:
        return Layout(((_ROWS, 2), self.k), ((1, 0), _ROWS))

    @property
    def layout_tv_c(self) -> Layout:
        return Layout(((_ROWS, 2), 8), ((_ROWS, 1), 2))


class Gfx120xWMMA(WMMA):
    """A WMMA of RDNA 4: half of the lanes hold the first half of each row."""

    name = "fly_rocdl.gfx120x.wmma"
    generation = RDNA4

    @property
    def layout_tv_a(self) -> Layout:
        values = self.k // 2
        return Layout(((_ROWS, 2), values), ((1, _ROWS * values), _ROWS))


class Gfx1250WMMA(WMMA):
    """A WMMA of gfx1250: the halves of a wave take pieces of 16 bytes of each row in turn."""

    name = "fly_rocdl.gfx1250.wmma"
    generation = GFX1250

    @property
    def layout_tv_a(self) -> Layout:
        return pieces_in_turn(self.k, int(re.sub(r"\D", "", self.intrinsic.elements[0])))


def pieces_in_turn(k: int, bits: int) -> Layout:
    """The layout of 16 rows of k elements, where the halves of a wave take pieces of 16 bytes in turn.

    A piece of 6-bit elements is 32 of them, as of 4-bit ones.

    >>> pieces_in_turn(32, 16), pieces_in_turn(4, 32)
    (((16,2),(8,2)):((1,128),(16,256)), ((16,2),2):((1,32),16))
    """
    piece = min(32 if bits == 6 else 128 // bits, k // 2)
    rounds = k // (2 * piece)
    values, strides = ((piece, rounds), (_ROWS, 2 * piece * _ROWS)) if rounds > 1 else (piece, _ROWS)
    return Layout(((_ROWS, 2), values), ((1, piece * _ROWS), strides))


def wmma_of(
    arch: str | None, shape: tuple[int, int, int], elements: tuple[str, str, str], signs: tuple[bool, bool, bool]
) -> WMMA:
    """The WMMA of an architecture. Of none, or of one without WMMA: the first generation that has one of this shape.

    signs: `sign_a`, `sign_b` and `clamp` of the instruction.
    """
    generations = [family for family in _BY_GENERATION.values() if arch in family.generation]
    for family in generations or _BY_GENERATION.values():
        try:
            return family(*shape, *elements, *signs)
        except ArgumentError as error:
            if generations:
                raise
            last = error
    raise last
