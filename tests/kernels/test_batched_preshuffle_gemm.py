from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import batched_preshuffle_gemm as kernel
from tests.kernels.checks import checking
from tests.kernels.gemm import factors, micro_scaled, plain

Shape = tuple[int, int, int, int]


def operands(shape: Shape, dtype: str, arch: str = "gfx942") -> tuple[torch.Tensor, torch.Tensor, dict[str, Any]]:
    """A and B as numbers, other ones in each product, and the launcher's tensors, C of NaNs."""
    batch, m, n, k = shape
    if dtype == "fp4":
        products = [micro_scaled(dtype, m, n, k, seed) for seed in range(batch)]
    else:
        products = [(*plain(dtype, m, n, k, arch, seed), factors(m + seed)[:m], factors(n + seed)[:n])
                    for seed in range(batch)]  # fmt: skip
    a, b, *memory = (torch.stack(tensors) for tensors in zip(*products, strict=True))
    given = {"C": torch.full((batch * m * n,), torch.nan, dtype=torch.bfloat16)}
    given |= {name: t.view(-1) for name, t in zip(("A", "B", "scale_a", "scale_b"), memory, strict=True)}
    return a, b, given | {"bias": factors(batch, n).bfloat16().view(-1) - 1}


def check(shape: Shape, dtype: str, tile: tuple[int, int, int], arch: str = "gfx942", **options: Any) -> None:
    batch, m, n, k = shape
    a, b, given = operands(shape, dtype, arch)
    sizes = dict(zip(("tile_m", "tile_n", "tile_k"), tile, strict=True))
    launch = kernel.compile_batched_preshuffle_gemm(K=k, in_dtype=dtype, **sizes, **options)
    with checking():
        launch(*given.values(), m, n, batch)
    scaled = [given[name].view(batch, -1) for name in ("scale_a", "scale_b")] if dtype in ("fp8", "int8") else []
    expected = kernel.reference(a, b, *scaled)
    if options.get("epilogue") == "bias_relu":
        expected = torch.relu(expected + given["bias"].view(batch, 1, n).float())
    torch.testing.assert_close(given["C"].view(batch, m, n).float(), expected, rtol=2**-8, atol=1e-2)


@pytest.mark.checked("all")
@pytest.mark.parametrize("shape", kernel.SHAPES, ids=str)
def test_fp4_equals_torch(shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows after the last of a product are those of the next one, which stay as they are."""
    monkeypatch.setenv("ARCH", "gfx950")
    check(shape, "fp4", (32, 128, 256))


@pytest.mark.checked
@pytest.mark.parametrize("dtype", ["bf16", "fp8", "int8"])
@pytest.mark.parametrize("shape", kernel.SHAPES[1:], ids=str)
@pytest.mark.diagonal(2)
def test_other_types_equal_torch(shape: Shape, dtype: str) -> None:
    check(shape, dtype, (16, 64, 128))


@pytest.mark.parametrize(
    "options", [{"epilogue": "bias_relu"}, {"use_async_copy": True}, {"use_cshuffle_epilog": True}, {"lds_stage": 1}],
    ids=str,
)  # fmt: skip
@pytest.mark.diagonal(2)
def test_options(options: dict[str, Any]) -> None:
    check((2, 20, 64, 256), "bf16", (16, 64, 128), **options)


def test_an_empty_batch_launches_nothing() -> None:
    launch = kernel.compile_batched_preshuffle_gemm(K=256, tile_m=16, tile_n=64, tile_k=128, in_dtype="bf16")
    none = torch.zeros(0, dtype=torch.bfloat16)
    launch(none, none, none, torch.zeros(1), torch.zeros(1), torch.zeros(1, dtype=torch.bfloat16), 4, 64, 0)


@pytest.mark.sweep
def test_a_tile_that_is_measured() -> None:
    a, b, given = operands((2, 20, 128, 256), "bf16")
    kernel.batched_preshuffle_gemm(*given.values(), 20, 128, 2, 256, "bf16")
    torch.testing.assert_close(given["C"].view(2, 20, 128).float(), kernel.reference(a, b), rtol=2**-8, atol=1e-2)


@pytest.mark.parametrize(("name", "size"), [("A", 2 * 20 * 256 - 1), ("B", 64 * 256), ("C", 20 * 64), ("scale_a", 20)])
def test_wrong_sizes(name: str, size: int) -> None:
    """A tensor that is too short, or that has the size of one product of the batch."""
    _, _, given = operands((2, 20, 64, 256), "int8")
    given[name] = given[name][:size].clone()
    launch = kernel.compile_batched_preshuffle_gemm(K=256, tile_m=16, tile_n=64, tile_k=128, in_dtype="int8")
    with pytest.raises(ArgumentError, match=name):
        launch(*given.values(), 20, 64, 2)


def test_wrong_columns() -> None:
    _, _, given = operands((1, 20, 96, 256), "bf16")
    launch = kernel.compile_batched_preshuffle_gemm(K=256, tile_m=16, tile_n=64, tile_k=128, in_dtype="bf16")
    with pytest.raises(ArgumentError, match="N=96"):
        launch(*given.values(), 20, 96, 1)


def test_wrong_types() -> None:
    """fp8 where 16 bits are wanted."""
    _, _, given = operands((1, 20, 64, 256), "bf16")
    given["A"] = given["A"].view(torch.int8)
    launch = kernel.compile_batched_preshuffle_gemm(K=256, tile_m=16, tile_n=64, tile_k=128, in_dtype="bf16")
    with pytest.raises(ArgumentError, match="A of Int8"):
        launch(*given.values(), 20, 64, 1)
