"""Row kernels where a wave has 32 lanes: rows of one wave, of several waves, and lanes that share a token."""

from __future__ import annotations

import pytest
import torch

from flydsl.errors import ArgumentError
from flydsl.simulator import checking
from kernels import softmax_kernel, topk_gating_softmax_kernel
from kernels.norms import Norm, build
from tests.kernels import norms
from tests.kernels import test_moe_sorting_kernel as sorting
from tests.kernels.archs import executed_on
from tests.kernels.rows import assert_close, matrix
from tests.kernels.test_fused_rope_cache_kernel import test_equals_torch as check_rotation
from tests.kernels.test_topk_gating_softmax_kernel import test_equals_torch as check_gating


@executed_on("gfx1201")
@pytest.mark.parametrize(("n", "dtype"), [(1, "f32"), (100, "f16"), (512, "bf16"), (1999, "f32")])
def test_softmax(n: int, dtype: str) -> None:
    a, c = matrix(9, n, dtype, scale=2), torch.full((9, n), torch.nan, dtype=matrix(1, 1, dtype).dtype)
    with checking():
        softmax_kernel.build_softmax_module(9, n, dtype)(a, c, 9)
    assert_close(c, softmax_kernel.reference(a), dtype)


@executed_on("gfx1201")
@pytest.mark.parametrize(("mean", "n", "quant"), [(True, 200, None), (False, 512, "i8"), (True, 1500, "i8")])
def test_norm(mean: bool, n: int, quant: str | None) -> None:
    norm = Norm(n, "bf16", mean, True, False, quant)
    given = norms.operands(norm, 5)
    x = given["Input"].clone()
    with checking():
        build(norm)(*given.values(), 5)
    norms.check(norm, given, x)


@executed_on("gfx1201")
@pytest.mark.parametrize("shape", [(3, 1024, 4), (9, 8, 2), (5, 128, 3)], ids=str)
def test_gating(shape: tuple[int, int, int]) -> None:
    check_gating(topk_gating_softmax_kernel.DTYPES.index("f32"), shape, True)


@executed_on("gfx1201")
@pytest.mark.parametrize("head_dim", [64, 256])
def test_rotation(head_dim: int) -> None:
    check_rotation(0, (3, 4, 2, head_dim), (True, False, True, False))


@executed_on("gfx1201")
def test_sorting_is_right_or_refused() -> None:
    sorting.check(*sorting.routing(9, 33, 4), 33, 16)
    with pytest.raises(ArgumentError, match="sorting of many tokens for gfx1201, whose waves have 32 lanes"):
        sorting.check(*sorting.routing(200, 33, 4), 33, 16)
