"""Instructions that wait for what they use, and that do not: for the check of a listing, and for that of a launch.

In all of them s[4:5] is the address of an array of 1024 numbers, s[8:11] a buffer resource of it, v0 the lane, v1 four
times the thread's number, and the workgroup has 1024 bytes of LDS that are written.
"""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """missing: the counter to wait for and the largest count that would do, as they are found; None: nothing is."""

    arch: str
    text: str
    missing: tuple[str, int] | None = None


_LOAD = "global_load_dword v2, v1, s[4:5]"
_LOADS = f"{_LOAD}\nglobal_load_dword v3, v1, s[4:5] offset:4"
_LOAD_12 = "global_load_b32 v2, v1, s[4:5]"
_LOADS_12 = f"{_LOAD_12}\nglobal_load_b32 v3, v1, s[4:5] offset:4"
_USE, _USE_OTHER = "v_add_u32_e32 v4, v2, v2", "v_add_u32_e32 v4, v3, v3"
_USE_12 = "v_add_nc_u32_e32 v4, v2, v2"

CDNA = {
    "nothing waits": Case("gfx942", f"{_LOAD}\n{_USE}", ("vmcnt", 0)),
    "it waits": Case("gfx942", f"{_LOAD}\ns_waitcnt vmcnt(0)\n{_USE}"),
    "the older of two": Case("gfx942", f"{_LOADS}\ns_waitcnt vmcnt(1)\n{_USE}"),
    "the younger of two": Case("gfx942", f"{_LOADS}\ns_waitcnt vmcnt(1)\n{_USE_OTHER}", ("vmcnt", 0)),
    "off by one": Case("gfx942", f"{_LOADS}\ns_waitcnt vmcnt(2)\n{_USE}", ("vmcnt", 1)),
    "the wrong counter": Case("gfx942", f"{_LOAD}\ns_waitcnt lgkmcnt(0)\n{_USE}", ("vmcnt", 0)),
    "stores count, too": Case("gfx942", f"{_LOAD}\nglobal_store_dword v1, v0, s[4:5]\ns_waitcnt vmcnt(1)\n{_USE}"),
    "stores alone count": Case("gfx942", f"global_store_dword v1, v0, s[4:5]\n{_LOAD}\ns_waitcnt vmcnt(1)\n{_USE}",
                               ("vmcnt", 0)),
    "a result is overwritten": Case("gfx942", f"{_LOAD}\nv_mov_b32_e32 v2, 0", ("vmcnt", 0)),
    "the data of a store may be": Case("gfx942", "global_store_dword v1, v0, s[4:5]\nv_mov_b32_e32 v0, 0"),
    "an address": Case("gfx942", f"{_LOAD}\nglobal_store_dword v2, v0, s[4:5]", ("vmcnt", 0)),
    "stored data": Case("gfx942", f"{_LOAD}\nglobal_store_dword v1, v2, s[4:5]", ("vmcnt", 0)),
    "LDS": Case("gfx942", f"ds_read_b32 v2, v1\n{_USE}", ("lgkmcnt", 0)),
    "LDS in order": Case("gfx942", f"ds_read_b32 v2, v1\nds_read_b32 v3, v1\ns_waitcnt lgkmcnt(1)\n{_USE}"),
    "LDS, and a wait for the other": Case("gfx942", f"ds_read_b32 v2, v1\ns_waitcnt vmcnt(0)\n{_USE}", ("lgkmcnt", 0)),
    "scalar loads come in any order": Case(
        "gfx942", "s_load_dword s6, s[4:5], 0x0\ns_load_dword s7, s[4:5], 0x4\ns_waitcnt lgkmcnt(1)\n"
                  "s_add_u32 s6, s6, 1", ("lgkmcnt", 0)),
    "a scalar load": Case("gfx942", "s_load_dword s6, s[4:5], 0x0\ns_waitcnt lgkmcnt(0)\ns_add_u32 s6, s6, 1"),
    "flat loads are of both": Case("gfx942", f"v_mov_b32_e32 v6, s4\nv_mov_b32_e32 v7, s5\nflat_load_dword v2, v[6:7]\n"
                                             f"s_waitcnt vmcnt(0)\n{_USE}", ("lgkmcnt", 0)),
    "an atomic that returns": Case("gfx942", "v_mov_b32_e32 v6, 0\nglobal_atomic_add v2, v6, v0, s[4:5] sc0\n" + _USE,
                                   ("vmcnt", 0)),
    "an atomic that does not": Case(
        "gfx942", "v_mov_b32_e32 v6, 0\nglobal_atomic_add v6, v0, s[4:5]\nv_mov_b32_e32 v2, 0\n" + _USE),
    "in one branch only": Case(
        "gfx942", f"{_LOAD}\ns_cmp_eq_u32 s4, 1\ns_cbranch_scc1 .Ldone\ns_nop 0\n.Ldone:\n{_USE}", ("vmcnt", 0)),
    "in both branches": Case(
        "gfx942", f"{_LOAD}\ns_cmp_eq_u32 s4, 1\ns_cbranch_scc1 .Lone\ns_waitcnt vmcnt(0)\ns_branch .Ldone\n.Lone:\n"
                  f"s_waitcnt vmcnt(0)\n.Ldone:\n{_USE}"),
    "from one turn of a loop to the next": Case(
        "gfx942", f"s_mov_b32 s6, 3\nv_mov_b32_e32 v2, 0\n.Lagain:\n{_USE}\n{_LOAD}\ns_sub_u32 s6, s6, 1\n"
                  "s_cmp_lg_u32 s6, 0\ns_cbranch_scc1 .Lagain\ns_waitcnt vmcnt(0)", ("vmcnt", 0)),
    "a pipeline of two": Case(
        "gfx942", f"s_mov_b32 s6, 3\n{_LOAD}\n.Lagain:\nglobal_load_dword v3, v1, s[4:5] offset:4\ns_waitcnt vmcnt(1)\n"
                  f"{_USE}\nv_nop\ns_waitcnt vmcnt(0)\nv_mov_b32_e32 v2, v3\n{_LOAD}\ns_sub_u32 s6, s6, 1\n"
                  "s_cmp_lg_u32 s6, 0\ns_cbranch_scc1 .Lagain\ns_waitcnt vmcnt(0)"),
    "a wait in hexadecimal": Case("gfx942", f"{_LOADS}\ns_waitcnt 0xf71\n{_USE}"),
    "the same on CDNA 4": Case("gfx950", f"{_LOADS}\ns_waitcnt vmcnt(2)\n{_USE}", ("vmcnt", 1)),
    "and on CDNA 2": Case("gfx90a", f"{_LOADS}\ns_waitcnt vmcnt(2)\n{_USE}", ("vmcnt", 1)),
}  # fmt: skip

