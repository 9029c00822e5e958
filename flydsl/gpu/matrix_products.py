"""Products of 16-bit matrices, summed as the GPU's matrix instructions do, for tensors of the host.

A library's kernel walks along K with matrix instructions, which add so many products at once to an f32
(`Arch.products_per_sum`), and rounds the f32 to 16 bits at the end. The host's kernels sum in another order, so one
element in five hundred or so would differ in its last bit, which a comparison with `rtol=0` does not allow. What is
added at once is summed in f64 here, as in the simulator. A library may also split K between workgroups: that is not
documented and not done here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, c_uint64
from functools import cache
from pathlib import Path
from typing import Any

import torch

from flydsl.simulator.native.host import UnsupportedHost

_NARROW = (torch.float16, torch.bfloat16)
_ATEN = torch.ops.aten
_WITHOUT_SUMMAND = frozenset({_ATEN.mm.default, _ATEN.mm.out, _ATEN.bmm.default, _ATEN.bmm.out})
_WITH_SUMMAND = frozenset({_ATEN.addmm.default, _ATEN.addmm.out, _ATEN.baddbmm.default, _ATEN.baddbmm.out})
_OF_BATCHES = frozenset({_ATEN.bmm.default, _ATEN.bmm.out, _ATEN.baddbmm.default, _ATEN.baddbmm.out})

PRODUCTS = _WITHOUT_SUMMAND | _WITH_SUMMAND
"""The operators that `multiply` is for."""

_MOST_PRODUCTS = 1 << 33
"""Those of 2048 x 2048 x 2048: a second. The host sums larger ones in its own order, and faster."""

_EMPTY, _TO, _ADDRESS = torch.empty, torch._C.TensorBase.to, torch._C.TensorBase.data_ptr
"""torch's own, which take less time than those for which a GPU is posed."""

_Native = Callable[..., None]


def multiply(operator: Any, args: Sequence[Any], kwargs: dict[str, Any], products_per_sum: int) -> torch.Tensor:
    """The result of a product, with the summand that `addmm` and `baddbmm` have."""
    summand, (one, other) = (None, args[:2]) if operator in _WITHOUT_SUMMAND else (args[0], args[1:3])
    out = kwargs.get("out") if kwargs else None
    is_summed = _is_summed_here(one, other, 3 if operator in _OF_BATCHES else 2)
    native = _native() if is_summed and _fit(one, other, summand, out) else None
    if native is None:
        found: torch.Tensor = operator(*args, **kwargs)  # or it raises torch's error
        return found
    total = _sum(native, one, other, products_per_sum)
    if summand is not None:
        alpha, beta = kwargs.get("alpha", 1), kwargs.get("beta", 1)
        total = total.mul_(alpha) if alpha != 1 else total
        total = total.add_(summand.float(), alpha=beta) if beta else total
    return _TO(total, one.dtype) if out is None else out.copy_(total)


def _is_summed_here(one: torch.Tensor, other: torch.Tensor, dimensions: int) -> bool:
    if one.dtype not in _NARROW or other.dtype != one.dtype:
        return False
    if one.layout is not torch.strided or other.layout is not torch.strided:
        return False
    return one.dim() == other.dim() == dimensions and 0 < one.numel() * other.shape[-1] <= _MOST_PRODUCTS


def _fit(one: torch.Tensor, other: torch.Tensor, summand: torch.Tensor | None, out: torch.Tensor | None) -> bool:
    """True if shapes and types agree, so that torch has nothing to refuse and nothing to resize."""
    (*batch, m, k), (*others, depth, n) = one.shape, other.shape
    if batch != others or k != depth:
        return False
    shape = (*batch, m, n)
    if out is not None and (out.shape != shape or out.dtype != one.dtype):
        return False
    if summand is None:
        return True
    pairs = zip(reversed(summand.shape), reversed(shape), strict=False)
    return summand.dtype == one.dtype and summand.dim() <= len(shape) and all(m in (1, n) for m, n in pairs)


def _sum(native: _Native, one: torch.Tensor, other: torch.Tensor, products_per_sum: int) -> torch.Tensor:
    """The product in f32, rounded whenever so many products along K are added to it."""
    (*batch, m, k), n, is_batch = one.shape, other.shape[-1], one.dim() == 3
    total = _EMPTY((*batch, m, n), dtype=torch.float32, device="cpu")
    strides = (one.stride(), other.stride()) if is_batch else ((0, *one.stride()), (0, *other.stride()))
    operands = (_ADDRESS(one), *strides[0], _ADDRESS(other), *strides[1], _ADDRESS(total))
    native(*operands, *(batch or (1,)), m, n, k, products_per_sum, one.dtype == torch.float16)
    return total


@cache
def _native() -> _Native | None:
    """The function `multiply` of C; None on a host for which no native code is made."""
    from flydsl.simulator.native.library import library
    from flydsl.simulator.native.runtime import TYPES

    text = TYPES + Path(__file__).with_suffix(".c").read_text("utf-8")
    try:
        address = library().compiled(text, ("multiply",))["multiply"]
    except UnsupportedHost:
        return None
    return CFUNCTYPE(None, *[c_uint64] * 15)(address)
