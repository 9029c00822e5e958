"""VOPD: two operations that one instruction issues. Both read their operands before either writes its result.

The row of a pair has the results of both, and then the sources of both. "v_dual_mov_b32::v_dual_add_f32" is its name.
"""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa import extremes, packed, vector_float, vector_integer
from flydsl.simulator.isa.builder import Builder
from flydsl.simulator.isa.table import Semantics, define, look_up

_FAMILIES = (extremes, packed, vector_float, vector_integer)
"""The modules that define the operations, which come before this one."""
FIRST = {
    "fmac_f32": "v_fmac_f32",
    "fmaak_f32": "v_fmaak_f32",
    "fmamk_f32": "v_fmamk_f32",
    "mul_f32": "v_mul_f32",
    "add_f32": "v_add_f32",
    "sub_f32": "v_sub_f32",
    "subrev_f32": "v_subrev_f32",
    "mul_dx9_zero_f32": "v_mul_legacy_f32",
    "mov_b32": "v_mov_b32",
    "cndmask_b32": "v_cndmask_b32",
    "max_num_f32": "v_max_num_f32",
    "min_num_f32": "v_min_num_f32",
    "dot2acc_f32_f16": "v_dot2c_f32_f16",
    "dot2acc_f32_bf16": "v_dot2c_f32_bf16",
}
"""The operations that may come first, and the row of the table that each is."""
SECOND = FIRST | {"add_nc_u32": "v_add_u32", "lshlrev_b32": "v_lshlrev_b32", "and_b32": "v_and_b32"}


def _row(name: str) -> Semantics:
    row = look_up(name, ("rdna", "cdna4"))
    assert row is not None
    return row


def _words(row: Semantics, name: str) -> tuple[str, ...]:
    """The sources of an operation of a pair, which has VCC where the instruction has any mask, and no modifiers."""
    if name == "cndmask_b32":
        return tuple("vcc" if word == "mask" else word for word in row.sources)
    return row.sources


def _define_pair(first: str, second: str) -> None:
    rows = _row(FIRST[first]), _row(SECOND[second])
    words = [list(_words(row, name)) for row, name in zip(rows, (first, second), strict=True)]
    words[1] = ["dst1" if word == "dst" else word for word in words[1]]
    count = len(words[0])

    def evaluate(b: Builder, *operands: Any) -> tuple[Any, Any]:
        return rows[0].evaluate(b, *operands[:count]), rows[1].evaluate(b, *operands[count:])

    results = (*rows[0].results, *rows[1].results)
    signature = f"{' '.join(results)} = {' '.join((*words[0], *words[1]))}"
    of = "rdna4" if second == "and_b32" else "rdna4 cdna5"
    define(f"v_dual_{first}::v_dual_{second}", signature, evaluate, of=of)


for _first in FIRST:
    for _second in SECOND:
        _define_pair(_first, _second)
