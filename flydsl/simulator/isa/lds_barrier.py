"""Barriers in LDS of gfx1250: 64 bits that count arrivals, and go on to the next phase at the last one.

| bits | |
| --- | --- |
| 28:0 | arrivals that are awaited, less 1 |
| 31:29 | the phase |
| 47:32 | what bits 28:0 begin a phase with |

An arrival counts down. Where it goes below 0, the next phase begins. Waves wait for that by reading the phase again and
again. The width of the count is a setting of the hardware; 29 bits are what AMD's compilers take it to be.

Sources: AMD Instinct CDNA5 Instruction Set Architecture, 11.2.2 and table 70; LLVM's intrinsics
`ds.atomic.barrier.arrive.rtn.b64` and `ds.atomic.async.barrier.arrive.b64`, and how AMD's compilers use them.
"""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.table import define

_PENDING_BITS, _RELOAD_BIT, _RELOAD_BITS = 29, 32, 16


def arrived(b: Builder, state: Value, count: Value) -> Value:
    """The barrier after `count` arrivals, both i64."""

    def bits(value: int) -> Value:
        return b.const("i64", value)

    pending = b.and_(state, bits((1 << _PENDING_BITS) - 1))
    reload = b.and_(b.lshr(state, bits(_RELOAD_BIT)), bits((1 << _RELOAD_BITS) - 1))
    phase = b.and_(state, bits(0xFFFF_FFFF ^ (1 << _PENDING_BITS) - 1))
    next_phase = b.and_(b.add(phase, bits(1 << _PENDING_BITS)), bits(0xFFFF_FFFF))
    lower = b.select(b.icmp("ult", pending, count), b.or_(next_phase, reload), b.or_(phase, b.sub(pending, count)))
    return b.or_(b.and_(state, bits(0xFFFF_FFFF << 32)), lower)


def _arrive(b: Builder, address: Value, count: Value, modifiers: Any) -> Value:
    place = b.add(address, b.const("i32", modifiers.integer("offset")))
    return b.atomic("lds", place, lambda state, n: arrived(b, state, n), [count])


def _arrive_once(b: Builder, address: Value, modifiers: Any) -> None:
    """Arrive when the wave's asynchronous loads have: here they have completed."""
    _arrive(b, address, b.per_lane(b.const("i64", 1)), modifiers)


define("ds_atomic_barrier_arrive_rtn_b64", "i64 = i32 i64 modifiers", _arrive, of="cdna5")
define("ds_atomic_async_barrier_arrive_b64", "= i32 modifiers", _arrive_once, of="cdna5")
