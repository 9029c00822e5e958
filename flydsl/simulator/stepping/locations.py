"""Values at DWARF's locations, read in a wave: registers, and expressions of them evaluated in all lanes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flydsl.hsaco.operands import EXEC, VCC
from flydsl.hsaco.variables import Operation, Place, Variable
from flydsl.simulator.arrays import Array
from flydsl.simulator.stepping.wave_state import WaveState

_DTYPES = {"i1": "u1", "bf16": "u2"}
_ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "plus": operator.add, "minus": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "shl": operator.lshift, "shr": operator.rshift,
}  # fmt: skip
_WORD_BYTES = 4


class Unreadable(Exception):
    """Raised for a value that cannot be read from registers; the text follows "is", as in "in memory"."""


def read(variable: Variable, place: Place, wave: WaveState, has_halves: bool) -> Any:
    """The elements of a variable in each lane: (lanes,), or (lanes, elements); masked where they are optimised out.

    has_halves: whether the kernel names halves of registers, which DWARF does not tell apart.
    """
    if variable.element == "i1":
        return _condition(place, wave)
    dtype = np.dtype(_DTYPES.get(variable.element) or _numpy_name(variable.element))
    size = dtype.itemsize * variable.elements
    data, known = np.zeros((wave.active.size, size), np.uint8), np.zeros(size, np.bool_)
    at = 0
    for count, expression in place.pieces:
        count = count or size
        if expression:
            if has_halves and count < _WORD_BYTES:
                raise Unreadable("in a half of a register")
            part = _bytes(expression, wave)[:, : min(count, size - at)]
            data[:, at : at + part.shape[1]], known[at : at + part.shape[1]] = part, True
        at += count
    values, missing = data.view(dtype), ~known.reshape(variable.elements, -1).all(axis=1)
    if variable.element == "bf16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    if missing.all():
        raise Unreadable("optimised out")
    shown = np.ma.MaskedArray(values, np.broadcast_to(missing, values.shape)) if missing.any() else values
    return shown[:, 0] if variable.elements == 1 else shown


def number_in(content: bytes, element: str) -> Any:
    """The number that bytes hold. Raises Unreadable for what is no number.

    >>> float(number_in(bytes([0, 0, 128, 63]), "f32")), int(number_in(bytes([255] * 4), "i32"))
    (1.0, -1)
    """
    letters, bits = element.rstrip("0123456789"), element.lstrip("uibf")
    if element == "index":
        return np.frombuffer(content, np.int64)[0]
    if letters not in ("ui", "i", "f", "bf") or not bits.isdigit() or int(bits) not in (1, 8, 16, 32, 64):
        raise Unreadable(f"an argument of {len(content)} bytes")
    if element == "i1":
        return bool(content[0] & 1)
    value = np.frombuffer(content[: int(bits) // 8], _DTYPES.get(element) or _numpy_name(element))[0]
    return (value.astype(np.uint32) << 16).view(np.float32) if element == "bf16" else value


def _numpy_name(element: str) -> str:
    """The name of NumPy's type of the same numbers.

    >>> _numpy_name("ui16"), _numpy_name("f32")
    ('uint16', 'float32')
    """
    letters = element.rstrip("0123456789")
    return {"ui": "uint", "i": "int", "f": "float"}[letters] + element.removeprefix(letters)


def _condition(place: Place, wave: WaveState) -> Array:
    """A condition in each lane, (lanes,) bool. In scalar registers it is a mask with a bit for each lane."""
    lanes = wave.active.size
    words = [_bytes(expression, wave) for _, expression in place.pieces if expression]
    registers = [op for _, expression in place.pieces for op in expression]
    if not words:
        raise Unreadable("optimised out")
    if not all(name == "register" and _is_scalar(int(arguments[0]), lanes) for name, arguments in registers):
        return (words[0][:, 0] & 1).astype(np.bool_)
    bits = np.unpackbits(np.concatenate([word[0] for word in words]), bitorder="little")
    if bits.size == lanes and lanes == 64:
        return bits.astype(np.bool_)
    if lanes == 64:
        return np.full(lanes, bits[0], np.bool_)
    raise Unreadable("in a scalar register, and it is not known whether that is a mask")


def _bytes(expression: Sequence[Operation], wave: WaveState) -> Array:
    """The bytes of a value in each lane: (lanes, 4) of a register, else as many as it has."""
    (name, arguments), *more = expression
    lanes = wave.active.size
    if not more and name == "register":
        return _register(int(arguments[0]), wave)
    if name == "implicit_value":
        constant = np.frombuffer(bytes(arguments[1]), np.uint8)
        return np.broadcast_to(constant, (lanes, constant.size))
    if expression[-1][0] != "stack_value":
        raise Unreadable("in memory")
    value = _evaluated(expression[:-1], wave)
    return np.ascontiguousarray(value).view(np.uint8).reshape(lanes, -1)


def _evaluated(expression: Sequence[Operation], wave: WaveState) -> Array:
    """The value that an expression leaves on DWARF's stack, in each lane: (lanes,) u64."""
    stack: list[Array] = []
    for name, arguments in expression:
        if name == "register_plus":
            number, offset = map(int, arguments)
            word = _register(number, wave).view(np.uint32)[:, 0].astype(np.uint64)
            stack.append(word + _constant(offset, wave))
        elif name in _ARITHMETIC and len(stack) > 1:
            right, left = stack.pop(), stack.pop()
            stack.append(_ARITHMETIC[name](left, right))
        elif name == "plus_uconst" and stack:
            stack.append(stack.pop() + _constant(int(arguments[0]), wave))
        elif name.startswith("lit"):
            stack.append(_constant(int(name.removeprefix("lit")), wave))
        elif name.startswith("const"):
            stack.append(_constant(int(arguments[0]), wave))
        else:
            raise Unreadable(f"an expression with {name}, which is not evaluated here")
    if len(stack) != 1:
        raise Unreadable("an expression that is not evaluated here")
    return stack[0]


