"""Occupancy is what LLVM's backend says it is."""

from __future__ import annotations

import random
import re

import llvmlite.binding as llvm
import pytest

from flydsl.arch import ARCHS, Arch, get_arch, max_vgprs, occupancy
from flydsl.errors import ArchError

pytestmark = pytest.mark.slow

KERNELS_PER_ARCH = 60
TRIPLE = "amdgcn-amd-amdhsa"

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()


def kernel(index: int, workgroup_sizes: str, clobbers: list[str], lds_bytes: int = 0, features: str = "") -> str:
    """LLVM IR of a kernel that names these registers and this much LDS, and does nothing else."""
    lds = f"@lds{index} = internal addrspace(3) global [{lds_bytes} x i8] poison" if lds_bytes else ""
    use = f"store volatile i8 0, ptr addrspace(3) @lds{index}" if lds_bytes else ""
    names = ",".join(f"~{{{register}}}" for register in clobbers)
    return f"""
    {lds}
    define amdgpu_kernel void @k{index}()
        "amdgpu-flat-work-group-size"="{workgroup_sizes}" "target-features"="{features}" {{
      call void asm sideeffect "", "{names}"()
      {use}
      ret void
    }}"""


def random_kernel(rng: random.Random, arch: Arch, index: int) -> tuple[str, int]:
    """A kernel and its workgroup size."""
    workgroup_size = rng.choice([1, 32, 33, 64, 96, 128, 192, 256, 320, 448, 512, 640, 768, 1000, 1024])
    lds_bytes = rng.choice([0, 0, rng.randrange(1, 4096), rng.randrange(4096, arch.lds_bytes_per_workgroup + 1)])
    # A wave of a large workgroup may not take more than its share of the file, or the workgroup would never fit.
    waves_per_simd = -(-workgroup_size // arch.wave_size // arch.lds_simds)
    vgprs = rng.randrange(1, min(arch.addressable_vgprs, max_vgprs(arch, waves_per_simd)) + 1)
    clobbers = [f"v{vgprs - 1}", f"s{rng.randrange(16, 102)}", *rng.sample(["vcc"], rng.randrange(2))]
    room = max_vgprs(arch, waves_per_simd) - (vgprs + 3) // 4 * 4
    if arch.unified_agprs and room > 0 and rng.random() < 0.5:
        clobbers.append(f"a{rng.randrange(min(room, 256))}")
    return kernel(index, f"{workgroup_size},{workgroup_size}", clobbers, lds_bytes), workgroup_size


def kernel_infos(ir: str, arch: Arch) -> list[dict[str, int]]:
    """The numbers in LLVM's comments, one dict per kernel in order."""
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=arch.name, opt=2, reloc="pic")
    machine.set_asm_verbosity(True)
    module = llvm.parse_assembly(ir, llvm.create_context())
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    blocks = machine.emit_assembly(module).split("; Kernel info:")[1:]
    return [{name: int(value) for name, value in re.findall(r"^; (\w+): (\d+)", b, re.M)} for b in blocks]


def waves(arch: Arch, info: dict[str, int], workgroup_size: int, wave_size: int | None = None) -> int:
    return occupancy(
        arch,
        vgprs=info["NumVgprs"],
        agprs=info.get("NumAgprs", 0),
        sgprs=info["TotalNumSgprs"],
        lds_bytes=info["LDSByteSize"],
        workgroup_size=workgroup_size,
        wave_size=wave_size,
    ).waves_per_simd


@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
@pytest.mark.diagonal(3)
def test_equals_llvms(arch: Arch) -> None:
    rng = random.Random(arch.name)
    kernels = [random_kernel(rng, arch, i) for i in range(KERNELS_PER_ARCH)]
    infos = kernel_infos("".join(ir for ir, _ in kernels), arch)
    assert len(infos) == KERNELS_PER_ARCH
    for (ir, workgroup_size), info in zip(kernels, infos, strict=True):
        assert waves(arch, info, workgroup_size) == info["Occupancy"], f"{ir}\n{info}"
    assert len({info["Occupancy"] for info in infos}) > 3, "the kernels are too much alike to tell anything"


