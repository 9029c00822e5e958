"""A kernel's occupancy is the number in LLVM's listing, whatever its attributes ask for."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from flydsl.arch import ARCHS, Arch, get_arch
from flydsl.codegen import CodeObject, compile_llvm_ir

pytestmark = pytest.mark.slow

EVERY_ARCH = pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)


def kernel(name: str, *attributes: str, vgprs: int = 1, lds_bytes: int = 0) -> str:
    lds = f"@lds_{name} = internal addrspace(3) global [{lds_bytes} x i8] poison\n" if lds_bytes else ""
    store = f"store volatile i8 0, ptr addrspace(3) @lds_{name}\n" if lds_bytes else ""
    clobber = f'call void asm sideeffect "", "~{{v{vgprs - 1}}}"()\n'
    return f"{lds}define amdgpu_kernel void @{name}() {' '.join(attributes)} {{\n{clobber}{store} ret void\n}}\n"


def sizes(smallest: int, largest: int) -> str:
    return f'"amdgpu-flat-work-group-size"="{smallest},{largest}"'


def assert_llvms(code: CodeObject) -> set[int]:
    """The numbers that occur, one per kernel and each equal to LLVM's."""
    names = re.findall(r"^\s*\.amdhsa_kernel (\w+)", code.listing, re.M)
    says = dict(zip(names, map(int, re.findall(r"^; Occupancy: (\d+)", code.listing, re.M)), strict=True))
    assert {k.name: k.occupancy.waves_per_simd for k in code.kernels} == says
    return set(says.values())


@EVERY_ARCH
@pytest.mark.diagonal(3)
def test_for_ranges_of_workgroup_sizes(arch: Arch) -> None:
    rng = random.Random(7)
    kernels = []
    for i in range(120):
        smallest, largest = sorted(rng.sample(range(1, 1025), 2))
        lds_bytes = rng.choice([0, 0, rng.randrange(1, 20_000), rng.randrange(1, 60_000)])
        kernels.append(kernel(f"k{i}", sizes(rng.choice([1, smallest]), largest), lds_bytes=lds_bytes))
    assert len(assert_llvms(compile_llvm_ir("".join(kernels), arch))) > 3


@EVERY_ARCH
@pytest.mark.diagonal(3)
def test_for_kernels_that_ask_for_few_waves(arch: Arch) -> None:
    asked = ("1,1", "2,4", "3,5", "1,6", "8")
    made = itertools.product(asked, (64, 256), (10, 60), (0, 9000))
    kernels = [
        kernel(f"k{i}", sizes(threads, threads), f'"amdgpu-waves-per-eu"="{waves}"', vgprs=vgprs, lds_bytes=lds_bytes)
        for i, (waves, threads, vgprs, lds_bytes) in enumerate(made)
    ]
    assert len(assert_llvms(compile_llvm_ir("".join(kernels), arch))) > 3


def test_on_one_half_of_a_pair_of_compute_units() -> None:
    kernels = [
        kernel(f"k{i}", sizes(1, threads), f'"target-features"="{features}"', lds_bytes=lds_bytes)
        for i, (threads, lds_bytes, features) in enumerate(
            itertools.product(
                (64, 96, 320, 832, 1024), (0, 12_000, 40_000), ("+cumode", "+cumode,+wavefrontsize64", "-cumode")
            )
        )
    ]
    assert_llvms(compile_llvm_ir("".join(kernels), get_arch("gfx1201")))


def test_a_kernel_that_asks_for_few_waves_says_so() -> None:
    ir = kernel("few", sizes(64, 64), '"amdgpu-waves-per-eu"="2,2"') + kernel("free", sizes(64, 64))
    few, free = compile_llvm_ir(ir, get_arch("gfx942")).kernels
    assert (few.waves_per_eu, few.occupancy.limiter) == (2, "waves_per_eu")
    assert (free.waves_per_eu, free.occupancy.limiter) == (None, None)


def test_what_lds_limits_is_not_put_down_to_the_registers() -> None:
    (found,) = compile_llvm_ir(kernel("k", sizes(64, 64), lds_bytes=30_000), get_arch("gfx942")).kernels
    assert found.occupancy.limits == {"VGPR": 8, "SGPR": 8, "LDS": 1, "workgroup": 8}
    assert found.info.descriptor.vgpr_granules > 8, "LLVM takes more registers than the kernel uses"


@pytest.mark.parametrize(
    "definition",
    [
        'define amdgpu_kernel void @k() "amdgpu-flat-work-group-size"="96,96" { ret void }',
        'define amdgpu_kernel void @"k"() #3 {\n ret void }\nattributes #3 = { "amdgpu-flat-work-group-size"="96,96" }',
        'define protected amdgpu_kernel void @k() #1 #0 {\n ret void }\nattributes #0 = { nounwind }\n'
        'attributes #1 = { "x"="}" "amdgpu-flat-work-group-size"="96,96" }',
    ],
    ids=["on the kernel", "in a group", "in one of two groups"],
)  # fmt: skip
def test_the_smallest_workgroup_is_read_from_the_ir(definition: str) -> None:
    (found,) = compile_llvm_ir(definition, get_arch("gfx942")).kernels
    assert (found.min_workgroup_size, found.workgroup_size) == (96, 96)
