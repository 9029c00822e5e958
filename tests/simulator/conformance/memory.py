"""Memory of gfx1250: atomics, descriptors of buffers, LDS, blocks of registers, transposing and scalar loads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flydsl.simulator import Memory
from flydsl.simulator.arrays import Array
from tests.simulator.conformance.registry import EVERY, conforms, execute, expect
from tests.simulator.conftest import Registers

LANE = np.arange(32, dtype=np.uint32)
CANARY = 0xA5A5A5A5
NEGATIVE_ZERO, SIGNALLING, QUIET, INFINITY = 0x80000000, 0x7F854321, 0x7FC12345, 0x7F800000


def mapped(memory: Memory, array: Array, name: str) -> int:
    return memory.map_array(array, name=name)


def word(lane: int, i: int) -> int:
    """A number that says where it is from."""
    return (lane << 16 | i << 8 | 0x4D) ^ 0x51000000


def words(*places: int) -> Array:
    """(lanes, places)."""
    return np.array([[word(lane, i) for i in places] for lane in range(32)], np.uint32)


# --- atomics


@conforms("gfx1250/memory_isa/memory_atomic (global)", "gfx1250")
def atomics_of_memory(arch: str) -> None:
    """-0 and -0 are -0; a NaN loses; +0 is larger than -0; infinities that cancel give the negative NaN."""
    memory, data = Memory(), np.array([0x12345678, NEGATIVE_ZERO, 0x3F800000, 0, INFINITY, 0], np.uint32)
    text = """global_atomic_add_u32 v8, v0, v1, s[4:5] th:TH_ATOMIC_RETURN
        global_atomic_cmpswap_b32 v9, v0, v[2:3], s[4:5] th:TH_ATOMIC_RETURN
        global_atomic_add_f32 v10, v0, v4, s[4:5] offset:4 th:TH_ATOMIC_RETURN
        global_atomic_min_num_f32 v11, v0, v5, s[4:5] offset:8 th:TH_ATOMIC_RETURN
        global_atomic_max_num_f32 v12, v0, v4, s[4:5] offset:12 th:TH_ATOMIC_RETURN
        global_atomic_add_f32 v13, v0, v6, s[4:5] offset:16 th:TH_ATOMIC_RETURN
        global_atomic_max_num_f32 v14, v0, v1, s[4:5] offset:20 th:TH_ATOMIC_RETURN"""
    operands = {
        0: 0,
        1: 1,
        2: 0x76543210,
        3: 0x12345679,
        4: np.uint32(NEGATIVE_ZERO),
        5: QUIET,
        6: np.uint32(0xFF800000),
    }
    after = execute(text, arch, operands, s={4: mapped(memory, data, "data")}, memory=memory, exec_bits=1)
    before = [0x12345678, 0x12345679, NEGATIVE_ZERO, 0x3F800000, 0, INFINITY, 0]
    assert [int(after.v(8 + i)[0]) for i in range(7)] == before
    assert data.tolist() == [0x76543210, NEGATIVE_ZERO, 0x3F800000, 0, 0xFFC00000, 1]


@conforms("gfx1250/memory_isa/memory_atomic (LDS)", "gfx1250")
def atomics_of_lds(arch: str) -> None:
    """The operand's NaN comes before that of memory, and is made quiet."""
    lds = np.array([41, 0x7F812345, NEGATIVE_ZERO, 0], np.uint32)
    text = """ds_add_rtn_u32 v8, v0, v1
        ds_add_rtn_f32 v9, v0, v2 offset:4
        ds_min_num_rtn_f32 v10, v0, v3 offset:8
        ds_max_num_rtn_f32 v11, v0, v4 offset:12
        ds_load_b128 v[12:15], v0"""
    operands = {0: 0, 1: 1, 2: SIGNALLING, 3: 0, 4: np.uint32(NEGATIVE_ZERO)}
    after = execute(text, arch, operands, lds=lds.tobytes(), exec_bits=1)
    assert [int(after.v(8 + i)[0]) for i in range(4)] == lds.tolist()
    assert [int(after.v(12 + i)[0]) for i in range(4)] == [42, 0x7FC54321, NEGATIVE_ZERO, 0]


