"""Products of 16-bit matrices, summed as the GPU's matrix instructions do, for tensors of the host.

A library's kernel walks along K with matrix instructions, which add so many products at once to an f32
(`Arch.products_per_sum`), and rounds the f32 to 16 bits at the end. The host's kernels sum in another order, so one
element in five hundred or so would differ in its last bit, which a comparison with `rtol=0` does not allow. What is
added at once is summed in f64 here, as in the simulator. A library may also split K between workgroups: that is not
documented and not done here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_NARROW = (torch.float16, torch.bfloat16)
_ATEN = torch.ops.aten
_WITHOUT_SUMMAND = frozenset({_ATEN.mm.default, _ATEN.mm.out, _ATEN.bmm.default, _ATEN.bmm.out})
_WITH_SUMMAND = frozenset({_ATEN.addmm.default, _ATEN.addmm.out, _ATEN.baddbmm.default, _ATEN.baddbmm.out})

PRODUCTS = _WITHOUT_SUMMAND | _WITH_SUMMAND
"""The operators that `multiply` is for."""

_MOST_PRODUCTS = 1 << 30
"""Those of 1024 x 1024 x 1024: half a second. The host sums larger ones in its own order, and ten times faster."""


def multiply(operator: Any, args: Sequence[Any], kwargs: dict[str, Any], products_per_sum: int) -> torch.Tensor:
    """The result of a product, with the summand that `addmm` and `baddbmm` have."""
    summand, (one, other) = (None, args[:2]) if operator in _WITHOUT_SUMMAND else (args[0], args[1:3])
    if not _is_summed_here(one, other) or not _fit(one, other, summand, kwargs.get("out")):
        found: torch.Tensor = operator(*args, **kwargs)  # or it raises torch's error
        return found
    total = _sum(one, other, products_per_sum)
    if summand is not None:
        alpha, beta = kwargs.get("alpha", 1), kwargs.get("beta", 1)
        total = total.mul_(alpha) if alpha != 1 else total
        total = total.add_(summand.float(), alpha=beta) if beta else total
    out = kwargs.get("out")
    return torch.empty_like(total, dtype=one.dtype).copy_(total) if out is None else out.copy_(total)


def _is_summed_here(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.dtype not in _NARROW or other.dtype != one.dtype:
        return False
    if one.layout is not torch.strided or other.layout is not torch.strided:
        return False
    return 0 < one.numel() * other.shape[-1] <= _MOST_PRODUCTS and other.numel() > 0


def _fit(one: torch.Tensor, other: torch.Tensor, summand: torch.Tensor | None, out: torch.Tensor | None) -> bool:
    """True if shapes and types agree, so that torch has nothing to refuse and nothing to resize."""
    if one.dim() != other.dim() or one.shape[:-2] != other.shape[:-2] or one.shape[-1] != other.shape[-2]:
        return False
    shape = (*one.shape[:-1], other.shape[-1])
    if out is not None and (out.shape != shape or out.dtype != one.dtype):
        return False
    if summand is None:
        return True
    pairs = zip(reversed(summand.shape), reversed(shape), strict=False)
    return summand.dtype == one.dtype and summand.dim() <= len(shape) and all(m in (1, n) for m, n in pairs)


def _sum(one: torch.Tensor, other: torch.Tensor, products_per_sum: int) -> torch.Tensor:
    """The product in f32, rounded whenever so many products along K are added to it."""
    one, other = one.double(), other.double()
    exact = one.new_zeros((*one.shape[:-1], other.shape[-1]))
    rounded = torch.empty_like(exact, dtype=torch.float32)
    add = exact.addmm_ if one.dim() == 2 else exact.baddbmm_
    steps = one.unsafe_split(products_per_sum, -1), other.unsafe_split(products_per_sum, -2)
    for left, right in zip(*steps, strict=True):
        add(left, right)
        exact.copy_(rounded.copy_(exact))
    return rounded
