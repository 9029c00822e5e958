"""Reductions and scans of `fx.coop` whose operation is in their name: FlyDSL 0.5 has them.

`warp_sum(x)` is `warp_reduce(x, fx.ReductionOp.ADD)`; the other parameters are those of the function behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flydsl.expr.coop.warp_reductions import (
    warp_exclusive_scan,
    warp_head_segmented_reduce,
    warp_inclusive_scan,
    warp_reduce,
    warp_reduce_batched,
    warp_reduce_batched_to_blocked,
    warp_reduce_batched_to_striped,
    warp_tail_segmented_reduce,
)
from flydsl.expr.numbers.vector_value import ReductionOp
from flydsl.expr.tracing.described import described

__all__ = [
    "warp_exclusive_sum", "warp_head_segmented_sum", "warp_inclusive_sum", "warp_max", "warp_min", "warp_sum",
    "warp_sum_batched", "warp_sum_batched_to_blocked", "warp_sum_batched_to_striped", "warp_tail_segmented_sum",
]  # fmt: skip


def _with(op: ReductionOp, function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def shorthand(*given: Any, **named: Any) -> Any:
        return function(*given, op=op, **named)

    return described(shorthand, name, f"`{function.__name__}` with `fx.ReductionOp.{op.name}`.")


warp_sum = _with(ReductionOp.ADD, warp_reduce, "warp_sum")
warp_max = _with(ReductionOp.MAX, warp_reduce, "warp_max")
warp_min = _with(ReductionOp.MIN, warp_reduce, "warp_min")
warp_inclusive_sum = _with(ReductionOp.ADD, warp_inclusive_scan, "warp_inclusive_sum")
warp_exclusive_sum = _with(ReductionOp.ADD, warp_exclusive_scan, "warp_exclusive_sum")
warp_head_segmented_sum = _with(ReductionOp.ADD, warp_head_segmented_reduce, "warp_head_segmented_sum")
warp_tail_segmented_sum = _with(ReductionOp.ADD, warp_tail_segmented_reduce, "warp_tail_segmented_sum")
warp_sum_batched = _with(ReductionOp.ADD, warp_reduce_batched, "warp_sum_batched")
warp_sum_batched_to_blocked = _with(ReductionOp.ADD, warp_reduce_batched_to_blocked, "warp_sum_batched_to_blocked")
warp_sum_batched_to_striped = _with(ReductionOp.ADD, warp_reduce_batched_to_striped, "warp_sum_batched_to_striped")
