"""What a program can do wrong, and that it is reported with its place."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flydsl.errors import LaunchError, SimulatorError
from flydsl.hsaco.listing import read_listing
from flydsl.simulator import (
    InstructionLimit,
    ListingError,
    Memory,
    MemoryFault,
    Program,
    Trap,
    UnknownInstruction,
)
from tests.simulator.backends import launch_both as launch

Run = Callable[..., Any]
Compile = Callable[[str], tuple[bytes, str]]

KERNEL = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workitem.id.y()
declare i32 @llvm.amdgcn.workitem.id.z()
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare i32 @llvm.amdgcn.workgroup.id.z()
declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
define amdgpu_kernel void @k(ptr addrspace(1) %out, i32 %n) #0 !dbg !4 {{
  %x = call i32 @llvm.amdgcn.workitem.id.x()
{body}
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="1,256" }}
!llvm.dbg.cu = !{{!0}}
!llvm.module.flags = !{{!2, !3}}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, producer: "test", emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "kernel.py", directory: "/somewhere")
!2 = !{{i32 2, !"Debug Info Version", i32 3}}
!3 = !{{i32 1, !"amdhsa_code_object_version", i32 500}}
!4 = distinct !DISubprogram(name: "k", scope: !1, file: !1, line: 3, type: !5, unit: !0, spFlags: DISPFlagDefinition)
!5 = !DISubroutineType(types: !6)
!6 = !{{}}
!7 = !DILocation(line: 17, column: 9, scope: !4)
"""
STORE = """
  %p = getelementptr float, ptr addrspace(1) %out, i32 %x
  store float 1.0, ptr addrspace(1) %p, !dbg !7"""


def start(compiled: tuple[bytes, str], out: np.ndarray[Any, Any], **options: Any) -> None:
    memory = Memory()
    address = memory.map_array(out, name="out", label=f"argument 0, f32[{out.size}]")
    options = {"grid": (1, 1, 1), "block": (64, 1, 1), **options}
    launch(Program.load(*compiled), "k", kernarg=struct.pack("<QI", address, out.size), memory=memory, **options)


def test_fault_in_a_compiled_kernel_names_source_and_thread(compile_ir: Compile) -> None:
    compiled = compile_ir(KERNEL.format(body=STORE))
    with pytest.raises(MemoryFault) as caught:
        start(compiled, np.zeros(100, "f4"), block=(128, 1, 1))
    error = caught.value
    assert (error.at.file, error.at.line, error.at.column) == ("/somewhere/kernel.py", 17, 8)
    assert (error.access.wave, error.access.lane, error.access.thread) == (1, 36, (100, 0, 0))
    for part in ("global_store_dword", "argument 0, f32[100]", "element 100", "workgroup (0, 0, 0)", "kernel.py:17"):
        assert part in str(error)
    assert compiled[1].splitlines()[error.isa_line - 1].strip().startswith(error.instruction)


def test_ids_in_three_dimensions_and_hidden_arguments(compile_ir: Compile) -> None:
    body = """
  %y = call i32 @llvm.amdgcn.workitem.id.y()
  %z = call i32 @llvm.amdgcn.workitem.id.z()
  %bx = call i32 @llvm.amdgcn.workgroup.id.x()
  %by = call i32 @llvm.amdgcn.workgroup.id.y()
  %bz = call i32 @llvm.amdgcn.workgroup.id.z()
  %hidden = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
  %gx = load i32, ptr addrspace(4) %hidden
  %pgy = getelementptr i8, ptr addrspace(4) %hidden, i32 4
  %gy = load i32, ptr addrspace(4) %pgy
  %psx = getelementptr i8, ptr addrspace(4) %hidden, i32 12
  %sx16 = load i16, ptr addrspace(4) %psx
  %sx = zext i16 %sx16 to i32
  %a1 = mul i32 %bz, %gy
  %a2 = add i32 %a1, %by
  %a3 = mul i32 %a2, %gx
  %block = add i32 %a3, %bx
  %t1 = mul i32 %z, 2
  %t2 = add i32 %t1, %y
  %t3 = mul i32 %t2, %sx
  %thread = add i32 %t3, %x
  %b1 = mul i32 %block, 30
  %index = add i32 %b1, %thread
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %index
  %v1 = mul i32 %block, 1000
  %v = add i32 %v1, %thread
  store i32 %v, ptr addrspace(1) %p"""
    out = np.full(24 * 30, -1, np.int32)
    start(compile_ir(KERNEL.format(body=body)), out, grid=(4, 3, 2), block=(5, 2, 3))
    np.testing.assert_array_equal(out, (np.arange(24)[:, None] * 1000 + np.arange(30)).reshape(-1))


def test_configurations_that_no_device_accepts(compile_ir: Compile) -> None:
    compiled = compile_ir(KERNEL.format(body=STORE))
    out = np.zeros(64, "f4")
    for options in ({"block": (2048, 1, 1)}, {"grid": (0, 1, 1)}, {"block": (512, 1, 1)}, {"dynamic_lds_bytes": 70000}):
        with pytest.raises(LaunchError):
            start(compiled, out, **options)
    program = Program.load(*compiled)
    with pytest.raises(LaunchError, match="no kernel 'other'"):
        launch(program, "other", grid=(1, 1, 1), block=(64, 1, 1), kernarg=b"", memory=Memory())
    with pytest.raises(LaunchError, match="12"):
        launch(program, "k", grid=(1, 1, 1), block=(64, 1, 1), kernarg=b"1234", memory=Memory())
    assert not out.any()