def _constant(value: int, wave: WaveState) -> Array:
    return np.full(wave.active.size, value & 0xFFFF_FFFF_FFFF_FFFF, np.uint64)


# The numbers of registers: LLVM, AMDGPUUsage, "Register Identifier".
_SGPRS, _MORE_SGPRS, _FIRST_OF_MORE, _LAST_SGPR = 32, 1088, 64, 105
_VECTORS = {32: {"v": 1536, "a": 2048}, 64: {"v": 2560, "a": 3072}}
_VECTORS_NUMBERED = 256
_SPECIAL = {32: {1: EXEC, 512: VCC}, 64: {17: EXEC, 768: VCC}}


def _is_scalar(number: int, lanes: int) -> bool:
    return number in _SPECIAL[lanes] or _scalar(number) is not None


def _scalar(number: int) -> int | None:
    """The index in the scalar file of a general register."""
    if _SGPRS <= number < _SGPRS + _FIRST_OF_MORE:
        return number - _SGPRS
    if _MORE_SGPRS <= number <= _MORE_SGPRS + _LAST_SGPR - _FIRST_OF_MORE:
        return number - _MORE_SGPRS + _FIRST_OF_MORE
    return None


def _register(number: int, wave: WaveState) -> Array:
    """The bytes of a register in each lane: (lanes, 4), and 8 of a mask of 64 lanes."""
    lanes = wave.active.size
    if number in _SPECIAL[lanes]:
        mask = wave.exec if _SPECIAL[lanes][number] == EXEC else wave.vcc
        return np.broadcast_to(np.frombuffer(mask.to_bytes(lanes // 8, "little"), np.uint8), (lanes, lanes // 8))
    scalar = _scalar(number)
    if scalar is not None and scalar < len(wave.sgpr):
        return np.repeat(wave.sgpr[scalar : scalar + 1].view(np.uint8)[None], lanes, axis=0)
    for file, first in _VECTORS[lanes].items():
        registers = wave.vgpr if file == "v" else wave.agpr
        if first <= number < first + min(_VECTORS_NUMBERED, len(registers)):
            return np.ascontiguousarray(registers[number - first]).view(np.uint8).reshape(lanes, -1)
    raise Unreadable(f"in a register with the number {number}, which is not one of the wave")
