"""Waits, hints and caches: instructions that change no state that is simulated.

Memory is coherent and every access completes at once, so that priorities and idling have no effect. Of instructions
about caches, only the order of accesses that they promise is kept. Float exceptions are not simulated.
"""

from __future__ import annotations

from flydsl.simulator.isa.builder import Builder
from flydsl.simulator.isa.common import nothing
from flydsl.simulator.isa.table import EFFECTS, Effect, define


def effect_of(mnemonic: str) -> Effect:
    """The effect of an instruction, which is the same on every GPU that has it.

    >>> effect_of("s_waitcnt"), effect_of("global_inv"), effect_of("v_add_f32")
    ('wait', 'cache', 'state')
    """
    return EFFECTS.get(mnemonic, "state")


def wait(b: Builder) -> None:
    """Wait for memory."""
    b.fence("acq_rel")
    b.wait()


def _acquire(b: Builder) -> None:
    """Invalidate a cache."""
    b.fence("acq_rel")


def _write_back(b: Builder) -> None:
    """Write a cache back to memory."""
    b.fence("seq_cst")


COUNTERS = "load store sample bvh exp ds km"

define("s_waitcnt", "= ...", wait, effect="wait")
define("s_wait_idle s_wait_loadcnt_dscnt s_wait_storecnt_dscnt", "= ...", wait, of="rdna", effect="wait")
define([f"s_wait_{name}cnt" for name in COUNTERS.split()], "= ...", wait, of="rdna", effect="wait")
define("s_waitcnt_vscnt s_waitcnt_vmcnt s_waitcnt_lgkmcnt s_waitcnt_expcnt", "= ...", wait, of="rdna3", effect="wait")
define("s_wait_xcnt s_wait_asynccnt s_wait_tensorcnt", "= ...", wait, of="cdna5", effect="wait")
define("s_nop s_sethalt s_wakeup", "= ...", nothing, effect="wait")
define("s_wait_alu s_wait_event s_waitcnt_depctr", "= ...", nothing, of="rdna", effect="wait")

define("buffer_inv buffer_wbinvl1 buffer_wbinvl1_vol", "= ...", _acquire, effect="cache")
define("buffer_invl2", "= ...", _acquire, of="cdna2", effect="cache")
define("buffer_wbl2", "= ...", _write_back, effect="cache")
define("buffer_gl0_inv buffer_gl1_inv", "= ...", _acquire, of="rdna3", effect="cache")
define("s_gl1_inv", "= ...", nothing, of="rdna3", effect="cache")
define("global_inv", "= ...", _acquire, of="rdna", effect="cache")
define("global_wb global_wbinv", "= ...", _write_back, of="rdna", effect="cache")
define("s_dcache_inv s_dcache_wb s_dcache_inv_vol s_dcache_wb_vol", "= ...", nothing, effect="cache")

define(
    "s_setprio s_inst_prefetch s_icache_inv s_incperflevel s_decperflevel s_ttracedata s_sendmsg "
    "v_nop v_clrexcp ds_nop",
    "= ...",
    nothing,
    effect="hint",
)
define(
    "s_clause s_delay_alu s_code_end s_prefetch_inst s_prefetch_inst_pc_rel s_prefetch_data s_prefetch_data_pc_rel "
    "s_buffer_prefetch_data s_ttracedata_imm v_pipeflush",
    "= ...",
    nothing,
    of="rdna",
    effect="hint",
)
define("s_setprio_inc_wg", "= ...", nothing, of="cdna5", effect="hint")
define("global_prefetch_b8", "= any any modifiers", nothing, of="cdna5", effect="hint")
define("flat_prefetch_b8", "= i64 modifiers", nothing, of="cdna5", effect="hint")
define("flat_prefetch_b8/base", "= i32 i64 modifiers", nothing, of="cdna5", effect="hint")
