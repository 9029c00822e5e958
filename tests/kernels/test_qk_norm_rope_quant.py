from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import qk_norm_rope_quant as kernel
from tests.kernels.checks import checking
from tests.kernels.rows import strided

# (weighted q, group, scales)
VARIANTS = [(False, None, "fp32"), (True, 512, "fp32"), (True, 128, "e8m0")]


def operands(t: int, h: int, rd: int, dtype: torch.dtype = torch.bfloat16) -> tuple[Any, ...]:
    random = torch.Generator().manual_seed(t)

    def numbers(*size: int) -> torch.Tensor:
        return torch.randn(size, generator=random).to(dtype)

    angles = numbers(16, rd // 2).float()
    positions = torch.randint(0, 16, (t,), generator=random)
    kv = strided(numbers(t, 512), 6)
    return numbers(t, h * 512), kv, numbers(512), angles.cos().to(dtype), angles.sin().to(dtype), positions


@pytest.mark.checked
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize(("number", "shape"), [*enumerate(kernel.SHAPES)], ids=str)
@pytest.mark.diagonal(3)
def test_equals_torch(number: int, shape: tuple[int, int, int], variant: tuple[bool, int | None, str]) -> None:
    (t, h, rd), (weighted, group, scale_dtype) = shape, variant
    q, kv, weight, cos, sin, positions = operands(t, h, rd, (torch.bfloat16, torch.float16)[number % 2])
    q[0, :512] = 0
    q_weight = weight.flip(0) if weighted else None
    with checking():
        results = kernel.flydsl_qk_norm_rope_quant(
            q, kv, weight, cos, sin, positions, num_q_heads=h, head_dim=512, rope_head_dim=rd, q_weight=q_weight,
            quant=group is not None, quant_group_size=group, scale_dtype=scale_dtype,
        )  # fmt: skip
    for place, (x, w) in enumerate(((q.view(t, h, 512), q_weight), (kv[:, None], weight))):
        expected, before = kernel.reference(x, w, cos[positions], sin[positions])
        got = results[place].float().view(expected.shape)
        if group is None:
            torch.testing.assert_close(got, expected, rtol=1e-2, atol=1e-2)
            continue
        largest = before.abs().view(t, -1, 512 // group, group).amax(-1) * 2**0.5
        scales = results[place + 2].view(largest.shape)
        if scale_dtype == "fp32":
            exact = torch.where(largest == 0, 1, largest / 240)
            torch.testing.assert_close(scales, exact, rtol=1e-4, atol=0)
        else:
            scales = torch.exp2(scales.float() - 127)
            assert ((largest <= scales * 240) | (largest == 0)).all()
            assert ((largest >= scales * 48) | (largest == 0)).all()
        wanted = (expected.view(*largest.shape, group) / scales[..., None]).view(got.shape)
        assert ((got - wanted).abs() <= wanted.abs() / 16 * 1.01 + 2.0**-10).all()


@pytest.mark.parametrize(
    ("given", "said"),
    [({"head_dim": 128}, "heads of 128"), ({"rope_head_dim": 12}, "12 rotated"), ({"num_q_heads": 3}, "1536 elements"),
     ({"quant": True, "quant_group_size": 100}, "groups of 100"), ({"quant": True, "scale_dtype": "f16"}, "'f16'")],
)  # fmt: skip
def test_wrong_arguments(given: Any, said: str) -> None:
    options = {"num_q_heads": 2, "head_dim": 512, "rope_head_dim": 64, **given}
    with pytest.raises(ArgumentError, match=said):
        kernel.flydsl_qk_norm_rope_quant(*operands(2, 2, 64), **options)


@pytest.mark.parametrize(
    ("place", "changed", "said"),
    [(0, lambda q: q.float(), "q of Float32"), (0, lambda q: q.T.contiguous().T, "(?s)q of .*side by side"),
     (0, lambda q: q[0], "q "), (2, lambda weight: weight.float(), "kv_weight of Float32"),
     (3, lambda cos: cos[:, :16], "cos of"), (5, lambda positions: positions.float(), "positions of Float32")],
)  # fmt: skip
def test_wrong_tensors(place: int, changed: Any, said: str) -> None:
    given = list(operands(2, 2, 64))
    given[place] = changed(given[place])
    with pytest.raises(ArgumentError, match=said):
        kernel.flydsl_qk_norm_rope_quant(*given, num_q_heads=2, head_dim=512, rope_head_dim=64)