@conforms("gfx1250/memory_isa/memory_atomic (all lanes)", EVERY)
def atomics_of_all_lanes(arch: str) -> None:
    """Each lane sees another number."""
    newer = arch.startswith("gfx1")
    modifier = {"gfx90a": "glc", "gfx942": "sc0", "gfx950": "sc0", "gfx1100": "glc"}.get(arch, "th:TH_ATOMIC_RETURN")
    suffix = "_u32" if newer else ""
    memory, data = Memory(), np.array([100], np.uint32)
    text = f"""global_atomic_add{suffix} v8, v0, v1, s[4:5] {modifier}
        ds_add_rtn_u32 v9, v0, v1
        ds_{"load" if newer else "read"}_b32 v10, v0"""
    after = execute(text, arch, {0: 0, 1: 1}, s={4: mapped(memory, data, "data")}, memory=memory, lds=data.tobytes())
    lanes = after.v(8).size
    for register in (8, 9):
        assert sorted(after.v(register).tolist()) == list(range(100, 100 + lanes))
    assert data[0] == 100 + lanes == after.v(10)[0]


# --- descriptors of buffers


def resource(
    address: int, records: int, stride: int, scale: int = 0, *, swizzles: bool = False, by_record: bool = False
) -> dict[int, int]:
    """The registers of a descriptor from s4 on: 57 bits of address, 45 of records, then stride and modes."""
    whole = address | records << 57 | stride << 108 | scale << 122
    last = whole >> 96 | swizzles << 28 | by_record << 29
    return {4: whole & 0xFFFFFFFF, 5: whole >> 32 & 0xFFFFFFFF, 6: whole >> 64 & 0xFFFFFFFF, 7: last & 0xFFFFFFFF}


def numbered(tag: int) -> Array:
    return np.arange(1024, dtype=np.uint32) ^ np.uint32(tag << 24)


@conforms("gfx1250/memory_isa/buffer_descriptor_modes (scales)", "gfx1250")
def scales_of_strides(arch: str) -> None:
    """A stride counts 1, 4, 8 or 32 units."""
    for scale, unit in enumerate((1, 4, 8, 32)):
        memory, data, out = Memory(), numbered(0x31), np.full(1024, CANARY, np.uint32)
        scalars = resource(mapped(memory, data, "data"), 4096, 4, scale)
        scalars |= {r + 8: x for r, x in resource(mapped(memory, out, "out"), 4096, 4, scale).items()}
        text = """buffer_load_b32 v4, v0, s[4:7], null idxen offset:4
            buffer_store_b32 v1, v0, s[12:15], null idxen offset:8"""
        after = execute(text, arch, {0: LANE, 1: words(scale)[:, 0]}, s=scalars, memory=memory)
        expect(after.v(4), [int(data[lane * unit + 1]) for lane in range(32)], f"scale {scale}")
        wanted = np.full(1024, CANARY, np.uint32)
        wanted[np.arange(32) * unit + 2] = words(scale)[:, 0]
        np.testing.assert_array_equal(out, wanted)


