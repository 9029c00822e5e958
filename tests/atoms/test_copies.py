"""Copies and atomic updates as data: which there are, and their text."""

from __future__ import annotations

import pytest

from flydsl.atoms import (
    BUFFER,
    AtomicCopy,
    BufferAtomic,
    BufferCopy,
    BufferCopyLDS,
    CopyOp,
    UniversalAtomic,
    UniversalCopy,
    parse_copy_op,
)
from flydsl.dialect.atom_inference import infer_copy_atom_call
from flydsl.dialect.types import CopyAtomType, MemRefType
from flydsl.errors import ArgumentError, LayoutError


@pytest.mark.parametrize("family", [UniversalAtomic, BufferAtomic])
@pytest.mark.parametrize(
    ("bits", "operation", "element"), [(32, "add", "f32"), (64, "umax", "i64"), (32, "add", "f16")]
)
def test_the_text_says_it_all(family: type[AtomicCopy], bits: int, operation: str, element: str) -> None:
    atomic = family(bits, operation, element)
    assert parse_copy_op(str(atomic)) == atomic


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((32, "nand", "i32"), "no atomic nand of i32"),
        ((32, "max", "i32"), "no atomic max of i32"),
        ((32, "and", "f32"), "no atomic and of f32"),
        ((64, "add", "f32"), "no atomic add of 2 f32"),
        ((8, "add", "i32"), "of 8 bits does not exist"),
    ],
)
def test_what_there_is_not(arguments: tuple[int, str, str], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        UniversalAtomic(*arguments)


def test_a_buffer_updates_less_than_plain_memory() -> None:
    for bits, operation, element in [(16, "add", "f16"), (32, "max", "f32")]:
        UniversalAtomic(bits, operation, element)
        with pytest.raises(ArgumentError, match="no buffer atomic"):
            BufferAtomic(bits, operation, element)


def test_the_cache_modifier_of_a_buffer_copy() -> None:
    for copy in (BufferCopy(32), BufferCopy(128, 2)):
        assert parse_copy_op(str(copy)) == copy
    with pytest.raises(ArgumentError, match="cache_modifier=32"):
        BufferCopy(32, 32)


@pytest.mark.parametrize(
    "text",
    [
        "!fly.universal_atomic<32>",
        "!fly.universal_copy<32, add>",
        "!fly.nothing<32>",
        "!fly_rocdl.cdna3.buffer_copy<32, nt>",
        "!fly_rocdl.cdna3.buffer_copy<32, 1, 2>",
    ],
)
def test_malformed_text(text: str) -> None:
    with pytest.raises(ArgumentError):
        parse_copy_op(text)


@pytest.mark.parametrize("bits", UniversalCopy.widths)
def test_the_text_of_a_plain_copy_reads_back(bits: int) -> None:
    assert parse_copy_op(str(UniversalCopy(bits))) == UniversalCopy(bits)


@pytest.mark.parametrize("bits", [0, -32, 24, 256, 32.0, "32", None, True])
def test_other_widths_of_a_plain_copy_do_not_exist(bits: object) -> None:
    with pytest.raises(ArgumentError, match="bits does not exist"):
        UniversalCopy(bits)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "!fly.universal_copy", "!fly.universal_copy<>", "!fly.other<32>", "32"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="not a copy instruction"):
        parse_copy_op(text)


MEMORIES = ["global", "shared", "register", BUFFER]
MOVES = {
    UniversalCopy(32): [(source, target) for source in MEMORIES[:3] for target in MEMORIES[:3]],
    UniversalAtomic(32, "add", "f32"): [("register", "global"), ("register", "shared")],
    BufferCopy(32): [(BUFFER, "register"), ("register", BUFFER)],
    BufferCopyLDS(32): [(BUFFER, "shared")],
    BufferAtomic(32, "add", "f32"): [("register", BUFFER)],
}


@pytest.mark.parametrize("target", MEMORIES)
@pytest.mark.parametrize("source", MEMORIES)
@pytest.mark.parametrize("copy", MOVES, ids=str)
def test_the_memories_between_which_a_copy_moves(copy: CopyOp, source: str, target: str) -> None:
    types = [CopyAtomType(copy, 32), *(MemRefType.get("f32", "1:1", memory) for memory in (source, target))]
    if (source, target) in MOVES[copy]:
        assert infer_copy_atom_call(types, {}) == []
    else:
        with pytest.raises(LayoutError) as caught:
            infer_copy_atom_call(types, {})
        assert copy.moves in caught.value.message
        assert caught.value.hint == copy.hint
