"""Vector registers at an index known at run time: between s_set_gpr_idx_on and s_set_gpr_idx_off, M0[7:0] is added to
the number of a register.

LLVM writes a single v_mov_b32 between the two, which is all that is simulated. `Program` looks such a move up as
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

# --- RDNA: M0 is added to the number of the register

define("v_movrels_b32", "i32 = register m0", lambda b, register, m0: b.read_register(register, m0), of="rdna")
define("v_movreld_b32", "= register i32 m0", lambda b, register, x, m0: b.write_register(register, m0, x), of="rdna")


def _indices(b: Builder, m0: Value) -> tuple[Value, Value]:
    """The offsets of the numbers of the source's and the result's registers: M0[9:0] and M0[25:16]."""
    of_result = b.lshr(m0, b.const("i32", 16))
    return tuple(b.and_(x, b.const("i32", 0x3FF)) for x in (m0, of_result))


def _move(b: Builder, result: Any, source: Any, m0: Value) -> None:
    of_source, of_result = _indices(b, m0)
    b.write_register(result, of_result, b.read_register(source, of_source))


def _swap(b: Builder, first: Any, second: Any, m0: Value) -> None:
    of_second, of_first = _indices(b, m0)
    x, y = b.read_register(first, of_first), b.read_register(second, of_second)
    b.write_register(first, of_first, y)
    b.write_register(second, of_second, x)


define(
    "v_movrelsd_b32",
    "= register register m0",
    lambda b, result, source, m0: b.write_register(result, m0, b.read_register(source, m0)),
    of="rdna",
)
define("v_movrelsd_2_b32", "= register register m0", _move, of="rdna")
define("v_swaprel_b32", "= register register m0", _swap, of="rdna")
