"""Every load, store and atomic on random bytes and operands, against the reference."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from flydsl.hsaco.operands import M0
from flydsl.simulator import Memory
from flydsl.simulator.arrays import Array
from tests.simulator.differential import LANES, run, samples, split_dwords
from tests.simulator.reference.ieee import Mode
from tests.simulator.reference.memory import (
    LDS_LOADS,
    LDS_STORES,
    LDS_UPDATES,
    LOADS,
    RETURNING_ONLY,
    STORES,
    UPDATES,
    Load,
    Store,
    Update,
    same_float,
)

pytestmark = pytest.mark.slow

SIZE = 2048
OLD = 0xA5A55A5A
DATA, ADDRESS, RESULT = 8, 0, 20
"""First vector registers of the data, the address and the result."""


def random_bytes(name: str) -> Array:
    return np.random.default_rng(list(name.encode())).integers(0, 256, SIZE).astype(np.uint8)


def registers(first: int, count: int) -> str:
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def address_registers(values: Any, wide: bool) -> dict[int, Array]:
    dwords = split_dwords([int(v) for v in values], 2 if wide else 1)
    return {ADDRESS + i: d for i, d in enumerate(dwords)}


class Space:
    """How an address space is addressed: `text` goes where the address does, `tail` after the data of a store."""

    def __init__(self, kind: str, content: Array) -> None:
        self.kind, self.content = kind, content
        self.memory = Memory()
        self.base = 0 if kind == "lds" else self.memory.map_array(content, name="A")
        self.scalars: dict[int, Array] = {}
        low, high = struct.unpack("<2I", struct.pack("<Q", self.base))
        for register, value in ((2, low), (3, high), (4, low), (5, high), (6, SIZE), (7, 0x27000), (8, 64)):
            self.scalars[register] = np.full(1, value, np.uint32)

    def operands(self, offset: int) -> tuple[str, str]:
        """The address operand, and what follows the data or the result."""
        if self.kind == "global saddr":
            return "v0", f", s[2:3] offset:{offset}"
        if self.kind == "global":
            return "v[0:1]", f", off offset:{offset}"
        if self.kind == "flat":
            return "v[0:1]", f" offset:{offset}"
        if self.kind == "buffer":
            return "v0", f", s[4:7], s8 offen offset:{offset - 64}"
        return "v0", f" offset:{offset}"

    def load_text(self, name: str, result: str, offset: int) -> str:
        address, tail = self.operands(offset)
        return f"{name} {result}, {address}{tail}"

    def store_text(self, name: str, data: str, offset: int, result: str = "") -> str:
        address, tail = self.operands(offset)
        if self.kind == "buffer":
            return f"{name} {data}, {address}{tail}"
        return f"{name} {result}{address}, {data}{tail}"

    def run(self, text: str, addresses: Any, vectors: dict[int, Array], mode: int = 0x3F0) -> Any:
        wide = self.kind in ("global", "flat")
        places = np.asarray(addresses, np.uint64) + np.uint64(self.base if wide else 0)
        lds = self.content.tobytes() if self.kind == "lds" else b""
        state = run(
            text,
            vectors=vectors | address_registers(places, wide),
            scalars=self.scalars,
            mode=mode,
            memory=self.memory,
            lds=lds,
            waves=1,
        )
        if self.kind == "lds":
            self.content[:] = state.lds[:SIZE]
        return state


KINDS = {"global": "global", "global saddr": "global", "flat": "flat", "buffer": "buffer"}


def loads() -> Iterator[Any]:
    for kind, prefix in KINDS.items():
        for name, load in LOADS.items():
            yield pytest.param(kind, f"{prefix}_load_{name}", load, id=f"{kind} {name}")
    for name, load in LDS_LOADS.items():
        if name not in ("i16_d16", "i16_d16_hi"):
            yield pytest.param("lds", f"ds_read_{name}", load, id=f"lds {name}")


@pytest.mark.parametrize(("kind", "name", "load"), list(loads()))
def test_load(kind: str, name: str, load: Load) -> None:
    space = Space(kind, random_bytes(name))
    rng = np.random.default_rng(1)
    # DS and scalar accesses are aligned, the others at any byte.
    places = (
        rng.integers(0, 1000, LANES) // (load.bytes_ if kind == "lds" else 1) * (load.bytes_ if kind == "lds" else 1)
    )
    offset = 96
    result = registers(RESULT, load.dwords)
    vectors = {RESULT + i: np.full((1, LANES), OLD, np.uint32) for i in range(load.dwords)}
    state = space.run(space.load_text(name, result, offset), places, vectors)
    for lane in range(LANES):
        at = int(places[lane]) + offset
        wanted = load.result(space.content[at : at + load.bytes_].tobytes(), OLD)
        assert [int(state.vgpr[RESULT + i, 0, lane]) for i in range(load.dwords)] == wanted


def stores() -> Iterator[Any]:
    for kind, prefix in KINDS.items():
        for name, store in STORES.items():
            yield pytest.param(kind, f"{prefix}_store_{name}", store, id=f"{kind} {name}")
    for name, store in LDS_STORES.items():
        yield pytest.param("lds", f"ds_write_{name}", store, id=f"lds {name}")


def data_registers(rng: np.random.Generator, count: int) -> Array:
    return rng.integers(0, 1 << 32, (count, 1, LANES), dtype=np.uint32)


@pytest.mark.parametrize(("kind", "name", "store"), list(stores()))
def test_store(kind: str, name: str, store: Store) -> None:
    space = Space(kind, random_bytes(name))
    before = space.content.copy()
    rng = np.random.default_rng(2)
    places = 16 * rng.permutation(LANES) + (0 if kind == "lds" else rng.integers(0, 16 - store.bytes_ + 1, LANES))
    data = data_registers(rng, store.dwords)
    space.run(
        space.store_text(name, registers(DATA, store.dwords), 64), places, {DATA + i: d for i, d in enumerate(data)}
    )
    for lane in range(LANES):
        at = int(places[lane]) + 64
        content = store.content([int(d[0, lane]) for d in data])
        before[at : at + store.bytes_] = np.frombuffer(content, np.uint8)
    np.testing.assert_array_equal(space.content, before)


SCRATCH = [(f"scratch_load_{n}", load) for n, load in LOADS.items()]


@pytest.mark.parametrize(("name", "load"), SCRATCH, ids=[n for n, _ in SCRATCH])
def test_scratch(name: str, load: Load) -> None:
    """Every lane stores 16 bytes of its own, and loads them, or part of them, at an offset."""
    rng = np.random.default_rng(3)
    data = data_registers(rng, 4)
    vectors = {DATA + i: d for i, d in enumerate(data)}
    vectors |= {RESULT + i: np.full((1, LANES), OLD, np.uint32) for i in range(load.dwords)}
    text = (
        f"scratch_store_dwordx4 off, v[8:11], s2 offset:4\n{name} {registers(RESULT, load.dwords)}, v0, off offset:-4"
    )
    skip = 16 - load.bytes_
    vectors[0] = np.full((1, LANES), 16 + skip, np.uint32)
    state = run(text, vectors=vectors, scalars={2: np.full(1, 8, np.uint32)}, scratch_bytes=32, waves=1)
    for lane in range(LANES):
        content = b"".join(int(d[0, lane]).to_bytes(4, "little") for d in data)
        assert [int(state.vgpr[RESULT + i, 0, lane]) for i in range(load.dwords)] == load.result(content[skip:], OLD)


SCRATCH_STORES = [(f"scratch_store_{n}", store) for n, store in STORES.items()]


@pytest.mark.parametrize(("name", "store"), SCRATCH_STORES, ids=[n for n, _ in SCRATCH_STORES])
def test_scratch_store(name: str, store: Store) -> None:
    data = data_registers(np.random.default_rng(4), store.dwords)
    text = f"{name} v0, {registers(DATA, store.dwords)}, off offset:4\nscratch_load_dwordx4 v[20:23], off, off offset:8"
    vectors = {0: np.full((1, LANES), 4, np.uint32)} | {DATA + i: d for i, d in enumerate(data)}
    state = run(text, vectors=vectors, scratch_bytes=32, waves=1)
    for lane in range(LANES):
        got = b"".join(int(state.vgpr[20 + i, 0, lane]).to_bytes(4, "little") for i in range(4))
        assert got == store.content([int(d[0, lane]) for d in data]).ljust(16, b"\0")


# --- atomics


def operand_samples(update: Update, name: str, count: int) -> list[list[int]]:
    """`count` lists of a value for every lane; equal ones are frequent where that matters."""
    rng = np.random.default_rng(list(name.encode()))
    word = "f16x2" if update.type_ == "bf16x2" else update.word
    lists = [samples(word, rng, LANES) for _ in range(count)]
    if "cmp" in name:
        for lane in range(0, LANES, 2):
            lists[1 + ("cmpswap" in name)][lane] = lists[0][lane]
    return lists


def atomics() -> Iterator[Any]:
    """By every address; where only that is another, some are enough."""
    for kind, prefix in KINDS.items():
        for i, (name, update) in enumerate(UPDATES.items()):
            marks = pytest.mark.sweep if kind in ("global saddr", "flat") and i % 4 else ()
            if (prefix, name) != ("buffer", "pk_add_bf16"):
                for returning in (False, True):
                    yield pytest.param(
                        kind, f"{prefix}_atomic_{name}", update, returning, id=f"{kind} {name} {returning}", marks=marks
                    )
    for name, update in LDS_UPDATES.items():
        yield pytest.param("lds", f"ds_{name}", update, False, id=f"lds {name}")
    for name, update in (LDS_UPDATES | RETURNING_ONLY).items():
        operation, _, type_ = name.rpartition("_")
        yield pytest.param("lds", f"ds_{operation}_rtn_{type_}", update, True, id=f"lds {name} returning")


@pytest.mark.parametrize(("kind", "name", "update", "returning"), list(atomics()))
@pytest.mark.diagonal(2)
def test_atomic(kind: str, name: str, update: Update, returning: bool) -> None:
    size, count = update.bits // 8, update.bits // 32
    old, *operands = operand_samples(update, name, 1 + update.operands)
    space = Space(kind, np.zeros(SIZE, np.uint8))
    order = np.random.default_rng(5).permutation(LANES)
    for lane, value in enumerate(old):
        at = 64 + size * int(order[lane])
        space.content[at : at + size] = np.frombuffer(value.to_bytes(size, "little"), np.uint8)
    text = atomic_text(space, name, update, returning)
    dwords = [d for values in operands for d in split_dwords(values, count)]
    state = space.run(text, size * order, {DATA + i: d for i, d in enumerate(dwords)})
    result = DATA if kind == "buffer" else RESULT
    for lane in range(LANES):
        wanted = update.new(Mode(), old[lane], *(values[lane] for values in operands))
        at = 64 + size * int(order[lane])
        got = int.from_bytes(space.content[at : at + size].tobytes(), "little")
        described = f"{text}: {old[lane]:#x}, {[hex(v[lane]) for v in operands]} leave {got:#x}, not {wanted:#x}"
        assert same_float(update.type_, got, wanted), described
        if returning:
            assert sum(int(state.vgpr[result + i, 0, lane]) << 32 * i for i in range(count)) == old[lane]


def atomic_text(space: Space, name: str, update: Update, returning: bool) -> str:
    count = update.bits // 32
    result = registers(RESULT, count) + ", "
    if space.kind == "lds":
        data = ", ".join(registers(DATA + i * count, count) for i in range(update.operands))
        return space.store_text(name, data, 64, result if returning else "")
    data = registers(DATA, count * update.operands)
    text = space.store_text(name, data, 64, result if returning and space.kind != "buffer" else "")
    return text + " sc0" if returning else text


# --- several places at once


@pytest.mark.parametrize("stride", ["", "st64"])
@pytest.mark.parametrize("dwords", [1, 2])
@pytest.mark.parametrize("operation", ["read2", "write2", "wrxchg2_rtn"])
def test_two_places_in_lds(operation: str, dwords: int, stride: str) -> None:
    """Offsets count elements, or 64 of them."""
    name, _, returning = operation.partition("_")
    mnemonic = f"ds_{name}{stride}_{returning + '_' if returning else ''}b{32 * dwords}"
    content = random_bytes(mnemonic)
    rng = np.random.default_rng(6)
    data = data_registers(rng, 2 * dwords)
    unit = 4 * dwords * (64 if stride else 1)
    offsets = (1, 2) if stride else (1, 100)
    # Each lane has two elements of its own.
    places = 4 * dwords * rng.permutation(LANES)
    result, first, second = registers(RESULT, 2 * dwords), registers(DATA, dwords), registers(DATA + dwords, dwords)
    operands = {"read2": f"{result}, v0", "write2": f"v0, {first}, {second}"}
    text = (
        f"{mnemonic} {operands.get(name, f'{result}, v0, {first}, {second}')} offset0:{offsets[0]} offset1:{offsets[1]}"
    )
    vectors = {DATA + i: d for i, d in enumerate(data)} | address_registers(places, False)
    state = run(text, vectors=vectors, lds=content.tobytes(), waves=1)
    expected = content.copy()
    for lane in range(LANES):
        for which, offset in enumerate(offsets):
            at = int(places[lane]) + unit * offset
            for i in range(dwords):
                if name != "write2":
                    old = int.from_bytes(content[at + 4 * i : at + 4 * i + 4].tobytes(), "little")
                    assert int(state.vgpr[RESULT + which * dwords + i, 0, lane]) == old
                if name != "read2":
                    expected[at + 4 * i : at + 4 * i + 4] = data[which * dwords + i, 0, lane : lane + 1].view(np.uint8)
    np.testing.assert_array_equal(state.lds[:SIZE], expected)


def test_conditional_exchange_of_a_pair() -> None:
    content = random_bytes("condxchg")
    data = data_registers(np.random.default_rng(7), 2)
    vectors = {DATA: data[0], DATA + 1: data[1]} | address_registers(8 * np.arange(LANES) + np.arange(LANES) % 8, False)
    state = run("ds_condxchg32_rtn_b64 v[20:21], v0, v[8:9] offset:0", vectors=vectors, lds=content.tobytes(), waves=1)
    before, after = content.view(np.uint32), state.lds[:SIZE].view(np.uint32)
    for lane in range(LANES):
        for i in range(2):
            old, x = int(before[2 * lane + i]), int(data[i, 0, lane])
            assert int(state.vgpr[RESULT + i, 0, lane]) == old
            assert int(after[2 * lane + i]) == (x & 0x7FFFFFFF if x >> 31 else old)


@pytest.mark.parametrize(("name", "sign"), [("ds_append", 1), ("ds_consume", -1)])
def test_a_counter_that_the_wave_shares(name: str, sign: int) -> None:
    active = 0x0FF0_0000_0000_0008
    content = np.zeros(64, np.uint32)
    content[5] = 1000
    scalars = {M0: np.full(1, 0xABCD0010, np.uint32)}
    vectors = {1: np.full((1, LANES), OLD, np.uint32)}
    state = run(
        f"{name} v1 offset:4", vectors=vectors, scalars=scalars, lds=content.tobytes(), exec_bits=active, waves=1
    )
    assert state.lds[20:24].view(np.uint32)[0] == 1000 + sign * 9
    expected = [1000 if active >> lane & 1 else OLD for lane in range(LANES)]
    assert state.vgpr[1, 0].tolist() == expected


def test_consecutive_dwords_from_m0() -> None:
    content = np.arange(128, dtype=np.uint32)
    scalars = {M0: np.full(1, 0x10008, np.uint32)}
    text = "ds_read_addtid_b32 v1 offset:16\nds_write_addtid_b32 v1 offset:20"
    state = run(text, scalars=scalars, lds=content.tobytes(), waves=1)
    assert state.vgpr[1, 0].tolist() == [6 + lane for lane in range(LANES)]
    assert state.lds[28 : 28 + 256].view(np.uint32).tolist() == [6 + lane for lane in range(LANES)]


TO_LDS = [
    (kind, name) for kind in ("global", "buffer", "scratch") for name in ("dword", "ubyte", "sbyte", "ushort", "sshort")
]


@pytest.mark.parametrize(("kind", "name"), TO_LDS, ids=[f"{k} {n}" for k, n in TO_LDS])
def test_load_into_lds(kind: str, name: str) -> None:
    content = random_bytes(name)
    space = Space(kind if kind == "buffer" else "global saddr", content)
    space.scalars[M0] = np.full(1, 0x20040, np.uint32)
    places = np.arange(LANES) * 4
    tail = {
        "global": f"global_load_lds_{name} v0, s[2:3] offset:8",
        "buffer": f"buffer_load_{name} v0, s[4:7], 0 offen offset:8 lds",
    }
    if kind == "scratch":
        text = f"scratch_store_dword off, v8, off offset:8\nscratch_load_lds_{name} off, off offset:8"
        content[8 : 8 + 256] = np.random.default_rng(8).integers(0, 256, 256)
        words = content[8 : 8 + 256].view(np.uint32).reshape(1, LANES)
        vectors = {DATA: words}
    else:
        text, vectors = tail[kind], {}
    state = run(
        text,
        vectors=vectors | address_registers(places, False),
        scalars=space.scalars,
        memory=space.memory,
        lds=bytes(1024),
        scratch_bytes=16,
        waves=1,
    )
    written = state.lds[0x40 + 8 : 0x40 + 8 + 256].view(np.uint32)
    load = LOADS[name]
    for lane in range(LANES):
        at = 4 * lane + 8
        assert [int(written[lane])] == load.result(content[at : at + load.bytes_].tobytes(), 0)


# --- buffer resources


@pytest.mark.parametrize("records", [0, 4, 100, 102, 1000])
@pytest.mark.parametrize("name", LOADS)
def test_raw_buffer_load_is_limited_by_num_records(name: str, records: int) -> None:
    """What does not lie within num_records bytes reads 0, dword by dword."""
    load = LOADS[name]
    content = random_bytes(name)
    space = Space("buffer", content)
    space.scalars[6] = np.full(1, records, np.uint32)
    places = 4 * np.arange(LANES)
    vectors = {RESULT + i: np.full((1, LANES), OLD, np.uint32) for i in range(load.dwords)}
    state = space.run(space.load_text(f"buffer_load_{name}", registers(RESULT, load.dwords), 64), places, vectors)
    unit = min(load.bytes_, 4)
    for lane in range(LANES):
        at = 64 + 4 * lane
        seen = b"".join(
            content[p : p + unit].tobytes() if p + unit <= records else bytes(unit)
            for p in range(at, at + load.bytes_, unit)
        )
        assert [int(state.vgpr[RESULT + i, 0, lane]) for i in range(load.dwords)] == load.result(seen, OLD)


@pytest.mark.parametrize("records", [0, 100, 102])
@pytest.mark.parametrize("name", STORES)
def test_raw_buffer_store_is_limited_by_num_records(name: str, records: int) -> None:
    store = STORES[name]
    content = random_bytes(name)
    before = content.copy()
    space = Space("buffer", content)
    space.scalars[6] = np.full(1, records, np.uint32)
    places = 16 * np.arange(LANES)
    data = data_registers(np.random.default_rng(9), store.dwords)
    space.run(
        space.store_text(f"buffer_store_{name}", registers(DATA, store.dwords), 64),
        places,
        {DATA + i: d for i, d in enumerate(data)},
    )
    unit = min(store.bytes_, 4)
    for lane in range(LANES):
        content_of_lane = store.content([int(d[0, lane]) for d in data])
        for i in range(0, store.bytes_, unit):
            at = 64 + 16 * lane + i
            if at + unit <= records:
                before[at : at + unit] = np.frombuffer(content_of_lane[i : i + unit], np.uint8)
    np.testing.assert_array_equal(space.content, before)


@pytest.mark.parametrize("dwords", [1, 2, 4, 8, 16])
def test_scalar_loads(dwords: int) -> None:
    """The address is that of a dword; a buffer's num_records limits what s_buffer_load reads."""
    content = random_bytes("scalar")
    space = Space("buffer", content)
    space.scalars[6] = np.full(1, 80, np.uint32)
    space.scalars[9] = np.full(1, 43, np.uint32)
    suffix = "" if dwords == 1 else f"x{dwords}"
    target = [f"s{first}" if dwords == 1 else f"s[{first}:{first + dwords - 1}]" for first in (20, 40, 60, 80)]
    text = f"s_load_dword{suffix} {target[0]}, s[2:3], 0x28\ns_load_dword{suffix} {target[1]}, s[2:3], s9\n"
    text += (
        f"s_buffer_load_dword{suffix} {target[2]}, s[4:7], 0x28\ns_buffer_load_dword{suffix} {target[3]}, s[4:7], s9"
    )
    state = run(text, scalars=space.scalars, memory=space.memory, waves=1)
    words = content.view(np.uint32)
    for first, limit in ((20, SIZE), (40, SIZE), (60, 80), (80, 80)):
        wanted = [int(words[10 + i]) if 40 + 4 * i + 4 <= limit else 0 for i in range(dwords)]
        assert state.sgpr[0, first : first + dwords].tolist() == wanted
