"""Programs of two waves after AMD's HIP tests of races, spelled for each GPU.

The tests (ROCm/rocm-systems, emulation/rocjitsu/tests/race-detector, of which the names are) were read, and what their
kernels do is written down here in CDNA's words. Registers and memory are as `launching.run` leaves them; {other} is the
distance in LDS from a lane to the same lane of the other wave, {half} that to the lane half a wave on.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

GPUS = ("gfx942", "gfx950", "gfx1151", "gfx1201", "gfx1250")


class Written(NamedTuple):
    """outcome: as in `races`, with "vmcnt", "lgkmcnt" and "kmcnt" for the counters of loads, LDS and scalars.

    alone: the outcome where loads do not share their counter with stores. gpus: those that have the instructions.
    """

    text: str
    outcome: Any = None
    alone: Any = ...
    gpus: tuple[str, ...] = GPUS


_LOAD, _USE = "global_load_dword v2, v1, s[4:5]", "v_add_u32_e32 v4, v2, v2"
_STORE = "global_store_dword v1, v4, s[4:5] offset:2048"
_LOADED, _READ = "s_waitcnt vmcnt(0)", "ds_read_b32 v2, v6\ns_waitcnt lgkmcnt(0)"
_DONE, _BARRIER = "s_waitcnt lgkmcnt(0)", "s_barrier"
_OTHER = "v_xor_b32_e32 v6, {other}, v1"
_SCALAR = "s_load_dword s6, s[4:5], 0x0"
_BYTES = "s_barrier\nv_mov_b32_e32 v6, v0\nv_xor_b32_e32 v7, 1, v0"
_PAIR = "v_lshlrev_b32_e32 v6, 3, v0\nglobal_load_dwordx2 v[2:3], v6, s[4:5]"
_SCRATCH = "scratch_store_byte off, v0, off"
_ATOMIC = "v_mov_b32_e32 v6, v1\nglobal_atomic_add v2, v6, v0, s[4:5] sc0"
_BEFORE = "v_mov_b32_e32 v2, 0\nv_mov_b32_e32 v3, 0"
_TO_LDS = "v_readfirstlane_b32 s6, v1\ns_mov_b32 m0, s6\ns_nop 0\nbuffer_load_dword v1, s[8:11], 0 offen lds"
_CDNA = ("gfx942", "gfx950")
_FLAT = "s_mov_b64 s[6:7], src_shared_base\nv_mov_b32_e32 v7, s7\nv_mov_b32_e32 v8, v1\nv_mov_b32_e32 v9, s7"
_FLAT_STORED = f"{_FLAT}\nflat_store_dword v[8:9], v0\ns_waitcnt vmcnt(0) lgkmcnt(0)\ns_waitcnt stores"
_FLAT_LOADED = "flat_load_dword v2, v[6:7]\ns_waitcnt vmcnt(0) lgkmcnt(0)"
# Lanes of a part of each wave write the place half a wave on; lane 32 of a wave of 64 is the first beyond its own.
_SHIFTED = "v_add_u32_e32 v6, {half}, v1\ns_barrier"
_DOUBLE = "v_lshlrev_b32_e32 v7, 1, v1\nv_xor_b32_e32 v6, 2*{other}, v7"
_ALL = "s_mov_b64 exec, -1"

WRITTEN: dict[str, Written] = {
    "vgpr_waitcnt": Written(f"{_LOAD}\n{_LOADED}\n{_USE}\n{_STORE}"),
    "vgpr_waitcnt_race": Written(f"{_BEFORE}\n{_LOAD}\ns_nop 0\nglobal_store_dword v1, v2, s[4:5] offset:2048",
                                 ("vmcnt", 0)),
    "sgpr_waitcnt": Written(f"{_SCALAR}\n{_DONE}\ns_add_u32 s6, s6, 1"),
    "sgpr_waitcnt_race": Written(f"{_SCALAR}\ns_add_u32 s6, s6, 1", ("kmcnt", 0)),
    "lds_cross_wave": Written(f"{_OTHER}\nds_write_b32 v1, v0\n{_DONE}\n{_BARRIER}\n{_READ}\n{_USE}"),
    "lds_cross_wave_race": Written(f"{_OTHER}\nds_write_b32 v1, v1\n{_DONE}\n{_READ}\n{_USE}", "race"),
    "lds_same_wave_write_read_order": Written(f"{_BYTES}\nds_write_b8 v6, v0\nds_read_u8 v2, v7\n{_DONE}\n{_USE}"),
    "lds_same_wave_read_write_order": Written(
        f"{_BYTES}\nds_write_b8 v6, v0\n{_DONE}\nds_read_u8 v2, v7\nds_write_b8 v6, v1\n{_DONE}\n{_USE}"),
    "global_to_lds_buffer": Written(f"{_TO_LDS}\n{_LOADED}\n{_BARRIER}\nds_read_b32 v2, v1\n{_DONE}\n{_USE}",
                                    gpus=_CDNA),
    "global_to_lds_buffer_race": Written(
        f"{_TO_LDS}\ns_waitcnt vmcnt(3)\ns_waitcnt vmcnt(2)\ns_waitcnt vmcnt(1)\nds_read_b32 v2, v1\n{_DONE}",
        ("vmcnt", 0), gpus=_CDNA),
    "partial_vmcnt_race": Written(
        f"{_BEFORE}\n{_LOAD}\nglobal_load_dword v3, v1, s[4:5] offset:4\ns_waitcnt vmcnt(1)\n"
        "v_add_f32_e32 v4, v2, v3", ("vmcnt", 0)),
    "multiple_race": Written(
        f"{_BEFORE}\n{_LOAD}\nglobal_load_dword v3, v1, s[4:5] offset:4\nv_add_f32_e32 v4, v2, v3", ("vmcnt", 1)),
    "mixed_counters_race": Written(f"{_LOAD}\n{_SCALAR}\n{_LOADED}\nv_add_u32_e32 v4, s6, v2", ("kmcnt", 0)),
    "exec_mask": Written(f"{_OTHER}\n{_BARRIER}\ns_mov_b64 exec, 0xffff\nds_write_b32 v1, v1\n{_ALL}\n{_DONE}\n"
                         f"{_BARRIER}\n{_READ}"),
    "exec_mask_race": Written(
        f"{_OTHER}\n{_BARRIER}\ns_mov_b64 exec, 0xffff\nds_write_b32 v1, v1\n{_ALL}\n{_READ}", "race"),
    "exec_mask_same_wave": Written(
        f"{_SHIFTED}\ns_mov_b64 exec, 0xffff\nds_write_b32 v6, v1\n{_ALL}\n{_DONE}\nds_read_b32 v2, v1\n{_DONE}"),
    "exec_mask_cross_wave_race": Written(
        "v_add_u32_e32 v6, {other}, v1\nv_and_b32_e32 v6, 0x1ff, v6\ns_barrier\ns_mov_b64 exec, 2\n"
        f"ds_write_b32 v6, v1\n{_ALL}\n{_DONE}\nds_read_b32 v2, v1\n{_DONE}", "race"),
    "exec_mask_cross_wave": Written(
        "v_add_u32_e32 v6, {other}, v1\nv_and_b32_e32 v6, 0x1ff, v6\ns_barrier\ns_mov_b64 exec, 2\n"
        f"ds_write_b32 v6, v1\n{_ALL}\n{_DONE}\n{_BARRIER}\nds_read_b32 v2, v1\n{_DONE}"),
    "dual_offset_lds": Written(
        f"{_DOUBLE}\n{_BARRIER}\nds_write2_b32 v7, v0, v1 offset1:1\n{_DONE}\n{_BARRIER}\n{_READ}"),
    "dual_offset_lds_race": Written(
        f"{_DOUBLE}\n{_BARRIER}\nds_write2_b32 v7, v0, v1 offset1:1\n{_DONE}\n{_READ}", "race"),
    "scratch_vmcnt": Written(f"{_BEFORE}\n{_LOAD}\n{_SCRATCH}\n{_SCRATCH} offset:1\ns_waitcnt vmcnt(2)\n{_USE}",
                             alone=("vmcnt", 0)),
    "scratch_vmcnt_race": Written(f"{_BEFORE}\n{_LOAD}\n{_SCRATCH}\ns_waitcnt vmcnt(2)\n{_USE}", ("vmcnt", 1),
                                  alone=("vmcnt", 0)),
    "waw_global_load_then_alu": Written(f"{_BEFORE}\n{_LOAD}\nv_add_f32_e32 v2, v0, v0\n{_LOADED}", ("vmcnt", 0)),
    "waw_global_load_then_alu_safe": Written(f"{_LOAD}\n{_LOADED}\nv_add_f32_e32 v2, v0, v0"),
    "waw_global_load_then_mfma": Written(
        "v_lshlrev_b32_e32 v6, 4, v0\nv_mov_b32_e32 v8, 0\nv_and_b32_e32 v6, 0x3f0, v6\ns_nop 1\n"
        "global_load_dwordx4 v[12:15], v6, s[4:5]\n"
        f"v_mfma_f32_4x4x1_16b_f32 v[12:15], v8, v8, 0\n{_LOADED}", ("vmcnt", 0), gpus=_CDNA),
    "f64_vgpr_race": Written(f"{_BEFORE}\n{_PAIR}\ns_nop 0\nv_fma_f64 v[8:9], v[2:3], 1.0, 1.0", ("vmcnt", 0)),
    "f64_vgpr_safe": Written(f"{_PAIR}\n{_LOADED}\nv_fma_f64 v[8:9], v[2:3], 1.0, 1.0"),
    "f64_vgpr_waw": Written(f"{_BEFORE}\n{_PAIR}\nv_fma_f64 v[2:3], 1.0, 1.0, 1.0\n{_LOADED}", ("vmcnt", 0)),
    "atomic, vmcnt_only": Written(f"{_ATOMIC}\n{_LOADED}\n{_USE}"),
    "atomic, no_wait": Written(f"{_BEFORE}\n{_ATOMIC}\n{_USE}", ("vmcnt", 0)),
    "atomic, expcnt_only": Written(f"{_BEFORE}\n{_ATOMIC}\ns_waitcnt expcnt(0)\n{_USE}", ("vmcnt", 0),
                                    gpus=GPUS[:-1]),
    "flat_lds_exchange": Written(f"{_OTHER}\n{_FLAT_STORED}\n{_BARRIER}\n{_FLAT_LOADED}\n{_USE}"),
    "flat_lds_exchange_race": Written(f"{_OTHER}\n{_FLAT_STORED}\n{_FLAT_LOADED}\n{_USE}", "race"),
    "lds_war_pattern": Written(f"ds_read_b32 v2, v1\n{_DONE}\nv_add_u32_e32 v2, 1, v2\nds_write_b32 v1, v2"),
    "lds_war_pattern, mutant": Written(f"{_BEFORE}\nds_read_b32 v2, v1\nv_add_u32_e32 v2, 1, v2\nds_write_b32 v1, v2",
                                       ("lgkmcnt", 0)),
    "fa_barrier_epoch": Written(
        f"{_OTHER}\nds_write_b16 v1, v0\n{_DONE}\n{_BARRIER}\nds_read_u16 v2, v6\n{_DONE}\n{_USE}"),
    "fa_barrier_epoch, no wait": Written(
        f"{_OTHER}\nds_write_b16 v1, v0\n{_BARRIER}\nds_read_u16 v2, v6\n{_DONE}\n{_USE}", ("lgkmcnt", 0)),
    "fa_barrier_epoch, no barrier": Written(
        f"{_OTHER}\nds_write_b16 v1, v0\n{_DONE}\nds_read_u16 v2, v6\n{_DONE}\n{_USE}", "race"),
    "pointer_chase, mutant": Written(f"{_SCALAR}\nv_mov_b32_e32 v2, v1\nglobal_load_dword v2, v2, s[4:5]\n"
                                     "v_and_b32_e32 v3, 60, v2", ("vmcnt", 0)),
}  # fmt: skip

_RDNA = (
    (r"(global|flat|scratch|s)_(load|store)_dword\b", r"\1_\2_b32"), (r"_dwordx2\b", "_b64"), (r"_dwordx4\b", "_b128"),
    (r"_store_byte\b", "_store_b8"), (r"ds_write2_b32", "ds_store_2addr_b32"), (r"ds_write_", "ds_store_"),
    (r"ds_read_", "ds_load_"), (r"_atomic_add\b", "_atomic_add_u32"), (r"v_add_u32_e32", "v_add_nc_u32_e32"),
    (r"s_mov_b64 exec,", "s_mov_b32 exec_lo,"),
)  # fmt: skip
_RDNA3 = (*_RDNA, (r"\bsc0$", "glc"), (r"s_waitcnt stores", "s_waitcnt_vscnt null, 0x0"))
_GFX12 = (
    *_RDNA, (r"\bsc0$", "th:TH_ATOMIC_RETURN"), (r"s_waitcnt stores", "s_wait_storecnt 0x0"),
    (r"s_waitcnt vmcnt\((\d)\) lgkmcnt\(0\)", r"s_wait_loadcnt_dscnt 0x0"),
    (r"s_waitcnt vmcnt\((\d)\)", r"s_wait_loadcnt 0x\1"),
    (r"s_waitcnt lgkmcnt\(0\)", "s_wait_dscnt 0x0\ns_wait_kmcnt 0x0"), (r"s_waitcnt expcnt\(0\)", "s_wait_expcnt 0x0"),
    (r"s_barrier$", "s_barrier_signal -1\ns_barrier_wait 0xffff"), (r"s_add_u32", "s_add_co_u32"),
)  # fmt: skip
_CDNA_RULES = ((r"s_waitcnt stores", "s_nop 0"),)


def spelled(text: str, gpu: str) -> str:
    """A program in the words of a GPU."""
    other = 256 if gpu in _CDNA else 128
    text = text.replace("2*{other}", f"{2 * other:#x}").replace("{other}", f"{other:#x}").replace("{half}", "0x40")
    for pattern, new in _GFX12 if gpu.startswith("gfx12") else _RDNA3 if gpu not in _CDNA else _CDNA_RULES:
        text = re.sub(pattern, new, text, flags=re.MULTILINE)
    return text


_RESULTS = ("v2", "v3", "v4", "v12")


def stored(text: str) -> str:
    """A program that stores a sum of its registers in the end, when all loads have come."""
    before = "\n".join(["s_mov_b32 s6, 0", *(f"v_mov_b32_e32 {register}, 0" for register in _RESULTS)])
    sums = "\n".join(["v_mov_b32_e32 v5, s6", *(f"v_add_u32_e32 v5, v5, {register}" for register in _RESULTS)])
    ends = "s_waitcnt vmcnt(0) lgkmcnt(0)\ns_waitcnt lgkmcnt(0)\ns_nop 15"
    return f"{before}\n{text}\n{ends}\n{sums}\nglobal_store_dword v1, v5, s[4:5] offset:3072"


def expected(case: Written, gpu: str) -> Any:
    """The outcome on a GPU, with the counters' names there."""
    outcome = case.alone if case.alone is not ... and gpu not in _CDNA else case.outcome
    if not isinstance(outcome, tuple):
        return outcome
    names = {"kmcnt": "lgkmcnt"}
    if gpu.startswith("gfx12"):
        names = {"vmcnt": "loadcnt", "lgkmcnt": "dscnt"}
    return names.get(outcome[0], outcome[0]), outcome[1]
