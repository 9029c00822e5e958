"""The softmax of a row whose keys several workgroups share: how their results are merged."""

from __future__ import annotations

from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx

# Where the largest logit begins: no logit that matters is smaller, and its distance to minus infinity is a number.
LOWEST = -1e30


@flyc.jit
def merged(first: Any, last: Any, share: Any) -> Any:
    """The mean of shares first to last - 1, weighted by their sums of powers; 0 if these are 0.

    share(number): (an element, the largest logit in base 2, the sum of powers of 2 over it).
    """
    largest, total, mean = fx.Float32(LOWEST), fx.Float32(0.0), fx.Float32(0.0)
    for number in range(first, last):
        value, m, powers = share(number)
        new = fx.arith.maxnumf(largest, m)
        correction = fx.exp2(largest - new, fastmath="afn")
        weight = powers * fx.exp2(m - new, fastmath="afn")
        largest, total, mean = new, total * correction + weight, mean * correction + weight * value
    return (total == 0).select(fx.Float32(0.0), mean * fx.rocdl.rcp(total))
