"""VOPD: two operations that one instruction issues. Both read their operands before either writes its result.

The row of a pair has the results of both, and then the sources of both. "v_dual_mov_b32::v_dual_add_f32" is its name;
"/masks" follows where the text names the masks of v_dual_cndmask_b32, which otherwise are VCC.

gfx1250 has more operations, and forms with three sources and signs (VOPD3). v_dual_bitop2_b32 is v_bitop3_b32 with 0 as
the third source (LLVM, GCNVOPDUtils.cpp).
"""

from __future__ import annotations

from typing import Any

from flydsl.simulator.isa import extremes, packed, vector_float, vector_integer
from flydsl.simulator.isa.builder import Builder, Value
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
FIRST_OF_RDNA3 = {name: row for name, row in FIRST.items() if "_num_" not in name}
FIRST_OF_RDNA3 |= {"max_f32": "v_max_f32", "min_f32": "v_min_f32"}
_INTEGERS = {"add_nc_u32": "v_add_u32", "lshlrev_b32": "v_lshlrev_b32"}
_AND = {"and_b32": "v_and_b32"}
SECOND = FIRST | _INTEGERS | _AND
_SHIFTS = {"lshrrev_b32": "v_lshrrev_b32", "ashrrev_i32": "v_ashrrev_i32", "sub_nc_u32": "v_sub_u32"}
_EXTREMES = {"max_i32": "v_max_i32", "min_i32": "v_min_i32"}
SECOND_OF_CDNA5 = FIRST | _INTEGERS | _SHIFTS | _EXTREMES
"""The operations of gfx1250 that may come second, where both have two sources at most."""
_DOUBLES = {
    "add_f64": "v_add_f64",
    "mul_f64": "v_mul_f64",
    "fma_f64": "v_fma_f64",
    "max_num_f64": "v_max_num_f64",
    "min_num_f64": "v_min_num_f64",
}
_THREE_SOURCES = {name: row for name, row in FIRST.items() if name not in ("fmaak_f32", "fmamk_f32")}
_THREE_SOURCES |= _INTEGERS | _SHIFTS | {"fma_f32": "v_fma_f32"}
"""The operations of gfx1250's pairs with up to three sources each, which have no constants in the instruction."""
_FIRST_OF_THREE = _THREE_SOURCES | _DOUBLES
_SECOND_OF_THREE = _THREE_SOURCES | _EXTREMES | {"bitop2_b32": "v_bitop3_b32"}


def _row(name: str) -> Semantics:
    row = look_up(name, ("rdna", "cdna4"))
    assert row is not None
    return row


def _words(row: Semantics, name: str, *, masks: bool) -> tuple[str, ...]:
    """The sources of an operation of a pair."""
    if name == "cndmask_b32" and not masks:
        return tuple("vcc" if word == "mask" else word for word in row.sources)
    if name == "bitop2_b32":
        return ("i32", "i32", "modifiers")
    return row.sources


def _operation(row: Semantics, name: str) -> Any:
    if name == "bitop2_b32":

        def of_two(b: Builder, x: Value, y: Value, modifiers: Any) -> Value:
            return row.evaluate(b, x, y, b.const("i32", 0), modifiers)

        return of_two
    return row.evaluate


def _define_pair(first: str, second: str, rows: tuple[Semantics, Semantics], of: str, *, masks: bool = False) -> None:
    names = (first, second)
    words = [list(_words(row, name, masks=masks)) for row, name in zip(rows, names, strict=True)]
    words[1] = ["dst1" if word == "dst" else word for word in words[1]]
    operations = [_operation(row, name) for row, name in zip(rows, names, strict=True)]
    count = len(words[0])

    def evaluate(b: Builder, *operands: Any) -> tuple[Any, Any]:
        return operations[0](b, *operands[:count]), operations[1](b, *operands[count:])

    results = (*rows[0].results, *rows[1].results)
    signature = f"{' '.join(results)} = {' '.join((*words[0], *words[1]))}"
    form = "/masks" if masks else ""
    define(f"v_dual_{first}::v_dual_{second}{form}", signature, evaluate, of=of)


def _pairs(first: dict[str, str], second: dict[str, str]) -> list[tuple[str, str, tuple[Semantics, Semantics]]]:
    return [(x, y, (_row(first[x]), _row(second[y]))) for x in first for y in second]


for _x, _y, _rows in _pairs(FIRST_OF_RDNA3, FIRST_OF_RDNA3 | _INTEGERS | _AND):
    _define_pair(_x, _y, _rows, "rdna3")
for _x, _y, _rows in _pairs(FIRST, SECOND):
    _define_pair(_x, _y, _rows, "rdna4")
for _x, _y, _rows in _pairs(FIRST, SECOND_OF_CDNA5):
    _define_pair(_x, _y, _rows, "cdna5")
for _x, _y, _rows in _pairs(_FIRST_OF_THREE, _SECOND_OF_THREE):
    if "cndmask_b32" in (_x, _y):
        _define_pair(_x, _y, _rows, "cdna5", masks=True)
    elif not (_x in FIRST and _y in SECOND_OF_CDNA5):
        _define_pair(_x, _y, _rows, "cdna5")
