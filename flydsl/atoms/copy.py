"""The interface of copy instructions, and the plain copy."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from enum import Enum
from itertools import product
from typing import ClassVar

from flydsl.errors import ArgumentError

_TEXT = re.compile(r"!([\w.]+)<(.+)>$")
_BODY = re.compile(r"(\d+)((?:, \w+)*)$")
_FAMILIES: dict[str, type[CopyOp]] = {}

BUFFER = "#fly_rocdl.buffer_desc"
"""The address space of buffer resources: bounds-checked, addressed by a 32-bit offset."""
_PLAIN_SPACES = ("generic", "global", "shared", "register")


class Lowering(Enum):
    """The lowering of a copy call to LLVM operations."""

    POINTER = "a load or store at a pointer"
    ATOMIC = "an atomic update at a pointer"
    BUFFER = "a buffer load or store"
    BUFFER_ATOMIC = "an atomic update through a buffer resource"
    BUFFER_TO_LDS = "a buffer load to LDS"
    GLOBAL_TO_LDS = "a global load to LDS"
    LDS_TRANSPOSE = "a transposing read from LDS"


@dataclass(frozen=True)
class CopyOp:
    """An instruction that moves `bits` bits for each of `threads` threads.

    name: the type's name in MLIR text, such as `fly.universal_copy`.
    spaces: the address spaces (source, destination) between which it moves. moves: the same in words, and hint: how to
    come by tensors of such spaces, or by another copy.
    lowering: the way in which `convert-fly-to-rocdl` lowers a call.
    transposes: whether the threads of a call exchange what they read: thread t's value v is number t + v * threads of
    the values that they read, thread after thread.
    value_names: numbers that a call takes besides its tensors, by name: `soffset`, elements to add to the address of a
    buffer; `imm_offset`, bytes to add to the address of a buffer and to that in LDS.
    immediates: those of them that are part of the instruction, with the largest number that it holds.
    passes_registers: whether one instruction both reads and writes memory, past the registers.
    is_asynchronous: whether the program itself waits for it, and LLVM does not.
    """

    name: ClassVar[str]
    widths: ClassVar[tuple[int, ...]]
    spaces: ClassVar[frozenset[tuple[str, str]]]
    moves: ClassVar[str]
    hint: ClassVar[str]
    lowering: ClassVar[Lowering]
    value_names: ClassVar[tuple[str, ...]] = ()
    immediates: ClassVar[dict[str, int]] = {}
    passes_registers: ClassVar[bool] = False
    is_asynchronous: ClassVar[bool] = False
    threads: ClassVar[int] = 1
    transposes: ClassVar[bool] = False

    bits: int

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            _FAMILIES[cls.name] = cls

    def __post_init__(self) -> None:
        if type(self.bits) is not int or self.bits not in self.widths:
            widths = ", ".join(map(str, self.widths))
            raise ArgumentError(f"{type(self).__name__} of {self.bits} bits does not exist", hint=f"widths: {widths}")

    @property
    def archs(self) -> tuple[str, ...] | None:
        """The architectures that have the instruction, or None for all."""
        return None

    @property
    def only_element(self) -> str | None:
        """The only MLIR element type that the instruction takes, or None if it moves any."""
        return None

    @classmethod
    def from_body(cls, body: str) -> CopyOp:
        """Make the instruction from the text between the angle brackets. Raises ArgumentError if it is malformed."""
        match = _BODY.match(body)
        if match is None:
            raise ArgumentError(f"{cls.name}<{body}> is not a copy instruction", hint="write <32>, for example")
        return cls.from_text(int(match[1]), match[2].removeprefix(", ").split(", ") if match[2] else [])

    @classmethod
    def from_text(cls, bits: int, parameters: list[str]) -> CopyOp:
        """Make the instruction from its number of bits and the parameters that follow it in the text."""
        if len(parameters) != len(fields(cls)) - 1:
            raise ArgumentError(f"{cls.name} of {bits} bits with {parameters}: it has {len(fields(cls))} parameters")
        return cls(bits, *parameters)

    def __str__(self) -> str:
        return f"!{self.name}<{self.bits}>"


def parse_copy_op(text: str) -> CopyOp:
    """Parse a copy instruction's type text.

    >>> parse_copy_op("!fly.universal_copy<32>")
    UniversalCopy(bits=32)
    """
    match = _TEXT.match(text)
    if match is None or match[1] not in _FAMILIES:
        raise ArgumentError(f"{text!r} is not a copy instruction", hint=f"known: {', '.join(_FAMILIES)}")
    return _FAMILIES[match[1]].from_body(match[2])


@dataclass(frozen=True)
class UniversalCopy(CopyOp):
    """A move of `bits` contiguous bits by one thread: global_load/store, ds_read/write or a register move.

    >>> print(UniversalCopy(128))
    !fly.universal_copy<128>
    """

    name = "fly.universal_copy"
    widths = (8, 16, 32, 64, 128)
    spaces = frozenset((source, target) for source, target in product(_PLAIN_SPACES, _PLAIN_SPACES))
    moves = "cannot address a buffer tensor"
    hint = "take fx.rocdl.BufferCopy32b() or another width"
    lowering = Lowering.POINTER
