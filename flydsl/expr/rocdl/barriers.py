"""Split barriers of gfx12: a wave signals that it has arrived, and waits later, with work between.

`s_barrier_signal(-1)` ... `s_barrier_wait(-1)` is the workgroup's barrier, -3 the cluster's on gfx1250. They order
waves, not memory: waits for the counters of loads and stores come before the signal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlir import ir

from flydsl.atoms.instruction_sets import GFX12, GFX1250
from flydsl.expr.numeric import Boolean, Int32, Int64
from flydsl.expr.rocdl.intrinsic import (
    call,
    i16_attribute,
    i32_attribute,
    llvm_pointer,
    operand,
    require_target,
    result_type_first,
)
from flydsl.expr.tracing.described import described
from flydsl.expr.tracing.immediates import immediate

__all__ = [
    "ds_atomic_async_barrier_arrive_b64", "ds_atomic_barrier_arrive_rtn_b64", "s_barrier_init", "s_barrier_join",
    "s_barrier_leave", "s_barrier_signal", "s_barrier_signal_isfirst", "s_barrier_signal_var", "s_barrier_wait",
    "s_get_barrier_state", "s_get_named_barrier_state", "s_wakeup_barrier",
]  # fmt: skip

_LDS = 3
_FIRST_ID, _LAST_ID = -4, 16
_MEMBERS_MAX = 63


def _id(name: str, barrier: Any, last: int = _LAST_ID) -> int:
    return immediate(f"the barrier of {name}", barrier, _FIRST_ID, last)


def s_barrier_signal(barrier: int) -> None:
    """Signal arrival at a barrier: -1 the workgroup's, -3 the cluster's, 1 to 16 a named one."""
    require_target("s_barrier_signal", GFX12)
    call("s.barrier.signal", [], attributes={"id": i32_attribute(_id("s_barrier_signal", barrier))})


def s_barrier_wait(barrier: int) -> None:
    """Wait until all waves have signalled the barrier."""
    require_target("s_barrier_wait", GFX12)
    call("s.barrier.wait", [], attributes={"id": i16_attribute(_id("s_barrier_wait", barrier))})


@result_type_first
def s_barrier_signal_isfirst(res: Any, barrier: int) -> Any:
    """Signal arrival at a barrier. The result, a Boolean, is true in the wave that arrives first."""
    name = "s_barrier_signal_isfirst"
    require_target(name, GFX12)
    return call("s.barrier.signal.isfirst", [], Boolean.ir_type, {"id": i32_attribute(_id(name, barrier))})


@result_type_first
def s_get_barrier_state(res: Any, barrier: int) -> Any:
    """The state of a barrier as the hardware encodes it, Int32."""
    name = "s_get_barrier_state"
    require_target(name, GFX12)
    return call("s.get.barrier.state", [], Int32.ir_type, {"id": i32_attribute(_id(name, barrier))})


def s_barrier_leave(barrier: int) -> None:
    """Leave the named barrier that this wave has joined."""
    require_target("s_barrier_leave", GFX1250)
    call("s.barrier.leave", [], attributes={"id": i16_attribute(_id("s_barrier_leave", barrier))})


def _on_named(name: str, meaning: str, has_member_count: bool) -> Callable[..., None]:
    """The function of an operation on a named barrier: (ptr), or (ptr, member_cnt) with a count of members."""
    operation = name.replace("_", ".")

    def function(ptr: Any, *counts: Any) -> None:
        require_target(name, GFX1250)
        attributes = {}
        if has_member_count:
            (count,) = counts
            attributes["memberCnt"] = i32_attribute(immediate(f"the members of {name}", count, 0, _MEMBERS_MAX))
        call(operation, [llvm_pointer(f"the barrier of {name}", ptr, _LDS)], attributes=attributes)

    return described(function, name, f"{meaning} {GFX1250[0]}. ptr: the barrier, a pointer to LDS.")


s_barrier_init = _on_named("s_barrier_init", "Set the number of waves of a named barrier, member_cnt.", True)
s_barrier_signal_var = _on_named("s_barrier_signal_var", "Signal a named barrier of member_cnt waves.", True)
s_barrier_join = _on_named("s_barrier_join", "Join a named barrier.", False)
s_wakeup_barrier = _on_named("s_wakeup_barrier", "Wake the waves that wait at a named barrier.", False)


@result_type_first
def s_get_named_barrier_state(res: Any, ptr: Any) -> Any:
    """The state of a named barrier as the hardware encodes it, Int32. gfx1250."""
    name = "s_get_named_barrier_state"
    require_target(name, GFX1250)
    return call("s.get.named.barrier.state", [llvm_pointer(f"the barrier of {name}", ptr, _LDS)], Int32.ir_type)


def ds_atomic_async_barrier_arrive_b64(barrier_ptr: Any) -> None:
    """Arrive at a barrier in LDS as soon as this wave's asynchronous copies are complete. gfx1250."""
    name = "ds_atomic_async_barrier_arrive_b64"
    require_target(name, GFX1250)
    call("ds.atomic.async.barrier.arrive.b64", [llvm_pointer(f"the barrier of {name}", barrier_ptr, _LDS)])


@result_type_first
def ds_atomic_barrier_arrive_rtn_b64(res: Any, barrier_ptr: Any, val: Any) -> Any:
    """Arrive at a barrier in LDS `val` times. Returns the barrier's state from before, Int64. gfx1250."""
    name = "ds_atomic_barrier_arrive_rtn_b64"
    require_target(name, GFX1250)
    barrier: ir.Value = llvm_pointer(f"the barrier of {name}", barrier_ptr, _LDS)
    return call("ds.atomic.barrier.arrive.rtn.b64", [barrier, operand(name, val, Int64)], Int64.ir_type)
