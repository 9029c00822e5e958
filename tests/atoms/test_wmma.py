"""Matrix instructions of waves of 32 lanes and scaled ones: layouts are what lanes hold, text is read back."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from flydsl import layout as algebra
from flydsl.atoms import MFMAScale, MmaOp, WMMAScale, parse_mma_op, wmma_of
from flydsl.atoms.scaled import FORMATS
from flydsl.errors import ArgumentError

pytestmark = pytest.mark.slow

F16, BF16, F32 = ("f16", "f16", "f32"), ("bf16", "bf16", "f32"), ("f32", "f32", "f32")
I8, I4, F8 = ("i8", "i8", "i32"), ("i4", "i4", "i32"), ("f8E4M3FN", "f8E5M2", "f32")
PLAIN = (False, False, False)
WMMAS = [
    *(wmma_of("gfx1100", (16, 16, 16), types, PLAIN) for types in (F16, BF16, I8, I4)),
    *(wmma_of("gfx1201", (16, 16, 16), types, PLAIN) for types in (F16, BF16, I8, I4, F8, ("f16", "f16", "f16"))),
    wmma_of("gfx1201", (16, 16, 32), I4, PLAIN),
    *(wmma_of("gfx1250", (16, 16, 32), types, PLAIN) for types in (F16, BF16, ("bf16", "bf16", "bf16"))),
    *(wmma_of("gfx1250", (16, 16, k), F8, PLAIN) for k in (64, 128)),
    wmma_of("gfx1250", (16, 16, 4), F32, PLAIN),
    wmma_of("gfx1250", (16, 16, 64), I8, (True, True, False)),
]
SCALED = [
    *(MFMAScale(*shape, a, b) for shape in ((16, 16, 128), (32, 32, 64)) for a in FORMATS for b in FORMATS),
    *(WMMAScale(16, 16, 128, a, b, opsel_b=1) for a in FORMATS for b in FORMATS),
    WMMAScale(32, 16, 128, "f4E2M1FN", "f4E2M1FN"),
]
EVERY_OP = pytest.mark.parametrize("op", [*WMMAS, *SCALED], ids=str)


@EVERY_OP
def test_text_is_read_back(op: MmaOp) -> None:
    assert parse_mma_op(str(op)) == op


@EVERY_OP
@pytest.mark.diagonal(4)
def test_lanes_hold_every_element_equally_often(op: MmaOp) -> None:
    m, n, k = op.shape_mnk
    for operand, size in (("a", m * k), ("b", n * k), ("c", m * n)):
        layout = op.layout_tv(operand)
        held = Counter(layout(i) for i in range(algebra.size(layout)))
        repeats = 2 if "gfx11." in op.name and operand != "c" else 1
        assert held == dict.fromkeys(range(size), repeats)


@EVERY_OP
@pytest.mark.diagonal(4)
def test_a_and_b_have_the_same_k_in_the_same_place(op: MmaOp) -> None:
    """Else the sum over k would multiply elements of different k."""
    m, n, k = op.shape_mnk
    a, b = (
        [[layout(lane, i) // rows for i in range(algebra.size(layout[1]))] for lane in range(op.threads)]
        for layout, rows in ((op.layout_tv_a, m), (op.layout_tv_b, n))
    )
    if op.elements[0] == op.elements[1]:
        count = min(len(a[0]), len(b[0]))
        assert [lane[:count] for lane in a] == [lane[:count] for lane in b]
    assert {place for lane in a for place in lane} == {place for lane in b for place in lane} == set(range(k))


def coordinates(op: MmaOp, operand: str, lane: int) -> list[tuple[int, int]]:
    """The (row, column) of each of a lane's values."""
    rows = {"a": op.shape_mnk[0], "b": op.shape_mnk[1], "c": op.shape_mnk[0]}[operand]
    layout = op.layout_tv(operand)
    return [(layout(lane, i) % rows, layout(lane, i) // rows) for i in range(algebra.size(layout[1]))]


def test_as_the_documents_draw_them() -> None:
    """RDNA 3 ISA 7.9, RDNA 4 ISA 7.12: lane 19 of A and of the result."""
    rdna3, rdna4, gfx1250 = WMMAS[0], WMMAS[4], WMMAS[11]
    assert coordinates(rdna3, "a", 19) == [(3, k) for k in range(16)]
    assert coordinates(rdna3, "c", 19) == [(2 * i + 1, 3) for i in range(8)]
    assert coordinates(rdna4, "a", 19) == [(3, 8 + i) for i in range(8)]
    assert coordinates(rdna4, "c", 19) == [(8 + i, 3) for i in range(8)]
    assert coordinates(gfx1250, "a", 19) == [(3, 8 + i + 16 * j) for j in range(2) for i in range(8)]
    assert coordinates(gfx1250, "c", 19) == [(8 + i, 3) for i in range(8)]


def test_a_lane_of_a_scaled_instruction() -> None:
    fp8, fp4 = MFMAScale(16, 16, 128, "f8E4M3FN", "f4E2M1FN"), MFMAScale(32, 32, 64, "f4E2M1FN", "f4E2M1FN")
    assert coordinates(fp8, "a", 33) == [(1, 32 + i + 64 * j) for j in range(2) for i in range(16)]
    assert coordinates(fp8, "b", 33) == [(1, 64 + i) for i in range(32)]
    assert coordinates(fp4, "a", 33) == [(1, 32 + i) for i in range(32)]
    assert coordinates(fp8, "c", 33) == [(8 + i, 1) for i in range(4)]
    assert coordinates(fp4, "c", 33) == [(4 + 8 * j + i, 1) for j in range(4) for i in range(4)]
    wide = WMMAScale(32, 16, 128, "f4E2M1FN", "f4E2M1FN")
    assert coordinates(wide, "c", 17) == [(16 * j + 8 + i, 1) for j in range(2) for i in range(8)]


@pytest.mark.parametrize(
    ("arch", "shape", "types", "message"),
    [
        ("gfx1100", (16, 16, 32), F16, "of these types: 16x16x16"),
        ("gfx1100", (16, 16, 16), F8, r"types: \(f16, f16\) -> f32"),
        (
            "gfx1201",
            (16, 16, 16),
            ("f16", "bf16", "f32"),
            "there is no WMMA 16x16x16 of f16 and bf16 to f32 on gfx1200",
        ),
        ("gfx1250", (16, 16, 16), F16, "of these types: 16x16x32"),
        (None, (16, 16, 8), F16, "there is no WMMA"),
    ],
)
def test_what_does_not_exist(arch: str, shape: tuple[int, int, int], types: tuple[str, str, str], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        wmma_of(arch, shape, types, PLAIN)
    assert re.search(message, str(caught.value))


def test_signs_are_of_integers() -> None:
    with pytest.raises(ArgumentError, match="no signs to choose"):
        wmma_of("gfx1201", (16, 16, 16), F16, (True, False, False))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "!fly_rocdl.cdna4.mfma_scale<16x16x64, (f8E4M3FN, f8E4M3FN) -> f32, opselA = 0, opselB = 0>",
            "shapes: 16x16x128",
        ),
        ("!fly_rocdl.cdna4.mfma_scale<16x16x128, (f16, f16) -> f32, opselA = 0, opselB = 0>", "operands: f8E4M3FN"),
        ("!fly_rocdl.cdna4.mfma_scale<16x16x128, (f8E4M3FN, f8E4M3FN) -> f32, opselA = 4, opselB = 0>", "0 to 3"),
        ("!fly_rocdl.gfx1250.wmma_scale<16x16x128, (f8E4M3FN, f8E4M3FN) -> f32, opselA = 2, opselB = 0>", "0 to 1"),
        (
            "!fly_rocdl.gfx1250.wmma_scale<32x16x128, (f8E4M3FN, f8E4M3FN) -> f32, opselA = 0, opselB = 0>",
            "f4E2M1FN only",
        ),
        ("!fly_rocdl.gfx1250.wmma_scale<16x16x128, (f8E4M3FN, f8E4M3FN) -> f32>", "not a scaled matrix"),
        ("!fly_rocdl.gfx11.wmma<16x16, (f16, f16) -> f32>", "not a WMMA"),
    ],
)
def test_wrong_text(text: str, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_mma_op(text)
    assert message in str(caught.value)
