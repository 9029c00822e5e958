"""Programs that wait, and programs that do not: what the cases of AMD's rocjitsu corpus of races are about, and more.

The corpus (ROCm/rocjitsu-test-corpus, corpus/race, of which the names are) was read for what it covers. Registers and
memory are as `launching.run` leaves them. The outcome is None for a right program; for a wrong one the counter that
something should have waited for, with the largest count that would do, ("", 0) where wait states are missing, or "race"
where another wave's access is not ordered.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Race(NamedTuple):
    arch: str
    text: str
    outcome: Any = None
    workgroups: int = 1


_USE = "v_add_u32_e32 v4, v2, v2"
_STORE = "global_store_dword v1, v4, s[4:5] offset:2048"
_LOAD = "global_load_dword v2, v1, s[4:5]"
_ADDRESS = "v_mov_b32_e32 v6, v1\nv_mov_b32_e32 v7, 0\nv_lshl_add_u64 v[6:7], v[6:7], 0, s[4:5]"
_FLAT = f"{_ADDRESS}\nflat_load_dword v2, v[6:7]"
_FLAT_LDS = "s_mov_b64 s[6:7], src_shared_base\nv_mov_b32_e32 v6, v1\nv_mov_b32_e32 v7, s7\nflat_load_dword v2, v[6:7]"
_OTHER = "v_xor_b32_e32 v6, 0x100, v1"
_FLAT_STORE_LDS = (
    "s_mov_b64 s[6:7], src_shared_base\nv_mov_b32_e32 v8, v1\nv_mov_b32_e32 v9, s7\nflat_store_dword v[8:9], v0"
)
_TO_LDS = "v_readfirstlane_b32 s6, v1\ns_mov_b32 m0, s6\ns_nop 0\nbuffer_load_dword v1, s[8:11], 0 offen lds"
_BEFORE = "v_mov_b32_e32 v2, 0\nv_mov_b32_e32 v3, 0"
_LOW, _HIGH, _ALL = "s_mov_b64 exec, 0xffff", "s_mov_b64 exec, 0xff0000", "s_mov_b64 exec, -1"
_SHIFTED = "global_load_dword v3, v1, s[4:5] offset:4"
_PAIR = "v_lshlrev_b32_e32 v6, 3, v0\nglobal_load_dwordx2 v[2:3], v6, s[4:5]"


def _cdna4(*lines: str, outcome: Any = None, workgroups: int = 1) -> Race:
    return Race("gfx950", "\n".join(lines), outcome, workgroups)


CDNA4 = {
    "vgpr_waitcnt": _cdna4(_LOAD, "s_waitcnt vmcnt(0)", _USE, _STORE),
    "vgpr_waitcnt_race": _cdna4(_BEFORE, _LOAD, _USE, _STORE, outcome=("vmcnt", 0)),
    "flat_global_wait_both": _cdna4(_FLAT, "s_waitcnt vmcnt(0) lgkmcnt(0)", _USE, _STORE),
    "flat_global_vmcnt_only_race": _cdna4(_FLAT, "s_waitcnt vmcnt(0)", _USE, _STORE, outcome=("lgkmcnt", 0)),
    "flat_global_lgkmcnt_only_race": _cdna4(_FLAT, "s_waitcnt lgkmcnt(0)", _USE, _STORE, outcome=("vmcnt", 0)),
    "flat_lds_wait_both": _cdna4(_FLAT_LDS, "s_waitcnt vmcnt(0) lgkmcnt(0)", _USE, _STORE),
    "flat_lds_vmcnt_only_race": _cdna4(_FLAT_LDS, "s_waitcnt vmcnt(0)", _USE, _STORE, outcome=("lgkmcnt", 0)),
    "flat_lds_lgkmcnt_only_race": _cdna4(_FLAT_LDS, "s_waitcnt lgkmcnt(0)", _USE, _STORE, outcome=("vmcnt", 0)),
    "sgpr_waitcnt": _cdna4("s_load_dword s6, s[4:5], 0x0", "s_waitcnt lgkmcnt(0)", "v_add_u32_e32 v4, s6, v0", _STORE),
    "sgpr_waitcnt_race": _cdna4("s_load_dword s6, s[4:5], 0x0", "v_add_u32_e32 v4, s6, v0", _STORE,
                                outcome=("lgkmcnt", 0)),
    "sgpr_waw_load_then_mov": _cdna4("s_load_dword s6, s[4:5], 0x0", "s_waitcnt lgkmcnt(0)", "s_mov_b32 s6, 7",
                                     "v_mov_b32_e32 v4, s6", _STORE),
    "sgpr_waw_load_then_mov_race": _cdna4("s_load_dword s6, s[4:5], 0x0", "s_mov_b32 s6, 7", "v_mov_b32_e32 v4, s6",
                                          _STORE, outcome=("lgkmcnt", 0)),
    "sgpr_waw_load_then_load": _cdna4(
        "s_load_dword s6, s[4:5], 0x0", "s_waitcnt lgkmcnt(0)", "s_load_dword s6, s[4:5], 0x4", "s_waitcnt lgkmcnt(0)",
        "v_mov_b32_e32 v4, s6", _STORE),
    "sgpr_waw_load_then_load_race": _cdna4(
        "s_load_dword s6, s[4:5], 0x0", "s_load_dword s6, s[4:5], 0x4", "s_waitcnt lgkmcnt(0)", "v_mov_b32_e32 v4, s6",
        _STORE, outcome=("lgkmcnt", 0)),
    "lds_cross_wave": _cdna4(_OTHER, "ds_write_b32 v1, v0", "s_waitcnt lgkmcnt(0)", "s_barrier", "ds_read_b32 v2, v6",
                             "s_waitcnt lgkmcnt(0)", _USE, _STORE),
    "lds_cross_wave_race": _cdna4(_OTHER, "ds_write_b32 v1, v1", "s_waitcnt lgkmcnt(0)", "ds_read_b32 v2, v6",
                                  "s_waitcnt lgkmcnt(0)", _USE, _STORE, outcome="race"),
    "lds_same_wave_order": _cdna4("ds_write_b32 v1, v1", "ds_read_b32 v2, v1", "s_waitcnt lgkmcnt(0)", _USE, _STORE),
    "global_to_lds_buffer": _cdna4(_TO_LDS, _OTHER, "s_waitcnt vmcnt(0)", "s_barrier", "ds_read_b32 v2, v6",
                                   "s_waitcnt lgkmcnt(0)", _USE, _STORE),
    "global_to_lds_buffer_race": _cdna4(_TO_LDS, _OTHER, "s_barrier", "ds_read_b32 v2, v6", "s_waitcnt lgkmcnt(0)",
                                        _USE, _STORE, outcome=("vmcnt", 0)),
    "partial_vmcnt_race": _cdna4(_BEFORE, _LOAD, _SHIFTED, "s_waitcnt vmcnt(1)",
                                 "v_add_u32_e32 v4, v3, v3", _STORE, outcome=("vmcnt", 0)),
    "multiple_race": _cdna4(_BEFORE, _LOAD, _SHIFTED, "v_add_u32_e32 v4, v2, v3",
                            _STORE, outcome=("vmcnt", 1)),
    "multi_workgroup": _cdna4(_LOAD, "s_waitcnt vmcnt(0)", _USE, workgroups=8),
    "multi_workgroup_race": _cdna4(_BEFORE, _LOAD, _USE, workgroups=8, outcome=("vmcnt", 0)),
    "mixed_counters_race": _cdna4(_LOAD, "ds_read_b32 v3, v1", "s_waitcnt vmcnt(0)", "v_add_u32_e32 v4, v2, v3",
                                  outcome=("lgkmcnt", 0)),
    "stress_wavefront_reuse": _cdna4(_LOAD, "s_waitcnt vmcnt(0)", _USE, workgroups=64),
    "stress_wavefront_reuse_race": _cdna4(_BEFORE, _LOAD, _USE, workgroups=64, outcome=("vmcnt", 0)),
    "exec_mask": _cdna4(_BEFORE, _LOW, _LOAD, _HIGH, _USE, "s_waitcnt vmcnt(0)", _STORE),
    "exec_mask_race": _cdna4(_BEFORE, _LOW, _LOAD, _ALL, _USE, "s_waitcnt vmcnt(0)", _STORE, outcome=("vmcnt", 0)),
    "exec_mask_same_wave": _cdna4(_LOW, "ds_write_b32 v1, v1", _ALL, "ds_read_b32 v2, v1", "s_waitcnt lgkmcnt(0)", _USE,
                                  _STORE),
    # Each wave reads what the other has not written, then what it has.
    "exec_mask_cross_wave": _cdna4(_OTHER, "s_barrier", _LOW, "ds_write_b32 v1, v1", _HIGH, "ds_read_b32 v2, v6",
                                   "s_waitcnt lgkmcnt(0)", _USE, _STORE),
    "exec_mask_cross_wave_race": _cdna4(_OTHER, "s_barrier", _LOW, "ds_write_b32 v1, v1", _ALL, "ds_read_b32 v2, v6",
                                        "s_waitcnt lgkmcnt(0)", _USE, _STORE, outcome="race"),
    "lds_transpose": _cdna4("v_lshlrev_b32_e32 v6, 5, v0", "v_and_b32_e32 v6, 0x1fc, v6", "s_barrier",
                            "ds_write_b32 v1, v1", "s_waitcnt lgkmcnt(0)", "s_barrier", "ds_read_b32 v2, v6",
                            "s_waitcnt lgkmcnt(0)", _USE, _STORE),
    "lds_transpose_race": _cdna4("v_lshlrev_b32_e32 v6, 5, v0", "v_and_b32_e32 v6, 0x1fc, v6", "s_barrier",
                                 "ds_write_b32 v1, v1", "s_barrier", "ds_read_b32 v2, v6", "s_waitcnt lgkmcnt(0)", _USE,
                                 _STORE, outcome=("lgkmcnt", 0)),
    "dual_offset_lds": _cdna4(_OTHER, "ds_write2_b32 v1, v0, v1 offset1:128", "s_waitcnt lgkmcnt(0)", "s_barrier",
                              "ds_read2_b32 v[2:3], v6 offset1:128", "s_waitcnt lgkmcnt(0)", _USE, _STORE),
    "dual_offset_lds_race": _cdna4(_OTHER, "ds_write2_b32 v1, v0, v1 offset1:128", "s_barrier",
                                   "ds_read2_b32 v[2:3], v6 offset1:128", "s_waitcnt lgkmcnt(0)", _USE, _STORE,
                                   outcome=("lgkmcnt", 0)),
    "scratch_vmcnt": _cdna4("scratch_store_dword off, v0, off", "scratch_load_dword v2, off, off", "s_waitcnt vmcnt(0)",
                            _USE, _STORE),
    "scratch_vmcnt_race": _cdna4(_BEFORE, "scratch_store_dword off, v0, off", "scratch_load_dword v2, off, off", _USE,
                                 _STORE, outcome=("vmcnt", 0)),
    "waw_global_load_then_alu": _cdna4(_LOAD, "v_mov_b32_e32 v2, 5", outcome=("vmcnt", 0)),
    "waw_global_load_then_alu_safe": _cdna4(_LOAD, "s_waitcnt vmcnt(0)", "v_mov_b32_e32 v2, 5"),
    "waw_global_load_then_mfma": _cdna4("v_mov_b32_e32 v6, 0", "v_mov_b32_e32 v7, 0", _LOAD, "s_nop 1",
                                        "v_mfma_f32_16x16x16_f16 v[2:5], v[6:7], v[6:7], 0", outcome=("vmcnt", 0)),
    "f64_vgpr_safe": _cdna4(_PAIR, "s_waitcnt vmcnt(0)", "v_add_f64 v[8:9], v[2:3], v[2:3]"),
    "f64_vgpr_race": _cdna4(_BEFORE, _PAIR, "v_add_f64 v[8:9], v[2:3], v[2:3]", outcome=("vmcnt", 0)),
    "f64_vgpr_waw": _cdna4(_BEFORE, _PAIR, "v_add_f64 v[2:3], 1.0, 1.0", outcome=("vmcnt", 0)),
}  # fmt: skip


def _rdna(arch: str) -> dict[str, Race]:
    """What the corpus has for gfx1151, in the spelling of one GPU of RDNA."""
    is_gfx11 = arch.startswith("gfx11")
    loaded, shared = ("vmcnt", "lgkmcnt") if is_gfx11 else ("loadcnt", "dscnt")

    def wait(counter: str) -> str:
        return f"s_waitcnt {counter}(0)" if is_gfx11 else f"s_wait_{counter} 0x0"

    load, use, store = "global_load_b32 v2, v1, s[4:5]", "v_add_nc_u32_e32 v4, v2, v2", "ds_store_b32 v1, v1"
    other, read = "v_xor_b32_e32 v6, 0x80, v1", "ds_load_b32 v2, v6"
    barrier = "s_barrier" if is_gfx11 else "s_barrier_signal -1\ns_barrier_wait 0xffff"
    ended = f"{wait(shared)}\n{use}"
    wmma = "v_wmma_f32_16x16x16_f16 v[16:23], v[8:15], v[8:15], 0" if is_gfx11 else (
        "v_wmma_f32_16x16x16_f16 v[16:23], v[8:11], v[8:11], 0")  # fmt: skip
    zeros = "\n".join(f"v_mov_b32_e32 v{i}, 0" for i in range(8, 16))
    cases = {
        "vgpr_waitcnt": Race(arch, f"{load}\n{wait(loaded)}\n{use}"),
        "vgpr_waitcnt_race": Race(arch, f"{_BEFORE}\n{load}\n{use}", (loaded, 0)),
        "d16_global_load_merge_no_race": Race(
            arch, f"{_BEFORE}\nglobal_load_d16_b16 v2, v1, s[4:5]\nglobal_load_d16_hi_b16 v2, v1, s[4:5] offset:2\n"
                  f"{wait(loaded)}\n{use}"),
        "d16_global_load_hi_merge_no_race": Race(
            arch, f"{_BEFORE}\nglobal_load_d16_hi_b16 v2, v1, s[4:5]\nglobal_load_d16_b16 v2, v1, s[4:5] offset:2\n"
                  f"{wait(loaded)}\n{use}"),
        "d16_global_load_missing_waitcnt_race": Race(
            arch, f"{_BEFORE}\nglobal_load_d16_b16 v2, v1, s[4:5]\n{use}", (loaded, 0)),
        "lds_wave32_cross_wave": Race(arch, f"{other}\n{store}\n{wait(shared)}\n{barrier}\n{read}\n{ended}"),
        "lds_wave32_cross_wave_race": Race(arch, f"{other}\n{store}\n{barrier}\n{read}\n{ended}", (shared, 0)),
        "waw_global_load_then_wmma": Race(
            arch, f"{zeros}\nv_mov_b32_e32 v16, 0\nglobal_load_b32 v16, v1, s[4:5]\n{wmma}", (loaded, 0)),
    }  # fmt: skip
    return {f"{name}, {arch}": case for name, case in cases.items()}


_FACTORS_11 = "v[16:23], v[0:7], v[8:15], v[16:23]"
RDNA3 = {
    **_rdna("gfx1151"),
    "sums of WMMA that are factors, gfx1151": Race(
        "gfx1151", f"v_wmma_f32_16x16x16_f16 {_FACTORS_11}\n"
                   "v_wmma_f32_16x16x16_f16 v[24:31], v[16:23], v[8:15], v[24:31]", ("", 0)),
    "sums of WMMA that are added to, gfx1151": Race(
        "gfx1151", f"v_wmma_f32_16x16x16_f16 {_FACTORS_11}\nv_wmma_f32_16x16x16_f16 {_FACTORS_11}"),
}  # fmt: skip
RDNA4, CDNA5 = _rdna("gfx1201"), _rdna("gfx1250")

_MFMA = "v_mfma_f32_16x16x16_f16 a[0:3], v[6:7], v[6:7], 0"
_FACTORS = "v_mov_b32_e32 v6, 0\nv_mov_b32_e32 v7, 0"
_LOOP = "s_sub_u32 s6, s6, 1\ns_cmp_lg_u32 s6, 0\ns_cbranch_scc1 .Lagain"
_FOUR = "\n".join(f"v_mov_b32_e32 v{i}, 0" for i in range(8, 12))
_WIDE = "v_lshlrev_b32_e32 v6, 4, v0\nglobal_store_dwordx4 v6, v[8:11], s[4:5]"

_CALL = ("s_getpc_b64 s[6:7]\ns_add_u32 s6, s6, callee@rel32@lo+4\ns_addc_u32 s7, s7, callee@rel32@hi+12\n"
         "s_swappc_b64 s[30:31], s[6:7]")  # fmt: skip


def _calling(before: str, callee: str, behind: str, outcome: Any = None) -> Race:
    return _cdna4(before, _CALL, behind, "s_endpgm", "callee:", callee, "s_setpc_b64 s[30:31]", outcome=outcome)


MORE_CDNA = {
    "a function uses what its caller loads": _calling(f"{_BEFORE}\n{_LOAD}", _USE, "s_nop 0", ("vmcnt", 0)),
    "a function waits for what its caller loads": _calling(
        f"{_BEFORE}\n{_LOAD}", f"s_waitcnt vmcnt(0)\n{_USE}", "s_nop 0"),
    "a function returns what it loads": _calling("s_nop 0", f"{_BEFORE}\n{_LOAD}", _USE, ("vmcnt", 0)),
    "a caller waits for what a function loads": _calling("s_nop 0", f"{_BEFORE}\n{_LOAD}",
                                                         f"s_waitcnt vmcnt(0)\n{_USE}"),
    "a load goes on through a call": _calling(f"{_BEFORE}\n{_LOAD}", _SHIFTED, f"s_waitcnt vmcnt(1)\n{_USE}"),
    "a load goes on through a call, off by one": _calling(f"{_BEFORE}\n{_LOAD}", _SHIFTED,
                                                          f"s_waitcnt vmcnt(2)\n{_USE}", ("vmcnt", 1)),
    "two calls": _calling(f"{_BEFORE}\n{_LOAD}\ns_waitcnt vmcnt(0)\n{_CALL}\n{_USE}\n{_LOAD}", "v_mov_b32_e32 v5, 0",
                          f"s_waitcnt vmcnt(0)\n{_USE}"),
    "LDS and scalars share a counter": _cdna4(
        "ds_read_b32 v2, v1", "s_load_dword s6, s[4:5], 0x0", "s_waitcnt lgkmcnt(1)", _USE, outcome=("lgkmcnt", 0)),
    "an older read of LDS is the one": _cdna4(
        "ds_read_b32 v2, v1", "ds_read_b32 v3, v1", "s_load_dword s6, s[4:5], 0x0", "s_waitcnt lgkmcnt(1)", _USE),
    "the clock": _cdna4("s_memtime s[6:7]", "s_add_u32 s6, s6, 1", outcome=("lgkmcnt", 0)),
    "the clock, waited for": _cdna4("s_memtime s[6:7]", "s_waitcnt lgkmcnt(0)", "s_add_u32 s6, s6, 1"),
    "a scalar load's address": _cdna4("s_load_dwordx2 s[6:7], s[4:5], 0x0", "s_load_dword s12, s[6:7], 0x0",
                                      outcome=("lgkmcnt", 0)),
    "buffers and global loads share a counter": _cdna4(
        _LOAD, "buffer_load_dword v3, v1, s[8:11], 0 offen", "s_waitcnt vmcnt(1)", _USE),
    "the younger of a buffer and a global load": _cdna4(
        "buffer_load_dword v3, v1, s[8:11], 0 offen", _LOAD, "s_waitcnt vmcnt(1)", _USE, outcome=("vmcnt", 0)),
    "a flat store is counted in LDS's counter": _cdna4(
        _ADDRESS, "ds_read_b32 v2, v1",
        "flat_store_dword v[6:7], v0", "s_waitcnt lgkmcnt(1)", _USE, outcome=("lgkmcnt", 0)),
    "an atomic of LDS that returns": _cdna4("ds_add_rtn_u32 v2, v1, v0", _USE, outcome=("lgkmcnt", 0)),
    "a swizzle": _cdna4("ds_swizzle_b32 v2, v0 offset:0x8055", _USE, outcome=("lgkmcnt", 0)),
    "a permutation": _cdna4("ds_bpermute_b32 v2, v1, v0", "s_waitcnt lgkmcnt(0)", _USE),
    "the data of a wide store": _cdna4(_FOUR, _WIDE, "v_mov_b32_e32 v8, 1", outcome=("", 0)),
    "the data of a wide store, in time": _cdna4(_FOUR, _WIDE, "s_nop 1", "v_mov_b32_e32 v8, 1"),
    "the data of a narrow store": _cdna4("ds_write_b32 v1, v0", "v_mov_b32_e32 v0, 1"),
    "a pipeline of two stages": _cdna4(
        "s_mov_b32 s6, 4", _LOAD, ".Lagain:", _SHIFTED, "s_waitcnt vmcnt(1)", _USE, _LOAD, "s_waitcnt vmcnt(1)",
        "v_add_u32_e32 v5, v3, v3", _LOOP, "s_waitcnt vmcnt(0)"),
    "a pipeline of two stages, off by one": _cdna4(
        "s_mov_b32 s6, 4", _LOAD, ".Lagain:", _SHIFTED, "s_waitcnt vmcnt(1)", _USE, _LOAD, "s_waitcnt vmcnt(2)",
        "v_add_u32_e32 v5, v3, v3", _LOOP, "s_waitcnt vmcnt(0)", outcome=("vmcnt", 1)),
    "the second turn of a loop": _cdna4(
        "s_mov_b32 s6, 4", _BEFORE, "s_branch .Lenter", ".Lagain:", _USE, ".Lenter:", _LOAD, _LOOP,
        "s_waitcnt vmcnt(0)", outcome=("vmcnt", 0)),
    "a branch that is not taken": _cdna4(
        _LOAD, "s_cmp_eq_u32 s10, 1", "s_cbranch_scc1 .Lnever", "s_waitcnt vmcnt(0)", ".Lnever:", _USE),
    "copies to LDS, the last one early": _cdna4(
        _TO_LDS, "s_add_u32 m0, m0, 0x200\ns_nop 0\nbuffer_load_dword v1, s[8:11], 0 offen lds", "s_waitcnt vmcnt(1)",
        "ds_read_b32 v2, v1 offset:512", "s_waitcnt lgkmcnt(0)", outcome=("vmcnt", 0)),
    "copies to LDS, the first one read": _cdna4(
        _TO_LDS, "s_add_u32 m0, m0, 0x200\ns_nop 0\nbuffer_load_dword v1, s[8:11], 0 offen lds", "s_waitcnt vmcnt(1)",
        "ds_read_b32 v2, v1", "s_waitcnt lgkmcnt(0)"),
    "a copy to LDS, waited for behind the barrier": _cdna4(
        _TO_LDS, _OTHER, "s_barrier", "s_waitcnt vmcnt(0)", "ds_read_b32 v2, v6", "s_waitcnt lgkmcnt(0)",
        outcome=("vmcnt", 0)),
    "a flat store to LDS before the barrier": _cdna4(
        _OTHER, _FLAT_STORE_LDS, "s_waitcnt lgkmcnt(0)", "s_barrier", "ds_read_b32 v2, v6", "s_waitcnt lgkmcnt(0)"),
    "lds_flat_store_vmcnt_only": _cdna4(
        _OTHER, _FLAT_STORE_LDS, "s_waitcnt vmcnt(0)", "s_barrier", "ds_read_b32 v2, v6", "s_waitcnt lgkmcnt(0)",
        outcome=("lgkmcnt", 0)),
    "lds_atomic_before_the_barrier": _cdna4(
        _OTHER, "ds_add_u32 v1, v0", "s_barrier", "ds_read_b32 v2, v6", "s_waitcnt lgkmcnt(0)", outcome=("lgkmcnt", 0)),
    "an atomic of LDS before the barrier, waited for": _cdna4(
        _OTHER, "ds_add_u32 v1, v0", "s_waitcnt lgkmcnt(0)", "s_barrier", "ds_read_b32 v2, v6", "s_waitcnt lgkmcnt(0)"),
    "atomics of LDS of two waves": _cdna4(
        "s_barrier", "v_and_b32_e32 v6, 63, v0", "v_lshlrev_b32_e32 v6, 2, v6", "ds_add_u32 v6, v0", "s_barrier",
        "ds_add_u32 v6, v0"),
    "a global copy to LDS": _cdna4(
        "v_readfirstlane_b32 s6, v1\ns_mov_b32 m0, s6\ns_nop 0\nglobal_load_lds_dword v1, s[4:5]",
        "ds_read_b32 v2, v1", "s_waitcnt lgkmcnt(0)", outcome=("vmcnt", 0)),
    "a global copy to LDS, waited for": _cdna4(
        "v_readfirstlane_b32 s6, v1\ns_mov_b32 m0, s6\ns_nop 0\nglobal_load_lds_dword v1, s[4:5]",
        "s_waitcnt vmcnt(0)", "ds_read_b32 v2, v1", "s_waitcnt lgkmcnt(0)"),
    "a resource of the vector unit": _cdna4(
        "v_readfirstlane_b32 s8, v0", "buffer_load_dword v2, v1, s[8:11], 0 offen", outcome=("", 0)),
    "a resource of the vector unit, in time": _cdna4(
        "v_mov_b32_e32 v6, s8", "s_nop 0", "v_readfirstlane_b32 s8, v6", "s_nop 4",
        "buffer_load_dword v2, v1, s[8:11], 0 offen"),
    "VCC of a comparison for a selection": _cdna4(
        "v_cmp_eq_u32_e32 vcc, 0, v0", "s_nop 1", "v_cndmask_b32_e32 v4, v0, v1, vcc"),
    "VCC of a comparison, too early": _cdna4(
        "v_cmp_eq_u32_e32 vcc, 0, v0", "v_cndmask_b32_e32 v4, v0, v1, vcc", outcome=("", 0)),
    "lanes of EXEC that a comparison writes": _cdna4(
        "v_mov_b32_e32 v2, v0", "v_cmpx_lt_u32_e64 vcc, 3, v0",
        "v_mov_b32_dpp v3, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", outcome=("", 0)),
    "a factor of a product": _cdna4("v_mov_b32_e32 v6, 0", "v_mov_b32_e32 v7, 0", _MFMA, outcome=("", 0)),
    "a factor of a product, in time": _cdna4(_FACTORS, "s_nop 1", _MFMA),
    "sums that are stored": _cdna4(_FACTORS, "s_nop 1", _MFMA, "s_nop 3", "global_store_dword v1, a0, s[4:5]",
                                   outcome=("", 0)),
    "sums that are stored, in time": _cdna4(_FACTORS, "s_nop 1", _MFMA, "s_nop 15",
                                            "global_store_dword v1, a0, s[4:5]"),
    "sums that are factors": _cdna4(
        _FACTORS, "s_nop 1", "v_mfma_f32_16x16x16_f16 v[8:11], v[6:7], v[6:7], 0", "s_nop 3",
        "v_mfma_f32_16x16x16_f16 v[12:15], v[8:9], v[6:7], 0", outcome=("", 0)),
    "sums that a loop adds to": _cdna4(
        _FACTORS, "s_mov_b32 s6, 3", "s_nop 1", _MFMA, ".Lagain:",
        "v_mfma_f32_16x16x16_f16 a[0:3], v[6:7], v[6:7], a[0:3]", _LOOP),
    "sums of the turn before": _cdna4(
        _FACTORS, _FOUR, "s_mov_b32 s6, 3", ".Lagain:", "v_add_f32_e32 v5, v8, v8", "s_nop 1",
        "v_mfma_f32_16x16x16_f16 v[8:11], v[6:7], v[6:7], 0", _LOOP, outcome=("", 0)),
    "a square root": _cdna4("v_sqrt_f32_e32 v2, v0", "v_add_f32_e32 v4, v2, v2", outcome=("", 0)),
    "a square root, in time": _cdna4("v_sqrt_f32_e32 v2, v0", "s_nop 0", "v_add_f32_e32 v4, v2, v2"),
    "swapped lanes": _cdna4("v_mov_b32_e32 v2, v0", "v_mov_b32_e32 v3, v0", "v_permlane32_swap_b32_e32 v2, v3",
                            outcome=("", 0)),
}  # fmt: skip


def _rdna4(*lines: str, outcome: Any = None, arch: str = "gfx1201") -> Race:
    return Race(arch, "\n".join(lines), outcome)


_LOAD_12 = "global_load_b32 v2, v1, s[4:5]"
_USE_12 = "v_add_nc_u32_e32 v4, v2, v2"
_ASYNC = "global_load_async_to_lds_b32 v1, v1, s[4:5]"
_HALVES = "\n".join(f"v_mov_b32_e32 v{i}, 0" for i in range(8, 24))

_CALL_12 = "s_get_pc_i64 s[6:7]\ns_add_nc_u64 s[6:7], s[6:7], callee@rel64+4\ns_swap_pc_i64 s[30:31], s[6:7]"
_RETURN_12 = "s_endpgm\ncallee:\ns_nop 0\ns_set_pc_i64 s[30:31]"

MORE_RDNA = {
    "a load goes on through a call of gfx1250": _rdna4(
        _BEFORE, _LOAD_12, _CALL_12, _USE_12, _RETURN_12, outcome=("loadcnt", 0), arch="gfx1250"),
    "a load that is waited for behind a call of gfx1250": _rdna4(
        _BEFORE, _LOAD_12, _CALL_12, "s_wait_loadcnt 0x0", _USE_12, _RETURN_12, arch="gfx1250"),
    "a store has a counter of its own": _rdna4(
        "global_store_b32 v1, v0, s[4:5] offset:2048", _LOAD_12, "s_wait_loadcnt 0x0", _USE_12),
    "two halves of a register": _rdna4(
        "global_load_d16_b16 v2, v1, s[4:5]", "global_load_d16_hi_b16 v2, v1, s[4:5] offset:4", "s_wait_loadcnt 0x0",
        _USE_12),
    "a half is stored while the other one comes": _rdna4(
        "global_load_d16_b16 v2, v1, s[4:5]", "global_load_d16_hi_b16 v2, v1, s[4:5] offset:4", "s_wait_loadcnt 0x1",
        "ds_store_b16 v1, v2", "s_wait_loadcnt 0x0"),
    "a half is stored before it comes": _rdna4(
        "global_load_d16_b16 v2, v1, s[4:5]", "global_load_d16_hi_b16 v2, v1, s[4:5] offset:4", "s_wait_loadcnt 0x1",
        "ds_store_b16_d16_hi v1, v2", "s_wait_loadcnt 0x0", outcome=("loadcnt", 0)),
    "one half of a register twice": _rdna4(
        "global_load_d16_b16 v2, v1, s[4:5]", "global_load_d16_b16 v2, v1, s[4:5] offset:4", "s_wait_loadcnt 0x0",
        _USE_12, outcome=("loadcnt", 0)),
    "two halves of which one is waited for": _rdna4(
        "global_load_d16_b16 v2, v1, s[4:5]", "global_load_d16_hi_b16 v2, v1, s[4:5] offset:4", "s_wait_loadcnt 0x1",
        _USE_12, outcome=("loadcnt", 0)),
    "a wait for stores": _rdna4(_LOAD_12, "s_wait_storecnt 0x0", _USE_12, outcome=("loadcnt", 0)),
    "scalars, not LDS": _rdna4("s_load_b32 s6, s[4:5], 0x0", "s_wait_dscnt 0x0", "v_add_nc_u32_e32 v4, s6, v0",
                               outcome=("kmcnt", 0)),
    "scalars out of order": _rdna4(
        "s_load_b32 s6, s[4:5], 0x0", "s_load_b32 s7, s[4:5], 0x4", "s_wait_kmcnt 0x1", "s_add_co_u32 s6, s6, 1",
        outcome=("kmcnt", 0)),
    "LDS in order": _rdna4("ds_load_b32 v2, v1", "ds_load_b32 v3, v1", "s_wait_dscnt 0x1", _USE_12),
    "LDS off by one": _rdna4("ds_load_b32 v2, v1", "ds_load_b32 v3, v1", "s_wait_dscnt 0x2", _USE_12,
                             outcome=("dscnt", 1)),
    "everything": _rdna4("ds_load_b32 v2, v1", "global_load_b32 v3, v1, s[4:5]", "s_wait_loadcnt_dscnt 0x0",
                         "v_add_nc_u32_e32 v4, v2, v3"),
    "LDS of both": _rdna4("ds_load_b32 v2, v1", "global_load_b32 v3, v1, s[4:5]", "s_wait_loadcnt_dscnt 0x1",
                          "v_add_nc_u32_e32 v4, v2, v3", outcome=("dscnt", 0)),
    "a pair of instructions": _rdna4(
        _LOAD_12, "v_dual_add_f32 v4, v2, v2 :: v_dual_mov_b32 v5, 0", outcome=("loadcnt", 0)),
    "sums of WMMA that are factors": _rdna4(
        _HALVES, "v_wmma_f32_16x16x16_f16 v[16:23], v[8:11], v[12:15], v[16:23]",
        "v_wmma_f32_16x16x16_f16 v[24:31], v[16:19], v[12:15], 0", outcome=("", 0)),
    "sums of WMMA that are factors, in time": _rdna4(
        _HALVES, "v_wmma_f32_16x16x16_f16 v[16:23], v[8:11], v[12:15], v[16:23]", "v_nop",
        "v_wmma_f32_16x16x16_f16 v[24:31], v[16:19], v[12:15], 0"),
    "a transcendental, which RDNA 4 waits for": _rdna4("v_exp_f32_e32 v2, v0", "v_add_f32_e32 v4, v2, v2"),
    "an asynchronous copy": _rdna4(_ASYNC, "ds_load_b32 v2, v1", "s_wait_dscnt 0x0", outcome="race",
                                   arch="gfx1250"),
    "an asynchronous copy, waited for": _rdna4(
        _ASYNC, "s_wait_asynccnt 0x0", "ds_load_b32 v2, v1", "s_wait_dscnt 0x0", arch="gfx1250"),
    "an asynchronous copy and the wrong counter": _rdna4(
        _ASYNC, "s_wait_loadcnt 0x0", "ds_load_b32 v2, v1", "s_wait_dscnt 0x0", outcome="race", arch="gfx1250"),
    "an asynchronous store of what is stored": _rdna4(
        "ds_store_b32 v1, v1", "global_store_async_from_lds_b32 v1, v1, s[4:5]", outcome=("dscnt", 0), arch="gfx1250"),
    "an asynchronous store of what is there": _rdna4(
        "ds_store_b32 v1, v1", "s_wait_dscnt 0x0", "global_store_async_from_lds_b32 v1, v1, s[4:5]", arch="gfx1250"),
    "an asynchronous store's data": _rdna4(
        "global_store_async_from_lds_b32 v1, v1, s[4:5]", "ds_store_b32 v1, v1", outcome="race",
        arch="gfx1250"),
}  # fmt: skip
