"""Loads, stores and atomics of every address space."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flydsl.errors import ArgumentError
from flydsl.simulator import Memory, MemoryFault, MisalignedAccess
from flydsl.simulator.memory.gaps import Rows

Run = Callable[..., Any]
LANE = np.arange(64)
ONES = 0xFFFFFFFF


def mapped(array: np.ndarray[Any, Any]) -> tuple[Memory, int]:
    memory = Memory()
    return memory, memory.map_array(array, name="A")


@pytest.mark.parametrize("step", [1, 4, -4, -6, 8])
@pytest.mark.parametrize("space", ["global", "ds"])
def test_of_lanes_that_overlap_the_last_one_wins(run: Run, space: str, step: int) -> None:
    """Both backends write all of a lane before the next lane, so that there is one answer."""
    offsets = (LANE * step + 512).astype(np.uint32)
    values = {i: (LANE + 1000 * i).astype(np.uint32) for i in range(4, 8)}
    expected = np.zeros(4096, np.uint8)
    for lane, offset in enumerate(offsets):
        expected[offset : offset + 16] = np.array([values[i][lane] for i in range(4, 8)]).view(np.uint8)
    if space == "ds":
        after = run("ds_write_b128 v0, v[4:7]", v={0: offsets, **values}, lds=bytes(4096))
        np.testing.assert_array_equal(after.waves.lds, expected)
        return
    data = np.zeros(4096, np.uint8)
    memory, address = mapped(data)
    run("global_store_dwordx4 v0, v[4:7], s[2:3]", v={0: offsets, **values}, s={2: address}, memory=memory)
    np.testing.assert_array_equal(data, expected)


ATOMICS: dict[str, Callable[[int, int], int]] = {
    "add": lambda m, x: m + x,
    "sub": lambda m, x: m - x,
    "swap": lambda m, x: x,
    "umax": max,
    "umin": min,
    "smin": lambda m, x: min(m, x, key=lambda v: v - (v >> 31 << 32)),
    "and": lambda m, x: m & x,
    "or": lambda m, x: m | x,
    "xor": lambda m, x: m ^ x,
    "inc": lambda m, x: 0 if m >= x else m + 1,
    "dec": lambda m, x: x if m == 0 or m > x else m - 1,
}
DS_NAMES = {
    "add": "add_rtn_u32",
    "sub": "sub_rtn_u32",
    "swap": "wrxchg_rtn_b32",
    "umax": "max_rtn_u32",
    "umin": "min_rtn_u32",
}
DS_NAMES |= {
    "smin": "min_rtn_i32",
    "and": "and_rtn_b32",
    "or": "or_rtn_b32",
    "xor": "xor_rtn_b32",
    "inc": "inc_rtn_u32",
    "dec": "dec_rtn_u32",
}


@pytest.mark.parametrize("name", ATOMICS)
def test_lanes_with_the_same_address_take_turns(run: Run, name: str) -> None:
    memory_before = np.random.default_rng(3).integers(0, 1 << 32, 8, dtype=np.uint32)
    x = np.random.default_rng(4).integers(0, 1 << 32, 64, dtype=np.uint32)
    data = memory_before.copy()
    memory, address = mapped(data)
    where = (4 * (LANE % 5)).astype("u4")
    text = f"global_atomic_{name} v2, v0, v1, s[2:3] sc0\nds_{DS_NAMES[name]} v3, v0, v1\nds_read_b32 v4, v0"
    after = run(text, v={0: where, 1: x}, s={2: address}, memory=memory, lds=memory_before.tobytes(), exec_bits=ONES)
    word = [int(w) for w in memory_before]
    old = []
    for lane in range(32):
        old.append(word[lane % 5])
        word[lane % 5] = ATOMICS[name](word[lane % 5], int(x[lane])) & ONES
    np.testing.assert_array_equal(data, np.array(word, "u4"))
    np.testing.assert_array_equal(after.v(2)[:32], np.array(old, "u4"))
    np.testing.assert_array_equal(after.v(3)[:32], np.array(old, "u4"))
    np.testing.assert_array_equal(after.v(4)[:5], np.array(word, "u4")[:5])


def test_f32_atomic_addition_keeps_denormals_as_the_mode_says(run: Run) -> None:
    tiny = np.float32(2.0**-130)
    data = np.full(64, tiny)
    memory, address = mapped(data)
    text = "global_atomic_add_f32 v0, v1, s[2:3]\nds_add_f32 v0, v1\nds_read_b32 v2, v0"
    vectors = {0: (4 * LANE).astype("u4"), 1: np.full(64, tiny)}
    after = run(text, v=vectors, s={2: address}, memory=memory, lds=data.tobytes())
    assert (data == 2 * tiny).all()
    assert (after.v(2, np.float32) == 2 * tiny).all()
    run(text, v=vectors, s={2: address}, memory=memory, lds=data.tobytes(), mode=0x3C0)
    assert (data == 0).all()


def test_atomics_in_a_buffer_that_starts_between_two_of_their_words(run: Run) -> None:
    storage = np.zeros(8, np.uint64)
    part = storage.view(np.uint32)[1:]
    memory, address = mapped(part)
    vectors = {0: np.full(64, 4, "u4"), 2: np.ones(64, "u8")}
    run(
        "global_atomic_add_x2 v0, v[2:3], s[2:3]\nglobal_atomic_add_x2 v0, v[2:3], s[2:3] offset:8",
        v=vectors,
        s={2: address},
        memory=memory,
    )
    assert storage.tolist() == [0, 64, 64, 0, 0, 0, 0, 0]


def resource(address: int, stride: int, records: int) -> dict[int, int]:
    low, high = struct.unpack("<2I", struct.pack("<Q", address))
    return {4: low, 5: high | stride << 16, 6: records, 7: 0x27000}


def test_structured_buffer_counts_elements(run: Run) -> None:
    data = np.arange(100, dtype=np.uint32)
    memory, address = mapped(data)
    text = "buffer_load_dword v4, v0, s[4:7], 0 idxen offset:4\nbuffer_load_ushort v5, v[0:1], s[4:7], 0 idxen offen"
    after = run(text, v={0: LANE.astype("u4"), 1: 8}, s=resource(address, 12, 20), memory=memory)
    np.testing.assert_array_equal(after.v(4), np.where(LANE < 20, 3 * LANE + 1, 0))
    np.testing.assert_array_equal(after.v(5), np.where(LANE < 20, 3 * LANE + 2, 0))


def test_without_an_index_the_records_of_a_buffer_with_a_stride_are_bytes(run: Run) -> None:
    data = np.arange(1, 101, dtype=np.uint32)
    memory, address = mapped(data)
    text = "buffer_load_dword v4, v0, s[4:7], 0 offen offset:4\nbuffer_load_dword v5, off, s[4:7], 0 offset:160"
    after = run(text, v={0: (4 * LANE).astype("u4")}, s=resource(address, 16, 160), memory=memory)
    np.testing.assert_array_equal(after.v(4), np.where(LANE + 1 < 40, LANE + 2, 0))
    assert not after.v(5).any()


@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
def test_to_a_scalar_load_the_records_of_a_buffer_with_a_stride_are_records(run: Run, arch: str) -> None:
    """And base and offset are each cut off to dwords."""
    data = np.arange(1, 101, dtype=np.uint32)
    memory, address = mapped(data)
    text = "s_buffer_load_dwordx4 s[8:11], s[4:7], 0x48\ns_buffer_load_dword s12, s[4:7], 0x13"
    text = text.replace("dwordx4", "b128").replace("dword", "b32") if arch == "gfx1201" else text
    after = run(text, s=resource(address + 3, 16, 5), memory=memory, arch=arch)
    assert [after.s(8 + i) for i in range(4)] == [19, 20, 0, 0]
    assert after.s(12) == 5


@pytest.mark.parametrize(("register", "bit"), [(5, 31), (7, 23)])
def test_a_swizzled_buffer_is_refused(run: Run, register: int, bit: int) -> None:
    data = np.arange(1, 101, dtype=np.uint32)
    memory, address = mapped(data)
    scalars = resource(address, 4, 1)
    scalars[register] |= 1 << bit
    with pytest.raises(MemoryFault, match="SWIZZLE_ENABLE or ADD_TID_ENABLE, which is not simulated"):
        run("buffer_load_dword v4, v0, s[4:7], 0 idxen", v={0: LANE.astype("u4")}, s=scalars, memory=memory)


def test_buffer_atomics_return_in_the_data_register(run: Run) -> None:
    data = np.arange(32, dtype=np.uint32)
    memory, address = mapped(data)
    text = "buffer_atomic_add v1, v0, s[4:7], 0 offen sc0\nbuffer_atomic_cmpswap v[2:3], v0, s[4:7], 0 offen sc0"
    vectors = {0: (4 * LANE).astype("u4"), 1: 10, 2: 77, 3: (LANE + 10 + LANE % 2).astype("u4")}
    after = run(text, v=vectors, s=resource(address, 0, 64), memory=memory)
    inside = LANE < 16
    np.testing.assert_array_equal(after.v(1), np.where(inside, LANE, 0))
    np.testing.assert_array_equal(after.v(2), np.where(inside, LANE + 10, 0))
    index = np.arange(32)
    np.testing.assert_array_equal(data, np.where(index < 16, np.where(index % 2, index + 10, 77), index))


def test_flat_addresses_reach_all_spaces(run: Run) -> None:
    data = np.arange(64, dtype=np.uint32)
    memory, address = mapped(data)
    text = """s_mov_b64 s[4:5], src_shared_base
        v_mov_b32 v1, s5
        ds_write_b32 v0, v2
        v_cndmask_b32 v4, v6, v0, s[8:9]
        v_cndmask_b32 v5, v7, v1, s[8:9]
        flat_load_dword v3, v[4:5]
        flat_atomic_add v8, v[4:5], v9 sc0"""
    vectors = {0: (4 * LANE).astype("u4"), 2: (LANE + 500).astype("u4"), 6: (address + 4 * LANE).astype("u8"), 9: 1}
    after = run(text, v=vectors, s={8: 0xFFFF0000FFFF0000}, memory=memory, lds=bytes(256))
    in_lds = LANE // 16 % 2 == 1
    np.testing.assert_array_equal(after.v(3), np.where(in_lds, LANE + 500, LANE))
    np.testing.assert_array_equal(data, LANE + ~in_lds)


def test_each_buffer_has_a_gap_around_it_and_begins_with_a_line() -> None:
    memory = Memory()
    arrays = [np.zeros(n, "f4") for n in (1, 5, 1000)]
    addresses = [memory.map_array(a, name=f"A{i}") for i, a in enumerate(arrays)]
    for array, address in zip(arrays, addresses, strict=True):
        assert address % 128 == 0
        for distance in (-(32 << 30) + 4096, 0, array.nbytes, (31 << 30)):
            buffer = memory.buffer_at(address + distance)
            assert buffer is not None
            assert buffer.base == address
    assert memory.buffer_at(0) is None


def test_a_part_of_an_array_is_as_far_within_a_line_on_every_host() -> None:
    host = bytearray(512)
    for start in range(0, 128, 16):  # wherever the host has it
        whole = np.frombuffer(host, np.uint8, 256, start)
        assert [Memory().map_array(whole[first:], name="A") % 128 for first in (0, 16, 200)] == [0, 16, 72]
    assert Memory().map_array(np.frombuffer(host, np.uint8, 256, 1), name="A") % 16 == 1


def test_host_pointers_are_mapped_in_place(run: Run) -> None:
    array = np.arange(64, dtype=np.uint32)
    memory = Memory()
    address = memory.map(array.ctypes.data, array.nbytes, name="A", element_bytes=4, label="u32[64]")
    run(
        "global_store_dword v0, v1, s[2:3]",
        v={0: (4 * LANE).astype("u4"), 1: (LANE + 9).astype("u4")},
        s={2: address},
        memory=memory,
    )
    np.testing.assert_array_equal(array, LANE + 9)


@pytest.mark.parametrize("index", [64, -1, 10**6])
def test_a_fault_names_the_element_and_writes_nothing(run: Run, index: int) -> None:
    array = np.zeros(64, np.float32)
    memory = Memory()
    address = memory.map_array(array, name="A", label="f32[64]")
    addresses = (address + 4 * LANE).astype("u8")
    addresses[5] = address + 4 * index
    with pytest.raises(
        MemoryFault, match=rf"global_store_dword writes 4 bytes outside of A \(f32\[64\].*element {index}"
    ) as caught:
        run("v_mov_b32 v2, 1.0\nglobal_store_dword v[0:1], v2, off", v={0: addresses}, memory=memory)
    access = caught.value.access
    assert (access.lane, access.thread, access.element_index, access.buffer) == (5, (5, 0, 0), index, "A")
    assert (access.is_write, access.access_bytes, caught.value.isa_line) == (True, 4, 3)
    assert not array.any()


def test_inactive_lanes_may_have_any_address(run: Run) -> None:
    array = np.zeros(64, np.float32)
    memory, address = mapped(array)
    addresses = np.where(LANE < 8, address + 4 * LANE, 0xDEAD).astype("u8")
    run("global_store_dword v[0:1], v2, off", v={0: addresses, 2: np.float32(1)}, memory=memory, exec_bits=0xFF)
    assert array.sum() == 8


def test_other_faults(run: Run) -> None:
    memory, address = mapped(np.zeros(64, "u4"))
    with pytest.raises(MemoryFault, match="in no buffer"):
        run("global_load_dword v2, v0, s[2:3]", v={0: 0}, memory=memory)
    with pytest.raises(MemoryFault, match=r"outside of LDS \(64 bytes per workgroup\)"):
        run("ds_read_b32 v2, v0", v={0: (4 * LANE).astype("u4")}, lds=bytes(64))
    with pytest.raises(MemoryFault, match="outside of scratch"):
        run("scratch_load_dword v2, off, off offset:16", scratch_bytes=16)
    with pytest.raises(MisalignedAccess, match="not a multiple of 4"):
        run("global_atomic_add v0, v1, s[2:3]", v={0: 2}, s={2: address}, memory=memory)


def test_lds_past_its_end_as_the_hardware_has_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads give 0 where any of their bytes is beyond, stores and atomics do nothing."""
    text = """ds_read_b32 v2, v0
        ds_read_b64 v[4:5], v0
        ds_add_rtn_u32 v3, v0, v1
        ds_write_b32 v0, v1 offset:32"""
    words = np.arange(100, 116, dtype=np.uint32)
    monkeypatch.setenv("FLYDSL_SIMULATOR_LDS", "hardware")
    found = run(text, v={0: (4 * LANE).astype("u4"), 1: LANE}, lds=words.tobytes())
    inside = LANE < 16
    assert found.v(2).tolist() == np.where(inside, 100 + LANE, 0).tolist()
    assert found.v(4).tolist() == np.where(LANE < 15, 100 + LANE, 0).tolist()
    assert found.v(3).tolist() == found.v(2).tolist()
    expected = [*(100 + 2 * LANE[:8]), *LANE[:8]]
    assert found.waves.lds.view(np.uint32)[:16].tolist() == expected
    monkeypatch.setenv("FLYDSL_SIMULATOR_LDS", "lenient")
    with pytest.raises(ArgumentError, match="strict or hardware, got 'lenient'"):
        run("ds_read_b32 v2, v0", v={0: 64}, lds=bytes(64))


