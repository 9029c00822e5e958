"""The tensor data mover of gfx1250: tiles of up to five dimensions, their padding and ends, and chosen rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flydsl.simulator import Memory
from flydsl.simulator.arrays import Array
from tests.simulator.conformance.registry import conforms, execute

CANARY = 0xA5A5A5A5
PADDED = 1 << 20 | 1 << 22 | 1 << 25
"""Two dwords behind each four."""


def descriptor(
    address: int,
    lds: int,
    element_log2: int,
    tensor: Sequence[int],
    tile: Sequence[int],
    strides: Sequence[int],
    *,
    flags: int = 0,
    barrier: int = 0,
    rows: Sequence[int] = (),
    row_bits: int = 32,
    iteration: int = 0,
) -> dict[int, int]:
    """The groups of a descriptor in s20 and so on. rows: those that are gathered; iteration: group 2, if it is one."""
    tensor, tile, strides = ((*given, 0, 0, 0, 0, 0)[:5] for given in (tensor, tile, strides))
    first = 1 | lds << 32 | address << 64 | 2 << 126 | bool(rows) << 31 | (bool(rows) and row_bits == 32) << 30
    second = element_log2 << 16 | flags | barrier >> 3 << 32 | tensor[0] << 48 | tensor[1] << 80
    second |= tile[0] << 112 | tile[1] << 128 | tile[2] << 144 | strides[0] << 160 | strides[1] << 208
    third = tensor[2] | tensor[3] << 32 | strides[2] << 64 | tile[3] << 112
    fourth = strides[3] | tensor[4] << 48 | tile[4] << 80
    if rows or iteration:
        third, fourth = iteration or sum(row << row_bits * i for i, row in enumerate(rows)), 0
    whole = first | second << 128 | third << 384 | fourth << 512
    return {20 + i: whole >> 32 * i & 0xFFFFFFFF for i in range(20)}


def moved(arch: str, name: str, memory: Memory, scalars: dict[int, int], lds: Array) -> Array:
    """LDS, as bytes, behind an instruction that moves a tile.

    LLVM leaves the groups about further dimensions out where they are zero, whatever size a tile has along those.
    """
    others = ", s[32:35], s[36:39]" if any(scalars[32 + i] for i in range(8)) else ""
    text = f"{name} s[20:23], s[24:31]{others}\ns_wait_tensorcnt 0x0"
    after = execute(text, arch, {}, s=scalars, memory=memory, lds=lds.tobytes())
    return after.waves.lds[: lds.nbytes].copy()


def loaded(arch: str, data: Array, lds: Array, *parts: Sequence[int], **options: int) -> Array:
    memory = Memory()
    scalars = descriptor(memory.map_array(data, name="data"), 0, data.itemsize.bit_length() - 1, *parts, **options)  # type: ignore[arg-type]
    return moved(arch, "tensor_load_to_lds", memory, scalars, lds).view(data.dtype)


def stored(arch: str, out: Array, lds: Array, *parts: Sequence[int], **options: int) -> None:
    memory = Memory()
    scalars = descriptor(memory.map_array(out, name="out"), 0, out.itemsize.bit_length() - 1, *parts, **options)  # type: ignore[arg-type]
    moved(arch, "tensor_store_from_lds", memory, scalars, lds)


def canaries(count: int) -> Array:
    return np.full(count, CANARY, np.uint32)


@conforms("gfx1250/memory_isa/tensor_memory (dimensions)", "gfx1250")
def dimensions(arch: str) -> None:
    """The rows of each tile lie one after another in LDS."""
    room = np.zeros(512, np.uint8)
    flat = np.arange(44, dtype=np.uint8) + 16
    got = loaded(arch, flat, room, (7, 4), (5, 3, 1), (11,))
    assert got[:15].tolist() == [int(flat[11 * y + x]) for y in range(3) for x in range(5)]
    halves = np.arange(12, dtype=np.uint16) + 0x4100
    assert loaded(arch, halves, room, (4, 2), (3, 2, 1), (6,))[:6].tolist() == [
        int(halves[6 * y + x]) for y in range(2) for x in range(3)
    ]
    solid = np.arange(40, dtype=np.uint32) + 0x51000000
    got = loaded(arch, solid, room, (3, 3, 2, 1, 1), (2, 2, 2, 1, 1), (5, 20))
    assert got[:8].tolist() == [int(solid[20 * z + 5 * y + x]) for z in range(2) for y in range(2) for x in range(2)]
    deep = np.arange(164, dtype=np.uint64) + (0x52 << 56)
    got = loaded(arch, deep, room, (2, 2, 2, 2, 2), (2, 1, 2, 1, 2), (3, 9, 27, 81))
    assert got[:8].tolist() == [int(deep[81 * q + 9 * z + x]) for q in range(2) for z in range(2) for x in range(2)]


@conforms("gfx1250/memory_isa/tensor_memory (stores)", "gfx1250")
def stores(arch: str) -> None:
    """What lies beyond the tensor stays in LDS; a store takes no heed of padding."""
    out, lds = canaries(8), np.arange(16, dtype=np.uint32) + 0x61000000
    stored(arch, out, lds, (3, 2), (3, 2, 1), (3,))
    assert out.tolist() == [*lds[:6].tolist(), CANARY, CANARY]
    out = canaries(12)
    stored(arch, out, lds, (3, 2), (4, 3, 1), (3,))
    assert out.tolist() == [int(lds[4 * y + x]) for y in range(2) for x in range(3)] + [CANARY] * 6
    out = canaries(10)
    stored(arch, out, lds, (8, 1), (8, 1, 1), (8,), flags=PADDED)
    assert out.tolist() == [*lds[:8].tolist(), CANARY, CANARY]


@conforms("gfx1250/memory_isa/tensor_memory (padding)", "gfx1250")
def padding(arch: str) -> None:
    """The dwords between stay, and beyond the tensor there are zeros."""
    data = np.arange(8, dtype=np.uint32) + 0x62000000
    got = loaded(arch, data, canaries(16), (8, 1), (8, 1, 1), (8,), flags=PADDED)
    assert got[:10].tolist() == [*data[:4].tolist(), CANARY, CANARY, *data[4:].tolist()]
    got = loaded(arch, data, canaries(16), (3, 2), (4, 3, 1), (3,))
    places = ((x, y) for y in range(3) for x in range(4))
    assert got[:12].tolist() == [int(data[3 * y + x]) if x < 3 and y < 2 else 0 for x, y in places]


@conforms("gfx1250/memory_isa/tensor_memory (barrier)", "gfx1250")
def arrival(arch: str) -> None:
    """A tile that has arrived counts one down at its barrier in LDS."""
    data, lds = np.arange(8, dtype=np.uint32), canaries(128)
    lds[80:82] = 2, 2
    got = loaded(arch, data, lds, (3, 2), (4, 3, 1), (3,), flags=1 << 18, barrier=320)
    assert got[80:82].tolist() == [1, 2]


@conforms("gfx1250/memory_isa/tensor_memory (rows)", "gfx1250")
def chosen_rows(arch: str) -> None:
    """Rows by numbers of 16 and of 32 bits, gathered and scattered."""
    data = np.arange(12, dtype=np.uint32) + 0x64000000
    for bits, rows in ((16, (1, 4, 5)), (32, (0, 2, 5))):
        memory, lds = Memory(), np.arange(8, dtype=np.uint32) + 0x71000000
        parts = (2, 6), (2, 3, 1), (2,)
        scalars = descriptor(memory.map_array(data, name="data"), 0, 2, *parts, rows=rows, row_bits=bits)
        got = moved(arch, "tensor_load_to_lds", memory, scalars, canaries(8)).view(np.uint32)
        assert got[:6].tolist() == [int(data[2 * row + x]) for row in rows for x in range(2)]
        memory, out = Memory(), canaries(12)
        scalars = descriptor(memory.map_array(out, name="out"), 0, 2, *parts, rows=rows, row_bits=bits)
        moved(arch, "tensor_store_from_lds", memory, scalars, lds)
        wanted = canaries(12)
        for i, row in enumerate(rows):
            wanted[2 * row : 2 * row + 2] = lds[2 * i : 2 * i + 2]
        assert out.tolist() == wanted.tolist()


@conforms("gfx1250/memory_isa/tensor_memory (iteration)", "gfx1250")
def repetition(arch: str) -> None:
    """The tile once more behind itself; past the end of the tensor are zeros."""
    data = np.arange(8, dtype=np.uint32) + 0x65000000
    again = 4 << 32 | 4 << 64 | 1 << 112
    got = loaded(arch, data, canaries(16), (2, 3), (2, 2, 0), (2,), flags=1 << 19, iteration=again)
    assert got[:8].tolist() == [*data[:6].tolist(), 0, 0]
