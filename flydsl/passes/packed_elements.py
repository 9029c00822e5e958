"""Tensors of elements below a byte: memory and registers hold them packed, and instructions move them in words.

A tensor of such elements is one of 32-bit words to every pass after fly-layout-lowering. A register tensor of 32
elements of f4E2M1FN, stored from a vector and multiplied, becomes

    %words = fly.make_ptr() {dictAttrs = {allocSize = 4 : i64}} : () -> !fly.ptr<i32, register>
    %packed = vector.bitcast %vector : vector<32xf4E2M1FN> to vector<4xi32>
    fly.ptr.store(%packed, %words) : (vector<4xi32>, !fly.ptr<i32, register>) -> ()
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mlir import ir

from flydsl.dialect.elements import WORD_BITS, element_type, is_packed, words_of
from flydsl.dialect.location import source_location
from flydsl.dialect.memory_inference import require_whole_words
from flydsl.dialect.ops import attributes_of
from flydsl.dialect.types import CopyAtomType, MemRefType, fly_type
from flydsl.errors import CompileError, LayoutError
from flydsl.passes.rewriting import create, create_fly, defining_op, fly_name


def pointer_to_words(pointer: ir.Value) -> ir.Value:
    """The pointer to the words that hold packed elements."""
    kind = fly_type(pointer.type)
    if not is_packed(kind.element):
        return pointer
    words = replace(kind, element="i32", alignment=None)
    maker = defining_op(pointer)
    if maker is not None and fly_name(maker) == "recast_iter" and maker.operands[0].type == words.ir:
        return maker.operands[0]
    return create_fly("recast_iter", [pointer], ir.Location.current, results=[words]).result


def word_offset(kind: MemRefType, offset: Any) -> Any:
    """An offset in elements as one in words. Raises LayoutError if elements there may begin within a word."""
    try:
        require_whole_words(kind.element, offset)
    except LayoutError as error:
        raise error.located(source_location(ir.Location.current)) from None
    per_block, words = words_of(kind.element)
    return offset // per_block * words


def word_count(element: str, count: int) -> int:
    """The number of words that hold some elements, which inference has found to fill them."""
    per_block, words = words_of(element)
    return count // per_block * words


def as_words(value: ir.Value, at: ir.Location) -> ir.Value:
    """A vector of packed elements as one of words."""
    element = str(value.type.element_type)
    words = ir.VectorType.get([word_count(element, value.type.shape[0])], element_type("i32"))
    return create("vector.bitcast", [value], [words], at).result


def copy_of_words(atom: ir.Value) -> ir.Value:
    """A copy atom of packed elements as one of words, with the values that were set on it."""
    kind, maker = fly_type(atom.type), defining_op(atom)
    if kind.value_bits >= _BYTE_BITS:
        return atom
    of_words = CopyAtomType(kind.op, WORD_BITS)
    if maker is not None and fly_name(maker) == "make_copy_atom":
        bits = {"valBits": ir.IntegerAttr.get(element_type("i32"), WORD_BITS)}
        return create_fly("make_copy_atom", [], atom.owner.location, results=[of_words], attributes=bits).result
    if maker is not None and fly_name(maker) == "atom.set_value":
        inner = copy_of_words(maker.operands[0])
        field = attributes_of(maker)
        return create_fly("atom.set_value", [inner, maker.operands[1]], maker.location, attributes=field).result
    raise CompileError(
        f"unsupported: a copy of elements below 8 bits by {kind}, which is not made here",
        at=source_location(ir.Location.current),
        hint="make the atom in the kernel, outside of branches and loops",
    )


_BYTE_BITS = 8
