"""Expert parallelism within a node: tokens to their experts' GPUs, and results back, with the memory that it needs.

    op = DispatchCombine(group=dist.group.WORLD, device="cpu", world_size=n, rank=r, max_tokens=64, experts=64, topk=8,
                         hidden=2048, dtype=torch.bfloat16)
    received = op.dispatch(tokens, indices, weights)  # the tokens that have an expert of this rank, and their tables
    out = op.combine(results)  # results: a row for each received token, the sum over its experts here

Every rank makes the same calls in the same order, each with its own number of tokens, which may be 0. The tensors that
`dispatch` gives are copies. `dispatch_combine_intranode_kernel` has the kernels. How many workgroups each of both has
can be chosen by measurement: blocks=None. All ranks then try the same numbers, and choose by the slowest of them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import flydsl
import flydsl.expr as fx
from flydsl.autotune import do_bench
from flydsl.runtime.device import device_at, use_device
from flydsl.runtime.device_memory import hipDeviceMallocUncached, hipMemcpyDefault
from flydsl.runtime.host_tensors import remember
from flydsl.simulator import counting
from kernels import custom_all_reduce_kernel as node
from kernels import dispatch_combine_intranode_kernel as kernel
from kernels.kernels_common import TORCH_NAMES, require, require_array
from kernels.node_memory import NodeMemory

BLOCKS = 8
CHOICES = (2, 8, 32)


@dataclass(frozen=True, kw_only=True)
class Received:
    """The rows that a rank has received, in no particular order.

    tokens (n, hidden), indices (n, k) i32, weights (n, k) f32, scales (n, ...) or None, sources (n) i32: the rank of a
    token times max_tokens, plus its number there.
    """

    tokens: Any
    indices: Any
    weights: Any
    scales: Any
    sources: Any


class DispatchCombine:
    """The areas of all ranks. hidden: elements of a token. dtype: torch's, of tokens; result_dtype: f32, f16, bf16.

    scale_bytes: of each token's scales, a multiple of 16. blocks: workgroups of a launch, on all ranks the same; None
    to let the first call of each kind find them. Creating one is a collective call. Raises ArgumentError for sizes that
    do not fit: a token and a result have whole packs of 16 bytes.
    """

    def __init__(
        self, *, group: Any, device: Any, world_size: int, rank: int, max_tokens: int, experts: int, topk: int,
        hidden: int, dtype: Any, scale_bytes: int = 0, result_dtype: Any = None, blocks: int | None = BLOCKS,
    ) -> None:  # fmt: skip
        import torch

        self.hidden, self.dtype, self.result_dtype = hidden, dtype, result_dtype or dtype
        names = {getattr(torch, name): short for short, name in TORCH_NAMES.items()}
        self._plan = kernel.Plan(
            world=world_size,
            max_tokens=max_tokens,
            experts=experts,
            topk=topk,
            row_bytes=hidden * dtype.itemsize,
            scale_bytes=scale_bytes,
            result_bytes=hidden * self.result_dtype.itemsize,
            dtype=names.get(self.result_dtype, str(self.result_dtype)),
        )
        require(0 <= rank < world_size, f"rank={rank} of {world_size}", "a rank of the group")
        most = node.MOST_BLOCKS
        require(blocks is None or 0 < blocks <= most, f"blocks={blocks}", f"1 to {most}, or None")
        self.rank, self._place, self._launches = rank, str(device), 0
        configs = [flydsl.Config(blocks=number) for number in CHOICES]
        tuned = flydsl.autotune(configs, key=["launcher"], do_bench=self._slowest)(self._run)
        self._start = tuned if blocks is None else partial(self._run, blocks=blocks)
        self._node = NodeMemory(group, device, world_size, rank)
        self._area, self._signal = (
            self._node.allocate(size, hipDeviceMallocUncached)
            for size in (self._plan.offsets["size"], node.SIGNAL_BYTES)
        )
        for address, size in ((self._area, 16), (self._signal, node.SIGNAL_BYTES)):
            self._node.memory.hipMemset(address, 0, size)
        self._node.memory.hipDeviceSynchronize()
        self._areas, self._signals = (self._node.table(self._node.everywhere(a)) for a in (self._area, self._signal))
        self._places = torch.empty(max_tokens, topk, dtype=torch.int32, device=device)
        self._count = self._received = 0

    def dispatch(self, tokens: Any, indices: Any, weights: Any, scales: Any = None, *, stream: Any = None) -> Received:
        """Send tokens (T, hidden) to the ranks of their experts, indices (T, k) i32, with weights (T, k) f32.

        scales: (T, ...), of scale_bytes each. An index that is no expert's is dropped. Waits for all ranks.
        """
        import torch

        plan, count = self._plan, tokens.shape[0]
        require_array("tokens", tokens, self.dtype, (count, self.hidden))
        require_array("indices", indices, torch.int32, (count, plan.topk))
        require_array("weights", weights, torch.float32, (count, plan.topk))
        require(count <= plan.max_tokens, f"{count} tokens", f"at most max_tokens={plan.max_tokens}")
        scale_bytes = 0 if scales is None or not count else scales[0].numel() * scales.element_size()
        require((scales is not None and scales.is_contiguous() and (scale_bytes == plan.scale_bytes or not count))
                if plan.scale_bytes else scales is None,
                f"scales of {scale_bytes} bytes", f"{plan.scale_bytes} for each token, contiguous")  # fmt: skip
        given = (tokens, indices, weights, tokens if scales is None else scales, self._places)
        self._launch(kernel.make_dispatch_kernel(plan), given, count, stream)
        self._count = count
        return self._taken(scales)

    def combine(self, results: Any, *, stream: Any = None) -> Any:
        """The sum of the results of each token of the last `dispatch`, (T, hidden), over the ranks that have it.

        results: (n, hidden) of result_dtype, a row for each that was received. A token that is nobody's is 0.
        """
        import torch

        plan = self._plan
        require_array("results", results, self.result_dtype, (self._received, self.hidden))
        memory, size = self._node.memory, self._received * plan.result_bytes
        handle = device_at(self._place).stream_handle(stream)
        remember(results)
        memory.hipMemcpyAsync(self._area + plan.offsets["results"], results.data_ptr(), size, hipMemcpyDefault, handle)
        out = torch.empty(self._count, self.hidden, dtype=self.result_dtype, device=results.device)
        self._launch(kernel.make_combine_kernel(plan), (self._places, out), self._count, stream)
        return out

    def close(self) -> None:
        """Give the memory back."""
        self._node.close()

    def _launch(self, launcher: Any, tensors: Any, count: int, stream: Any) -> None:
        remember(*tensors)
        self._start(launcher, [tensor.data_ptr() for tensor in tensors], count, stream)

    def _run(self, launcher: Any, pointers: list[int], count: int, stream: Any, blocks: int) -> None:
        self._launches += 1
        places = (self.rank, self._signal, self._signals, self._areas)
        with use_device(device_at(self._place)):
            launcher(blocks, self._launches, *places, *pointers, count, fx.Stream(stream))

    def _slowest(self, call: Callable[[], Any], warmup: int, rep: int) -> float:
        """The time of a call in ms, on the rank where it takes the longest. All ranks make as many.

        What is simulated is estimated from its counts, as the model of time would execute it a second time.
        """
        with counting() as counters:
            call()
        simulated = sum(launch.roofline().time_us for launch in counters.launches) / 1000
        mine = simulated if counters.launches else do_bench(call, warmup, rep)
        times = self._node.exchange(struct.pack("<d", mine))
        return max(struct.unpack("<d", time)[0] for time in times)

    def _taken(self, scales: Any) -> Received:
        """Copies of what has arrived."""
        import torch

        plan = self._plan
        # Waits for the launch. A number of 4 bytes in each of two places.
        counts = self._copied("counts", (2,), torch.int32)
        self._received = n = int(counts[self._launches & 1])
        return Received(
            tokens=self._copied("tokens", (n, self.hidden), self.dtype),
            indices=self._copied("indices", (n, plan.topk), torch.int32),
            weights=self._copied("weights", (n, plan.topk), torch.float32),
            scales=None if scales is None else self._copied("scales", (n, *scales.shape[1:]), scales.dtype),
            sources=self._copied("sources", (n,), torch.int32),
        )

    def _copied(self, part: str, shape: tuple[int, ...], dtype: Any) -> Any:
        import torch

        tensor = torch.empty(shape, dtype=dtype, device=self._place)
        remember(tensor)
        size = tensor.numel() * tensor.element_size()
        if size:
            self._node.memory.hipMemcpy(tensor.data_ptr(), self._area + self._plan.offsets[part], size)
        return tensor
