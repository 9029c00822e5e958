"""Text of LLVM IR: typed values and a function body that grows."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

_LLVM_NAMES = {"f16": "half", "f32": "float", "f64": "double"}


def scalar_type(type_: str) -> str:
    """LLVM's name of a builder type."""
    return _LLVM_NAMES.get(type_, type_)


def vector_type(type_: str, lanes: int) -> str:
    return f"<{lanes} x {scalar_type(type_)}>"


@dataclass(frozen=True)
class LlvmValue:
    """An SSA value or constant: one for each of `lanes`, or, with 0, one per wave. type is the builder's name."""

    text: str
    type: str
    lanes: int
    is_constant: bool = False

    @property
    def llvm_type(self) -> str:
        return vector_type(self.type, self.lanes) if self.lanes else scalar_type(self.type)

    def __str__(self) -> str:
        return f"{self.llvm_type} {self.text}"


class Registers(tuple[LlvmValue, ...]):
    """The values of registers that follow each other. offset: where the first one is in the wave, an i64."""

    offset: str

    def __new__(cls, offset: str, values: Iterable[LlvmValue]) -> Registers:
        made = super().__new__(cls, values)
        made.offset = offset
        return made


@dataclass(frozen=True)
class RecordNumber:
    """A number in the record: `slot`, then what the semantics computed from it with constants.

    It takes the place of an int in semantics, which only do arithmetic with it and pass it to `const`.
    """

    slot: int
    steps: tuple[tuple[str, int], ...] = ()

    def _then(self, operation: str, number: int) -> RecordNumber:
        return RecordNumber(self.slot, (*self.steps, (operation, number)))

    def __add__(self, number: int) -> RecordNumber:
        return self._then("add", number)

    def __mul__(self, number: int) -> RecordNumber:
        return self._then("mul", number)

    def __and__(self, number: int) -> RecordNumber:
        return self._then("and", number)

    __radd__, __rmul__, __rand__ = __add__, __mul__, __and__

    def __bool__(self) -> bool:
        raise TypeError("a number of the record decides nothing while code is generated")


def constant(type_: str, value: int | float) -> LlvmValue:
    """A constant. An int is reduced to the type's width.

    >>> constant("i16", -1).text, constant("f32", 1.0).text, constant("f16", 1.0).text
    ('65535', '0x3FF0000000000000', '0xH3C00')
    """
    if type_ == "i1":
        return LlvmValue("true" if value else "false", type_, 0, True)
    if type_[0] == "i":
        return LlvmValue(str(int(value) & ((1 << int(type_[1:])) - 1)), type_, 0, True)
    if type_ == "f16":
        return LlvmValue(f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}", type_, 0, True)
    if type_ == "f32":
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return LlvmValue(f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}", type_, 0, True)


def indices(numbers: Iterable[int]) -> str:
    """The constant mask of a shufflevector."""
    listed = [f"i32 {n}" for n in numbers]
    return f"<{len(listed)} x i32> <{', '.join(listed)}>"


@dataclass(frozen=True)
class Function:
    """LLVM IR of one function, and the declarations that it needs."""

    name: str
    text: str
    declarations: frozenset[str]


@dataclass
class Body:
    """The lines of a function, with fresh names for values and blocks, and the functions that it calls."""

    lines: list[str] = field(default_factory=list)
    declarations: set[str] = field(default_factory=set)
    block: str = "entry"
    _count: int = 0

    def name(self) -> str:
        self._count += 1
        return f"%t{self._count}"

    def emit(self, expression: str) -> str:
        """Add `%name = expression` and return the name."""
        name = self.name()
        self.lines.append(f"  {name} = {expression}")
        return name

    def do(self, statement: str) -> None:
        self.lines.append("  " + statement)

    def label(self) -> str:
        self._count += 1
        return f"L{self._count}"

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def pointer(self, base: str, offset: int | str) -> str:
        """A pointer to base + offset bytes."""
        return base if offset == 0 else self.emit(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load(self, llvm_type: str, pointer: str, alignment: int = 0) -> str:
        return self.emit(f"load {llvm_type}, ptr {pointer}" + (f", align {alignment}" if alignment else ""))

    def store(self, typed_value: object, pointer: str, alignment: int = 0) -> None:
        self.do(f"store {typed_value}, ptr {pointer}" + (f", align {alignment}" if alignment else ""))

    def call(self, result: str, function: str, *arguments: object) -> str:
        """Call a function, declared by its arguments' types. `result` is an LLVM type other than void."""
        return self.emit(self._call(result, function, arguments))

    def call_void(self, function: str, *arguments: object) -> None:
        self.do(self._call("void", function, arguments))

    def _call(self, result: str, function: str, arguments: tuple[object, ...]) -> str:
        types = [getattr(a, "llvm_type", None) or str(a).split(" ")[0] for a in arguments]
        self.declarations.add(f"declare {result} @{function}({', '.join(types)})")
        return f"call {result} @{function}({', '.join(map(str, arguments))})"


def shared_function(body: Body, parameters: Sequence[str]) -> Function:
    """A function of addresses, named by what it does: that of another handler is the same."""
    lines = "\n".join([*body.lines, "  ret void"])
    name = f"shared_{hashlib.sha256(f'{parameters} {lines}'.encode()).hexdigest()[:40]}"
    text = f"define void @{name}({', '.join(f'ptr {parameter}' for parameter in parameters)}) {{\nentry:\n{lines}\n}}\n"
    return Function(name, text, frozenset(body.declarations))
