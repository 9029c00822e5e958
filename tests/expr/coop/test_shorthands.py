"""Reductions that have their operation in their name give what the function behind them gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import flydsl.expr as fx
from flydsl.expr import coop


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
