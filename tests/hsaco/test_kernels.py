from __future__ import annotations

import random
import re
import struct

import llvmlite.binding as llvm
import pytest

from flydsl.arch import ARCHS, Arch, get_arch
from flydsl.codegen.link import link
from flydsl.errors import CompileError, FlyError
from flydsl.hsaco import Hsaco, HsacoError, KernelDescriptor, UserSgpr, decode_kernel_descriptor, read_hsaco
from flydsl.hsaco.assembler import assemble
from tests.metadata import metadata_of, with_metadata

TRIPLE = "amdgcn-amd-amdhsa"
EVERY_ARCH = pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)

# All three ids of both kinds, the dispatch packet, scratch, LDS, and registers by name.
SOURCE = """
@tile = internal addrspace(3) global [500 x i32] poison
declare i32 @llvm.amdgcn.workitem.id.z()
declare i32 @llvm.amdgcn.workgroup.id.y()
declare ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()
define amdgpu_kernel void @first(ptr addrspace(1) %out, i8 %small, i64 %wide) #0 {
  %room = alloca [64 x i32], addrspace(5)
  %z = call i32 @llvm.amdgcn.workitem.id.z()
  %y = call i32 @llvm.amdgcn.workgroup.id.y()
  %packet = call ptr addrspace(4) @llvm.amdgcn.dispatch.ptr()
  %size = load i32, ptr addrspace(4) %packet
  %slot = getelementptr i32, ptr addrspace(5) %room, i32 %y
  store volatile i32 %z, ptr addrspace(5) %slot
  %shared = getelementptr i32, ptr addrspace(3) @tile, i32 %z
  store volatile i32 %size, ptr addrspace(3) %shared
  call void asm sideeffect "", "REGISTERS"()
  ret void
}
define amdgpu_kernel void @second() #1 { ret void }
attributes #0 = { "amdgpu-flat-work-group-size"="1,128" }
attributes #1 = { "amdgpu-flat-work-group-size"="64,64" "denormal-fp-math-f32"="preserve-sign,preserve-sign" }
"""


def assembly(arch: Arch) -> str:
    registers = "~{v37},~{s40},~{a5}" if arch.unified_agprs else "~{v37},~{s40}"
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=arch.name, opt=2, reloc="pic")
    machine.set_asm_verbosity(True)
    module = llvm.parse_assembly(SOURCE.replace("REGISTERS", registers), llvm.create_context())
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    return str(machine.emit_assembly(module))


@pytest.fixture(scope="module")
def code_objects() -> dict[str, tuple[str, bytes]]:
    """Per architecture: LLVM's assembly, and the code object that clang's assembler makes of it."""
    listings = {arch.name: assembly(arch) for arch in ARCHS}
    return {name: (listing, link(assemble(listing, name))) for name, listing in listings.items()}


def directives(text: str, kernel: str) -> dict[str, int]:
    """What the `.amdhsa_` directives of a kernel say."""
    block = text.split(f".amdhsa_kernel {kernel}\n")[1].split(".end_amdhsa_kernel")[0]
    return {name: int(value) for name, value in re.findall(r"\.amdhsa_(\w+) (\d+)$", block, re.M)}


def comments(text: str, kernel: str) -> dict[str, int]:
    block = text.split(".end_amdhsa_kernel")[1 if kernel == "first" else 2]
    return {name: int(value) for name, value in re.findall(r"^; (\w+): (\d+)", block, re.M)}


@EVERY_ARCH
def test_target_and_kernels(arch: Arch, code_objects: dict[str, tuple[str, bytes]]) -> None:
    hsaco = read_hsaco(code_objects[arch.name][1])
    assert hsaco.target == f"{TRIPLE}--{arch.name}"
    assert hsaco.arch_name == arch.name
    assert list(hsaco.kernels) == ["first", "second"]
    assert [kernel.symbol for kernel in hsaco.kernels.values()] == ["first.kd", "second.kd"]
    assert [kernel.max_workgroup_size for kernel in hsaco.kernels.values()] == [128, 64]
    assert {kernel.wave_size for kernel in hsaco.kernels.values()} == {arch.wave_size}


@EVERY_ARCH
def test_explicit_arguments_have_names_sizes_and_offsets(
    arch: Arch, code_objects: dict[str, tuple[str, bytes]]
) -> None:
    first = read_hsaco(code_objects[arch.name][1]).kernels["first"]
    explicit = [arg for arg in first.args if not arg.kind.startswith("hidden")]
    assert [(arg.offset, arg.size, arg.kind) for arg in explicit] == [
        (0, 8, "global_buffer"),
        (8, 1, "by_value"),
        (16, 8, "by_value"),
    ]
    assert [arg.name for arg in explicit] == ["out", "small", "wide"]
    assert first.kernarg_bytes >= 24
    assert first.descriptor.kernarg_bytes == first.kernarg_bytes