@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
@pytest.mark.parametrize("largest", [256, 1024])
@pytest.mark.diagonal(2)
def test_equals_llvms_for_any_workgroup_size_up_to_a_power_of_two(arch: Arch, largest: int) -> None:
    lds = [0, 1000, 5000, 12000, 20000, 40000, 65536]
    kernels = [kernel(i, f"1,{largest}", ["v0", "s0"], lds_bytes) for i, lds_bytes in enumerate(lds)]
    for info in kernel_infos("".join(kernels), arch):
        assert waves(arch, info, largest) == info["Occupancy"], info


def test_equals_llvms_in_the_other_wave_size() -> None:
    arch = get_arch("gfx1201")
    registers = [1, 48, 49, 60, 72, 84, 96, 97, 128, 192, 256]
    kernels = [kernel(i, "64,64", [f"v{n - 1}"], 0, "+wavefrontsize64") for i, n in enumerate(registers)]
    infos = kernel_infos("".join(kernels), arch)
    assert [info["NumVgprs"] for info in infos] == registers
    assert [waves(arch, info, 64, wave_size=64) for info in infos] == [info["Occupancy"] for info in infos]


STEPS = {
    "gfx942": {64: 8, 72: 7, 80: 6, 96: 5, 128: 4, 168: 3, 256: 2, 512: 1},
    "gfx1201": {96: 16, 120: 12, 144: 10, 168: 9, 192: 8, 216: 7, 240: 6, 256: 5},
    "gfx1250": {64: 16, 80: 12, 96: 10, 112: 9, 128: 8, 144: 7, 160: 6, 192: 5, 256: 4, 336: 3, 512: 2, 1024: 1},
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_of_the_register_file(name: str) -> None:
    arch = get_arch(name)
    assert {max_vgprs(arch, n): n for n in range(1, arch.max_waves_per_simd + 1)} == STEPS[name]


@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
def test_max_vgprs_is_the_last_count_with_that_many_waves(arch: Arch) -> None:
    for n in range(1, arch.max_waves_per_simd + 1):
        most = max_vgprs(arch, n)
        if most > arch.addressable_vgprs:
            continue  # reached with AGPRs only
        assert occupancy(arch, vgprs=most, workgroup_size=arch.wave_size).waves_per_simd >= n
        if most < arch.addressable_vgprs:
            assert occupancy(arch, vgprs=most + 1, workgroup_size=arch.wave_size).waves_per_simd < n


def test_limiter_names_the_scarcest_resource() -> None:
    arch = get_arch("gfx942")
    assert occupancy(arch, vgprs=10, workgroup_size=256).limiter is None
    assert occupancy(arch, vgprs=200, workgroup_size=256).limiter == "VGPR"
    assert occupancy(arch, vgprs=10, sgprs=102, workgroup_size=256).limiter == "SGPR"
    assert occupancy(arch, vgprs=10, lds_bytes=40_000, workgroup_size=256).limiter == "LDS"
    assert occupancy(arch, vgprs=10, workgroup_size=768).limiter == "workgroup"


@pytest.mark.parametrize(
    "wrong",
    [
        {"vgprs": 257},
        {"vgprs": -1},
        {"agprs": 257},
        {"sgprs": 109},
        {"lds_bytes": 65537},
        {"workgroup_size": 0},
        {"workgroup_size": 1025},
        {"wave_size": 32},
    ],
    ids=str,
)
def test_more_than_the_architecture_has_is_an_error(wrong: dict[str, int]) -> None:
    with pytest.raises(ArchError, match=str(next(iter(wrong.values())))):
        occupancy(get_arch("gfx942"), **{"vgprs": 8, "workgroup_size": 64, **wrong})


def test_no_agprs_outside_of_the_unified_file() -> None:
    with pytest.raises(ArchError, match="agprs"):
        occupancy(get_arch("gfx1201"), vgprs=8, agprs=1, workgroup_size=64)
