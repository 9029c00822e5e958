"""Conversions to and from scaled floats: each is one instruction of its architecture, with operands of its width."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import flydsl.expr as fx
from flydsl.atoms.scaled_conversions import SCALED_CONVERSIONS, ScaledConversion
from flydsl.errors import ArchError, ArgumentError, FlyError
from flydsl.expr import rocdl
from flydsl.expr.typing import T

DTYPES = {"f32": fx.Float32, "f16": fx.Float16, "bf16": fx.BFloat16, "i32": fx.Int32, "i16": fx.Int16}


def loaded(A: Any, kind: str, start: int) -> Any:
    """A value of a type, from memory."""
    match = re.match(r"vector<(\d+)x(\w+)>", kind)
    count, element = (int(match[1]), match[2]) if match else (1, kind)
    words = max(count * int(re.sub(r"\D", "", element)) // 32, 1)
    lane = fx.thread_idx.x + start
    vector = fx.Vector.from_elements([A[(lane + i) % 64].bitcast(fx.Int32) for i in range(words)])
    values = vector.bitcast(DTYPES[element])
    return values if match else values[0]


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx950", "gfx1250"])
def test_every_conversion_is_its_instruction(arch: str, compiled: Callable[..., str]) -> None:
    mine = [c for c in SCALED_CONVERSIONS.values() if arch in c.archs]

    def body(A: Any) -> None:
        total = fx.Int32(0)
        for c in mine:
            values = [loaded(A, kind, i) for i, (_, kind) in enumerate(c.operands)]
            result = getattr(rocdl, c.name)(*values, *(most for *_, most in c.immediates))
            words = fx.Vector.from_elements([result]) if not hasattr(result, "shape") else result
            bits = words.bitcast(fx.Int32)
            for i in fx.range_constexpr(fx.size(bits.shape)):
                total = total ^ bits[i]
        A[fx.thread_idx.x] = total.bitcast(fx.Float32)

    text = compiled(body, arch)
    missing = [c.name for c in mine if f"v_{c.name.replace('pk_bf8', 'pk_bf8')}" not in text]
    assert missing == []


@pytest.mark.parametrize("conversion", [SCALED_CONVERSIONS["cvt_scalef32_pk_fp4_f32"]], ids=lambda c: c.name)
def test_both_spellings(conversion: ScaledConversion, compiled: Callable[..., str]) -> None:
    def body(A: Any) -> None:
        i = fx.thread_idx.x
        packed = rocdl.cvt_scalef32_pk_fp4_f32(T.i32, 0, A[i], A[i + 1], 2.0, dst_sel_index=1)
        pair = rocdl.cvt_scalef32_pk_f32_fp4(res=T.vec(2, T.f32), src=packed, scale=A[i], src_sel_index=2)
        A[i] = fx.Vector(pair)[0]

    text = compiled(body, "gfx950")
    assert "v_cvt_scalef32_pk_fp4_f32" in text
    assert "v_cvt_scalef32_pk_f32_fp4" in text


@pytest.mark.parametrize(
    ("call", "arch", "error", "message"),
    [
        (lambda x: rocdl.cvt_scalef32_pk_f32_fp4(0, x, 0), "gfx942", ArchError, "gfx942 does not have it"),
        (lambda x: rocdl.cvt_scale_pk8_f16_fp4(0, 0, 0), "gfx950", ArchError, "gfx950 does not have it"),
        (
            lambda x: rocdl.cvt_scalef32_pk_f32_fp4(0, x),
            "gfx950",
            ArgumentError,
            r"takes \(src, scale, src_sel_index\)",
        ),
        (lambda x: rocdl.cvt_scalef32_pk_f32_fp4(0, x, 4), "gfx950", ArgumentError, "4 is outside of 0 to 3"),
        (lambda x: rocdl.cvt_scalef32_pk_f32_fp4(T.f32, 0, x, 0), "gfx950", ArgumentError, "result is vector<2xf32>"),
        (lambda x: rocdl.cvt_scalef32_pk32_f32_fp6(x, x), "gfx950", ArgumentError, "takes vector<6xi32>, not f32"),
    ],
)
def test_wrong_use_is_an_error_at_the_line(
    call: Callable[..., Any], arch: str, error: type[FlyError], message: str, compiled: Callable[..., str]
) -> None:
    with pytest.raises(error, match=message) as caught:
        compiled(lambda A: call(A[0]), arch)
    assert caught.value.at.file == __file__