def test_the_offsets_of_a_buffer_access_wrap_at_32_bits_and_the_scalar_one_does_not(run: Run) -> None:
    """A loop that starts at a negative offset: LLVM puts the rest into the instruction."""
    data = np.arange(128, dtype=np.uint32)
    memory, address = mapped(data)
    resource = {4: address, 6: data.nbytes, 7: 0x27000, 8: 0xFFFFFE20}
    text = """buffer_load_dword v4, v0, s[4:7], 0 offen offset:484
        buffer_store_dword v1, v0, s[4:7], 0 offen offset:488
        buffer_load_dword v5, v2, s[4:7], s8 offen"""
    after = run(text, v={0: np.uint32(0xFFFFFE20), 1: np.uint32(77), 2: np.uint32(484)}, s=resource, memory=memory)
    assert (after.v(4) == 1).all()
    assert data[2] == 77
    assert (after.v(5) == 0).all()  # out of range


CHANGE_A_DWORD = """global_load_dword v4, v0, s[2:3] offset:{at}
    v_add_u32 v8, 0x100, v4
    v_mov_b32 v9, v4
    global_atomic_cmpswap v7, v0, v[8:9], s[2:3] offset:{at} sc0"""
"""As a 16-bit atomic does."""


@pytest.mark.parametrize(("first", "count", "dword"), [(0, 5, 2), (0, 7, 3), (1, 4, 0), (3, 1, 1), (3, 3, 1)])
def test_an_allocation_has_whole_dwords(run: Run, first: int, count: int, dword: int) -> None:
    """What lies beside the buffer stays as it is."""
    whole = np.arange(1, 17, dtype=np.uint16)
    memory, address = mapped(whole[first : first + count])
    expected = whole.copy()
    expected[2 * dword] += 0x100
    text = CHANGE_A_DWORD.format(at=4 * dword - 2 * first)
    after = run(text, v={0: np.uint32(0)}, s={2: address}, memory=memory, exec_bits=1)
    np.testing.assert_array_equal(whole, expected)
    assert after.v(4)[0] == after.v(7)[0]


