"""Dot products of short vectors: what they give on every target that has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl._mlir.dialects import rocdl as builders
from flydsl.errors import ArchError, ArgumentError
from flydsl.expr import rocdl
from tests.launchers import launcher_of

LANES = 64


def computed(body: Callable[..., Any], a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """`body(a, b, c)` of each lane; a and b as their 32 bits."""

    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, Out: fx.Tensor):
        i = fx.thread_idx.x
        Out[i] = body(A[i], B[i], C[i])

    out = torch.zeros_like(c)
    launcher_of(kernel, grid=1, block=LANES)(
        a.contiguous().view(torch.int32).flatten(), b.contiguous().view(torch.int32).flatten(), c, out
    )
    return out


def integers(bits: int, *, signed: bool) -> tuple[torch.Tensor, np.ndarray]:
    """Words, and the integers in them."""
    words = torch.randint(-(2**31), 2**31, (LANES,), dtype=torch.int32)
    parts = words.numpy().view(np.uint32)[:, None] >> np.arange(0, 32, bits, dtype=np.uint32) & (1 << bits) - 1
    values = parts.astype(np.int64)
    return words, values - ((values >> bits - 1) << bits) if signed else values


def halves(x: Any, dtype: Any) -> Any:
    """The two numbers of a word."""
    return fx.Vector.from_elements([x], fx.Int32).bitcast(dtype)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx950", "gfx1201"])
@pytest.mark.parametrize(
    ("name", "bits", "signed"), [("sdot4", 8, 1), ("udot4", 8, 0), ("sdot8", 4, 1), ("udot8", 4, 0)]
)
def test_integers(name: str, bits: int, signed: int, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    torch.manual_seed(0)
    (a, of_a), (b, of_b) = (integers(bits, signed=bool(signed)) for _ in "ab")
    c = torch.randint(0, 1000, (LANES,), dtype=torch.int32)
    expected = (of_a * of_b).sum(1) + c.numpy()
    assert computed(getattr(rocdl, name), a, b, c).tolist() == expected.tolist()


def test_integers_of_which_one_has_a_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx1201")
    torch.manual_seed(1)
    (a, of_a), (b, of_b) = integers(8, signed=True), integers(8, signed=False)
    c = torch.randint(0, 1000, (LANES,), dtype=torch.int32)
    found = computed(lambda a, b, c: rocdl.sudot4(a, b, c, sign_a=True), a, b, c)
    assert found.tolist() == ((of_a * of_b).sum(1) + c.numpy()).tolist()


def test_a_sum_may_stay_at_its_limits() -> None:
    ones = torch.full((LANES,), 0x01010101, dtype=torch.int32)
    most = torch.full((LANES,), 2**31 - 2, dtype=torch.int32)
    assert (computed(lambda a, b, c: rocdl.sdot4(fx.T.i32, a, b, c, clamp=True), ones, ones, most) == 2**31 - 1).all()
    assert (computed(rocdl.sdot4, ones, ones, most) == -(2**31) + 2).all()


@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
def test_halves(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    a, b = (torch.randint(-8, 9, (LANES, 2)).half() for _ in "ab")
    c = torch.arange(LANES).float()
    found = computed(
        lambda a, b, c: builders.fdot2_(fx.T.f32, halves(a, fx.Float16), halves(b, fx.Float16), c), a, b, c
    )
    assert torch.equal(found, (a.float() * b.float()).sum(1) + c)


@pytest.mark.parametrize("arch", ["gfx950", "gfx1201"])
def test_brain_floats(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", arch)
    a, b = (torch.randint(-8, 9, (LANES, 2)).bfloat16() for _ in "ab")
    c = torch.arange(LANES).float()
    found = computed(lambda a, b, c: rocdl.fdot2_f32_bf16(halves(a, fx.BFloat16), halves(b, fx.BFloat16), c), a, b, c)
    assert torch.equal(found, (a.float() * b.float()).sum(1) + c)


def test_floats_of_eight_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx1201")
    a, b = torch.randn(LANES, 4).to(torch.float8_e4m3fn), torch.randn(LANES, 4).to(torch.float8_e5m2)
    c = torch.arange(LANES).float()
    found = computed(rocdl.dot4_f32_fp8_bf8, a.view(torch.uint8), b.view(torch.uint8), c)
    assert torch.allclose(found, (a.float() * b.float()).sum(1) + c, rtol=1e-5)


def test_targets_and_types_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = torch.zeros(LANES, dtype=torch.int32)
    with pytest.raises(ArchError, match="sudot4: gfx942 does not have it"):
        computed(rocdl.sudot4, zeros, zeros, zeros)
    with pytest.raises(ArgumentError, match="it takes f32, not i32"):
        computed(lambda a, b, c: rocdl.fdot2(halves(a, fx.Float16), halves(b, fx.Float16), c), zeros, zeros, zeros)
    with pytest.raises(ArgumentError, match="the type may be left out"):
        computed(lambda a, b, c: rocdl.udot4(fx.T.i64, a, b, c), zeros, zeros, zeros)
