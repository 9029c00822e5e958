"""Operands of AMD assembly: registers, constants, symbols, and the modifiers around them."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

VCC, M0, EXEC = 106, 124, 126
"""Indices of the special registers in the scalar file; the numbers are those of the machine encoding."""
CLUSTER_STATE = 125
"""The place of the scalar file, where no register is, that keeps the hardware register IB_STS2 for `s_getreg_b32`."""

SGPR_FILE_SIZE = 128

_SPECIAL_REGISTERS = {
    "flat_scratch": (102, 2),
    "flat_scratch_lo": (102, 1),
    "flat_scratch_hi": (103, 1),
    "xnack_mask": (104, 2),
    "xnack_mask_lo": (104, 1),
    "xnack_mask_hi": (105, 1),
    "vcc": (VCC, 2),
    "vcc_lo": (VCC, 1),
    "vcc_hi": (VCC + 1, 1),
    "m0": (M0, 1),
    "exec": (EXEC, 2),
    "exec_lo": (EXEC, 1),
    "exec_hi": (EXEC + 1, 1),
}
_TTMP0 = 108


def ttmp(number: int) -> int:
    """The index of a trap handler's register in the scalar file."""
    return _TTMP0 + number


_FILE_SIZES = {"s": 128, "ttmp": 16, "v": 1024, "a": 1024}
"""The most registers that any architecture can name."""


@dataclass(frozen=True)
class Register:
    """`count` consecutive 32-bit registers of file "s" (scalar), "v" (vector) or "a" (accumulation)."""

    file: str
    first: int
    count: int

    def part(self, index: int) -> Register:
        return Register(self.file, self.first + index, 1)


@dataclass(frozen=True, eq=False)
class Immediate:
    """A constant as written. Its bits depend on the operand's type: see `bits`.

    1.0 and 1 are two constants, though Python's numbers are equal, and so are 32 and 64 bits of the same number:

    >>> Immediate(1.0) == Immediate(1), Immediate(5, True) == Immediate(5, True, True), Immediate(1) == Immediate(1)
    (False, False, True)
    """

    value: int | float
    is_literal: bool = False  # written in hexadecimal: 32 bits of the instruction stream
    is_wide: bool = False  # or 64 bits of it

    def _key(self) -> tuple[str, bool, bool]:
        return repr(self.value), self.is_literal, self.is_wide

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Immediate) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def bits(self, type_: str) -> int:
        """The constant as an operand of `type_`.

        A float constant is rounded to the operand's width, but a 16-bit integer gets the low half of its f32 (LLVM,
        AMDGPU, `getInlineEncodingV216`); an integer is used as it is, also by a float
        operand, except that a 64-bit float takes a literal as its high half (ISA, "Literal constants").

        >>> hex(Immediate(1.0).bits("f16")), hex(Immediate(1.0).bits("i32")), hex(Immediate(-1).bits("i16"))
        ('0x3c00', '0x3f800000', '0xffff')
        >>> hex(Immediate(1.0).bits("i16")), hex(Immediate(-(1 << 31), is_literal=True).bits("f64"))
        ('0x0', '0x8000000000000000')
        """
        if type_ == "bfloat":
            return self._bfloat_bits() if isinstance(self.value, float) else self.value & 0xFFFF
        width = int(type_[1:])
        if isinstance(self.value, float):
            return self._float_bits(32) & 0xFFFF if type_ == "i16" else self._float_bits(width)
        if self.is_literal and type_ == "f64" and not self.is_wide:
            return (self.value & 0xFFFFFFFF) << 32
        return self.value & ((1 << width) - 1)

    def packed_bits(self, type_: str) -> int:
        """The 32 bits from which op_sel takes halves of `type_`: f16, bf16 or i16.

        Above an f16 or bf16 are zeros, above an integer its sign; for integer halves, a float constant is an f32.

        >>> [hex(Immediate(x).packed_bits(t)) for x, t in ((1.0, "f16"), (1.0, "i16"), (-1, "f16"))]
        ['0x3c00', '0x3f800000', '0xffffffff']
        """
        if type_ == "bf16" and isinstance(self.value, float):
            return self._bfloat_bits()
        return self.bits("f16" if type_ == "f16" and isinstance(self.value, float) else "i32")

    def _bfloat_bits(self) -> int:
        """Rounded, as LLVM does it, but for the inline constant 1 / (2 pi), which has less, and which it writes so."""
        bits = self._float_bits(32)
        return 0x3E22 if self.value == 0.15915494 else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16

    def _float_bits(self, width: int) -> int:
        float_format, int_format = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}[width]
        return int(struct.unpack(int_format, struct.pack(float_format, self.value))[0])


