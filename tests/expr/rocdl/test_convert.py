"""Conversions between f32 and packed formats, compared with torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArchError, ArgumentError
from flydsl.expr import rocdl
from flydsl.expr.typing import T
from tests.launchers import launcher_of

FORMATS = {"fp8": torch.float8_e4m3fnuz, "bf8": torch.float8_e5m2fnuz}
RANDOM = torch.Generator().manual_seed(0)
PAIRS = torch.randn(2, 64, generator=RANDOM)


@pytest.mark.parametrize("fmt", FORMATS)
def test_pack(fmt: str, wave: Callable[..., torch.Tensor]) -> None:
    def body(lane: Any, A: Any) -> list[Any]:
        pack = getattr(rocdl, f"cvt_pk_{fmt}_f32")
        low = pack(T.i32, A[0, lane], A[1, lane], 0, False)
        return [low, pack(A[1, lane], A[0, lane], low, word_sel=True)]

    got = wave(body, PAIRS, dtype=torch.int32)
    a, b = PAIRS.to(FORMATS[fmt]).view(torch.uint8).int()
    assert torch.equal(got[0], a | b << 8)
    assert torch.equal(got[1], a | b << 8 | b << 16 | a << 24)


@pytest.mark.parametrize("fmt", FORMATS)
def test_unpack(fmt: str, wave: Callable[..., torch.Tensor]) -> None:
    numbers = torch.randn(64, 4, generator=RANDOM).to(FORMATS[fmt])

    def body(lane: Any, A: Any) -> list[Any]:
        pair, one = (getattr(rocdl, f"cvt_{kind}f32_{fmt}") for kind in ("pk_", ""))
        halves = [pair(None, A[lane], half) for half in (0, 1)]
        return [*(h[i] for h in halves for i in (0, 1)), *(one(T.f32, A[lane], byte) for byte in range(4))]

    got = wave(body, numbers.view(torch.int32).reshape(64), dtype=torch.float32)
    assert torch.equal(got[:4], numbers.float().T)
    assert torch.equal(got[4:], numbers.float().T)


@pytest.mark.slow
def test_round_at_random(wave: Callable[..., torch.Tensor]) -> None:
    """0 as the random number truncates, all ones round away from zero."""

    def body(lane: Any, A: Any) -> list[Any]:
        return [rocdl.cvt_sr_fp8_f32(T.i32, A[0, lane], bits, 0, 0) for bits in (0, -1)]

    got = wave(body, PAIRS, dtype=torch.int32)
    down, up = got.to(torch.uint8).view(torch.float8_e4m3fnuz).float().abs()
    exact = PAIRS[0].abs()
    assert (down <= exact).all()
    assert (up >= exact).all()


@pytest.mark.slow
def test_round_to_zero_in_halves(wave: Callable[..., torch.Tensor]) -> None:
    got = wave(lambda lane, A: [*rocdl.cvt_pkrtz(None, A[0, lane], A[1, lane])], PAIRS, dtype=torch.float16)
    assert (got.float().abs() <= PAIRS.abs()).all()
    torch.testing.assert_close(got.float(), PAIRS, rtol=1e-3, atol=1e-6)


def test_wrong_conversions_are_refused(compiled: Callable[..., str]) -> None:
    def of(A: Any) -> Any:
        return rocdl.cvt_pk_f32_fp8(T.f32, fx.thread_idx.x, 0)

    with pytest.raises(ArgumentError, match="the result is vector<2xf32>, not f32"):
        compiled(of)
    with pytest.raises(ArgumentError, match="byte_sel of cvt_f32_fp8: 4 is outside of 0 to 3"):
        compiled(lambda A: rocdl.cvt_f32_fp8(T.f32, fx.thread_idx.x, 4))
    with pytest.raises(ArchError, match="cvt_f32_fp8: gfx90a does not have it"):
        compiled(lambda A: rocdl.cvt_f32_fp8(T.f32, fx.thread_idx.x, 0), "gfx90a")


def test_stochastic_rounding_to_bf16_of_cdna_4(monkeypatch: pytest.MonkeyPatch) -> None:
    """No random bits round down, all of them up."""
    monkeypatch.setenv("ARCH", "gfx950")

    @flyc.kernel
    def kernel(x: fx.Tensor, y: fx.Tensor):
        i = fx.thread_idx.x
        for column, bits in enumerate((0, 0xFFFFFFFF)):
            y[i, column] = rocdl.cdna4.cvt_sr_f32_to_bf16(x[i], bits)

    x, y = torch.tensor([1.0, 1.001, -1.001, 3.01]), torch.zeros(4, 2, dtype=torch.bfloat16)
    launcher_of(kernel, grid=1, block=4)(x, y)
    assert y.tolist() == [[1.0, 1.0], [1.0, 1.0078125], [-1.0, -1.0078125], [3.0, 3.015625]]
