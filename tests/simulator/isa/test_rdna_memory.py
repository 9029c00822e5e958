"""Memory instructions of RDNA 4 that CDNA does not have, or that do something else there."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from flydsl.simulator import Memory, MemoryFault, UnknownInstruction

Run = Callable[..., Any]
LANE = np.arange(32, dtype=np.uint32)
RAW, UNCHECKED, BY_INDEX, STRUCTURED = 3 << 28, 2 << 28, 1 << 28, 0


@pytest.fixture(scope="session")
def rdna(run: Run) -> Run:
    return partial(run, arch="gfx1201")


def float_bits(*values: float) -> list[int]:
    return [int(x) for x in np.array(values, np.float32).view(np.uint32)]


# --- scalar loads

DATA = np.arange(0x80, 0xC0, dtype=np.uint8)


@pytest.mark.parametrize(("name", "expected"), [("u8", 0x85), ("i8", 0xFFFFFF85), ("u16", 0x8786), ("i16", 0xFFFF8786)])
def test_scalar_loads_of_less_than_a_dword(rdna: Run, name: str, expected: int) -> None:
    memory = Memory()
    base = memory.map_array(DATA.copy(), name="A")
    place = 5 if "8" in name else 6
    assert rdna(f"s_load_{name} s8, s[4:5], {place:#x}", s={4: base}, memory=memory).s(8) == expected
    resource = base | 64 << 64
    scalars = {4: resource & (1 << 64) - 1, 6: 64}
    found = rdna(f"s_buffer_load_{name} s8, s[4:7], {place:#x}", s=scalars, memory=memory)
    assert found.s(8) == expected
    beyond = rdna(f"s_buffer_load_{name} s8, s[4:7], {place:#x}", s=scalars | {6: 4}, memory=memory)
    assert beyond.s(8) == 0


def test_scalar_loads_of_three_dwords(rdna: Run) -> None:
    memory = Memory()
    base = memory.map_array(DATA.copy(), name="A")
    found = rdna("s_load_b96 s[8:10], s[4:5], 0x4\ns_load_b32 s11, s[4:5], null offset:0x8", s={4: base}, memory=memory)
    assert found.s(8, 3) == int.from_bytes(bytes(DATA[4:16]), "little")
    assert found.s(11) == int.from_bytes(bytes(DATA[8:12]), "little")
    scalars = {4: base, 6: 64}
    found = rdna("s_buffer_load_b96 s[8:10], s[4:7], 0x4", s=scalars, memory=memory)
    assert found.s(8, 3) == int.from_bytes(bytes(DATA[4:16]), "little")


# --- names, halves, offsets

SMALL = {"u8": 0x85, "i8": 0xFFFFFF85, "u16": 0x8685, "i16": 0xFFFF8685}
HALVES = {"d16_u8": 0x85, "d16_i8": 0xFF85, "d16_b16": 0x8685}


@pytest.mark.parametrize("name", SMALL)
def test_global_loads_by_their_new_names(rdna: Run, name: str) -> None:
    memory = Memory()
    base = memory.map_array(DATA.copy(), name="A")
    found = rdna(f"global_load_{name} v1, v0, s[4:5] offset:5 th:TH_LOAD_NT scope:SCOPE_DEV", v={0: [0]}, s={4: base},
                 memory=memory)  # fmt: skip
    assert found.v(1).tolist() == [SMALL[name]] * 32


@pytest.mark.parametrize("high", [False, True])
@pytest.mark.parametrize("name", HALVES)
def test_loads_into_halves(rdna: Run, name: str, high: bool) -> None:
    memory = Memory()
    base = memory.map_array(DATA.copy(), name="A")
    mnemonic = name.replace("d16_", "d16_hi_") if high else name
    old = np.full(32, 0x11112222, np.uint32)
    found = rdna(f"global_load_{mnemonic} v1, v0, s[4:5] offset:5", v={0: [0], 1: old}, s={4: base}, memory=memory)
    assert found.v(1).tolist() == [HALVES[name] << 16 | 0x2222 if high else 0x11110000 | HALVES[name]] * 32


def test_an_offset_has_24_bits(rdna: Run) -> None:
    memory = Memory()
    base = memory.map_array(DATA.copy(), name="A")
    v = {0: [8388608]}
    found = rdna("global_load_b32 v1, v0, s[4:5] offset:-8388608", v=v, s={4: base}, memory=memory)
    assert found.v(1)[0] == int.from_bytes(bytes(DATA[:4]), "little")


def test_consecutive_dwords_of_the_lanes(rdna: Run) -> None:
    memory, data = Memory(), np.arange(100, 140, dtype=np.uint32)
    base = memory.map_array(data, name="A")
    text = "global_load_addtid_b32 v1, s[4:5] offset:8\nv_add_nc_u32 v1, v1, v1\nglobal_store_addtid_b32 v1, s[4:5]"
    rdna(text, s={4: base}, memory=memory)
    assert data.tolist() == (2 * np.arange(102, 134)).tolist() + list(range(132, 140))


def test_blocks_of_registers_that_m0_names(rdna: Run) -> None:
    """Neither the registers nor the memory of the others changes, nor is that memory accessed."""
    named, memory, data = 0x80018089, Memory(), np.arange(32 * 32, dtype=np.uint32)
    address = (128 * np.arange(32)).astype(np.uint32)
    v = {0: address} | {2 + i: np.full(32, 7, np.uint32) for i in range(32)}
    v |= {40 + i: np.full(32, 5000 + i, np.uint32) for i in range(32)}
    base = memory.map_array(data, name="A")
    text = f"s_mov_b32 m0, {named:#x}\nglobal_load_block v[2:33], v0, s[4:5]\n"
    found = rdna(text + "global_store_block v0, v[40:71], s[4:5]", v=v, s={4: base}, memory=memory)
    text = f"s_mov_b32 m0, -1\nscratch_store_block off, v[40:71], off\ns_mov_b32 m0, {named:#x}\n"
    of_scratch = rdna(text + "scratch_load_block v[2:33], v1, off", v=v, scratch_bytes=128)
    for i in range(32):
        is_named = bool(named >> i & 1)
        assert found.v(2 + i).tolist() == [32 * lane + i if is_named else 7 for lane in range(32)]
        assert data[i::32].tolist() == [5000 + i if is_named else 32 * lane + i for lane in range(32)]
        assert (of_scratch.v(2 + i) == (5000 + i if is_named else 7)).all()


# --- atomics: old values, one after the other, and what is left


def one_lane(old: int, operand: int, name: str) -> int:
    f = lambda bits: float(np.array(bits, np.uint32).view(np.float32))  # noqa: E731
    return {
        "cond_sub_u32": old - operand if old >= operand else old,
        "sub_clamp_u32": max(old - operand, 0),
        "min_num_f32": min((old, operand), key=f),
        "max_num_f32": max((old, operand), key=f),
        "add_f32": float_bits(f(old) + f(operand))[0],
        "add_u32": old + operand & 0xFFFFFFFF,
        "inc_u32": 0 if old >= operand else old + 1,
        "min_i32": min(old, operand, key=lambda x: x - (1 << 32) * (x >> 31)),
        "swap_b32": operand,
    }[name]


OPERANDS = {"cond_sub_u32": [3, 100], "sub_clamp_u32": [3, 100], "add_u32": [3, 0xFFFFFFF0], "inc_u32": [3, 11]}
OPERANDS |= {"min_i32": [5, 0xFFFFFFFF], "swap_b32": [7, 8]}
FLOATS = float_bits(-2.5, 1e20)


@pytest.mark.parametrize("space", ["global", "flat", "buffer", "ds"])
@pytest.mark.parametrize("name", ["cond_sub_u32", "sub_clamp_u32", "min_num_f32", "max_num_f32", "add_f32", "add_u32",
                                  "inc_u32", "min_i32", "swap_b32"])  # fmt: skip
def test_atomics(rdna: Run, space: str, name: str) -> None:
    operands = OPERANDS.get(name, FLOATS)
    start = 10 if name in OPERANDS else float_bits(7.25)[0]
    memory, data = Memory(), np.full(2, start, np.uint32)
    base = memory.map_array(data, name="A")
    v = {0: [0], 2: np.array([base + 4]), 4: np.resize(np.array(operands, np.uint32), 32)}
    s = {4: base, 6: 8, 7: RAW}
    if space == "ds":
        operation, _, type_ = name.rpartition("_")
        operation = {"swap": "storexchg"}.get(operation, operation)
        text = f"v_mov_b32 v0, 4\nds_{operation}_rtn_{type_} v1, v0, v4"
    else:
        text = {
            "global": f"global_atomic_{name} v1, v0, v4, s[4:5] offset:4 th:TH_ATOMIC_RETURN",
            "flat": f"flat_atomic_{name} v1, v[2:3], v4 th:TH_ATOMIC_RETURN",
            "buffer": f"v_mov_b32 v1, v4\nbuffer_atomic_{name} v1, off, s[4:7], null offset:4 th:TH_ATOMIC_RETURN",
        }[space]
    found = rdna(text, v=v, s=s, memory=memory, lds=struct.pack("<2I", start, start), exec_bits=3)
    after_first = one_lane(start, operands[0], name)
    assert found.v(1)[:2].tolist() == [start, after_first]
    left = found.waves.lds.view(np.uint32)[1] if space == "ds" else data[1]
    assert int(left) == one_lane(after_first, operands[1], name)
    if space == "ds" and name != "swap_b32":
        plain = rdna(
            text.replace("_rtn", "").replace("v1, ", ""), v=v, lds=struct.pack("<2I", start, start), exec_bits=3
        )
        assert plain.waves.lds.tolist() == found.waves.lds.tolist()


@pytest.mark.parametrize("name", ["pk_add_f16", "pk_add_bf16"])
@pytest.mark.parametrize("space", ["global", "flat", "buffer", "ds"])
def test_atomics_on_pairs(rdna: Run, space: str, name: str) -> None:
    one = 0x3C00 if name.endswith("_f16") else 0x3F80  # 1.0; 2.0 is 0x4000 in both formats
    memory, data = Memory(), np.full(2, one | one << 16, np.uint32)
    base = memory.map_array(data, name="A")
    v = {0: [0], 2: np.array([base]), 4: [one]}
    text = {
        "global": f"global_atomic_{name} v0, v4, s[4:5]",
        "flat": f"flat_atomic_{name} v[2:3], v4",
        "buffer": f"buffer_atomic_{name} v4, off, s[4:7], null",
        "ds": f"ds_{name} v0, v4\nds_{name.replace('pk_add_', 'pk_add_rtn_')} v1, v0, v5",
    }[space]
    found = rdna(text, v=v | {5: [0]}, s={4: base, 6: 8, 7: RAW}, memory=memory, lds=data.tobytes(), exec_bits=1)
    left = found.waves.lds.view(np.uint32)[0] if space == "ds" else data[0]
    assert int(left) == 0x4000 | one << 16


@pytest.mark.parametrize("bits", [32, 64])
def test_compare_and_store_takes_the_new_value_first(rdna: Run, bits: int) -> None:
    new, expected = ("v4", "v6") if bits == 32 else ("v[4:5]", "v[6:7]")
    dtype = np.uint32 if bits == 32 else np.uint64
    v = {0: bits // 8 * LANE, 4: np.full(32, 9, dtype), 6: np.where(LANE < 5, 3, 4).astype(dtype)}
    lds = np.full(32, 3, dtype).tobytes()
    text = f"ds_cmpstore_b{bits} v0, {new}, {expected}"
    left = rdna(text, v=v, lds=lds).waves.lds.view(dtype)
    assert left.tolist() == [9] * 5 + [3] * 27
    old = rdna(
        text.replace("store_b", "store_rtn_b").replace("v0", "v8, v0" if bits == 32 else "v[8:9], v0"), v=v, lds=lds
    )
    assert old.v(8, dtype).tolist() == [3] * 32


@pytest.mark.parametrize("name", ["min_num", "max_num"])
def test_extremes_of_doubles_in_lds(rdna: Run, name: str) -> None:
    lds = np.full(32, 2.0).tobytes()
    v = {0: 8 * LANE, 4: LANE.astype(np.float64)}
    wanted = np.minimum(2.0, LANE) if name == "min_num" else np.maximum(2.0, LANE)
    assert rdna(f"ds_{name}_f64 v0, v[4:5]", v=v, lds=lds).waves.lds.view(np.float64).tolist() == wanted.tolist()
    assert rdna(f"ds_{name}_rtn_f64 v[8:9], v0, v[4:5]", v=v, lds=lds).v(8, np.float64).tolist() == [2.0] * 32


# --- the range of buffers, as OOB_SELECT says


def loaded(rdna: Run, select: int, *, index: bool = False, stride: int = 0, records: int = 16) -> list[int]:
    memory, data = Memory(), np.arange(1, 33, dtype=np.uint32)
    base = memory.map_array(data, name="A")
    s = {4: base & 0xFFFFFFFF, 5: base >> 32 | stride << 16, 6: records, 7: select}
    flags = "idxen" if index else "offen"
    v = {0: LANE if index else 4 * LANE}
    return [int(x) for x in rdna(f"buffer_load_b32 v1, v0, s[4:7], null {flags}", v=v, s=s, memory=memory).v(1)]


def test_raw_buffers_are_checked_by_bytes(rdna: Run) -> None:
    assert loaded(rdna, RAW) == [1, 2, 3, 4] + [0] * 28


def test_unchecked_buffers_are_those_without_records_alone(rdna: Run) -> None:
    assert loaded(rdna, UNCHECKED) == list(range(1, 33))
    assert loaded(rdna, UNCHECKED, records=0) == [0] * 32
    with pytest.raises(MemoryFault, match="outside of A"):
        rdna("buffer_load_b32 v1, v0, s[4:7], null offen", v={0: 64 * LANE}, s=_resource(UNCHECKED), memory=_memory())


def _memory() -> Memory:
    memory = Memory()
    memory.map_array(np.arange(32, dtype=np.uint32), name="A")
    return memory


def _resource(select: int) -> dict[int, int]:
    (buffer,) = _memory().buffers().values()
    return {4: buffer.base & 0xFFFFFFFF, 5: buffer.base >> 32, 6: 16, 7: select}


def test_structured_buffers_are_checked_by_index(rdna: Run) -> None:
    assert loaded(rdna, BY_INDEX, index=True, stride=4) == list(range(1, 17)) + [0] * 16
    assert loaded(rdna, STRUCTURED, index=True, stride=4) == list(range(1, 17)) + [0] * 16
    assert loaded(rdna, STRUCTURED, index=True, stride=2) == [0] * 32, "a dword goes beyond an element"


def test_every_width_of_buffer_accesses(rdna: Run) -> None:
    memory, data = Memory(), np.arange(1, 257, dtype=np.uint32)
    base = memory.map_array(data, name="A")
    s = {4: base & 0xFFFFFFFF, 5: base >> 32, 6: 1024, 7: RAW}
    text = """
    buffer_load_b64 v[4:5], v0, s[4:7], null offen
    buffer_load_b96 v[6:8], v0, s[4:7], null offen
    buffer_load_b128 v[10:13], v0, s[4:7], null offen offset:16
    buffer_store_b128 v[10:13], v0, s[4:7], null offen
    buffer_store_b8 v4, v0, s[4:7], null offen offset:31
    """
    found = rdna(text, v={0: 32 * LANE}, s=s, memory=memory)
    assert found.v(5)[3] == 8 * 3 + 2
    assert found.v(8)[3] == 8 * 3 + 3
    assert data[24:32].tolist() == [29, 30, 31, 32, 29, 30, 31, 32 | (25 << 24)]


def test_what_is_left_out_is_refused_by_name(rdna: Run) -> None:
    for text in ("global_load_tr_b128 v[0:1], v[4:5], off", "ds_bvh_stack_rtn_b32 v1, v0, v1, v[2:5]"):
        with pytest.raises(UnknownInstruction, match=text.split()[0]):
            rdna(text, lanes=64)
    with pytest.raises(UnknownInstruction, match="a transposing load in waves of 64 lanes"):
        rdna("global_load_tr_b128 v[0:3], v[4:5], off", lanes=64)


@pytest.mark.parametrize("bits", [16, 8])
def test_loads_that_transpose(rdna: Run, bits: int) -> None:
    """As measured on gfx1201: lane l loads elements 8 l to 8 l + 7 and gets one of each of eight lanes."""
    memory = Memory()
    base = memory.map_array(np.arange(256, dtype=f"u{bits // 8}"), name="A")
    dwords = bits // 4
    text = f"global_load_tr_b{32 * dwords} v[2:{1 + dwords}], v0, s[4:5]"
    found = rdna(text, v={0: LANE * bits}, s={4: base}, memory=memory)
    got = np.stack([found.v(2 + i) for i in range(dwords)], axis=1).copy().view(f"u{bits // 8}")
    for lane, j in np.ndindex(32, 8):
        if bits == 16:
            assert got[lane, j] == 8 * (lane // 8 * 8 + j) + lane % 8
        else:
            assert got[lane, j] == lane % 8 + lane // 8 % 2 * 32 + lane // 16 * 128 + j % 4 * 8 + j // 4 * 64
