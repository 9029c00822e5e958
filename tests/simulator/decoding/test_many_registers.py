"""A kernel for gfx1250 that keeps more than 256 values of a lane: launches, single steps, and what its HSACO says."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

import numpy as np
import pytest

from flydsl.hsaco import read_hsaco
from flydsl.simulator import Memory, Program, Recording, checking, load
from flydsl.simulator.arrays import Array
from tests.simulator.backends import launch_both
from tests.simulator.conftest import compile_llvm_ir

pytestmark = pytest.mark.slow

COUNT, LANES = 400, 32


@cache
def compiled() -> tuple[bytes, str]:
    """out = in with its rows in reverse, which are all read before one is written."""
    pointer = "getelementptr i32, ptr addrspace(1)"
    loads = "".join(
        f"%p{i} = {pointer} %in, i32 {i * LANES}\n%a{i} = {pointer} %p{i}, i32 %t\n"
        f"%v{i} = load volatile i32, ptr addrspace(1) %a{i}\n"
        for i in range(COUNT)
    )
    stores = "".join(
        f"%q{i} = {pointer} %out, i32 {i * LANES}\n%b{i} = {pointer} %q{i}, i32 %t\n"
        f"store volatile i32 %v{COUNT - 1 - i}, ptr addrspace(1) %b{i}\n"
        for i in range(COUNT)
    )
    return compile_llvm_ir(
        f"""declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) noalias %in, ptr addrspace(1) noalias %out) #0 {{
%t = call i32 @llvm.amdgcn.workitem.id.x()
{loads}{stores}ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="{LANES},{LANES}" "amdgpu-waves-per-eu"="1,1" }}
""",
        "gfx1250",
    )


def arguments() -> tuple[Array, Array]:
    values = np.random.default_rng(0).integers(0, 2**32, (COUNT, LANES), np.uint32)
    return values, np.zeros_like(values)


def test_the_hsaco_and_the_listing_agree() -> None:
    hsaco, listing = compiled()
    assert COUNT < read_hsaco(hsaco).kernels["k"].total_vgprs <= 1024
    assert "s_set_vgpr_msb" in listing
    load(hsaco, listing)  # which assembles the listing and compares


@pytest.mark.parametrize("checks", [False, True])
def test_launches(checks: bool) -> None:
    memory, (given, out) = Memory(), arguments()
    kernarg = struct.pack("<2Q", memory.map_array(given, name="in"), memory.map_array(out, name="out"))
    options: dict[str, Any] = {"grid": (1, 1, 1), "block": (LANES, 1, 1), "kernarg": kernarg, "memory": memory}
    program = Program.load(*compiled())
    if checks:
        with checking():
            load(*compiled()).kernel("k").launch((1, 1, 1), (LANES, 1, 1), [given, out])
    else:
        launch_both(program, "k", **options)
    np.testing.assert_array_equal(out, given[::-1])


def test_single_steps() -> None:
    given, out = arguments()
    recording = Recording(load(*compiled()).kernel("k").simulate((1, 1, 1), (LANES, 1, 1), [given, out]))
    while "global_store" not in str(recording.now.instruction):
        recording.step()
    rows = {row.tobytes() for row in recording.now.wave(0).vgpr}
    assert all(row.tobytes() in rows for row in given)
    recording.run()
    np.testing.assert_array_equal(out, given[::-1])
