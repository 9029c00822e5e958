"""The kernels with every check on: they use nothing undefined, race nowhere, and what they get aligned stays so."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels import preshuffle_gemm_v2, vector_add
from tests.kernels import examples
from tests.kernels.checks import checking

pytestmark = pytest.mark.checked("all")


def numbers(*shape: int, dtype: str = "float32") -> torch.Tensor:
    """Small integers: exact in every type, in every order of summation."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randint(-3, 4, shape, generator=generator).to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", vector_add.DTYPES)
@pytest.mark.parametrize("n", [1, 100, 1023, 4096])
@pytest.mark.diagonal(4)
def test_vector_add(n: int, dtype: str) -> None:
    a, b = numbers(n, dtype=dtype), numbers(n, dtype=dtype)
    out = torch.zeros_like(a)
    with checking():
        vector_add.vector_add(a, b, out)
    assert torch.equal(out, a + b)


@pytest.mark.parametrize("dtype", preshuffle_gemm_v2.DTYPES)
@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 64), (100, 128, 256), (130, 200, 336)])
@pytest.mark.diagonal(4)
def test_preshuffle_gemm(m: int, n: int, k: int, dtype: str) -> None:
    a, b = numbers(m, k, dtype=dtype), numbers(n, k, dtype=dtype)
    out = torch.zeros(m, n, dtype=torch.float16)
    with checking():
        preshuffle_gemm_v2.preshuffle_gemm(a, preshuffle_gemm_v2.shuffle(b), out)
    assert torch.equal(out, preshuffle_gemm_v2.reference(a, b))


@pytest.mark.parametrize("launcher", ["vectorAdd", "vec_add", "tiledCopy"])
def test_examples(launcher: str) -> None:
    a, b, out = numbers(512), numbers(512), torch.zeros(512)
    calls: dict[str, tuple[Any, ...]] = {
        "vectorAdd": (a, b, out, 512, 513),
        "vec_add": (a, b, out, 512),
        "tiledCopy": (matrix := numbers(24, 120), copied := torch.zeros_like(matrix)),
    }
    with checking():
        getattr(examples, launcher)(*calls[launcher])
    assert torch.equal(copied, matrix) if launcher == "tiledCopy" else torch.equal(out, a + b)