WAIT_STATES = {
    "a lane chosen too early": Case("gfx942", "v_readfirstlane_b32 s6, v0\nv_readlane_b32 s7, v0, s6", ("", 0)),
    "a lane chosen in time": Case("gfx942", "v_readfirstlane_b32 s6, v0\ns_nop 3\nv_readlane_b32 s7, v0, s6"),
    "sums of a product too early": Case(
        "gfx942", "v_mfma_f32_16x16x16_f16 a[0:3], v[6:7], v[6:7], 0\ns_nop 3\nv_accvgpr_read_b32 v4, a0", ("", 0)),
    "sums of a product in time": Case(
        "gfx942", "v_mfma_f32_16x16x16_f16 a[0:3], v[6:7], v[6:7], 0\ns_nop 6\nv_accvgpr_read_b32 v4, a0"),
    "sums that are added to": Case(
        "gfx942", "v_mfma_f32_16x16x16_f16 a[0:3], v[6:7], v[6:7], 0\n"
                  "v_mfma_f32_16x16x16_f16 a[0:3], v[6:7], v[6:7], a[0:3]"),
    "lanes that move too early": Case(
        "gfx942", "v_mov_b32_e32 v2, v0\nv_mov_b32_dpp v3, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", ("", 0)),
    "lanes that move in time": Case(
        "gfx942", "v_mov_b32_e32 v2, v0\ns_nop 1\n"
                  "v_mov_b32_dpp v3, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"),
    "a transcendental on gfx1250": Case("gfx1250", "v_exp_f32_e32 v2, v0\nv_add_f32_e32 v3, v2, v2", ("", 0)),
    "and one instruction behind it": Case("gfx1250", "v_exp_f32_e32 v2, v0\nv_nop\nv_add_f32_e32 v3, v2, v2"),
}  # fmt: skip

