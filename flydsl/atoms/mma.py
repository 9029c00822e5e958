"""The interface of matrix instructions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from flydsl.errors import ArgumentError
from flydsl.layout import Layout

_FAMILIES: dict[str, Callable[[str], MmaOp]] = {}


class MmaOp(ABC):
    """An instruction with which `threads` threads together compute D = A B^T + C on a small tile.

    name: the type's name in MLIR text, such as `fly_rocdl.cdna3.mfma`.

    Tiles are A: (M, K), B: (N, K) and C, D: (M, N). A thread-value layout maps (thread, value) to an element of its
    tile, the tile's first mode fastest. The terms are CuTe's, MMA_Traits (media/docs/cpp/cute/0t_mma_atom.md).

    value_names: numbers that a call takes besides its operands, by name: scales. immediates: those of them that are
    part of the instruction: none.
    """

    name: ClassVar[str]
    threads: ClassVar[int]
    value_names: ClassVar[tuple[str, ...]] = ()
    immediates: ClassVar[dict[str, int]] = {}

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            _FAMILIES[cls.name] = cls.parse_body

    @classmethod
    @abstractmethod
    def parse_body(cls, body: str) -> MmaOp:
        """Parse the text between the angle brackets of the type. Raises ArgumentError if it is malformed."""

    @property
    def archs(self) -> tuple[str, ...] | None:
        """The architectures that have the instruction, or None for all."""
        return None

    @property
    @abstractmethod
    def shape_mnk(self) -> tuple[int, int, int]:
        """Extents of the tile that one call multiplies."""

    @property
    @abstractmethod
    def elements(self) -> tuple[str, str, str]:
        """The element types of A, B, and C and D, by their MLIR names."""

    @property
    @abstractmethod
    def layout_tv_a(self) -> Layout:
        """(thread, value) -> element of A's tile."""

    @property
    @abstractmethod
    def layout_tv_b(self) -> Layout:
        """(thread, value) -> element of B's tile."""

    @property
    @abstractmethod
    def layout_tv_c(self) -> Layout:
        """(thread, value) -> element of the tile of C and D."""

    @property
    def thr_layout(self) -> Layout:
        """The threads of a call, by their number in the wave."""
        return Layout(self.threads, 1)

    def layout_tv(self, operand: str) -> Layout:
        """The thread-value layout of operand `a`, `b` or `c`."""
        return {"a": self.layout_tv_a, "b": self.layout_tv_b, "c": self.layout_tv_c}[operand]

    def element_of(self, operand: str) -> str:
        """The element type of operand `a`, `b` or `c`."""
        return self.elements["abc".index(operand)]


@dataclass(frozen=True)
class MatrixOp(MmaOp):
    """An instruction of a wave, for operands of one shape.

    m, n, k: the shape; a, b, c: element types of the operands and of the result, by their MLIR names.
    """

    m: int
    n: int
    k: int
    a: str
    b: str
    c: str

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        return (self.m, self.n, self.k)

    @property
    def elements(self) -> tuple[str, str, str]:
        return (self.a, self.b, self.c)


def parse_mma_op(text: str) -> MmaOp:
    """Parse a matrix instruction's type text.

    >>> parse_mma_op("!fly.universal_fma<f32>")
    UniversalFMA(element='f32')
    """
    name, bracket, rest = text.removeprefix("!").partition("<")
    if not text.startswith("!") or name not in _FAMILIES or not bracket or not rest.endswith(">"):
        raise ArgumentError(f"{text!r} is not a matrix instruction", hint=f"known: {', '.join(_FAMILIES)}")
    return _FAMILIES[name](rest[:-1])
