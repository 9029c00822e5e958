"""Launches of instructions that a test spells out, without a compiler between."""

from __future__ import annotations

import struct

import numpy as np

from flydsl.arch import get_arch
from flydsl.hsaco.listing import read_listing
from flydsl.simulator import Memory, Program, checking, launch
from flydsl.simulator.arrays import Array
from tests.simulator.conftest import compile_llvm_ir

SHELL = """
define amdgpu_kernel void @k(ptr addrspace(1) %out) #0 {
  %scratch = alloca [64 x i32], addrspace(5)
  store volatile i32 0, ptr addrspace(5) %scratch
  call void asm sideeffect "", "~{v31},~{a3},~{s40}"()
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="1,256" }
"""
_PROLOGUE = {
    "gfx9": "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\nv_and_b32_e32 v0, 0x3ff, v0\n"
            "v_lshlrev_b32_e32 v1, 2, v0\nds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)",
    "gfx12": "s_load_b64 s[4:5], s[0:1], 0x0\ns_wait_kmcnt 0x0\nv_and_b32_e32 v0, 0x3ff, v0\n"
             "v_lshlrev_b32_e32 v1, 2, v0\nds_store_b32 v1, v0\ns_wait_dscnt 0x0",
}  # fmt: skip
_RESOURCE = "s_mov_b32 s8, s4\ns_and_b32 s9, s5, 0xffff\ns_movk_i32 s10, 0x1000\ns_mov_b32 s11, 0x27000"


def run(arch_name: str, text: str, *checks: str, workgroups: int = 1) -> Array:
    """Launch workgroups of two waves that execute a text; what they leave in the array, which begins as 1000 + i.

    Before it, s[4:5] is the address of an array of 1024 numbers, s[8:11] a buffer resource of it, v0 the number of the
    thread, and v1 four times that. The workgroup has 1024 bytes of LDS, of which each thread has written its dword.
    """
    arch = get_arch(arch_name)
    hsaco, listing = compile_llvm_ir(SHELL, arch_name)
    info = Program.load(hsaco, listing).kernels["k"]
    prologue = _PROLOGUE["gfx12" if arch_name.startswith("gfx12") else "gfx9"]
    if arch_name == "gfx90a":  # behind the descriptor of scratch
        prologue = prologue.replace("s[0:1]", "s[4:5]")
    instructions = read_listing(f"k:\n{prologue}\n{_RESOURCE}\n{text}\ns_endpgm\n")
    memory = Memory()
    out = np.arange(1000, 2024, dtype=np.uint32)
    kernarg = struct.pack("<Q", memory.map_array(out, name="out"))
    with checking(*checks):
        launch(
            Program.from_listing({"k": info}, instructions, arch, arch.wave_size), "k", grid=(workgroups, 1, 1),
            block=(2 * arch.wave_size, 1, 1), kernarg=kernarg, memory=memory, dynamic_lds_bytes=1024,
        )  # fmt: skip
    return out
