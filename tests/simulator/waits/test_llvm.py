"""LLVM's waits and wait states are enough at every level, and none of them could be weaker.

LLVM's tables of hazards and counters are the other source of what `arch.wait_states` and `arch.wait_counters` say: of
what it inserts, each is weakened by one, and must then be missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import llvmlite.binding as llvm
import pytest

from flydsl.arch import get_arch
from flydsl.hsaco.listing import read_listing
from flydsl.simulator.waits.missing import MissingWait, missing_waits

_MATRIX = {
    "mfma": ("<4 x float>", "<4 x half>", "llvm.amdgcn.mfma.f32.16x16x16f16", ", i32 0, i32 0, i32 0"),
    "gfx11": ("<8 x float>", "<16 x half>", "llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16", ""),
    "gfx12": ("<8 x float>", "<8 x half>", "llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v8f16", ""),
}
_PROGRAM = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.readlane.i32(i32, i32)
declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32, i32, i32, i1)
declare float @llvm.amdgcn.exp2.f32(float)
declare {sums} @{name}({factors}, {factors}, {sums}{types})
@shared = internal addrspace(3) global [1024 x float] poison
define amdgpu_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %n, float %scale) {{
entry:
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %pa = getelementptr {factors}, ptr addrspace(1) %in, i32 %x
  %first = load {factors}, ptr addrspace(1) %pa
  br label %loop
loop:
  %i = phi i32 [0, %entry], [%next, %loop]
  %a = phi {factors} [%first, %entry], [%b, %loop]
  %sums = phi {sums} [zeroinitializer, %entry], [%more, %loop]
  %next = add i32 %i, 1
  %place = add i32 %x, %next
  %pb = getelementptr {factors}, ptr addrspace(1) %in, i32 %place
  %b = load {factors}, ptr addrspace(1) %pb
  %more = call {sums} @{name}({factors} %a, {factors} %a, {sums} %sums{values})
  %goes_on = icmp ult i32 %next, %n
  br i1 %goes_on, label %loop, label %end
end:
  %one = extractelement {sums} %more, i32 0
  %two = extractelement {sums} %more, i32 1
  %e = call float @llvm.amdgcn.exp2.f32(float %one)
  %s = fadd float %e, %two
  %ps = getelementptr float, ptr addrspace(3) @shared, i32 %x
  store float %s, ptr addrspace(3) %ps
  %xr = xor i32 %x, 1
  %pr = getelementptr float, ptr addrspace(3) @shared, i32 %xr
  %r = load float, ptr addrspace(3) %pr
  %bits = bitcast float %r to i32
  %moved = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %bits, i32 177, i32 15, i32 15, i1 true)
  %lane = call i32 @llvm.amdgcn.readlane.i32(i32 %moved, i32 3)
  %chosen = call i32 @llvm.amdgcn.readlane.i32(i32 %bits, i32 %lane)
  %sum = add i32 %moved, %chosen
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %x
  store i32 %sum, ptr addrspace(1) %po
  %ended = getelementptr {sums}, ptr addrspace(1) %in, i32 %x
  store {sums} %more, ptr addrspace(1) %ended
  ret void
}}
"""
_ARCHS = {"gfx90a": "mfma", "gfx942": "mfma", "gfx950": "mfma", "gfx1151": "gfx11", "gfx1201": "gfx12"}
_WAIT = re.compile(r"^\t(s_nop|v_nop|s_waitcnt|s_wait_alu|s_wait_\w+cnt\w*)\b\s*([^;\n]*)")


def compiled(arch: str, level: int) -> str:
    """The listing of the program."""
    sums, factors, name, values = _MATRIX[_ARCHS[arch]]
    types = re.sub(r" 0", "", values)
    return compiled_by_llvm(
        _PROGRAM.format(sums=sums, factors=factors, name=name, values=values, types=types), arch, level
    )


def compiled_by_llvm(source: str, arch: str, level: int) -> str:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=arch, opt=level, reloc="pic")
    module = llvm.parse_assembly(source)
    module.triple, module.data_layout = "amdgcn-amd-amdhsa", str(machine.target_data)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=level))
    builder.getModulePassManager().run(module, builder)
    return str(machine.emit_assembly(module))


def found_in(listing: str, arch: str) -> list[MissingWait]:
    return missing_waits(read_listing(listing), get_arch(arch))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("arch", _ARCHS)
def test_what_llvm_waits_for_is_enough(arch: str, level: int) -> None:
    assert found_in(compiled(arch, level), arch) == []


@pytest.mark.parametrize("arch", _ARCHS)
def test_what_llvm_waits_for_is_needed(arch: str) -> None:
    """Each wait, and each wait state, is missed where it is weakened."""
    mutants = list(weakened(compiled(arch, 3)))
    assert len(mutants) >= 3
    for mutant in mutants:
        assert found_in(mutant, arch), mutant


_ACCUMULATORS = """
declare {sums} @llvm.amdgcn.{name}({factors}, {factors}, {sums}, i32, i32, i32)
define amdgpu_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {{
  %a = load {factors}, ptr addrspace(1) %in
  %c = call {sums} asm sideeffect "; def $0", "=a"()
  %d = call {sums} @llvm.amdgcn.{name}({factors} %a, {factors} %a, {sums} %c, i32 0, i32 0, i32 0)
  %e = extractelement {sums} %d, i32 0
  %s = call float asm sideeffect "; use $1", "=v,v"(float %e)
  call void asm sideeffect "; keep $0", "a"({sums} %d)
  store float %s, ptr addrspace(1) %out
  ret void
}}
"""


@pytest.mark.parametrize(
    ("arch", "name", "factors", "sums"),
    [
        ("gfx942", "mfma.f32.16x16x16bf16.1k", "<4 x i16>", 4),
        ("gfx942", "mfma.f32.32x32x8bf16.1k", "<4 x i16>", 16),
        ("gfx950", "mfma.f32.16x16x32.bf16", "<8 x bfloat>", 4),
        ("gfx950", "mfma.f32.32x32x16.bf16", "<8 x bfloat>", 16),
    ],
)
def test_accumulators_are_read_as_late_as_llvm_reads_them(arch: str, name: str, factors: str, sums: int) -> None:
    """By v_accvgpr_read, for which no hardware waits: one wait state less is missed."""
    source = _ACCUMULATORS.format(name=name, factors=factors, sums=f"<{sums} x float>")
    listing = compiled_by_llvm(source, arch, 3)
    assert re.search(r"s_nop \d+\n(?:\s*;.*\n)*\tv_accvgpr_read_b32", listing)
    assert found_in(listing, arch) == []
    assert all(found_in(mutant, arch) for mutant in weakened(listing) if "s_nop" in mutant)


def weakened(listing: str) -> Iterator[str]:
    """The listing with one wait less, or one count more."""
    lines = listing.split("\n")
    for index, line in enumerate(lines):
        match = _WAIT.match(line)
        for text in _weaker(match[1], match[2].strip()) if match else ():
            yield "\n".join([*lines[:index], text, *lines[index + 1 :]])


def _weaker(name: str, operand: str) -> Iterator[str]:
    if name in ("v_nop", "s_wait_alu"):
        yield ""
    elif name == "s_nop":
        yield f"\ts_nop {int(operand) - 1}" if int(operand) else ""
    elif name == "s_waitcnt":
        for counter, count in re.findall(r"(\w+)\((\d+)\)", operand):
            yield "\ts_waitcnt " + re.sub(rf"{counter}\(\d+\)", f"{counter}({int(count) + 1})", operand)
    else:
        yield f"\t{name} {int(operand, 0) + 1:#x}"
