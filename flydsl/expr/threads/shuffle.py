"""Read values of any type from other lanes of a wave: the code behind `shuffle_xor` and its kin.

A value is split into 32-bit words, which move one by one. If the distance is known at compile time, the cheapest
suitable instruction is used: DPP or an exchange of rows (in the VALU, no LDS unit) or ds_swizzle (no address register);
otherwise ds_bpermute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mlir import ir

from flydsl.atoms.instruction_sets import CDNA4, WAVE32
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import argument_error
from flydsl.expr.numbers.arith_value import ArithValue, add_methods
from flydsl.expr.numeric import Index, Int32, as_numeric, bare_like, is_python_number
from flydsl.expr.rocdl.intrinsic import bitcast, bits_of, intrinsic_result, operand, value_of
from flydsl.expr.rocdl.lane import ds_bpermute, ds_swizzle, lane_id, permlane16_swap, permlane32_swap, update_dpp
from flydsl.expr.tracing.emit import emit, target_name
from flydsl.expr.tracing.immediates import immediate
from flydsl.expr.tracing.operands import is_runtime
from flydsl.expr.vector import Vector

if TYPE_CHECKING:
    from flydsl.expr.kinds import Number, Value

MODES = ("xor", "up", "down", "idx")
_WAVE64_LANES, _WAVE32_LANES = 64, 32
_LANE_BYTES = 4

# Distances of an exclusive or that DPP reaches within a row of 16 lanes (ISA, "DPP_CTRL"): quad_perm, row_half_mirror,
# row_ror:8, row_mirror.
_DPP_XOR = {1: 0xB1, 2: 0x4E, 3: 0x1B, 7: 0x141, 8: 0x128, 15: 0x140}
_ROW_SHL_4, _ROW_SHR_4, _EVEN_BANKS, _ODD_BANKS = 0x104, 0x114, 0x5, 0xA
_ROW_SWAPS = {16: permlane16_swap, 32: permlane32_swap}
_SWIZZLE_LANES = 32
_SWIZZLE_ALL = 0x1F

_Move = Callable[[Any], Any]


def shuffle(value: Value, offset: Number, width: Number, mode: str = "xor") -> ArithValue:
    """The value of another lane.

    value: a scalar or one-dimensional vector. width: lanes of a group, a power of two, known at compile time; lanes
    exchange within their group only.
    mode: "xor": of lane ^ offset; "up": of lane - offset; "down": of lane + offset; "idx": of lane `offset` of the
    group. If that lane is outside of the group, the result is the lane's own value. The value of an inactive lane is
    undefined.
    """
    if is_python_number(value) and is_runtime(offset):
        raise argument_error(
            f"shuffle of {value}, which all lanes have: the value comes first, and no mask",
            f"fx.shuffle_{mode}(value, 1, 64)",
        )
    if mode not in MODES:
        raise argument_error(f"shuffle mode {mode!r}", f"modes: {', '.join(MODES)}")
    largest = _WAVE32_LANES if target_name() in WAVE32 else _WAVE64_LANES
    lanes = immediate("the width of shuffle", width, 1, largest)
    if lanes & (lanes - 1):
        raise argument_error(
            f"shuffle: groups must have a power of two of lanes, got {lanes}", "pass 64, the lanes of a wave"
        )
    return moved_words(value, _mover(offset, lanes, mode))


def moved_words(value: Value, move: _Move) -> ArithValue:
    """A scalar or one-dimensional vector whose 32-bit words a function has moved between lanes."""
    given = value_of("shuffle", value)
    result = _from_words(list(map(move, _words(given))), given.type)
    return Vector(result, value.shape, value.dtype) if isinstance(value, Vector) else _scalar_like(value, result)


def shuffle_xor(value: Value, offset: Number, width: Number) -> ArithValue:
    """The value of lane ^ offset, within groups of `width` lanes of the wave."""
    return shuffle(value, offset, width, "xor")


def shuffle_up(value: Value, offset: Number, width: Number) -> ArithValue:
    """The value of lane - offset; a group's first `offset` lanes keep their own."""
    return shuffle(value, offset, width, "up")


def shuffle_down(value: Value, offset: Number, width: Number) -> ArithValue:
    """The value of lane + offset; a group's last `offset` lanes keep their own."""
    return shuffle(value, offset, width, "down")


def shuffle_idx(value: Value, lane: Number, width: Number) -> ArithValue:
    """The value of the group's lane number `lane`."""
    return shuffle(value, lane, width, "idx")


