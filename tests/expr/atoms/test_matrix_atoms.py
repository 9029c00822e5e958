"""Products of tensors with the matrix instructions of every architecture: which instructions come out of fx.gemm."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError, CompileError, FlyError, LayoutError
from tests.launchers import launcher_of

TORCH = {
    fx.Float16: torch.float16,
    fx.BFloat16: torch.bfloat16,
    fx.Float32: torch.float32,
    fx.Int8: torch.int8,
    fx.Uint8: torch.uint8,
    fx.Float8E4M3FN: torch.float8_e4m3fn,
    fx.Int32: torch.int32,
}


def product(arch: str, op: Callable[[], Any], element: Any, acc: Any = fx.Float32, m: int = 32, k: int = 128) -> str:
    """The assembly of a product of one block of two waves along M, by copies that fit each lane's values."""

    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        mma = fx.make_tiled_mma(fx.make_mma_atom(op()), fx.make_layout((2, 1, 1), (1, 0, 0)))
        thread = mma.thr_slice(fx.thread_idx.x)
        parts = [thread.make_fragment_A(A), thread.make_fragment_B(B), thread.make_fragment_C(C)]
        copy = fx.make_copy_atom(
            fx.UniversalCopy(8 if element in (fx.Int8, fx.Uint8, fx.Float8E4M3FN) else element.width), element
        )
        fx.copy(copy, thread.partition_A(A), parts[0])
        fx.copy(copy, thread.partition_B(B), parts[1])
        parts[2].fill(0)
        fx.gemm(mma, parts[2], parts[0], parts[1], parts[2])
        fx.copy(fx.make_copy_atom(fx.UniversalCopy(acc.width), acc), parts[2], thread.partition_C(C))

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        mma = fx.make_tiled_mma(fx.make_mma_atom(op()), fx.make_layout((2, 1, 1), (1, 0, 0)))
        kernel(A, B, C).launch(grid=1, block=fx.size(mma.thr_layout_vmnk))

    tensors = (
        torch.zeros(m, k, dtype=TORCH[element]),
        torch.zeros(16, k, dtype=TORCH[element]),
        torch.zeros(m, 16, dtype=TORCH[acc]),
    )
    return launch.lower(*map(flyc.from_dlpack, tensors), arch=arch).artifact.isa


