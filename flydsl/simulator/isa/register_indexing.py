"""Vector registers at an index known at run time: between s_set_gpr_idx_on and s_set_gpr_idx_off, the number of a
register is that of the text plus M0[7:0].

LLVM writes a single v_mov_b32 between the two, and that is what is simulated. `Program` looks such a move up as
"v_mov_b32/gpr_idx(SRC0)" or "v_mov_b32/gpr_idx(DST)".
"""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa.builder import Builder, Value
from flydsl.simulator.isa.common import nothing
from flydsl.simulator.isa.table import define

_MODES = {"gpr_idx(SRC0)": 1, "gpr_idx(DST)": 8}


def _index_on(b: Builder, index: Value, mode: str, m0: Value) -> Value:
    """M0[7:0] is the index, M0[15:12] which operands are indexed."""
    if mode not in _MODES:
        raise NotImplementedError(mode)
    kept = b.and_(m0, b.const("i32", ~0xF0FF))
    return b.or_(b.or_(kept, b.and_(index, b.const("i32", 0xFF))), b.const("i32", _MODES[mode] << 12))


def _index(b: Builder, m0: Value) -> Value:
    return b.and_(m0, b.const("i32", 0xFF))


def _write(b: Builder, register: Any, x: Value, m0: Value) -> None:
    b.write_register(register, _index(b, m0), x)


define("s_set_gpr_idx_on", "m0 = i32 word m0", _index_on)
define("s_set_gpr_idx_off", "= ...", nothing)
define("v_mov_b32/gpr_idx(SRC0)", "i32 = register m0", lambda b, register, m0: b.read_register(register, _index(b, m0)))
define("v_mov_b32/gpr_idx(DST)", "= register i32 m0", _write)

# --- RDNA: the number of the register is that of the text plus M0

define("v_movrels_b32", "i32 = register m0", lambda b, register, m0: b.read_register(register, m0), of="rdna")
define("v_movreld_b32", "= register i32 m0", lambda b, register, x, m0: b.write_register(register, m0, x), of="rdna")