@pytest.mark.parametrize("element", [0, 3, 5, 8, 10, 11])
def test_a_dword_with_an_element_of_a_view_belongs_to_it(run: Run, element: int) -> None:
    """Rows of three halves, five apart, the first of which begins inside a dword."""
    whole, memory = np.arange(1, 17, dtype=np.uint16), Memory()
    host = whole[1:].ctypes.data
    address = memory.map(host, 26, name="A", element_bytes=2, label="f16[3, 3]", rows=(Rows(10, 6),))
    at = 2 * element - (address + 2 * element) % 4
    text = CHANGE_A_DWORD.format(at=at)
    has_element = any(0 <= half < 13 and half % 5 < 3 for half in (at // 2, at // 2 + 1))
    with contextlib.nullcontext() if has_element else pytest.raises(MemoryFault, match="in a gap"):
        run(text, v={0: np.uint32(0)}, s={2: address}, memory=memory, exec_bits=1)
    assert whole[1 + at // 2] == 2 + at // 2 + 0x100 * has_element


@pytest.mark.parametrize("at", [-2, 6])
def test_a_store_writes_nothing_beside_an_allocation(run: Run, at: int) -> None:
    whole = np.arange(1, 9, dtype=np.uint16)
    memory, address = mapped(whole[1:5])
    with pytest.raises(MemoryFault, match="outside of A"):
        run(f"global_store_dword v0, v1, s[2:3] offset:{at}", v={0: np.uint32(0)}, s={2: address}, memory=memory)
    np.testing.assert_array_equal(whole, np.arange(1, 9))


@pytest.mark.parametrize("instruction", ["ushort v4, v0, s[2:3] offset:6", "dword v4, v0, s[2:3] offset:8"])
def test_what_begins_beyond_an_allocation_is_a_fault(run: Run, instruction: str) -> None:
    memory, address = mapped(np.arange(3, dtype=np.uint16))
    with pytest.raises(MemoryFault, match="outside of A"):
        run(f"global_load_{instruction}", v={0: np.uint32(0)}, s={2: address}, memory=memory)