@EVERY_ARCH
@pytest.mark.parametrize("kernel", ["first", "second"])
def test_registers_and_memory_are_what_llvm_counted(
    arch: Arch, kernel: str, code_objects: dict[str, tuple[str, bytes]]
) -> None:
    text, data = code_objects[arch.name]
    info, said = read_hsaco(data).kernels[kernel], comments(text, kernel)
    assert info.vgprs == said["NumVgprs"]
    assert info.agprs == said.get("NumAgprs", 0)
    assert info.total_vgprs == said.get("TotalNumVgprs", said["NumVgprs"])
    assert info.sgprs == said["TotalNumSgprs"]
    assert info.scratch_bytes == info.descriptor.scratch_bytes == said["ScratchSize"]
    assert info.lds_bytes == info.descriptor.lds_bytes == said["LDSByteSize"]
    assert (info.vgpr_spills, info.sgpr_spills, info.uses_dynamic_stack) == (0, 0, False)
    if kernel == "first":
        assert (info.vgprs, info.agprs) == (38, 6 if arch.unified_agprs else 0)
        assert info.lds_bytes == 2000
        assert info.scratch_bytes >= 256


@EVERY_ARCH
@pytest.mark.parametrize("kernel", ["first", "second"])
def test_descriptor_is_what_the_directives_say(
    arch: Arch, kernel: str, code_objects: dict[str, tuple[str, bytes]]
) -> None:
    text, data = code_objects[arch.name]
    said, found = directives(text, kernel), read_hsaco(data).kernels[kernel].descriptor
    assert found.user_sgpr_count == said["user_sgpr_count"]
    assert {s.name for s in found.user_sgprs} == {
        name.removeprefix("user_sgpr_")
        for name, value in said.items()
        if re.match(r"user_sgpr_(?!count)", name) and value
    }
    assert found.workgroup_id_x == said["system_sgpr_workgroup_id_x"]
    assert found.workgroup_id_y == said["system_sgpr_workgroup_id_y"]
    assert found.workgroup_id_z == said["system_sgpr_workgroup_id_z"]
    assert found.workgroup_info == said["system_sgpr_workgroup_info"]
    assert found.workitem_id_dims == said["system_vgpr_workitem_id"] + 1
    assert found.private_segment == said.get(
        "enable_private_segment", said.get("system_sgpr_private_segment_wavefront_offset")
    )
    assert found.round_mode_32 == "near_even"
    assert found.denorm_mode_32 == ("flush_src_dst" if said["float_denorm_mode_32"] == 0 else "flush_none")
    assert (said["float_denorm_mode_32"] == 0) == (kernel == "second")
    assert found.denorm_mode_16_64 == "flush_none"
    assert found.fp16_overflow == said["fp16_overflow"]
    assert found.ieee_mode == said.get("ieee_mode")
    assert found.dx10_clamp == said.get("dx10_clamp")
    assert found.accum_offset == said.get("accum_offset")
    assert found.wavefront_size32 == said.get("wavefront_size32", 0) == (arch.wave_size == 32)
    assert found.uses_dynamic_stack == said["uses_dynamic_stack"]


def test_user_sgprs_are_laid_out_in_order(code_objects: dict[str, tuple[str, bytes]]) -> None:
    first = read_hsaco(code_objects["gfx942"][1]).kernels["first"].descriptor
    assert first.user_sgprs[0] == UserSgpr("dispatch_ptr", 0, 2)
    assert [s.name for s in first.user_sgprs] == ["dispatch_ptr", "queue_ptr", "kernarg_segment_ptr", "dispatch_id"]
    assert [s.first_sgpr for s in first.user_sgprs] == [0, 2, 4, 6]
    assert sum(s.sgpr_count for s in first.user_sgprs) == first.user_sgpr_count


@EVERY_ARCH
def test_code_ranges(arch: Arch, code_objects: dict[str, tuple[str, bytes]]) -> None:
    hsaco = read_hsaco(code_objects[arch.name][1])
    ranges = [kernel.code_range for kernel in hsaco.kernels.values()]
    assert ranges[0][0] == 0
    assert ranges[0][1] <= ranges[1][0] < ranges[1][1] <= len(hsaco.text)
    end_program = struct.pack("<I", 0xBF810000 if hsaco.arch_name.startswith("gfx9") else 0xBFB00000)
    assert end_program in hsaco.code("second")


def test_vgprs_of_a_stripped_code_object_are_rounded_up(code_objects: dict[str, tuple[str, bytes]]) -> None:
    """Without local symbols only the total is there, in which the VGPRs are rounded up to a multiple of 4."""
    data = code_objects["gfx942"][1].replace(b"first.num_vgpr", b"other.num_vgpr")
    assert read_hsaco(data).kernels["first"].vgprs == 40
    assert read_hsaco(data).kernels["first"].agprs == 6


def test_a_descriptor_of_all_zeros() -> None:
    cdna, rdna = (decode_kernel_descriptor(bytes(64), name) for name in ("gfx90a", "gfx1201"))
    assert isinstance(cdna, KernelDescriptor)
    assert (cdna.accum_offset, cdna.ieee_mode, cdna.wgp_mode) == (4, False, None)
    assert (rdna.accum_offset, rdna.ieee_mode, rdna.wgp_mode) == (None, None, False)


