"""Operators of torch, as they run in host memory for a posed GPU."""

from __future__ import annotations

from typing import Any

import torch

from flydsl.gpu.devices import tensors_in
from flydsl.gpu.matrix_products import PRODUCTS, multiply
from flydsl.gpu.memory import MEMORY
from flydsl.gpu.rounding import ROUNDED_ONCE, round_once

_HEEDING, _KEYS = torch._C._SetExcludeDispatchKeyGuard, torch._C.DispatchKey


def run_on_host(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run an operator in host memory.

    Where Python has the word, torch takes tensors as if they were not conjugated or negated. Operators of complex
    numbers conjugate some between them, so it is told to look at that again.
    """
    with torch._C._DisableTorchDispatch():
        if func in ROUNDED_ONCE:
            return round_once(func, args, kwargs)
        if MEMORY.products_per_sum and func in PRODUCTS:
            return multiply(func, args, kwargs, MEMORY.products_per_sum)
        if not any(tensor.is_complex() for tensor in tensors_in(args)):
            return func(*args, **kwargs)
        with _HEEDING(_KEYS.Conjugate, False), _HEEDING(_KEYS.Negative, False):
            return func(*args, **kwargs)
