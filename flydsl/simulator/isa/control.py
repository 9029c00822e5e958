"""SOPP, and what changes the pc: branches, barriers, sleep."""

from __future__ import annotations

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import nonzero, nothing
from flydsl.simulator.isa.table import define

define("s_sleep", "= ...", lambda b: b.yield_wave())
define("s_sleep_var", "= i32", lambda b, time: b.yield_wave(), of="rdna")


def _barrier(b: Builder) -> None:
    b.barrier_signal()
    b.barrier_wait()


define("s_barrier", "= ...", _barrier)
# The two halves of that, by number of the barrier: -1 is the workgroup's.
define("s_barrier_signal/-1", "= imm", lambda b, number: b.barrier_signal(), of="rdna")
define("s_barrier_signal_isfirst/-1", "scc = imm", lambda b, number: b.barrier_signal(), of="rdna")
define("s_barrier_wait/-1", "= imm", lambda b, number: b.barrier_wait(), of="rdna")


def _in_cluster(b: Builder, cluster_state: Value) -> Value:
    """True if the number of the cluster in IB_STS2 is not 0."""
    return nonzero(b, b.and_(cluster_state, b.const("i32", 0xF << 6)), "i32")


def _signal_cluster(b: Builder, number: int, cluster_state: Value) -> None:
    b.cluster_barrier_signal(_in_cluster(b, cluster_state))


def _is_first_of_cluster(b: Builder, number: int, cluster_state: Value) -> Value:
    is_first = b.is_cluster_unsignalled()
    b.cluster_barrier_signal(_in_cluster(b, cluster_state))
    return is_first


# -3 is the cluster's, at which a workgroup arrives once, and all its waves wait (CDNA5 ISA, 5.6.6).
define("s_barrier_signal/-3", "= imm cluster_state", _signal_cluster, of="cdna5")
define("s_barrier_signal_isfirst/-3", "scc = imm cluster_state", _is_first_of_cluster, of="cdna5")
define(
    "s_barrier_wait/-3",
    "= imm cluster_state",
    lambda b, number, cluster_state: b.cluster_barrier_wait(_in_cluster(b, cluster_state)),
    of="cdna5",
)
define("s_trap", "= ...", lambda b: b.trap())
# What is said to it is part of how the instructions that follow are decoded (`high_registers`).
define("s_set_vgpr_msb", "= imm", nothing, of="cdna5")
define("s_endpgm s_endpgm_saved", "= ...", lambda b: b.end_wave())

define("s_branch", "label =", lambda b: b.const("i1", True))
define("s_cbranch_scc1", "label = scc", lambda b, scc: scc)
define("s_cbranch_scc0", "label = scc", lambda b, scc: b.not_(scc))


def _none_set(b: Builder, bits: Value) -> Value:
    return b.icmp("eq", bits, b.const("i64", 0))


define("s_cbranch_execz", "label = exec", _none_set)
define("s_cbranch_execnz", "label = exec", lambda b, bits: nonzero(b, bits, "i64"))
define("s_cbranch_vccz", "label = vcc_bits", _none_set)
define("s_cbranch_vccnz", "label = vcc_bits", lambda b, bits: nonzero(b, bits, "i64"))

define("s_getpc_b64", "i64 =", lambda b: b.next_pc())
define("s_setpc_b64", "= i64", lambda b, address: b.jump(address))


def _swap_pc(b: Builder, address: Value) -> Value:
    b.jump(address)
    return b.next_pc()


define("s_swappc_b64", "i64 = i64", _swap_pc)
define("s_call_b64", "i64 label =", lambda b: (b.next_pc(), b.const("i1", True)))

define("s_memtime s_memrealtime", "i64 =", lambda b: b.clock())
define("s_get_shader_cycles_u64", "i64 =", lambda b: b.clock(), of="cdna5")
define("s_monitor_sleep", "= ...", lambda b: b.yield_wave(), of="cdna5")
define("s_sendmsg_rtn_b64/sendmsg(MSG_RTN_GET_REALTIME)", "i64 = word", lambda b, message: b.clock(), of="rdna")
