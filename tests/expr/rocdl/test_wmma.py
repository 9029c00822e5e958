"""The matrix instructions of RDNA and gfx1250 by name: what comes out of LLVM, and what is wrong at whose line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import flydsl.expr as fx
from flydsl.atoms.wmma_intrinsics import SCALED_WMMA, WMMA_INTRINSICS
from flydsl.errors import ArchError, ArgumentError, FlyError
from flydsl.expr import rocdl
from flydsl.expr.typing import T

SHAPE = re.compile(r"vector<(\d+)x(\w+)>")


def kind(text: str) -> tuple[int, str]:
    """The extent and element of an operand's type."""
    match = SHAPE.match(text)
    return (int(match[1]), match[2]) if match else (1, text)


def loaded(A: Any, text: str, start: int = 0) -> Any:
    """A value of a type, from memory: no constant that LLVM could fold."""
    count, element = kind(text)
    words = count * int(re.sub(r"\D", "", element)) // 32
    lane = fx.thread_idx.x + start
    vector = fx.Vector.from_elements([A[(lane + i) % 64].bitcast(fx.Int32) for i in range(words)])
    values = vector.bitcast({"f16": fx.Float16, "bf16": fx.BFloat16, "i16": fx.Int16, "f32": fx.Float32,
                             "i32": fx.Int32}[element])  # fmt: skip
    return values if count > 1 else values[0]


def used(A: Any, value: Any, place: int = 0) -> None:
    A[fx.thread_idx.x + place] = fx.Vector(value).bitcast(fx.Int32)[0].bitcast(fx.Float32)


