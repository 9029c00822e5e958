"""`torch.autocast("cuda")` on a posed GPU: narrow products, and f32 where a GPU's autocast has it.

torch chooses types by the device that its C++ knows, which is the host for a posed GPU's tensors. So a function of such
tensors runs under the host's autocast, and the operators that only a GPU's autocast runs in f32 are added to it. What
works on the host alone stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

_IN_F32 = (
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "sinh",
    "tan", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar", "softplus", "layer_norm", "native_layer_norm",
    "group_norm", "rms_norm", "frobenius_norm.dim", "nuclear_norm", "nuclear_norm.dim", "cosine_similarity", "dist",
    "pdist", "renorm", "logsumexp", "softmax.int", "log_softmax.int", "cumprod", "cumsum", "linalg_vector_norm",
    "linalg_matrix_norm", "linalg_matrix_norm.str_ord", "sum", "sum.dim_IntList", "norm.Scalar", "norm.ScalarOpt_dim",
    "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d", "upsample_bilinear2d",
    "upsample_trilinear3d", "upsample_bicubic2d",
)  # fmt: skip
"""The operators that autocast runs in f32 on a GPU and leaves alone on the host (aten/src/ATen/autocast_mode.h)."""

_KEY = torch._C.DispatchKey.AutocastCPU


@contextmanager
def as_on_a_gpu() -> Iterator[None]:
    """Run a block under the host's autocast if the program runs under a GPU's."""
    if not torch.is_autocast_enabled("cuda"):
        yield
        return
    before = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    try:
        torch.set_autocast_enabled("cpu", True)
        torch.set_autocast_dtype("cpu", torch.get_autocast_dtype("cuda"))
        yield
    finally:
        torch.set_autocast_enabled("cpu", before[0])
        torch.set_autocast_dtype("cpu", before[1])


def register(library: torch.library.Library, is_of_gpu: Callable[[Any], bool]) -> None:
    """Register what runs in f32 with a library of "aten". is_of_gpu: tells a posed GPU's tensors."""
    for name in _IN_F32:
        if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", _KEY.name):
            library.impl(name, _widened(name, is_of_gpu), _KEY.name)


def _widened(name: str, is_of_gpu: Callable[[Any], bool]) -> Callable[..., Any]:
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(torch.ops.aten, packet), overload or "default")

    def widened(*args: Any, **kwargs: Any) -> Any:
        with torch._C._SetExcludeDispatchKeyGuard(_KEY, True):
            if kwargs.get("dtype") is None and torch.is_autocast_enabled("cuda") and any(map(is_of_gpu, args)):
                args = tuple(value.float() if _is_narrow(value) else value for value in args)
            return operator(*args, **kwargs)

    return widened


def _is_narrow(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)