_INV_2PI_SPELLINGS = ("0.15915494", "0.15915494309189532", "0.1592")


@dataclass(frozen=True)
class Symbol:
    """A label or symbol; `relocation` is such as "rel32@lo", `addend` in bytes.

    The difference of two labels has the second one in `minus`; `relocation` says which half is meant.
    """

    name: str
    relocation: str = ""
    addend: int = 0
    minus: str = ""


@dataclass(frozen=True)
class Aperture:
    """`src_shared_base` and its like: the bases of LDS and scratch in the flat address space."""

    name: str


@dataclass(frozen=True)
class StatusBit:
    """`src_scc`, or `src_vccz`, `src_execz` (VCC or EXEC is zero): 1 or 0, whatever the operand's type."""

    name: str

    @property
    def register(self) -> int | None:
        """The first of the two scalar registers that are compared with zero; None for SCC."""
        return STATUS_BITS[self.name]


STATUS_BITS = {"src_scc": None, "src_vccz": VCC, "src_execz": EXEC}


@dataclass(frozen=True)
class Null:
    """`null`: a scalar operand that reads as 0, and a scalar result that is dropped."""


@dataclass(frozen=True)
class Keyword:
    """Anything else: `off`, `vmcnt(0)`, `hwreg(HW_REG_MODE, 0, 4)`."""

    text: str


Atom = Register | Immediate | Symbol | Aperture | StatusBit | Null | Keyword
ModifierValue = int | str | tuple[int, ...]


@dataclass(frozen=True)
class Operand:
    """An operand with the modifiers written on it: -x, |x|, sext(x), x.l and x.h (half: 0 or 1)."""

    atom: Atom
    negate: bool = False
    absolute: bool = False
    sign_extend: bool = False
    half: int | None = None


@dataclass(frozen=True)
class Modifiers:
    """The modifiers after the operands: `offset:16 sc0 op_sel:[0,1]`. A flag such as sc0 has the value 1."""

    values: dict[str, ModifierValue] = field(default_factory=dict)

    def flag(self, name: str) -> bool:
        return name in self.values and self.values[name] != 0

    def integer(self, name: str, default: int = 0) -> int:
        value = self.values.get(name, default)
        if not isinstance(value, int):
            raise ValueError(f"{name}:{value} is not a number")
        return value

    def text(self, name: str, default: str) -> str:
        return str(self.values.get(name, default))

    def bits(self, name: str, count: int, default: int = 0) -> tuple[int, ...]:
        """A list of bits such as op_sel, padded to `count` with zeros; without one, `default` everywhere."""
        value = self.values.get(name, (default,) * count)
        given = value if isinstance(value, tuple) else (int(value),)
        return given + (0,) * (count - len(given))


_ENCODING = re.compile(r"_(e32|e64|sdwa|dpp|dpp8|e64_dpp|e64_dpp8)$")
_REGISTER = re.compile(r"(s|v|a|ttmp)(\d+)$")
_REGISTER_RANGE = re.compile(r"(s|v|a|ttmp)\[(\d+)(?::(\d+))?\]$")
_HALF = re.compile(r"([sv]\d+|vcc_lo|vcc_hi|m0|ttmp\d+)\.([lh])$")
_INTEGER = re.compile(r"-?(0x[0-9a-fA-F]+|\d+)$")
_LITERAL = re.compile(r"lit(64)?\((-?0x[0-9a-fA-F]+|-?\d+)\)$")
_FLOAT = re.compile(r"-?\d+\.\d*(e[+-]?\d+)?$")
_DIFFERENCE = re.compile(r"\(?([A-Za-z_.$][\w.$]*)-([A-Za-z_.$][\w.$]*)\)?(&4294967295|&0xffffffff|>>32)?$")
_SYMBOL = re.compile(r"([A-Za-z_.$][\w.$]*)((?:@\w+)*)([+-]\d+)?$")


def parse_operand(text: str) -> Operand:
    """Read one operand.

    >>> parse_operand("-|v3|")
    Operand(atom=Register(file='v', first=3, count=1), negate=True, absolute=True, sign_extend=False, half=None)
    """
    negate = absolute = sign_extend = False
    is_number = _INTEGER.match(text) or (_FLOAT.match(text) and text[1:] not in _INV_2PI_SPELLINGS)
    if text.startswith("-") and not is_number:
        negate, text = True, text[1:]
    for wrapper in ("neg", "abs", "sext"):
        if text.startswith(wrapper + "(") and text.endswith(")"):
            text = text[len(wrapper) + 1 : -1]
            negate |= wrapper == "neg"
            absolute |= wrapper == "abs"
            sign_extend |= wrapper == "sext"
    if text.startswith("|") and text.endswith("|"):
        absolute, text = True, text[1:-1]
    half = _HALF.match(text)
    if half:
        return Operand(parse_atom(half[1]), negate, absolute, sign_extend, int(half[2] == "h"))
    return Operand(parse_atom(text), negate, absolute, sign_extend)


