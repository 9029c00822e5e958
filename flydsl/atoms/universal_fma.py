"""The multiply-add of one thread, the smallest matrix instruction."""

from __future__ import annotations

from dataclasses import dataclass

from flydsl.atoms.mma import MmaOp
from flydsl.errors import ArgumentError
from flydsl.layout import Layout

_ELEMENTS = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True)
class UniversalFMA(MmaOp):
    """The computation d = a * b + c by one thread on single elements, rounded once.

    >>> print(UniversalFMA("f32"))
    !fly.universal_fma<f32>
    """

    name = "fly.universal_fma"
    threads = 1

    element: str

    def __post_init__(self) -> None:
        if self.element not in _ELEMENTS:
            raise ArgumentError(f"UniversalFMA of {self.element} does not exist", hint=f"types: {', '.join(_ELEMENTS)}")

    def __str__(self) -> str:
        return f"!{self.name}<{self.element}>"

    @classmethod
    def parse_body(cls, body: str) -> UniversalFMA:
        return cls(body)

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        return (1, 1, 1)

    @property
    def elements(self) -> tuple[str, str, str]:
        return (self.element,) * 3

    @property
    def layout_tv_a(self) -> Layout:
        return Layout((1, 1), (0, 0))

    layout_tv_b = layout_tv_c = layout_tv_a