@pytest.mark.parametrize("size", [0, 63, 65])
def test_a_descriptor_of_another_size(size: int) -> None:
    with pytest.raises(CompileError, match=str(size)):
        decode_kernel_descriptor(bytes(size), "gfx942")


@pytest.mark.parametrize(
    "data",
    [b"", b"\x7fEL", b"MZ" + bytes(100), b"\x7fELF" + bytes(100), b"\x7fELF\x01\x01" + bytes(100), b"\x7fELF\x02\x01"],
    ids=["empty", "short", "not ELF", "no class", "32 bits", "header only"],
)
def test_foreign_bytes(data: bytes) -> None:
    with pytest.raises(CompileError, match="code object"):
        read_hsaco(data)


def test_another_machines_elf(code_objects: dict[str, tuple[str, bytes]]) -> None:
    data = bytearray(code_objects["gfx942"][1])
    struct.pack_into("<H", data, 18, 62)
    with pytest.raises(CompileError, match="62"):
        read_hsaco(bytes(data))


def test_no_metadata(code_objects: dict[str, tuple[str, bytes]]) -> None:
    with pytest.raises(CompileError, match="metadata"):
        read_hsaco(code_objects["gfx942"][1].replace(b"AMDGPU\0", b"OTHER!\0", 1))


def test_every_truncation_is_an_error(code_objects: dict[str, tuple[str, bytes]]) -> None:
    data = code_objects["gfx942"][1]
    for size in range(0, len(data), 7):
        with pytest.raises(CompileError):
            read_hsaco(data[:size])


def test_damaged_bytes_never_escape_as_another_error(code_objects: dict[str, tuple[str, bytes]]) -> None:
    rng = random.Random(1)
    data = code_objects["gfx942"][1]
    headers = [*range(64), *range(0x200, 0x700), *range(len(data) - 64 * 18, len(data))]
    outcomes = set()
    for _ in range(3000):
        damaged = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.choice(headers)] = rng.randrange(256)
        try:
            outcomes.add(type(read_hsaco(bytes(damaged))))
        except FlyError as error:
            outcomes.add(type(error))
    assert Hsaco in outcomes
    assert len(outcomes) == 2


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (".vgpr_count", -1),
        (".vgpr_count", 5000),
        (".vgpr_count", "64"),
        (".vgpr_count", 1),  # fewer than AGPRs
        (".agpr_count", 1 << 40),
        (".agpr_count", 1.5),
        (".agpr_count", 3),  # which leaves more VGPRs than the symbol says
        (".sgpr_count", None),
        (".kernarg_segment_size", 1 << 31),
        (".kernarg_segment_size", 8),  # less than the arguments take
        (".group_segment_fixed_size", -4),
        (".private_segment_fixed_size", 1 << 33),
        (".max_flat_workgroup_size", True),
        (".reqd_workgroup_size", [64, 1]),
        (".reqd_workgroup_size", [64, 1, "1"]),
        (".reqd_workgroup_size", [0, 1, 1]),
        (".args", [{".offset": -8, ".size": 8, ".value_kind": "by_value"}]),
        (".args", [{".offset": 1 << 20, ".size": 8, ".value_kind": "by_value"}]),
        (".args", [5]),
        (".symbol", "other.kd"),
    ],
)
def test_every_field_of_the_metadata_is_checked(
    code_objects: dict[str, tuple[str, bytes]], key: str, value: object
) -> None:
    data = code_objects["gfx942"][1]
    header, metadata = metadata_of(data)
    metadata["amdhsa.kernels"][0][key] = value
    with pytest.raises(HsacoError):
        read_hsaco(with_metadata(data, header, metadata))


def test_sections_that_overlap(code_objects: dict[str, tuple[str, bytes]]) -> None:
    """A file of some kilobytes could have the reader look at gigabytes."""
    data = bytearray(code_objects["gfx942"][1])
    (table,), (count,) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<H", data, 60)
    for header in range(table + 64, table + 64 * count, 64):
        struct.pack_into("<QQ", data, header + 24, 0, len(data))
    with pytest.raises(HsacoError, match="the sections of the code object take"):
        read_hsaco(bytes(data))


def test_a_descriptor_that_asks_for_more_user_sgprs_than_it_has() -> None:
    descriptor = bytearray(64)
    struct.pack_into("<HH", descriptor, 56, 0, 127)  # kernarg preload
    with pytest.raises(HsacoError, match="0 user SGPRs"):
        decode_kernel_descriptor(bytes(descriptor), "gfx942")


def test_known_architectures_are_all_covered(code_objects: dict[str, tuple[str, bytes]]) -> None:
    assert all(
        get_arch(read_hsaco(data).target.rpartition("-")[2]).name == name for name, (_, data) in code_objects.items()
    )
