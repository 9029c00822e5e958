"""Launches with tensors of any size, for which nothing is compiled again."""

from __future__ import annotations

from typing import Any

import flydsl.compiler as flyc


def launch_flat(launch: Any, *arguments: Any) -> None:
    """Call a launcher whose tensors have one dimension, with the last argument, the stream, left out if it is None."""
    import torch

    *given, stream = [flat(a) if isinstance(a, torch.Tensor) else a for a in arguments]
    launch(*given, *([] if stream is None else [stream]))


def flat(tensor: Any) -> Any:
    """A tensor as an argument of one dimension and any size, for which nothing is compiled again; fp8 as bytes."""
    import torch

    tensor = tensor.view(-1)
    tensor = tensor.view(torch.uint8) if tensor.element_size() == 1 else tensor
    return flyc.from_dlpack(tensor).mark_layout_dynamic()