def test_kernel_arguments_are_read_only_and_memory_is_left_as_it_was(compile_ir: Compile) -> None:
    compiled = compile_ir(KERNEL.format(body=STORE))
    memory = Memory()
    out = np.zeros(64, "f4")
    address = memory.map_array(out, name="out")
    before = memory.map_array(np.zeros(1), name="last") >> 36
    launch(
        Program.load(*compiled),
        "k",
        grid=(1, 1, 1),
        block=(64, 1, 1),
        kernarg=struct.pack("<QI", address, 0),
        memory=memory,
    )
    assert memory.map_array(np.zeros(1), name="next") >> 36 == before + 1
    assert out.sum() == 64


def test_unknown_instruction_matters_only_when_reached(run: Run) -> None:
    text = "s_branch skip\nv_frobnicate_b32 v0, v1\nskip:\ns_mov_b32 s0, 5"
    assert run(text).s(0) == 5
    with pytest.raises(UnknownInstruction, match="v_frobnicate_b32 v0, v1"):
        run("v_frobnicate_b32 v0, v1")
    program = Program.from_listing({}, read_listing("k:\nv_frobnicate_b32 v0, v1\ns_nop 0\n"))
    assert [i.mnemonic for i in program.unknown_instructions()] == ["v_frobnicate_b32"]


@pytest.mark.parametrize(
    "text",
    [
        "v_add_f32 v0, v1",
        "v_mov_b32_dpp v0, v1 row_share:3 row_mask:0xf bank_mask:0xf",
        "s_getreg_b32 s0, hwreg(HW_REG_TRAPSTS)",
        "s_mov_b32 s0, missing_symbol@rel32@lo+4",
        "v_perm_b32 v0, v1, v2, v3 clamp",
    ],
)
def test_unknown_forms_of_known_instructions_are_reported(run: Run, text: str) -> None:
    with pytest.raises(UnknownInstruction, match=text.split()[0]):
        run(text)


@pytest.mark.slow
def test_loop_that_never_ends(run: Run) -> None:
    with pytest.raises(InstructionLimit, match="1000000 instructions"):
        run("again:\ns_nop 0\ns_branch again")


def test_a_barrier_does_not_wait_for_waves_that_have_ended(run: Run) -> None:
    text = "v_readfirstlane_b32 s0, v0\ns_cmp_lg_u32 s0, 0\ns_cbranch_scc1 end\ns_barrier\ns_mov_b32 s4, 7\nend:"
    found = run(text, v={0: np.arange(128, dtype="u4") // 64})
    assert found.waves.sgpr[:, 4].tolist() == [7, 0]


def test_waves_part_and_meet_again(run: Run) -> None:
    text = """v_readfirstlane_b32 s0, v0
        v_mov_b32 v1, 0
        loop:
        v_add_u32 v1, v1, v0
        s_sub_u32 s0, s0, 1
        s_cmp_eq_u32 s0, 0
        s_cbranch_scc0 loop
        v_add_u32 v1, 100, v1"""
    count = np.repeat(np.array([3, 1, 7, 1], "u4"), 64)
    np.testing.assert_array_equal(run(text, v={0: count}).v(1), count * count + 100)


@pytest.mark.parametrize("pause", ["s_sleep 1", "s_nop 0"])
def test_a_wave_may_wait_for_another_one_in_a_loop(run: Run, pause: str) -> None:
    text = f"""v_readfirstlane_b32 s0, v0
        v_mov_b32 v1, 0
        v_mov_b32 v2, 1
        s_cmp_eq_u32 s0, 0
        s_cbranch_scc0 signal
        wait:
        {pause}
        ds_read_b32 v3, v1
        v_readfirstlane_b32 s1, v3
        s_cmp_eq_u32 s1, 0
        s_cbranch_scc1 wait
        s_endpgm
        signal:
        ds_write_b32 v1, v2"""
    after = run(text, v={0: np.arange(128, dtype="u4") // 64}, lds=bytes(16))
    assert after.s(1) == 1


def test_subroutine(run: Run) -> None:
    text = """s_getpc_b64 s[4:5]
        s_add_u32 s4, s4, double@rel32@lo+4
        s_addc_u32 s5, s5, double@rel32@hi+12
        s_mov_b32 s0, 21
        s_swappc_b64 s[30:31], s[4:5]
        s_add_u32 s0, s0, 1
        s_branch end
        double:
        s_lshl_b32 s0, s0, 1
        s_setpc_b64 s[30:31]
        end:"""
    assert run(text).s(0) == 43


def test_listing_errors_name_the_line(compile_ir: Compile) -> None:
    with pytest.raises(ListingError, match="line 2 of the listing"):
        read_listing(".text\n.loc 7 1 1\n")
    hsaco, listing = compile_ir(KERNEL.format(body=STORE))
    with pytest.raises(ListingError, match="no kernel 'k'"):
        Program.load(hsaco, listing.replace("k:", "other:"))
    with pytest.raises(ListingError, match="line 3 is not understood"):
        Program.from_listing({}, read_listing("k:\ns_nop 0\nv_mov_b32 v0, s200\n"))


def test_buffers_that_cannot_be_mapped() -> None:
    with pytest.raises(SimulatorError, match="not contiguous"):
        Memory().map_array(np.zeros((4, 4))[:, ::2], name="A")


def test_trap(run: Run) -> None:
    with pytest.raises(Trap, match="s_trap 2"):
        run("s_trap 2")


def test_code_without_an_end(run: Run) -> None:
    with pytest.raises(SimulatorError, match="past the end"):
        run("s_branch past\ns_endpgm\ns_nop 0", end="past:")


def test_time_passes(run: Run) -> None:
    after = run("s_memtime s[0:1]\ns_nop 0\ns_nop 0\ns_memtime s[2:3]")
    assert after.s(2, 2) > after.s(0, 2)