WMMA, MFMA = fx.rocdl.WMMA, fx.rocdl.MFMA


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "op", "element", "acc", "instruction", "count"),
    [
        ("gfx1100", lambda: WMMA(16, 16, 16, fx.Float16), fx.Float16, fx.Float32, "v_wmma_f32_16x16x16_f16", 8),
        ("gfx1151", lambda: WMMA(16, 16, 16, fx.BFloat16), fx.BFloat16, fx.Float32, "v_wmma_f32_16x16x16_bf16", 8),
        (
            "gfx1100",
            lambda: WMMA(16, 16, 16, fx.Int8, sign_a=True, sign_b=True),
            fx.Int8,
            fx.Int32,
            "v_wmma_i32_16x16x16_iu8 .*neg_lo:.1,1,0.",
            8,
        ),
        ("gfx1200", lambda: WMMA(16, 16, 16, fx.Float16), fx.Float16, fx.Float32, "v_wmma_f32_16x16x16_f16", 8),
        (
            "gfx1201",
            lambda: WMMA(16, 16, 16, fx.BFloat16, fx.BFloat16),
            fx.BFloat16,
            fx.BFloat16,
            "v_wmma_bf16_16x16x16_bf16",
            8,
        ),
        ("gfx1201", lambda: WMMA(16, 16, 16, fx.Uint8), fx.Uint8, fx.Int32, r"v_wmma_i32_16x16x16_iu8 [^n]*$", 8),
        (
            "gfx1201",
            lambda: WMMA(16, 16, 16, fx.Float8E4M3FN),
            fx.Float8E4M3FN,
            fx.Float32,
            "v_wmma_f32_16x16x16_fp8_fp8",
            8,
        ),
        ("gfx1250", lambda: WMMA(16, 16, 32, fx.Float16), fx.Float16, fx.Float32, "v_wmma_f32_16x16x32_f16", 4),
        ("gfx1250", lambda: WMMA(16, 16, 32, fx.BFloat16), fx.BFloat16, fx.Float32, "v_wmma_f32_16x16x32_bf16", 4),
        (
            "gfx1250",
            lambda: WMMA(16, 16, 128, fx.Float8E4M3FN),
            fx.Float8E4M3FN,
            fx.Float32,
            "v_wmma_f32_16x16x128_fp8_fp8",
            1,
        ),
        ("gfx1250", lambda: WMMA(16, 16, 4, fx.Float32), fx.Float32, fx.Float32, "v_wmma_f32_16x16x4_f32", 32),
        (
            "gfx1250",
            lambda: fx.rocdl.WMMAScale(16, 16, 128, fx.Float8E4M3FN),
            fx.Float8E4M3FN,
            fx.Float32,
            "v_wmma_scale_f32_16x16x128_f8f6f4",
            1,
        ),
        ("gfx950", lambda: MFMA(16, 16, 32, fx.Float16), fx.Float16, fx.Float32, "v_mfma_f32_16x16x32_f16", 4),
        ("gfx950", lambda: MFMA(16, 16, 32, fx.BFloat16), fx.BFloat16, fx.Float32, "v_mfma_f32_16x16x32_bf16", 4),
        (
            "gfx950",
            lambda: fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, fx.Float8E4M3FN),
            fx.Float8E4M3FN,
            fx.Float32,
            "v_mfma_f32_16x16x128_f8f6f4",
            1,
        ),
    ],
)
@pytest.mark.diagonal(2)
def test_a_tiled_product(
    arch: str, op: Callable[[], Any], element: Any, acc: Any, instruction: str, count: int
) -> None:
    assert len(re.findall(instruction, product(arch, op, element, acc), re.M)) == count


def one_call(arch: str, op: Callable[[], Any], a: tuple[int, Any], b: tuple[int, Any], c: int, **scales: Any) -> str:
    """The assembly of one call of an atom on registers that hold what the thread read."""

    @flyc.kernel
    def kernel(X: fx.Tensor):
        x = [fx.make_rmem_tensor(count, kind) for count, kind in (a, b, (c, fx.Float32))]
        for part in x:
            words = fx.Vector.from_elements([X[fx.thread_idx.x + i] for i in fx.range_constexpr(16)])
            part.store(
                words.bitcast(part.dtype).shuffle(words.bitcast(part.dtype), list(fx.range_constexpr(fx.size(part))))
            )
        values = {key: X[fx.thread_idx.x + value] for key, value in scales.items()}
        fx.gemm(fx.make_mma_atom(op()), x[2], x[0], x[1], x[2], **values)
        X[fx.thread_idx.x] = x[2].load()[0].bitcast(fx.Int32)

    launch = launcher_of(kernel, grid=1, block=64)
    return launch.lower(torch.zeros(128, dtype=torch.int32), arch=arch).artifact.isa


F8, F4 = fx.Float8E4M3FN, fx.Float4E2M1FN


