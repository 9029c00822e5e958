from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import fused_rope_cache_kernel as kernel
from tests.kernels.checks import checking
from tests.kernels.rows import TYPES

FP8 = torch.float8_e4m3fnuz
# (flash_layout, i64 positions, half of the frequencies, fp8)
VARIANTS = [
    (True, False, True, False),
    (False, True, True, False),
    (True, True, False, True),
    (False, False, True, True),
]
BLOCKS, BLOCK_SIZE = 3, 16


def operands(shape: tuple[int, int, int, int], dtype: str, flash: bool, wide: bool, half: bool, fp8: bool) -> Any:
    """The launcher's arguments. The second token has no slot."""
    t, qh, kh, d = shape
    random = torch.Generator().manual_seed(d)

    def numbers(*size: int) -> torch.Tensor:
        return torch.randn(size, generator=random).to(TYPES[dtype])

    index = torch.int64 if wide else torch.int32
    cache = torch.zeros(BLOCKS * BLOCK_SIZE * kh * d).to(FP8 if fp8 else TYPES[dtype])
    slots = torch.randperm(BLOCKS * BLOCK_SIZE, generator=random)[:t].to(index)
    slots[1:2] = -1
    keys = (BLOCKS, BLOCK_SIZE, kh, d) if flash else (BLOCKS, kh, d // 16, BLOCK_SIZE, 16)
    values = (BLOCKS, BLOCK_SIZE, kh, d) if flash else (BLOCKS, kh, d, BLOCK_SIZE)
    angles = numbers(32, d // 2 if half else d).float()
    return {
        "q": numbers(t, qh, d),
        "k": numbers(t, kh, d),
        "v": numbers(t, kh, d),
        "positions": torch.randint(0, 32, (t,), generator=random).to(index),
        "cos": angles.cos().to(TYPES[dtype]),
        "sin": angles.sin().to(TYPES[dtype]),
        "slots": slots,
        "keys": cache.clone().view(keys),
        "values": cache.clone().view(values),
        "q_out": torch.full((t, qh, d), torch.nan, dtype=TYPES[dtype]),
        "k_out": torch.full((t, kh, d), torch.nan, dtype=TYPES[dtype]),
        "tokens": t,
        "k_scale": torch.tensor([0.1]),
        "v_scale": torch.tensor([0.2]),
    }


def of_slots(cache: torch.Tensor, keys: bool, flash: bool) -> torch.Tensor:
    """A cache as (slot, head, column)."""
    if not flash:
        cache = cache.permute(0, 3, 1, 2, 4).flatten(3) if keys else cache.permute(0, 3, 1, 2)
    return cache.flatten(0, 1).float()


@pytest.mark.checked
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize(("number", "shape"), [*enumerate(kernel.SHAPES)], ids=str)
@pytest.mark.diagonal(3)
def test_equals_torch(number: int, shape: Any, variant: tuple[bool, bool, bool, bool]) -> None:
    flash, wide, half, fp8 = variant
    _, qh, kh, d = shape
    dtype = kernel.DTYPES[number % 2]
    given = operands(shape, dtype, *variant)
    launch = kernel.build_fused_rope_cache_module(
        d, -1, qh, kh, BLOCK_SIZE, True, flash, dtype, fp8, half, "i64" if wide else "i32"
    )
    with checking():
        launch(*given.values())
    cos, sin = (given[name][given["positions"].long()] for name in ("cos", "sin"))
    assert torch.equal(given["q_out"], kernel.reference(given["q"], cos, sin))
    rotated = kernel.reference(given["k"], cos, sin)
    assert torch.equal(given["k_out"], rotated)
    for name, written, scale in (("keys", rotated, 0.1), ("values", given["v"], 0.2)):
        expected = torch.zeros(BLOCKS * BLOCK_SIZE, kh, d)
        for token, slot in enumerate(given["slots"].tolist()):
            if slot >= 0:
                expected[slot] = (written[token].float() / scale).to(FP8).float() if fp8 else written[token].float()
        got = of_slots(given[name], name == "keys", flash)
        # Where x / scale lies between two fp8 numbers, the reciprocal's last bit may decide.
        torch.testing.assert_close(got, expected, rtol=0.07 if fp8 else 0, atol=1e-3 if fp8 else 0)
        assert (got == expected).float().mean() > 0.99


@pytest.mark.parametrize(
    ("given", "said"),
    [({"head_dim": 96}, "head_dim 96"), ({"is_neox": False}, "is_neox False"), ({"rotary_dim": 32}, "rotary_dim 32"),
     ({"dtype_str": "f32"}, "'f32'"), ({"pos_dtype": "i16"}, "'i16'")],
)  # fmt: skip
def test_wrong_arguments(given: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        kernel.build_fused_rope_cache_module(**given)
