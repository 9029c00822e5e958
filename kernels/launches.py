"""How kernels are launched: for a count that may be 0, and with tensors of any size. `flydsl.launchers` serves here."""

from __future__ import annotations

from typing import Any

import flydsl.compiler as flyc
from flydsl.launchers import chosen, launcher, tuned

__all__ = ["chosen", "flat", "for_waves", "launch_flat", "launch_some", "launcher", "tuned"]


@flyc.jit
def launch_some(kernel: Any, count: Any, grid: Any, block: Any, stream: Any, **options: Any) -> None:
    """Launch a kernel for `count` rows or tokens, unless there are none: a grid has no extent of 0."""
    if count > 0:
        kernel.launch(grid=grid, block=block, stream=stream, **options)


def for_waves(count: int | None) -> dict[str, Any]:
    """The attribute of a kernel whose registers are allocated for so many waves per SIMD; None for the compiler's."""
    return {"rocdl.waves_per_eu": count}


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
