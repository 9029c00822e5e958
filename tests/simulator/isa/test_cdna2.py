"""What gfx90a has and its successor has not: multiply-adds that round the product and know no denormals, and other
names for what accesses do to caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flydsl.simulator import Memory, MemoryFault, UnknownInstruction
from flydsl.simulator.memory.buffers import PRIVATE_APERTURE, SCRATCH_RESOURCE

Run = Callable[..., Any]
MULTIPLY_ADDS = {
    "v_mad_f32": "v_mad_f32 v3, v0, v1, v2",
    "v_mac_f32": "v_mac_f32 v3, v0, v1",
    "v_madmk_f32": "v_madmk_f32 v3, v0, 0x40490fdb, v2",
    "v_madak_f32": "v_madak_f32 v3, v0, v1, 0x40490fdb",
    "v_mad_legacy_f32": "v_mad_legacy_f32 v3, v0, v1, v2",
}
"""How each is written."""
PI = np.uint32(0x40490FDB).view(np.float32)


def without_denormals(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.where(np.abs(x) < 2.0**-126, np.copysign(np.float32(0), x), x)


@pytest.mark.parametrize("name", MULTIPLY_ADDS)
@pytest.mark.parametrize("mode", [0x3F0, 0x3C0])
def test_multiply_adds_round_the_product(run: Run, name: str, mode: int) -> None:
    rng = np.random.default_rng(1)
    x, y, z = (rng.standard_normal((3, 64)) * 2.0 ** rng.integers(-70, 4, (3, 64))).astype(np.float32)
    x[:4], y[:4], z[:4] = [2.0**-130, 0, 1, 3], [1, np.inf, 2.0**-127, 0], [1, 2, 0, -(2.0**-140)]
    after = run(MULTIPLY_ADDS[name], v={0: x, 1: y, 2: z, 3: z}, arch="gfx90a", mode=mode).v(3, np.float32)
    factor, addend = (np.float32(PI) if "mk" in name else y), (np.float32(PI) if "ak" in name else z)
    factor, addend = np.broadcast_to(factor, 64), np.broadcast_to(addend, 64)
    flushed = without_denormals(x), without_denormals(factor)
    with np.errstate(invalid="ignore"):
        product = flushed[0] * flushed[1]
    if "legacy" in name:
        product = np.where((flushed[0] == 0) | (flushed[1] == 0), np.float32(0), product)
    expected = without_denormals(without_denormals(product) + without_denormals(addend))
    np.testing.assert_array_equal(after, expected)


def test_its_successor_does_not_have_them(run: Run) -> None:
    with pytest.raises(UnknownInstruction, match="v_mad_f32"):
        run("v_mad_f32 v3, v0, v1, v2")


def test_its_caches_have_names_of_their_own(run: Run) -> None:
    data = np.arange(64, dtype=np.uint32)
    memory = Memory()
    text = """
global_atomic_add v2, v0, v1, s[0:1] glc
s_waitcnt vmcnt(0)
buffer_wbl2
buffer_invl2
buffer_wbinvl1_vol
global_load_dword v3, v0, s[0:1] glc slc scc
global_store_dword v0, v2, s[0:1] slc
"""
    s = {0: memory.map_array(data, name="data")}
    after = run(text, v={0: 4 * np.arange(64), 1: np.full(64, 5)}, s=s, memory=memory, arch="gfx90a")
    np.testing.assert_array_equal(after.v(2), np.arange(64))
    np.testing.assert_array_equal(after.v(3), np.arange(64) + 5)
    np.testing.assert_array_equal(data, np.arange(64))
    for arch, name in (("gfx90a", "sc0"), ("gfx942", "glc")):
        with pytest.raises(UnknownInstruction, match=f"{name} is not a modifier"):
            run(f"global_load_dword v3, v0, s[0:1] {name}", arch=arch)


def test_scratch_is_reached_through_a_resource(run: Run) -> None:
    lanes = np.arange(64, dtype=np.uint32)
    text = """
buffer_store_dwordx2 v[2:3], off, s[0:3], s32 offset:4
buffer_store_short v2, v1, s[0:3], s32 offen offset:13
v_mov_b32 v11, s9
flat_load_dwordx2 v[4:5], v[10:11]
buffer_load_dword v6, v1, s[0:3], 0 offen offset:1
buffer_load_dword v7, off, s[4:7], 0
s_waitcnt vmcnt(0) lgkmcnt(0)"""
    memory = Memory()
    address = memory.map_array(np.array([77], np.uint32), name="x")
    given = dict(enumerate(SCRATCH_RESOURCE)) | {8: PRIVATE_APERTURE, 32: 8 * 64}
    given |= {4: address & 0xFFFFFFFF, 5: address >> 32, 6: 4, 7: 0}
    vectors = {1: np.full(64, 3, np.uint32), 2: lanes + 100, 3: lanes << 16, 10: np.full(64, 12, np.uint32)}
    after = run(text, v=vectors, s=given, memory=memory, scratch_bytes=32, arch="gfx90a")
    np.testing.assert_array_equal(after.v(4), lanes + 100)
    np.testing.assert_array_equal(after.v(5), lanes << 16)
    assert not after.v(6).any()
    assert set(after.v(7)) == {77}
    np.testing.assert_array_equal(after.waves.scratch.view(np.uint16).reshape(64, 16)[:, 12], lanes + 100)
    with pytest.raises(MemoryFault, match=r"outside of scratch \(32 bytes per thread\)"):
        run("buffer_load_dword v6, off, s[0:3], s32 offset:24", s=given, scratch_bytes=32, arch="gfx90a")


def test_a_private_address_is_none_of_global_memory(run: Run) -> None:
    memory = Memory()
    memory.map_array(np.zeros(64, np.uint32), name="x")
    with pytest.raises(MemoryFault):
        run("global_load_dword v2, v0, s[0:1]", s={0: PRIVATE_APERTURE}, memory=memory, scratch_bytes=16)
