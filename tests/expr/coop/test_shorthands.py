"""Reductions that have their operation in their name give what the function behind them gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.expr as fx
from flydsl.expr import coop


def test_the_methods_are_those_with_their_operation(elementwise: Callable[..., torch.Tensor]) -> None:
    def both(a: Any, _: Any) -> list[Any]:
        odd, one, some = a.to(fx.Int32) % 2 != 0, coop.WarpReduce[fx.Float32, 16], [a, a * 3.0]
        scan, batched = coop.WarpScan[fx.Float32, 16], coop.WarpReduceBatched[fx.Float32, 16, 2]
        block, block_scan = coop.BlockReduce[fx.Float32, 64], coop.BlockScan[fx.Float32, 64]
        memory = fx.SharedAllocator().allocate(block.SharedStorage).peek()
        scanned = fx.SharedAllocator().allocate(block_scan.SharedStorage).peek()
        pairs = [
            (one.sum(a), one.reduce(a, "add")),
            (one.max(a, valid_items=5), one.reduce(a, "max", valid_items=5)),
            (one.min(a), one.reduce(a, "min")),
            (one.head_segmented_sum(a, odd), one.head_segmented_reduce(a, odd, "add")),
            (one.tail_segmented_sum(a, odd), one.tail_segmented_reduce(a, odd, "add")),
            (scan.inclusive_sum(a, init=2.0), scan.inclusive(a, "add", init=2.0)),
            (scan.exclusive_sum(a), scan.exclusive(a, "add")),
            (batched.sum(some), batched.reduce(some, "add")),
            (batched.sum_to_blocked(some)[0], batched.reduce_to_blocked(some, "add")[0]),
            (batched.sum_to_striped(some)[0], batched.reduce_to_striped(some, "add")[0]),
            (block.sum(a, storage=memory), block.reduce(a, "add", memory)),
            (block_scan.inclusive_sum(a, storage=scanned), block_scan.inclusive(a, "add", scanned)),
            (block_scan.exclusive_sum(a, storage=scanned), block_scan.exclusive(a, "add", scanned)),
            (block_scan.inclusive_sum_with_aggregate(a, storage=scanned)[1],
             block_scan.inclusive_with_aggregate(a, "add", scanned)[1]),
            (block_scan.exclusive_sum_with_aggregate(a, storage=scanned)[0],
             block_scan.exclusive_with_aggregate(a, "add", scanned)[0]),
        ]  # fmt: skip
        return [value for pair in pairs for value in pair]

    a = torch.arange(64, dtype=torch.float32) - 20
    got = elementwise(both, a, a, torch.float32)
    assert torch.equal(got[0::2], got[1::2])
    assert torch.equal(got[0], a.view(4, 16).sum(1).repeat_interleave(16))
    assert torch.equal(got[22], a.cumsum(0))


def test_sorts_need_no_comparison(elementwise: Callable[..., torch.Tensor]) -> None:
    def sorts(a: Any, _: Any) -> list[Any]:
        merged = coop.WarpMergeSort[fx.Float32, 64, 1].sort([a])[0]
        return [coop.warp_bitonic_sort([a])[0], coop.warp_merge_sort([a], width=8)[0], merged]

    a = torch.randn(64, generator=torch.Generator().manual_seed(3))
    got = elementwise(sorts, a, a, torch.float32)
    up = a.sort().values
    assert torch.equal(got[0], up)
    assert torch.equal(got[1], a.view(8, 8).sort(1).values.view(-1))
    assert torch.equal(got[2], up)


@pytest.mark.sweep
def test_descending_sorts_by_digits(elementwise: Callable[..., torch.Tensor]) -> None:
    def sorts(a: Any, _: Any) -> list[Any]:
        radix = coop.BlockRadixSort[fx.Float32, 64, 1]
        memory = fx.SharedAllocator().allocate(radix.SharedStorage).peek()
        down = radix.sort_descending([a], storage=memory)[0]
        fx.barrier()
        return [down, radix.sort_descending_blocked_to_striped([a], storage=memory)[0]]

    a = torch.randn(64, generator=torch.Generator().manual_seed(3))
    down, striped = elementwise(sorts, a, a, torch.float32)
    assert torch.equal(down, a.sort(descending=True).values)
    assert torch.equal(striped, a.sort(descending=True).values)


def test_they_are_the_function_with_its_operation(elementwise: Callable[..., torch.Tensor]) -> None:
    def both(a: Any, b: Any) -> list[Any]:
        odd, some = a.to(fx.Int32) % 2 != 0, [a, b, a * 2.0]
        pairs = [
            (coop.warp_sum(a), coop.warp_reduce(a, "add")),
            (coop.warp_max(value=a, width=8), coop.warp_reduce(a, "max", width=8)),
            (coop.warp_min(a, width=4, valid_items=3), coop.warp_reduce(a, "min", width=4, valid_items=3)),
            (coop.warp_inclusive_sum(a, init=2.0), coop.warp_inclusive_scan(a, "add", init=2.0)),
            (coop.warp_exclusive_sum(a, width=16), coop.warp_exclusive_scan(a, "add", width=16)),
            (coop.warp_head_segmented_sum(a, odd), coop.warp_head_segmented_reduce(a, odd, "add")),
            (coop.warp_tail_segmented_sum(a, odd), coop.warp_tail_segmented_reduce(a, odd, "add")),
            (coop.warp_sum_batched(some, width=4), coop.warp_reduce_batched(some, "add", width=4)),
            (coop.warp_sum_batched_to_blocked(some, width=2)[1],
             coop.warp_reduce_batched_to_blocked(some, "add", width=2)[1]),
            (coop.warp_sum_batched_to_striped(some, width=2)[0],
             coop.warp_reduce_batched_to_striped(some, "add", width=2)[0]),
        ]  # fmt: skip
        return [value for pair in pairs for value in pair]

    a = torch.arange(64, dtype=torch.float32) - 20
    got = elementwise(both, a, a * 3, torch.float32)
    assert torch.equal(got[0::2], got[1::2])
    assert torch.equal(got[0], a.sum().expand(64))
    assert torch.equal(got[2], a.view(8, 8).amax(1).repeat_interleave(8))
    assert torch.equal(got[8], a.view(4, 16).cumsum(1).sub(a.view(4, 16)).view(-1))