def parse_atom(text: str) -> Atom:
    """Read an operand without its modifiers. ValueError for registers that no architecture has."""
    register = _parse_register(text)
    if register is not None:
        return register
    literal = _LITERAL.match(text)
    if literal or _INTEGER.match(text):
        value = int(literal[2] if literal else text, 0)
        is_wide = bool(literal and literal[1]) or not -(1 << 31) <= value < 1 << 32
        return Immediate(value, "0x" in text or bool(literal), is_wide)
    if _FLOAT.match(text):
        return Immediate(float(text))
    if text in STATUS_BITS or f"src_{text}" in STATUS_BITS:
        return StatusBit(f"src_{text.removeprefix('src_')}")
    if text == "null":
        return Null()
    if text.startswith("src_"):
        return Aperture(text)
    difference = _DIFFERENCE.match(text)
    if difference:
        half = "difference@hi" if difference[3] == ">>32" else "difference@lo"
        return Symbol(difference[1], half, minus=difference[2])
    symbol = _SYMBOL.match(text)
    if symbol and (symbol[2] or text.startswith(".L")):
        return Symbol(symbol[1], symbol[2].lstrip("@"), int(symbol[3] or 0))
    return Keyword(text)


def _parse_register(text: str) -> Register | None:
    if text in _SPECIAL_REGISTERS:
        first, count = _SPECIAL_REGISTERS[text]
        return Register("s", first, count)
    match = _REGISTER.match(text) or _REGISTER_RANGE.match(text)
    if match is None:
        return None
    file, first = match[1], int(match[2])
    last = int(match[3]) if match.lastindex == 3 else first
    if not first <= last < _FILE_SIZES[file]:
        raise ValueError(f"there are no registers {text}")
    return Register("s" if file == "ttmp" else file, first + (_TTMP0 if file == "ttmp" else 0), last - first + 1)


def register_name(register: Register) -> str:
    """The name of a register as assembly writes it.

    >>> register_name(Register("v", 2, 1)), register_name(Register("s", VCC, 2)), register_name(Register("a", 0, 4))
    ('v2', 'vcc', 'a[0:3]')
    """
    if register.file == "s" and register.first in _NAMES:
        return _NAMES[register.first]
    last = register.first + register.count - 1
    return f"{register.file}{last}" if register.count == 1 else f"{register.file}[{register.first}:{last}]"


_NAMES = {VCC: "vcc", VCC + 1: "vcc_hi", EXEC: "exec", EXEC + 1: "exec_hi", M0: "m0"}


def split_encoding(name: str) -> tuple[str, str]:
    """A mnemonic without its encoding, and the encoding: "" if the assembler chooses it.

    >>> split_encoding("v_add_f32_e32"), split_encoding("v_add_f32_e64_dpp"), split_encoding("s_nop")
    (('v_add_f32', 'e32'), ('v_add_f32', 'e64_dpp'), ('s_nop', ''))
    """
    encoding = _ENCODING.search(name)
    return (name[: encoding.start()], encoding[1]) if encoding else (name, "")


def split_operands(text: str) -> list[str]:
    """Split at commas outside brackets.

    >>> split_operands("v0, hwreg(HW_REG_MODE, 0, 4), s[0:1]")
    ['v0', 'hwreg(HW_REG_MODE, 0, 4)', 's[0:1]']
    """
    return _split(text, lambda c: c == ",")


def split_words(text: str) -> list[str]:
    """Split at white space outside brackets."""
    return _split(text, str.isspace)


def _split(text: str, is_separator: object) -> list[str]:
    assert callable(is_separator)
    pieces, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if depth == 0 and is_separator(character):
            pieces.append(text[start:position].strip())
            start = position + 1
    pieces.append(text[start:].strip())
    return [p for p in pieces if p]


def parse_modifier(text: str) -> tuple[str, ModifierValue]:
    """Read one modifier: a flag, `name:number`, `name:[bits]` or `name:word`, whose words may be in brackets, too."""
    name, colon, value = text.partition(":")
    if not colon:
        return name, 1
    numbers = value[1:-1].split(",")
    if value.startswith("[") and all(_INTEGER.match(number.strip()) for number in numbers):
        return name, tuple(int(number, 0) for number in numbers)
    if _INTEGER.match(value):
        return name, int(value, 0)
    return name, value