@pytest.mark.parametrize(
    ("arch", "op", "a", "b", "c", "instruction"),
    [
        (
            "gfx950",
            lambda: fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, F8, F4, opsel_a=2, opsel_b=1),
            (8, fx.Int32),
            (4, fx.Int32),
            4,
            r"v_mfma_scale_f32_16x16x128_f8f6f4 .* op_sel:\[0,1,0\] op_sel_hi:\[1,0,0\] blgp:4",
        ),
        (
            "gfx950",
            lambda: fx.rocdl.cdna4.MFMA_Scale(32, 32, 64, fx.Float6E2M3FN, F8),
            (6, fx.Int32),
            (32, F8),
            16,
            r"v_mfma_scale_f32_32x32x64_f8f6f4 .* cbsz:2",
        ),
        (
            "gfx1250",
            lambda: fx.rocdl.WMMAScale(32, 16, 128, F4, opsel_a=1),
            (16, fx.Int32),
            (8, fx.Int32),
            16,
            r"v_wmma_scale_f32_32x16x128_f4 .*matrix_a_scale:MATRIX_SCALE_ROW1",
        ),
        (
            "gfx1250",
            lambda: fx.rocdl.WMMAScale(16, 16, 128, F8, F4),
            (16, fx.Int32),
            (8, fx.Int32),
            8,
            r"v_wmma_scale_f32_16x16x128_f8f6f4 .*matrix_b_fmt:MATRIX_FMT_FP4",
        ),
    ],
)
def test_scales_and_words(
    arch: str, op: Callable[[], Any], a: tuple[int, Any], b: tuple[int, Any], c: int, instruction: str
) -> None:
    assert re.search(instruction, one_call(arch, op, a, b, c, scale_a=3, scale_b=5))


@pytest.mark.parametrize(
    ("arch", "op", "a", "error", "message", "scales"),
    [
        ("gfx942", lambda: WMMA(16, 16, 16, fx.Float16), (16, fx.Float16), CompileError, "gfx942 has no", {}),
        (
            "gfx1201",
            lambda: WMMA(16, 16, 32, fx.Float16),
            (16, fx.Float16),
            ArgumentError,
            "of these types: 16x16x16",
            {},
        ),
        ("gfx1201", lambda: WMMA(16, 16, 16, fx.Float16), (16, fx.Float16), LayoutError, "holds 8 values", {}),
        (
            "gfx950",
            lambda: fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, F4),
            (8, fx.Int32),
            LayoutError,
            "holds 4 values",
            {},
        ),
        (
            "gfx950",
            lambda: MFMA(16, 16, 32, fx.Float16),
            (8, fx.Float16),
            LayoutError,
            "no value 'scale_a'",
            {"scale_a": 1},
        ),
        (
            "gfx1201",
            lambda: WMMA(16, 16, 16, fx.Int8, sign_a=1, sign_b=True),
            (8, fx.Int8),
            ArgumentError,
            "sign_a=1",
            {},
        ),
    ],
)
def test_wrong_use_is_an_error_at_the_line(
    arch: str, op: Callable[[], Any], a: tuple[int, Any], error: type[FlyError], message: str, scales: Any
) -> None:
    with pytest.raises(error) as caught:
        one_call(arch, op, a, a, 8 if arch != "gfx950" else 4, **scales)
    assert message in str(caught.value)
    assert caught.value.at.file == __file__


def test_options_of_newer_instructions_are_taken_as_they_are_by_default() -> None:
    plain = fx.rocdl.WMMAScale(16, 16, 128, fx.Float8E4M3FN)
    assert fx.rocdl.WMMAScale(16, 16, 128, fx.Float8E4M3FN, mod_c=0, reuse_a=False, block_size=32) == plain
    for option, value in (("mod_c", 1), ("reuse_b", True), ("block_size", 16)):
        with pytest.raises(ArgumentError, match=f"unsupported: WMMAScale with {option}={value}"):
            fx.rocdl.WMMAScale(16, 16, 128, fx.Float8E4M3FN, **{option: value})
    with pytest.raises(ArgumentError, match="unsupported: WMMA with mod_c=1"):
        fx.rocdl.WMMA(16, 16, 32, fx.Float16, mod_c=1)


def test_signs_that_a_product_loses_are_warned_of() -> None:
    """FlyDSL's operands of WMMA are unsigned by default, also where their type has a sign."""
    with pytest.warns(UserWarning, match="takes Int8 for unsigned .*: pass sign_a=True, sign_b=True") as caught:
        listing = product("gfx1201", lambda: WMMA(16, 16, 16, fx.Int8), fx.Int8, fx.Int32)
    assert caught[0].filename == __file__
    assert "neg_lo" not in listing
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WMMA(16, 16, 16, fx.Int8, sign_a=False, sign_b=True)