RDNA4 = {
    "nothing waits, RDNA 4": Case("gfx1201", f"{_LOAD_12}\n{_USE_12}", ("loadcnt", 0)),
    "off by one, RDNA 4": Case("gfx1201", f"{_LOADS_12}\ns_wait_loadcnt 0x2\n{_USE_12}", ("loadcnt", 1)),
    "the older of two, RDNA 4": Case("gfx1201", f"{_LOADS_12}\ns_wait_loadcnt 0x1\n{_USE_12}"),
    "stores have a counter": Case(
        "gfx1201", f"{_LOAD_12}\nglobal_store_b32 v1, v0, s[4:5]\ns_wait_loadcnt 0x1\n{_USE_12}", ("loadcnt", 0)),
    "LDS has one": Case("gfx1201", f"ds_load_b32 v2, v1\ns_wait_loadcnt 0x0\n{_USE_12}", ("dscnt", 0)),
    "two at once": Case(
        "gfx1201", f"ds_load_b32 v2, v1\n{_LOAD_12.replace('v2', 'v3')}\ns_wait_loadcnt_dscnt 0x0\n{_USE_12}"),
    "scalar loads have one": Case("gfx1201", "s_load_b32 s6, s[4:5], 0x0\ns_wait_dscnt 0x0\ns_add_co_u32 s6, s6, 1",
                                  ("kmcnt", 0)),
    "the same on gfx1250": Case("gfx1250", f"{_LOADS_12}\ns_wait_loadcnt 0x2\n{_USE_12}", ("loadcnt", 1)),
    "and in time": Case("gfx1250", f"{_LOADS_12}\ns_wait_loadcnt 0x1\n{_USE_12}"),
}  # fmt: skip

CASES = {**CDNA, **WAIT_STATES, **RDNA4}

TO_LDS = "v_readfirstlane_b32 s6, v1\ns_mov_b32 m0, s6\ns_nop 0\nbuffer_load_dword v1, s[8:11], 0 offen lds"
_OTHERS = "v_xor_b32_e32 v6, 0x100, v1"  # the place of the same lane of the other wave

IN_LDS = {
    "a load to LDS, read at once": Case("gfx950", f"{TO_LDS}\nds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)", ("vmcnt", 0)),
    "a load to LDS, waited for": Case(
        "gfx950", f"{TO_LDS}\ns_waitcnt vmcnt(0)\nds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)"),
    "the other wave's store before the barrier": Case(
        "gfx950", f"{_OTHERS}\nds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v2, v6\n"
                  "s_waitcnt lgkmcnt(0)"),
    "the other wave's store behind the barrier": Case(
        "gfx950", f"{_OTHERS}\nds_write_b32 v1, v0\ns_barrier\nds_read_b32 v2, v6\ns_waitcnt lgkmcnt(0)",
        ("lgkmcnt", 0)),
    "the store on gfx1201": Case(
        "gfx1201", f"{_OTHERS.replace('0x100', '0x80')}\nds_store_b32 v1, v0\ns_barrier_signal -1\n"
                   "s_barrier_wait 0xffff\nds_load_b32 v2, v6\ns_wait_dscnt 0x0", ("dscnt", 0)),
}  # fmt: skip
"""Of two waves, and of memory that a launch alone knows."""
