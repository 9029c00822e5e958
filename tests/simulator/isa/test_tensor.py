"""The tensor data mover: tiles against a copy of one element after the other, in both backends.

The reference is written from AMD Instinct CDNA5 Instruction Set Architecture, 10.11.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from flydsl.hsaco.operands import CLUSTER_STATE, ttmp
from flydsl.simulator import Memory, MemoryFault
from flydsl.simulator.errors import DescriptorError

Run = Callable[..., Any]
LDS_BYTES = 16384


@pytest.fixture(scope="session")
def gfx1250(run: Run) -> Run:
    return partial(run, arch="gfx1250")


@dataclass(frozen=True)
class Tile:
    """The fields of a descriptor. sizes, tensor: along dimensions 0 to 4; strides: of dimensions 1 to 4."""

    sizes: tuple[int, ...]
    tensor: tuple[int, ...]
    strides: tuple[int, ...] = ()
    element_bytes: int = 2
    lds: int = 64
    padding: tuple[int, int] | None = None  # dwords after so many dwords
    rows: tuple[int, ...] | None = None
    index_bits: int = 32
    iterate: tuple[int, int, int] | None = None  # times, elements in memory, in LDS
    other: Mapping[int, int] = field(default_factory=dict)  # bits set from bit so and so on

    def bits(self, address: int) -> int:
        """The descriptor as a number, laid out as in tables 62 to 67."""
        number = 1 | self.lds << 32 | address << 64 | 2 << 126
        group1 = (self.element_bytes.bit_length() - 1) << 16
        if self.padding:
            interval, amount = self.padding
            group1 |= 1 << 20 | (interval.bit_length() - 2) << 22 | (amount - 1) << 25
        sizes, tensor, strides = ((*given, 0, 0, 0, 0, 0)[:5] for given in (self.sizes, self.tensor, self.strides))
        group1 |= tensor[0] << 48 | tensor[1] << 80 | sizes[0] << 112 | sizes[1] << 128 | sizes[2] << 144
        group1 |= strides[0] << 160 | strides[1] << 208
        group2 = tensor[2] | tensor[3] << 32 | strides[2] << 64 | sizes[3] << 112
        group3 = strides[3] | tensor[4] << 48 | sizes[4] << 80
        if self.iterate:
            times, in_memory, in_lds = self.iterate
            group1 |= 1 << 19
            group2 |= in_lds << 32 | in_memory << 64 | (times - 1) << 112
        if self.rows is not None:
            number |= 1 << 31 | (self.index_bits == 32) << 30
            listed = sum(row << self.index_bits * i for i, row in enumerate(self.rows))
            group1 |= len(self.rows) << 128
            group2, group3 = listed & (1 << 128) - 1, listed >> 128
        number |= group1 << 128 | group2 << 384 | group3 << 512
        for bit, value in self.other.items():
            number |= value << bit
        return number

    def words(self, address: int, count: int = 20) -> dict[int, int]:
        """Scalar registers from s20 on."""
        bits = self.bits(address)
        return {20 + i: bits >> 32 * i & 0xFFFF_FFFF for i in range(count)}

    def elements(self, *, padded: bool) -> Any:
        """Of each element: how many elements it is from the address, None beyond the tensor, and its LDS byte."""
        times, in_memory, in_lds = self.iterate or (1, 0, 0)
        used = [range(size) for size in self.sizes]
        if self.rows is not None:
            used = [range(self.sizes[0]), range(len(self.rows))]
        for time in range(times):
            begins, rest = [0] * len(self.sizes), time * in_memory
            for i in sorted(range(1, len(self.sizes)), key=lambda i: -self.strides[i - 1]):
                if self.tensor[i] > 1 and in_memory:
                    begins[i], rest = divmod(rest, self.strides[i - 1])
            begins[0] = rest
            address, since = self.lds + time * in_lds * self.element_bytes, 0
            for place in itertools.product(*reversed(used)):
                x, *others = reversed(place)
                along = [self.rows[others[0]]] if self.rows is not None else others
                offset = x + sum(i * stride for i, stride in zip(along, self.strides, strict=False))
                places = [x, *along]
                if self.rows is None:
                    places = [first + i for first, i in zip(begins, places, strict=True)]
                inside = all(i < extent for i, extent in zip(places, self.tensor, strict=False))
                yield (offset + time * in_memory if inside else None), address
                address, since = address + self.element_bytes, since + self.element_bytes
                if padded and self.padding and since >= 4 * self.padding[0]:
                    address, since = address + 4 * self.padding[1], 0


def loaded(tile: Tile, memory: bytes, start: int, lds: bytes) -> bytes:
    found, size = bytearray(lds), tile.element_bytes
    for offset, place in tile.elements(padded=True):
        first = start + (offset or 0) * size
        found[place : place + size] = bytes(size) if offset is None else memory[first : first + size]
    return bytes(found)


def stored(tile: Tile, memory: bytes, start: int, lds: bytes) -> bytes:
    found, size = bytearray(memory), tile.element_bytes
    for offset, place in tile.elements(padded=False):
        if offset is not None:
            found[start + offset * size : start + (offset + 1) * size] = lds[place : place + size]
    return bytes(found)


TILES = {
    "one row": Tile((17,), (17,)),
    "a matrix": Tile((24, 16), (24, 16), (40,)),
    "a mask outside of clusters": Tile((24, 16), (24, 16), (40,), other={128: 0x5A5A}),
    "columns beyond": Tile((24, 16), (9, 16), (40,)),
    "rows beyond": Tile((24, 16), (100, 5), (40,)),
    "nothing of it": Tile((24, 16), (0, 16), (40,)),
    "single bytes": Tile((5, 7), (4, 6), (11,), element_bytes=1, lds=3),
    "eight bytes": Tile((6, 5), (5, 9), (13,), element_bytes=8),
    "padding": Tile((64, 8), (64, 8), (70,), padding=(32, 4)),
    "padding within rows": Tile((64, 8), (50, 7), (70,), padding=(8, 1)),
    "padding across rows": Tile((6, 9), (5, 8), (10,), padding=(8, 3)),
    "much padding": Tile((512, 4), (512, 4), (512,), element_bytes=4, lds=0, padding=(256, 128)),
    "three dimensions": Tile((6, 5, 4), (5, 5, 3), (7, 41)),
    "five dimensions": Tile((6, 3, 2, 2, 3), (6, 2, 2, 1, 9), (7, 25, 60, 130), padding=(2, 1)),
    "rows 32": Tile((10,), (10, 30), (12,), rows=(3, 29, 0, 3, 7), element_bytes=4),
    "rows 16": Tile((10,), (8, 30), (12,), rows=tuple(range(0, 32, 2)), index_bits=16),
    "rows beyond the tensor": Tile((10,), (10, 20), (12,), rows=(3, 3, 19, 20, 4000), padding=(4, 2)),
    "every third row": Tile((8, 2), (8, 8), (12,), iterate=(3, 36, 40)),
    "repetitions that overlap": Tile((8, 3), (8, 9), (12,), iterate=(3, 24, 5)),
    "repeated planes": Tile((4, 3, 2), (4, 2, 4), (5, 20), iterate=(2, 50, 40), padding=(4, 1)),
    "repeated beyond the rows": Tile((4, 2), (4, 3), (4,), iterate=(2, 8, 8)),
    "repeated within rows": Tile((4, 2), (10, 5), (12,), iterate=(4, 3, 8)),
    "repeated along planes that lie closer than rows": Tile((4, 3, 2), (4, 3, 3), (16, 4), iterate=(3, 4, 24)),
    "repeated past everything": Tile((4, 2), (4, 3), (4,), iterate=(2, 400, 8)),
}
START = 128


def patterns(seed: int = 5) -> tuple[np.ndarray[Any, Any], bytes]:
    random = np.random.default_rng(seed)
    return random.integers(0, 256, 16384, np.uint8), random.bytes(LDS_BYTES)


@pytest.mark.parametrize("name", TILES)
def test_a_tile_comes_into_lds(gfx1250: Run, name: str) -> None:
    data, lds = patterns()
    memory = Memory()
    base = memory.map_array(data, name="A", writable=False)
    text = "tensor_load_to_lds s[20:23], s[24:31], s[32:35], s[36:39] th:TH_LOAD_NT scope:SCOPE_DEV"
    # Lanes that are off change nothing: the wave loads.
    found = gfx1250(text, s=TILES[name].words(base + START), memory=memory, lds=lds, exec_bits=0)
    assert bytes(found.waves.lds[:LDS_BYTES]) == loaded(TILES[name], bytes(data), START, lds)


@pytest.mark.parametrize("name", TILES)
def test_a_tile_goes_to_memory(gfx1250: Run, name: str) -> None:
    data, lds = patterns()
    before, memory = bytes(data), Memory()
    base = memory.map_array(data, name="A")
    text = "tensor_store_from_lds s[20:23], s[24:31], s[32:35], s[36:39]"
    tile = replace(TILES[name], other={128: 0x8001})  # a store ignores the mask of workgroups, and padding
    gfx1250(text, s=tile.words(base + START), memory=memory, lds=lds)
    assert bytes(data) == stored(TILES[name], before, START, lds)


def test_two_parts_of_a_descriptor_do(gfx1250: Run) -> None:
    data, lds = patterns()
    memory = Memory()
    base = memory.map_array(data, name="A")
    tile = TILES["padding"]
    found = gfx1250("tensor_load_to_lds s[20:23], s[24:31]", s=tile.words(base, 12), memory=memory, lds=lds)
    assert bytes(found.waves.lds[:LDS_BYTES]) == loaded(tile, bytes(data), 0, lds)


def test_a_null_descriptor_moves_nothing(gfx1250: Run) -> None:
    lds = patterns()[1]
    found = gfx1250("tensor_load_to_lds s[20:23], s[24:31]", s={20: 0, 21: 1 << 31}, lds=lds)
    assert bytes(found.waves.lds[:LDS_BYTES]) == lds


def test_a_tile_that_has_come_arrives_at_a_barrier(gfx1250: Run) -> None:
    data = patterns()[0]
    lds = (5 << 32 | 1).to_bytes(8, "little") + bytes(1016)
    memory = Memory()
    base = memory.map_array(data, name="A")
    tile = replace(TILES["one row"], other={128 + 18: 1})
    once = gfx1250("tensor_load_to_lds s[20:23], s[24:31]", s=tile.words(base, 12), memory=memory, lds=lds)
    assert once.waves.lds[:8].view(np.uint64)[0] == 5 << 32
    again = gfx1250("tensor_load_to_lds s[20:23], s[24:31]\n" * 2, s=tile.words(base, 12), memory=memory, lds=lds)
    assert again.waves.lds[:8].view(np.uint64)[0] == 5 << 32 | 1 << 29 | 5


MATRIX = TILES["a matrix"]
WRONG = {
    "count is 3": replace(MATRIX, other={1: 1}),
    "is_restore is 1": replace(MATRIX, other={2: 1}),
    "type is 3": replace(MATRIX, other={126: 1}),
    "tile_dim0 is 0": replace(MATRIX, sizes=(0, 4)),
    "tile_dim1 is 0: a dimension is not used": replace(MATRIX, sizes=(4, 0, 4)),
    "lds_addr is 0x40: 65535 rows of 65535 elements of 8 bytes end at": replace(
        MATRIX, sizes=(65535, 65535), element_bytes=8
    ),
    "tile_dim0 is 0x19: a row has 50 bytes, and padding needs whole dwords": replace(
        MATRIX, sizes=(25, 4), padding=(8, 1)
    ),
    "tile_dim1 is 0x11: the number of rows to gather, 1 to 16": replace(
        MATRIX, sizes=(4,), rows=tuple(range(17)), index_bits=16
    ),
    "tensor_dim1 is 4: .* ascending order": replace(MATRIX, sizes=(4,), tensor=(4, 4), rows=(5, 2)),
    "iterate_count is 0x100": replace(MATRIX, iterate=(257, 0, 0)),
    "tile_dim4 is 3": replace(MATRIX, iterate=(2, 0, 0), other={512 + 80: 3}),
    "lds_addr is 0x3f00: 16 rows of 24 elements of 2 bytes end at 0x4200; the workgroup has 16384": replace(
        MATRIX, lds=0x3F00
    ),
    "tensor_dim0_stride is 8: the rows of a tile that iterates overlap": replace(
        MATRIX, strides=(8,), iterate=(2, 8, 0)
    ),
    "atomic_barrier_address is 0x800": replace(MATRIX, other={128 + 18: 1, 128 + 32: 0x800}),
    "tile_dim1 is 0xffff: the tile has .* rows": replace(MATRIX, sizes=(4, 65535, 65535, 65535, 65535)),
}


@pytest.mark.parametrize("message", WRONG)
def test_a_wrong_descriptor_is_an_error_that_names_the_field(gfx1250: Run, message: str) -> None:
    data, lds = patterns()
    memory = Memory()
    base = memory.map_array(data, name="A")
    text = "tensor_load_to_lds s[20:23], s[24:31], s[32:35], s[36:39]"
    with pytest.raises(DescriptorError, match=f"tensor_load_to_lds with a descriptor whose {message}") as caught:
        gfx1250(text, s=WRONG[message].words(base), memory=memory, lds=lds)
    assert "workgroup (0, 0, 0), wave 0" in str(caught.value)
    assert bytes(data) == bytes(patterns()[0])


@pytest.mark.parametrize(
    ("start", "name", "instruction", "message"),
    [
        (16384 - 400, "a matrix", "tensor_load_to_lds", r"reads 48 bytes outside of A \(uint8\[16384\], 16384 bytes\)"),
        (16384 - 400, "a matrix", "tensor_store_from_lds", "writes 48 bytes outside of A"),
        (-40, "one row", "tensor_load_to_lds", "outside of A"),
        (16384 - 40, "rows 32", "tensor_load_to_lds", "reads 40 bytes outside of A"),
    ],
)
def test_a_tile_beyond_its_tensor_is_a_fault(
    gfx1250: Run, start: int, name: str, instruction: str, message: str
) -> None:
    data, lds = patterns()
    memory = Memory()
    base = memory.map_array(data, name="A")
    text = f"{instruction} s[20:23], s[24:31], s[32:35], s[36:39]"
    with pytest.raises(MemoryFault, match=message) as caught:
        gfx1250(text, s=TILES[name].words(base + start), memory=memory, lds=lds)
    assert "tensor_shape" in (caught.value.hint or "")
    assert caught.value.access.lane is None
    assert bytes(data) == bytes(patterns()[0])


def test_what_is_not_writable_is_not_stored_to(gfx1250: Run) -> None:
    data, lds = patterns()
    memory = Memory()
    base = memory.map_array(data, name="A", writable=False)
    with pytest.raises(MemoryFault, match="read-only"):
        gfx1250("tensor_store_from_lds s[20:23], s[24:31]", s=MATRIX.words(base, 12), memory=memory, lds=lds)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (0b0110, None),
        (0b0010, None),
        (0b0101, "number 2 of its cluster|number 1 of its cluster"),
        (0b10010, "has 4 wo"),
    ],
)
def test_who_may_ask_for_a_tile_together(gfx1250: Run, mask: int, message: str | None) -> None:
    data, lds = patterns()
    memory = Memory()
    base = memory.map_array(data, name="A")
    tile = replace(MATRIX, other={128: mask})
    scalars = tile.words(base, 12) | {CLUSTER_STATE: 1 << 6 | 1 << 21, ttmp(6): 3 << 24}
    text = "tensor_load_to_lds s[20:23], s[24:31]"
    if message is None:
        found = gfx1250(text, s=scalars, memory=memory, lds=lds)
        assert bytes(found.waves.lds[:LDS_BYTES]) == loaded(tile, bytes(data), 0, lds)
        return
    with pytest.raises(DescriptorError, match=message):
        gfx1250(text, s=scalars, memory=memory, lds=lds)


@pytest.mark.parametrize("seed", range(3))
def test_any_descriptor_is_a_tile_or_an_error(gfx1250: Run, seed: int) -> None:
    """Both backends do the same with it, or name the same field."""
    random = np.random.default_rng(seed)
    data, lds = patterns()
    for _ in range(40):
        bits = int.from_bytes(random.bytes(80), "little")
        for first, count in ((112, 9), (121, 7), (144, 16), (228, 28)):  # small strides and tiles, mostly
            bits &= ~((1 << count) - 1 << 128 + first) if random.random() < 0.9 else -1
        for first, last, value in ((0, 29, 1), (32, 63, int(random.integers(0, LDS_BYTES))), (121, 127, 0x40)):
            bits = bits & ~((1 << last + 1) - (1 << first)) | value << first
        memory = Memory()
        base = memory.map_array(data.copy(), name="A")
        bits = bits & ~((1 << 121) - (1 << 64)) | base + int(random.integers(0, 16384)) << 64
        words = {20 + i: bits >> 32 * i & 0xFFFF_FFFF for i in range(20)}
        name = random.choice(["tensor_load_to_lds", "tensor_store_from_lds"])
        with contextlib.suppress(DescriptorError, MemoryFault):
            gfx1250(f"{name} s[20:23], s[24:31], s[32:35], s[36:39]", s=words, memory=memory, lds=lds)


# --- copies of each lane, and loads for several workgroups

LANE = np.arange(32, dtype=np.uint32)
SIZES = {"b8": 1, "b32": 4, "b64": 8, "b128": 16}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("space", ["global", "cluster"])
def test_lanes_copy_to_lds(gfx1250: Run, space: str, size: str) -> None:
    data, lds = patterns()
    memory, n = Memory(), SIZES[size]
    base = memory.map_array(data, name="A", writable=False)
    places = LANE[::-1] * n + 512
    vectors = {0: places, 2: np.uint64(base) + LANE.astype(np.uint64) * 24, 4: LANE * 24}
    expected = bytearray(lds)
    for lane in range(0, 32, 2):
        place = int(places[lane]) + 16
        expected[place : place + n] = bytes(data[24 * lane + 16 : 24 * lane + 16 + n])
    for address in ("v[2:3], off", "v4, s[8:9]"):
        text = f"{space}_load_async_to_lds_{size} v0, {address} offset:16\ns_wait_asynccnt 0x0"
        found = gfx1250(text, v=vectors, s={8: base}, memory=memory, lds=lds, exec_bits=0x5555_5555)
        assert bytes(found.waves.lds[:LDS_BYTES]) == bytes(expected)


@pytest.mark.parametrize("size", SIZES)
def test_lanes_copy_from_lds(gfx1250: Run, size: str) -> None:
    data, lds = patterns()
    before, memory, n = data.copy(), Memory(), SIZES[size]
    base = memory.map_array(data, name="A")
    vectors = {0: LANE * 16 + 512, 2: np.uint64(base) + LANE.astype(np.uint64) * 24}
    text = f"global_store_async_from_lds_{size} v[2:3], v0, off offset:8"
    gfx1250(text, v=vectors, memory=memory, lds=lds)
    for lane in range(32):
        before[24 * lane + 8 : 24 * lane + 8 + n] = np.frombuffer(lds, np.uint8)[16 * lane + 520 : 16 * lane + 520 + n]
    assert bytes(data) == bytes(before)


@pytest.mark.parametrize("size", ["b32", "b64", "b128"])
def test_loads_for_several_workgroups(gfx1250: Run, size: str) -> None:
    data = patterns()[0]
    memory, n = Memory(), SIZES[size] // 4
    base = memory.map_array(data, name="A", writable=False)
    registers = f"v[4:{3 + n}]" if n > 1 else "v4"
    found = gfx1250(
        f"cluster_load_{size} {registers}, v0, s[8:9] scale_offset", v={0: LANE}, s={8: base}, memory=memory
    )
    expected = data.view(np.uint32)[: 32 * n].reshape(32, n)
    assert all((found.v(4 + i) == expected[:, i]).all() for i in range(n))


def test_what_lies_outside_is_a_fault_of_the_copy(gfx1250: Run) -> None:
    memory = Memory()
    base = memory.map_array(np.zeros(64, np.uint8), name="A")
    text, vectors = "global_load_async_to_lds_b64 v1, v0, s[8:9]", {0: LANE % 8 * 8, 1: LANE * 8}
    with pytest.raises(MemoryFault, match="global_load_async_to_lds_b64 reads 8 bytes outside of A"):
        gfx1250(text, v={0: LANE * 8, 1: LANE * 8}, s={8: base}, memory=memory, lds=bytes(512))
    with pytest.raises(MemoryFault, match=r"writes 8 bytes outside of LDS \(64 bytes per workgroup\)"):
        gfx1250(text, v=vectors, s={8: base}, memory=memory, lds=bytes(64))


# --- barriers in LDS


def after(state: int, count: int) -> int:
    """A barrier of 29 bits after some arrivals, as section 11.2.2 has it."""
    reload, phase, pending = state >> 32 & 0xFFFF, state >> 29 & 7, state & (1 << 29) - 1
    if pending < count:
        return reload << 32 | (phase + 1) % 8 << 29 | reload
    return reload << 32 | phase << 29 | pending - count


@pytest.mark.parametrize("state", [0, 3 << 32 | 2, 3 << 32 | 7 << 29 | 1, 0xFFFF << 32 | 5 << 29 | (1 << 29) - 1])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_an_arrival_at_a_barrier_in_lds(gfx1250: Run, state: int, count: int) -> None:
    lds = bytes(16) + state.to_bytes(8, "little") + bytes(8)
    text = "ds_atomic_barrier_arrive_rtn_b64 v[4:5], v0, v[2:3] offset:8"
    vectors = {0: np.full(32, 8, np.uint32), 2: np.full(32, count, np.uint64)}
    found = gfx1250(text, v=vectors, lds=lds, exec_bits=0b1011)
    old = [state, after(state, count), after(after(state, count), count)]
    assert found.v(4, np.uint64)[[0, 1, 3]].tolist() == old
    assert int(found.waves.lds[16:24].view(np.uint64)[0]) == after(old[2], count)


def test_an_arrival_after_asynchronous_loads(gfx1250: Run) -> None:
    lds = (1 << 32 | 1).to_bytes(8, "little")
    found = gfx1250("ds_atomic_async_barrier_arrive_b64 v0", v={0: np.zeros(32, np.uint32)}, lds=lds, exec_bits=0b11)
    assert int(found.waves.lds[:8].view(np.uint64)[0]) == 1 << 32 | 1 << 29 | 1