def words(text: str) -> int:
    count, element = kind(text)
    return count * int(re.sub(r"\D", "", element)) // 32


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201", "gfx1250"])
def test_every_instruction_has_operands_of_its_width(arch: str, compiled: Callable[..., str]) -> None:
    """Both spellings; LLVM's listing names as many registers for each operand as the table says."""
    forms = [form for form in WMMA_INTRINSICS.values() if arch in form.archs]

    def body(A: Any) -> None:
        for place, form in enumerate(forms):
            matrices = [loaded(A, text, place) for text in (form.a, form.b, form.c)]
            index = [loaded(A, f"vector<{form.index_bits // 32}xi32>" if form.index_bits > 32 else "i32")] * form.sparse
            function = getattr(rocdl, form.name)
            first = function(*matrices, *index)
            used(A, first, 2 * place)
            used(A, function(first.type, [*matrices[:2], loaded(A, form.c, 7), *index]).res, 2 * place + 1)

    isa = compiled(body, arch)
    for form in forms:
        lines = re.findall(rf"v_{form.name}(?:_w32)? (.*)", isa)
        assert len(lines) == 2, form.name
        registers = re.findall(r"v\[(\d+):(\d+)\]|v(\d+)", lines[0])
        widths = [1 if single else int(last) - int(first) + 1 for first, last, single in registers]
        expected = [words(form.d), words(form.a), words(form.b)]
        expected.append(max(form.index_bits // 32, 1) if form.sparse else words(form.c))
        assert widths == expected, form.name


def test_modifiers_are_part_of_the_instruction(compiled: Callable[..., str]) -> None:
    def body(A: Any) -> None:
        a, c = loaded(A, "vector<2xi32>"), loaded(A, "vector<8xi32>")
        used(A, rocdl.wmma_i32_16x16x16_iu8(a, a, c, signA=True, signB=1, clamp=True))

    assert re.search(r"v_wmma_i32_16x16x16_iu8 .* neg_lo:\[1,1,0\] clamp", compiled(body, "gfx1201"))

    def of_gfx1250(A: Any) -> None:
        a, c = loaded(A, "vector<16xf16>"), loaded(A, "vector<8xf32>")
        used(A, rocdl.wmma_f32_16x16x32_f16(T.vec(8, T.f32), a, a, c, signA=False, signB=False, modC=1, reuseA=True,
                                            reuseB=False).result)  # fmt: skip

    assert re.search(r"v_wmma_f32_16x16x32_f16 .* matrix_a_reuse neg_lo:\[0,0,1\]", compiled(of_gfx1250, "gfx1250"))


def test_an_integer_index_of_sparse_instructions(compiled: Callable[..., str]) -> None:
    def body(A: Any) -> None:
        a, b, c = (loaded(A, f"vector<{n}x{t}>") for n, t in ((8, "f16"), (16, "f16"), (8, "f32")))
        used(A, rocdl.swmmac_f32_16x16x32_f16(a, b, c, 0x4444))

    assert "v_swmmac_f32_16x16x32_f16" in compiled(body, "gfx1201")


@pytest.mark.slow
@pytest.mark.parametrize("name", SCALED_WMMA)
def test_scaled_instructions(name: str, compiled: Callable[..., str]) -> None:
    is_fp4, bits = name.endswith("_f4"), SCALED_WMMA[name]
    formats = {} if is_fp4 else {"fmtA": 4, "fmtB": 0}

    def body(A: Any) -> None:
        a, b = loaded(A, f"vector<{16 if is_fp4 else 8}xi32>"), loaded(A, f"vector<{8 if is_fp4 else 16}xi32>")
        c = loaded(A, f"vector<{16 if is_fp4 else 8}xf32>")
        scale = loaded(A, "vector<2xi32>").bitcast(fx.Int64)[0] if bits == 64 else loaded(A, "i32")
        function = getattr(rocdl, name)
        first = function(c.type, a, b, c, scale, scale, scaleBType=1, **formats)
        used(A, function(c.type, [a, b, first, 0x7F7F7F7F, 0x7F7F7F7F], **formats).result)

    isa = compiled(body, "gfx1250")
    lines = re.findall(rf"v_{name} (.*)", isa)
    assert len(lines) == 2
    assert "matrix_b_scale:MATRIX_SCALE_ROW1" in lines[0]
    assert is_fp4 or all("matrix_a_fmt:MATRIX_FMT_FP4" in line for line in lines)


F8, F16, I2 = "vector<8xf32>", "vector<8xf16>", "vector<2xi32>"


@pytest.mark.parametrize(
    ("call", "arch", "error", "message"),
    [
        (lambda a, c: rocdl.wmma_f32_16x16x16_f16(a, a, c), "gfx942", ArchError, "gfx942 does not have it"),
        (lambda a, c: rocdl.wmma_f32_16x16x16_f16(a, a, c), "gfx1250", ArchError, "gfx1250 does not have it"),
        (lambda a, c: rocdl.wmma_f32_16x16x16_f16(a, a, c), "gfx1100", ArgumentError, r"takes vector<16xf16>, not"),
        (lambda a, c: rocdl.wmma_f32_16x16x16_f16(a, c, c), "gfx1201", ArgumentError, "operand b .* vector<8xf16>"),
        (lambda a, c: rocdl.wmma_f32_16x16x16_f16(a, a), "gfx1201", ArgumentError, "takes 3 operands, not 2"),
        (lambda a, c: rocdl.wmma_f32_16x16x16_f16([a, a, c, 0]), "gfx1201", ArgumentError, "takes 3 operands, not 4"),
        (lambda a, c: rocdl.wmma_f32_16x16x16_f16(T.f32, a, a, c), "gfx1201", ArgumentError, "result is vector<8xf32>"),
        (lambda a, c: rocdl.wmma_f32_16x16x16_f16(a, a, c, signA=True), "gfx1201", ArgumentError, "has no signA"),
        (
            lambda a, c: rocdl.wmma_f16_16x16x16_f16(a, a, a, opsel=2),
            "gfx1201",
            ArgumentError,
            "2 is outside of 0 to 1",
        ),
        (lambda a, c: rocdl.swmmac_f32_16x16x32_f16(a, a, c, 0), "gfx1201", ArgumentError, "takes vector<16xf16>"),
    ],
)
def test_wrong_use_is_an_error_at_the_line(
    call: Callable[..., Any], arch: str, error: type[FlyError], message: str, compiled: Callable[..., str]
) -> None:
    with pytest.raises(error, match=message) as caught:
        compiled(lambda A: call(loaded(A, F16), loaded(A, F8)), arch)
    assert caught.value.at.file == __file__
