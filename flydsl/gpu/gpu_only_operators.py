"""Operators that torch has for GPUs alone: a few of them as the host can do them, and an error that names the others.

Tensors of a posed GPU are the host's for torch's kernels, so an operator without a kernel for the host does not run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from flydsl.errors import DeviceError

_ATTENTION = torch.nn.functional.scaled_dot_product_attention


def _attention(*args: Any, **options: Any) -> torch.Tensor:
    """Attention by the host's kernels, whichever of the GPU's the program chose. `sdpa_kernel` chooses among them."""
    if torch.backends.cuda.math_sdp_enabled() or torch.backends.cuda.flash_sdp_enabled():
        return _ATTENTION(*args, **options)
    with sdpa_kernel(SDPBackend.MATH):
        return _ATTENTION(*args, **options)


_RANK = torch.linalg.matrix_rank


def _rank(*args: Any, out: torch.Tensor | None = None, **options: Any) -> torch.Tensor:
    """The rank of matrices. Torch's C++ does not write to `out` for tensors of a class of their own."""
    found = _RANK(*args, **options)
    return found if out is None else out.resize_(found.shape).copy_(found)


INSTEAD: dict[Any, Callable[..., Any]] = {_ATTENTION: _attention, _RANK: _rank}
"""Functions of torch, by what is called for tensors of a posed GPU."""


def _wider(product: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A product of narrow matrices with sums of a wider type: `torch.mm(a, b, out_dtype=torch.float32)`."""

    def widened(*operands: Any, out: torch.Tensor | None = None, **factors: Any) -> torch.Tensor:
        *tensors, out_dtype = operands
        result = product(*(tensor.to(out_dtype) for tensor in tensors), **factors)
        return result if out is None else out.copy_(result)

    return widened


WIDER = {
    f"{name}.{kind}": _wider(getattr(torch, name))
    for name in ("mm", "bmm", "addmm", "baddbmm")
    for kind in ("dtype", "dtype_out")
}
"""Kernels for the host, by operator. They are registered while a GPU poses."""


_NO_KERNEL = re.compile(r"Could not run '([\w:.]+)' with arguments from the 'CPU' backend")


def refuse(missing: NotImplementedError) -> None:
    """Raise DeviceError for an error of torch that says that it has an operator for GPUs alone."""
    if found := _NO_KERNEL.match(str(missing)):
        raise DeviceError(
            f"{found[1]}: torch has it for GPUs only, and a posed GPU runs torch's operators on the host",
            hint="torch.nn.functional has most of these for every device",
        ) from None  # torch's error lists all that it has kernels for