def _scalar_like(value: Any, result: ir.Value) -> Any:
    """The result as a scalar of the value's type, including its sign."""
    number = as_numeric(value)
    return intrinsic_result(result) if isinstance(number, Vector) else bare_like(number.dtype.of(result), number)


def _mover(offset: Any, lanes: int, mode: str) -> _Move:
    """A function that moves a 32-bit word between lanes."""
    distance = as_numeric(offset)
    if mode == "xor" and getattr(distance, "is_static", False):
        return _static_xor(immediate("the offset of shuffle", offset, 0, _WAVE64_LANES - 1), lanes)
    place = Int32.of(operand("the offset of shuffle", offset, Int32))
    source = _source_lane(place, lanes, mode)
    index = source * _LANE_BYTES
    return lambda word: ds_bpermute(index, word)


def _static_xor(distance: int, lanes: int) -> _Move:
    if distance == 0 or distance >= lanes:
        return lambda word: word
    if distance in _DPP_XOR:
        return lambda word: update_dpp(word, word, _DPP_XOR[distance], 0xF, 0xF, True)
    if distance == 4:
        return _exchange_banks
    if distance in _ROW_SWAPS and target_name() in CDNA4:
        return lambda word: _exchange_rows(word, distance)
    if distance < _SWIZZLE_LANES:
        return lambda word: ds_swizzle(word, distance << 10 | _SWIZZLE_ALL)
    index = (lane_id() ^ distance) * _LANE_BYTES
    return lambda word: ds_bpermute(index, word)


def _exchange_banks(word: Any) -> Any:
    """lane ^ 4 as two DPP moves. Every second group of four lanes reads to the left, the others to the right."""
    partly = update_dpp(word, word, _ROW_SHL_4, 0xF, _EVEN_BANKS, False)
    return update_dpp(partly, word, _ROW_SHR_4, 0xF, _ODD_BANKS, False)


def _exchange_rows(word: Any, distance: int) -> Any:
    """lane ^ 16 or lane ^ 32. The exchange leaves the lower rows of each pair twice in one register, and the upper ones
    in the other."""
    pair = _ROW_SWAPS[distance](word, word)
    lower, upper = (
        Int32.of(emit("llvm.extractvalue", [pair], [Int32.ir_type], {"position": ir.DenseI64ArrayAttr.get([i])}).result)
        for i in range(2)
    )
    return ((lane_id() & distance) == 0).select(upper, lower)


def _source_lane(offset: Any, lanes: int, mode: str) -> Any:
    """The lane to read, which is the reading lane itself if its group does not have that lane."""
    lane = lane_id()
    within, first = lane & (lanes - 1), lane & -lanes
    if mode == "idx":
        return first | (offset & (lanes - 1))
    source = {"xor": lambda: within ^ offset, "up": lambda: within - offset, "down": lambda: within + offset}[mode]()
    inside = (source >= 0) & (source < lanes)
    return inside.select(first | source, lane)


def _words(value: ir.Value) -> list[Any]:
    """The bits of a value as Int32, lowest first. Narrow values are padded with zeros."""
    kind = value.type
    if kind == Index.ir_type:
        return _words(emit("arith.index_cast", [value], [element_type("i64")]).result)
    if isinstance(kind, ir.VectorType) and len(kind.shape) != 1:
        raise argument_error(
            f"shuffle takes a scalar or a vector of one dimension, not {kind}",
            "vector.reshape(count) has one dimension",
        )
    bits = bits_of(kind)
    if bits < 32:
        narrow = bitcast(value, element_type(f"i{bits}"))
        return [Int32.of(emit("arith.extui", [narrow], [Int32.ir_type]).result)]
    if bits % 32:
        raise argument_error(
            f"shuffle of {kind}: {bits} bits are not whole 32-bit words", "widen the elements first: value.to(fx.Int32)"
        )
    if bits == 32:
        return [Int32.of(bitcast(value, Int32.ir_type))]
    return list(Vector(bitcast(value, ir.VectorType.get([bits // 32], Int32.ir_type))))


def _from_words(words: list[Any], kind: ir.Type) -> ir.Value:
    """The inverse of `_words`."""
    if kind == Index.ir_type:
        return emit("arith.index_cast", [_from_words(words, element_type("i64"))], [kind]).result
    bits = bits_of(kind)
    if bits < 32:
        narrow = emit("arith.trunci", [words[0].ir_value()], [element_type(f"i{bits}")]).result
        return bitcast(narrow, kind)
    return bitcast(words[0].ir_value() if bits == 32 else Vector.from_elements(words).ir_value(), kind)


add_methods(shuffle_xor, shuffle_up, shuffle_down, shuffle_idx)
