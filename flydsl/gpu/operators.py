"""The time of torch's own operators on a posed GPU, which runs their kernels on the host: by memory bandwidth alone.

An operator reads its operands and writes its results once, at the bandwidth of the product, and takes a few
microseconds to be launched. That is about right for pointwise operators and too little for products, so a program that
measures torch's products measures too little. Copies from and to the host go at the speed of PCIe 5; views take no
time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from flydsl.arch.products import Product
from flydsl.gpu.graphs import capture_operator
from flydsl.gpu.streams import CLOCK
from flydsl.gpu.tensor import GpuTensor

_LINK_BYTES_PER_US = 50_000.0
"""Of PCIe 5 with 16 lanes, what copies reach of its 64 GB/s."""
_LAUNCH_US = 5.0
"""From the call to the end of a kernel that does nothing, about."""


class Operators:
    """Advances the clock for operators while the program measures time. time_us: of all of them; count: how many."""

    def __init__(self, product: Product) -> None:
        self.bytes_per_us = product.memory_gb_per_s * 1000.0
        self.time_us, self.count = 0.0, 0

    def __call__(self, func: Any, args: Any, kwargs: Any, results: Any) -> None:
        """Take the time of an operator that has run."""
        capture_operator(func, args, kwargs, results)
        if not CLOCK.is_watched:
            return
        operands = _tensors(args)
        if func._schema.name == "aten::copy_" and operands[0].device != operands[1].device:
            self.take_copy(operands[0].nbytes)
            return
        new = [tensor for tensor in _tensors(results) if not any(_is_same(tensor, other) for other in operands)]
        if not new and not func._schema.is_mutable:
            return  # a view
        if str(func).startswith(("aten.empty", "aten.new_empty", "aten.detach")):
            return
        written = new or operands[:1]
        moving_us = sum(tensor.nbytes for tensor in (*operands, *written)) / self.bytes_per_us
        self._take(moving_us, str(func), next((t.gpu_number for t in written if isinstance(t, GpuTensor)), None))

    def take_copy(self, size_bytes: int) -> None:
        """Take the time of a copy of that many bytes between host and GPU."""
        if CLOCK.is_watched:
            self._take(size_bytes / _LINK_BYTES_PER_US, "copy between host and GPU")

    def _take(self, moving_us: float, name: str, gpu: int | None = None) -> None:
        time_us = _LAUNCH_US + moving_us
        self.time_us += time_us
        self.count += 1
        CLOCK.advance(time_us, name, gpu=gpu)


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided]


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.untyped_storage()._cdata == other.untyped_storage()._cdata