@conforms("gfx1250/memory_isa/buffer_descriptor_modes (swizzle)", "gfx1250")
def swizzled_buffers(arch: str) -> None:
    """32 records lie together in pieces of 16 bytes."""
    memory, data, out = Memory(), numbered(0x32), np.full(1024, CANARY, np.uint32)
    scalars = resource(mapped(memory, data, "data"), 1, 16, 1, swizzles=True) | {16: 12}
    scalars |= {r + 8: x for r, x in resource(mapped(memory, out, "out"), 1, 16, 1, swizzles=True).items()}
    index, offset = LANE + 32 * (LANE & 1), 8 * (LANE & 3)
    text = """buffer_load_b32 v4, v[0:1], s[4:7], s16 idxen offen offset:4
        buffer_store_b32 v2, v[0:1], s[12:15], s16 idxen offen offset:4"""
    after = execute(text, arch, {0: index, 1: offset, 2: words(21)[:, 0]}, s=scalars, memory=memory)
    total = offset + 4 + 12
    places = (((index // 32) * 64 + total // 16 * 16) * 32 + index % 32 * 16 + total % 16) // 4
    expect(after.v(4), data[places].tolist(), "loads")
    wanted = np.full(1024, CANARY, np.uint32)
    wanted[places] = words(21)[:, 0]
    np.testing.assert_array_equal(out, wanted)


@conforms("gfx1250/memory_isa/buffer_descriptor_modes (bounds)", "gfx1250")
def bounds_of_records(arch: str) -> None:
    """An access that is partly outside of its record still accesses the dwords inside."""
    for by_record in (False, True):
        memory, data, out = Memory(), np.arange(16, dtype=np.uint32) + 33, np.full(16, CANARY, np.uint32)
        scalars = resource(mapped(memory, data, "data"), 64, 16, by_record=by_record)
        scalars |= {r + 8: x for r, x in resource(mapped(memory, out, "out"), 64, 16, by_record=by_record).items()}
        text = """buffer_load_b128 v[4:7], v[0:1], s[4:7], null idxen offen offset:12
            buffer_store_b128 v[8:11], v[0:1], s[12:15], null idxen offen offset:12"""
        operands = {0: 1, 1: 0} | {8 + i: np.uint32(word(0, 22 + i)) for i in range(4)}
        after = execute(text, arch, operands, s=scalars, memory=memory, exec_bits=1)
        inside = [i == 0 or not by_record for i in range(4)]
        assert [int(after.v(4 + i)[0]) for i in range(4)] == [int(data[7 + i]) * inside[i] for i in range(4)]
        wanted = np.full(16, CANARY, np.uint32)
        wanted[7:11] = [word(0, 22 + i) if inside[i] else CANARY for i in range(4)]
        np.testing.assert_array_equal(out, wanted)


# --- LDS


@conforms("gfx1250/memory_isa/lds_memory", "gfx1250")
def widths_of_lds(arch: str) -> None:
    """Each width is stored and loaded, with and without signs."""
    data = words(*range(10))
    bytes_, halves = 0x80 | LANE, 0x8000 | LANE
    operands: dict[int, Array] = {0: LANE * 64, 1: bytes_, 2: halves}
    places = [10, 12, 13, 14, 15, 16, 18, 19, 20, 21]  # those of a pair or more begin at an even register
    operands |= {place: data[:, i].copy() for i, place in enumerate(places)}
    text = """ds_store_b8 v0, v1
        ds_store_b16 v0, v2 offset:2
        ds_store_b32 v0, v10 offset:4
        ds_store_b64 v0, v[12:13] offset:8
        ds_store_b96 v0, v[14:16] offset:16
        ds_store_b128 v0, v[18:21] offset:32
        ds_load_u8 v24, v0
        ds_load_i8 v25, v0
        ds_load_u16 v26, v0 offset:2
        ds_load_i16 v27, v0 offset:2
        ds_load_b32 v30, v0 offset:4
        ds_load_b64 v[32:33], v0 offset:8
        ds_load_b96 v[34:36], v0 offset:16
        ds_load_b128 v[38:41], v0 offset:32"""
    after = execute(text, arch, operands, lds=bytes([0xA5]) * 2048)
    expect(after.v(24), bytes_.tolist(), "u8")
    expect(after.v(25), (bytes_ | 0xFFFFFF00).tolist(), "i8")
    expect(after.v(26), halves.tolist(), "u16")
    expect(after.v(27), (halves | 0xFFFF0000).tolist(), "i16")
    for i, place in enumerate(places):
        expect(after.v(20 + place), data[:, i].tolist(), f"dword {i}")
    untouched = after.waves.lds[:2048].reshape(32, 64)[:, [1, 28, 29, 30, 31, *range(48, 64)]]
    assert np.all(untouched == 0xA5)


@conforms("semantics/ds_storexchg_2addr", "gfx1250")
def exchanges_of_two_places(arch: str) -> None:
    """Both of the old numbers come back, at distances of elements and of 64 of them."""
    numbers = np.arange(64, dtype=np.float64) * 0.25 - 3
    for dtype, stride64 in ((np.float32, 0), (np.float32, 1), (np.float64, 0), (np.float64, 1)):
        size = np.dtype(dtype).itemsize
        second = 2048 // (64 * size) if stride64 else 1
        lds = np.zeros(4096 // size, dtype)
        at = np.arange(64) * 16 // size
        other = at + second * (64 if stride64 else 1)
        lds[at], lds[other] = numbers, numbers + 1
        dwords = size // 4
        pair, one, two = f"v[20:{19 + 2 * dwords}]", f"v[10:{9 + dwords}]", f"v[14:{13 + dwords}]"
        name = f"ds_storexchg_2addr_{'stride64_' * stride64}rtn_b{8 * size}"
        operands = {
            0: np.arange(64, dtype=np.uint32) * 16,
            10: (numbers + 10).astype(dtype),
            14: (numbers + 11).astype(dtype),
        }
        text = f"{name} {pair}, v0, {one}, {two} offset0:0 offset1:{second}"
        after = execute(text, arch, operands, lds=lds.tobytes())
        assert after.v(20, dtype).tolist() == numbers.tolist(), name
        assert after.v(20 + dwords, dtype).tolist() == (numbers + 1).tolist(), name
        now = after.waves.lds[:4096].view(dtype)
        assert now[at].tolist() == (numbers + 10).tolist(), name
        assert now[other].tolist() == (numbers + 11).tolist(), name


@conforms("semantics/ds_addtid", "gfx1250")
def lds_by_lane(arch: str) -> None:
    """M0 reaches beyond 64 KiB."""
    base, offset = 64 * 1024, 64
    lds = np.full((base + 256) // 4, -4096, np.float32)
    lds[offset // 4 : offset // 4 + 32] = -1000 - np.arange(32)
    lds[(base + offset) // 4 : (base + offset) // 4 + 32] = 1000 + np.arange(32)
    text = f"s_mov_b32 m0, {base:#x}\nds_load_addtid_b32 v1 offset:64\nds_store_addtid_b32 v2 offset:64"
    after = execute(text, arch, {2: np.arange(32, dtype=np.float32) / 8}, lds=lds.tobytes())
    assert after.v(1, np.float32).tolist() == (1000 + np.arange(32)).tolist()
    lds[(base + offset) // 4 : (base + offset) // 4 + 32] = np.arange(32) / 8
    np.testing.assert_array_equal(after.waves.lds[: lds.nbytes].view(np.float32), lds)


# --- blocks, transposing loads, scalar loads


@conforms("gfx1250/memory_isa/block_memory", "gfx1250")
def blocks_of_registers(arch: str) -> None:
    """Registers and dwords that M0 does not name stay."""
    for space, mask in (("global", 0x80018089), ("scratch", 0x80018089), ("scratch", 0x42100412)):
        named = [bool(mask >> i & 1) for i in range(32)]
        memory, data = Memory(), words(*range(32)).copy()
        out = np.full((32, 32), CANARY, np.uint32)
        scalars = {4: mapped(memory, data, "data"), 6: mapped(memory, out, "out")}
        loaded, stored = (
            {40 + i: np.uint32(CANARY) for i in range(32)},
            {80 + i: data[:, i] ^ np.uint32(7) for i in range(32)},
        )
        if space == "global":
            text = f"""s_mov_b32 m0, {mask:#x}
                global_load_block v[40:71], v0, s[4:5]
                global_store_block v0, v[80:111], s[6:7]"""
        else:
            text = f"""s_mov_b32 m0, -1
                scratch_store_block off, v[40:71], off
                s_mov_b32 m0, {mask:#x}
                scratch_store_block off, v[80:111], off
                scratch_load_block v[40:71], off, off
                s_mov_b32 m0, -1
                scratch_load_block v[80:111], off, off
                global_store_block v0, v[80:111], s[6:7]"""
        after = execute(text, arch, {0: LANE * 128} | loaded | stored, s=scalars, memory=memory, scratch_bytes=128)
        source = data if space == "global" else data ^ np.uint32(7)
        for i in range(32):
            expect(after.v(40 + i), source[:, i].tolist() if named[i] else [CANARY] * 32, f"{space} load, register {i}")
        np.testing.assert_array_equal(out, np.where(named, data ^ np.uint32(7), np.uint32(CANARY)))


def elements_in(data: Array, bits: int) -> list[list[int]]:
    """Dwords (lanes, count) as the elements that lie in them."""
    whole = [sum(int(x) << 32 * i for i, x in enumerate(lane)) for lane in data]
    return [[x >> bits * i & ((1 << bits) - 1) for i in range(32 * data.shape[1] // bits)] for x in whole]


def transposes(arch: str, space: str, tile: dict[int, int]) -> None:
    """The element of row m and column k is 16 k + m, of which each trial looks at other bits.

    tile: columns by the bits of an element.
    """
    at = {4: LANE * 8, 6: (4 * (LANE >> 3) + (LANE & 3) + 16 * (LANE >> 2 & 1)) * 12}
    column = (LANE & 7) + 8 * (LANE >> 4)
    at |= {8: column * 16 + (LANE >> 3 & 1) * 8, 16: column * 32 + (LANE >> 3 & 1) * 16}
    for trial, (bits, columns) in ((t, item) for t in range(3) for item in tile.items()):

        def number(m: int, k: int, trial: int = trial, bits: int = bits) -> int:
            return 16 * k + m >> trial * bits & ((1 << bits) - 1)

        whole = sum(number(m, k) << (16 * k + m) * bits for k in range(columns) for m in range(16))
        data = np.frombuffer(whole.to_bytes(2 * columns * bits, "little"), np.uint8).view(np.uint32).copy()
        width = columns // 2 * bits
        result, memory = f"v[4:{3 + width // 32}]", Memory()
        name, operands = f"load_tr{bits}_b{width}", {0: at[bits].astype(np.uint32)}
        if space == "global":
            scalars = {4: mapped(memory, data, "data")}
            after = execute(f"global_{name} {result}, v0, s[4:5]", arch, operands, s=scalars, memory=memory)
        else:
            after = execute(f"ds_{name} {result}, v0", arch, operands, lds=data.tobytes())
        got = elements_in(np.stack([after.v(4 + i) for i in range(width // 32)], axis=1), bits)
        for lane in range(32):
            m, half, count = lane % 16, lane // 16, columns // 2
            depth = (
                [k for k in range(columns) if k >> 3 & 1 == half]
                if bits == 4
                else range(half * count, (half + 1) * count)
            )
            assert got[lane] == [number(m, k) for k in depth], (space, bits, trial, lane)


@conforms("gfx1250/memory_isa/transpose_memory (global)", "gfx1250")
def transposing_loads_of_memory(arch: str) -> None:
    transposes(arch, "global", {4: 32, 6: 32, 8: 16, 16: 16})


@conforms("gfx1250/memory_isa/transpose_memory (LDS)", "gfx1250")
def transposing_loads_of_lds(arch: str) -> None:
    transposes(arch, "ds", {4: 32, 6: 32, 16: 16})


@conforms("gfx1250/memory_isa/transpose_memory (LDS, 8 bits)", "gfx1250", differs=True)
def transposing_loads_of_bytes_of_lds(arch: str) -> None:
    """The corpus has lanes exchange as those of loads from memory do. Observed were two groups of four lanes."""
    data = np.arange(256, dtype=np.uint8)
    at = (LANE // 16 * 8 + LANE % 8) * 16 + LANE // 8 % 2 * 8
    after = execute("ds_load_tr8_b64 v[2:3], v0", arch, {0: at}, lds=data.tobytes())
    got = elements_in(np.stack([after.v(2), after.v(3)], axis=1), 8)
    for lane in range(32):
        source = [lane & 16 | lane // 8 % 2 * 4 | i // 4 * 8 | i % 4 for i in range(8)]
        assert got[lane] == [int(data[at[s] + lane % 8]) for s in source], lane


@conforms("gfx1250/memory_isa/scalar_memory", "gfx1250")
def widths_of_scalar_loads(arch: str) -> None:
    memory, data = Memory(), ((3 + 37 * np.arange(160)) & 0xFF).astype(np.uint8)
    data[136:142] = [0x81, 0xFE, 0x01, 0x80, 0xFE, 0xCA]
    places: Sequence[tuple[str, int, int, int]] = (
        ("b32", 8, 1, 0), ("b64", 10, 2, 4), ("b96", 12, 3, 12), ("b128", 16, 4, 24), ("b256", 20, 8, 40),
        ("b512", 28, 16, 72), ("i8", 44, 1, 136), ("u8", 45, 1, 137), ("i16", 46, 1, 138), ("u16", 47, 1, 140),
    )  # fmt: skip
    lines = [f"s_load_{w} {f's{r}' if n == 1 else f's[{r}:{r + n - 1}]'}, s[4:5], {at}" for w, r, n, at in places]
    after = execute("\n".join(lines), arch, {}, s={4: mapped(memory, data, "data")}, memory=memory)
    for width, register, count, at in places[:6]:
        wanted = int.from_bytes(data[at : at + 4 * count].tobytes(), "little")
        assert after.s(register, count) == wanted, width
    assert [after.s(44 + i) for i in range(4)] == [0xFFFFFF81, 0xFE, 0xFFFF8001, 0xCAFE]


# --- scalar loads through descriptors


BYTES = ((3 + 37 * np.arange(160)) & 0xFF).astype(np.uint8)


def scalar_words(after: Registers, first: int, count: int) -> list[int]:
    return [after.s(first + i) for i in range(count)]


def words_at(offset: int, count: int = 1) -> list[int]:
    return BYTES[offset : offset + 4 * count].copy().view(np.uint32).tolist()


@conforms("gfx1250/memory_isa/s_buffer_memory (offsets)", "gfx1250")
def offsets_of_scalar_buffers(arch: str) -> None:
    memory = Memory()
    scalars = resource(mapped(memory, BYTES.copy(), "data"), 160, 0) | {8: 20}
    text = "s_buffer_load_b32 s10, s[4:7], s8 offset:12\ns_buffer_load_b96 s[12:14], s[4:7], null offset:12"
    after = execute(text, arch, {}, s=scalars, memory=memory)
    assert after.s(10) == words_at(32)[0]
    assert scalar_words(after, 12, 3) == words_at(12, 3)


@conforms("gfx1250/memory_isa/s_buffer_memory (bounds)", "gfx1250")
def bounds_of_scalar_buffers(arch: str) -> None:
    """Of a buffer with a stride num_records counts records; scale, swizzle and bounds of a record count for nothing."""
    for records, stride, scale, modes in ((32, 0, 0, False), (8, 4, 0, False), (8, 4, 3, True)):
        memory = Memory()
        base = mapped(memory, BYTES.copy(), "data")
        scalars = resource(base, records, stride, scale, swizzles=modes, by_record=modes)
        after = execute("s_buffer_load_b128 s[12:15], s[4:7], null offset:24", arch, {}, s=scalars, memory=memory)
        assert scalar_words(after, 12, 4) == [*words_at(24, 2), 0, 0], (records, stride, scale)


@conforms("gfx1250/memory_isa/s_buffer_memory (alignment)", "gfx1250")
def alignment_of_scalar_buffers(arch: str) -> None:
    """Base and offset are each cut off to the width of an element."""
    memory = Memory()
    scalars = resource(mapped(memory, BYTES.copy(), "data") + 3, 157, 0)
    text = """s_buffer_load_u8 s12, s[4:7], null offset:5
        s_buffer_load_u16 s13, s[4:7], null offset:3
        s_buffer_load_b32 s14, s[4:7], null offset:7"""
    after = execute(text, arch, {}, s=scalars, memory=memory)
    assert scalar_words(after, 12, 3) == [int(BYTES[8]), words_at(4)[0] & 0xFFFF, words_at(4)[0]]


@conforms("gfx1250/memory_isa/async_memory", "gfx1250")
def asynchronous_copies(arch: str) -> None:
    """Each width to LDS and back, and nothing beside it."""
    memory, out = Memory(), np.full(4096, 0xA5, np.uint8)
    data = ((np.arange(4096) * 37 + np.arange(4096) // 128) & 0xFF).astype(np.uint8)
    scalars = {4: mapped(memory, data, "data"), 6: mapped(memory, out, "out")}
    at = LANE * 128 + 8
    widths = ((8, 0), (32, 32), (64, 64), (128, 96))
    loads = "\n".join(f"global_load_async_to_lds_b{w} v0, v0, s[4:5] offset:{offset}" for w, offset in widths)
    stores = "\n".join(f"global_store_async_from_lds_b{w} v0, v0, s[6:7] offset:{offset}" for w, offset in widths)
    text = f"{loads}\ns_wait_asynccnt 0x0\n{stores}\ns_wait_asynccnt 0x0"
    after = execute(text, arch, {0: at}, s=scalars, memory=memory, lds=bytes([0xA5]) * 4096)
    wanted = np.full(4096, 0xA5, np.uint8)
    for (width, offset), first in ((item, int(x)) for item in widths for x in at):
        span = slice(first + offset, first + offset + width // 8)
        wanted[span] = data[span]
    np.testing.assert_array_equal(after.waves.lds[:4096], wanted)
    np.testing.assert_array_equal(out, wanted)


@conforms("semantics/s_clause", "gfx1100 gfx1201 gfx1250")
def clauses(arch: str) -> None:
    memory, data = Memory(), np.arange(128, dtype=np.uint32) + 9
    text = "s_clause 0x1\nglobal_load_b32 v4, v0, s[4:5]\nglobal_load_b32 v5, v0, s[4:5] offset:4"
    lane = np.arange(64, dtype=np.uint32)
    after = execute(text, arch, {0: 8 * lane}, s={4: mapped(memory, data, "data")}, memory=memory)
    expect(after.v(4), data[::2].tolist(), arch)
    expect(after.v(5), data[1::2].tolist(), arch)


@conforms("gfx1250/memory_isa/scratch_memory", "gfx1250")
def widths_of_scratch(arch: str) -> None:
    """Each width, and a dword that does not begin at a multiple of four."""
    data = words(*range(8))
    operands = {0: 0, 1: 96} | {10 + i: data[:, i].copy() for i in range(8)}
    text = """scratch_store_b32 v0, v10, off offset:8
        scratch_store_b64 v0, v[12:13], off offset:40
        scratch_store_b128 v0, v[14:17], off offset:72
        scratch_store_b32 v1, v11, off offset:61
        scratch_load_b32 v20, v0, off offset:8
        scratch_load_b64 v[22:23], v0, off offset:40
        scratch_load_b128 v[24:27], v0, off offset:72
        scratch_load_b32 v21, v1, off offset:61
        scratch_load_u8 v28, v0, off offset:158"""
    after = execute(text, arch, operands, scratch_bytes=192)
    for i in range(8):
        expect(after.v(20 + i), data[:, i].tolist(), f"v{20 + i}")
    expect(after.v(28), (data[:, 1] >> 8 & 0xFF).tolist(), "the second byte of the last one")


@conforms("gfx1250/memory_isa/buffer_memory (past the end)", "gfx1250")
def loads_past_the_end_of_a_buffer(arch: str) -> None:
    """Each dword for itself."""
    memory, data = Memory(), np.arange(16, dtype=np.uint32) + 70
    scalars = resource(mapped(memory, data, "data"), 64, 0)
    after = execute("buffer_load_b128 v[4:7], v0, s[4:7], null offen", arch, {0: 56}, s=scalars, memory=memory)
    assert [int(after.v(4 + i)[0]) for i in range(4)] == [84, 85, 0, 0]
