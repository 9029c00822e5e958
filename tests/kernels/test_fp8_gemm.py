"""Row-scaled products of fp8, by four and eight waves."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import fp8_gemm_4wave as kernel
from kernels.fp8_gemm_4wave import compile_fp8_gemm_4w
from kernels.fp8_gemm_8wave import compile_fp8_gemm_8w
from kernels.shuffles import shuffle_weight
from tests.kernels.checks import checking
from tests.kernels.gemm import factors, nans, torch_type, whole_numbers

SMALL = {"BLOCK_M": 64, "BLOCK_N": 64}


def product(launch: Any, m: int, n: int, k: int, arch: str, shuffled: bool = False) -> None:
    """Compare C with torch's, with every check on, and what lies after it."""
    rows = -(-n // 16) * 16 if shuffled else n
    a, b = whole_numbers(m, k).to(torch_type("fp8", arch)), torch.zeros(rows, k).to(torch_type("fp8", arch))
    b[:n] = whole_numbers(n, k).to(b.dtype)
    scale_a, scale_b = factors(m), factors(n)
    memory = nans(m + 1, n)
    with checking():
        launch(a.view(-1), shuffle_weight(b) if shuffled else b.view(-1), memory[: m * n], scale_a, scale_b, m, n)
    expected = kernel.reference(a.float(), b[:n].float(), scale_a, scale_b)
    torch.testing.assert_close(memory[: m * n].view(m, n).float(), expected, rtol=2**-8, atol=1e-2)
    assert memory[m * n :].isnan().all()


@pytest.mark.checked
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("shape", kernel.SHAPES[:2], ids=str)
@pytest.mark.diagonal(2)
def test_four_waves(shape: tuple[int, int, int], shuffled: bool) -> None:
    product(compile_fp8_gemm_4w(K=shape[2], **SMALL, b_preshuffled=shuffled), *shape, "gfx942", shuffled)


@pytest.mark.parametrize("shuffled", [False, True])
def test_four_waves_on_cdna4(shuffled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    launch = compile_fp8_gemm_4w(K=384, **SMALL, b_preshuffled=shuffled, use_xcd_remap=False, unroll=True)
    product(launch, 33, 72, 384, "gfx950", shuffled)


@pytest.mark.slow
@pytest.mark.parametrize("shuffled", [True, pytest.param(False, marks=pytest.mark.sweep)])
def test_whole_tiles_of_four_waves(shuffled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which a loop multiplies, in squares that grow."""
    monkeypatch.setenv("ARCH", "gfx950")
    product(compile_fp8_gemm_4w(K=384, b_preshuffled=shuffled), 150, 250, 384, "gfx950", shuffled)


@pytest.mark.checked
@pytest.mark.slow
@pytest.mark.parametrize("shuffled", [False, pytest.param(True, marks=pytest.mark.sweep)])
def test_eight_waves_on_cdna4(shuffled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    product(compile_fp8_gemm_8w(K=256, BLOCK_M=128, b_preshuffled=shuffled), 150, 330, 256, "gfx950", shuffled)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"K": 200}, "K=200"),
        ({"K": 128}, "1 tiles along K"),
        ({"K": 0}, "K=0"),
        ({"BLOCK_M": 100}, "BLOCK_M=100"),
        ({"BLOCK_N": 0}, "BLOCK_N=0"),
    ],
)
def test_sizes_that_do_not_fit(changed: dict[str, Any], said: str) -> None:
    for compile_ in (compile_fp8_gemm_4w, compile_fp8_gemm_8w):
        with pytest.raises(ArgumentError, match=said):
            compile_(**({"K": 256} | changed))


def test_operands_of_another_type() -> None:
    a, c, scales = torch.zeros(256), torch.zeros(1, dtype=torch.bfloat16), torch.ones(1)
    with pytest.raises(ArgumentError, match="A of Float32"):
        compile_fp8_gemm_4w(K=256, **SMALL)(a, a, c, scales, scales, 1, 1)
