"""Integers: bits and bytes that change places, sums of differences, dot products, packs and tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from flydsl.simulator.arrays import Array
from tests.simulator.conformance.registry import CDNA, EVERY, conforms, execute, expect, registers
from tests.simulator.reference.case import clamp, field, signed

Rows = Sequence[Sequence[int]]


def bytes_of(x: int, count: int = 4) -> list[int]:
    return [field(x, i, 8) for i in range(count)]


def halves_of(x: int) -> list[int]:
    return [signed(field(x, i, 16), 16) for i in range(2)]


def packed(parts: Sequence[int], bits: int) -> int:
    return sum((part & ((1 << bits) - 1)) << bits * i for i, part in enumerate(parts))


def by_rows(arch: str, text: str, rows: Rows, function: Callable[..., int]) -> None:
    """`text` computes v9 from v0, v1, ... as the function does."""
    got = execute(text, arch, dict(enumerate(registers(rows)))).v(9)
    expect(got, [function(*row) for row in rows], f"{arch}: {text}")


# --- bits and bytes

PERMUTED = (
    (0x01234567, 0x89ABCDEF, 0x00010203), (0x00112233, 0x44556677, 0x07060504), (0xFF00AA55, 0x807F0102, 0x08090A0B),
    (0x10203040, 0x50607080, 0x0D0C0700), (0x7F80AA55, 0x807F0102, 0x0F0E0D0C), (0xDEADBEEF, 0x12345678, 5),
    (0, 0xFFFFFFFF, 31), (0xF0E1D2C3, 0xB4A59687, 7), (0x13579BDF, 0x2468ACE0, 0x04050607),
)  # fmt: skip


def permuted_bytes(x: int, y: int, selectors: int) -> int:
    data = bytes_of(y) + bytes_of(x)
    table = data + [0xFF * (data[i] >> 7) for i in (1, 3, 5, 7)] + [0] + [0xFF] * 243
    return packed([table[s] for s in bytes_of(selectors)], 8)


@conforms("general/int_isa/bit_permute", EVERY)
def bit_permute(arch: str) -> None:
    by_rows(arch, "v_alignbit_b32 v9, v0, v1, v2", PERMUTED, lambda x, y, s: (x << 32 | y) >> (s & 31) & 0xFFFFFFFF)
    by_rows(arch, "v_alignbyte_b32 v9, v0, v1, v2", PERMUTED, lambda x, y, s: (x << 32 | y) >> 8 * (s & 3) & 0xFFFFFFFF)
    by_rows(arch, "v_perm_b32 v9, v0, v1, v2", PERMUTED, permuted_bytes)


FIELDS = (
    (0xF0E1D2C3, 0, 8), (0x8ABC0FF0, 4, 12), (0x80010000, 16, 16), (0x87654321, 0, 31), (0x12345678, 8, 0),
    (0x80000000, 31, 1), (0x7FFFFFFF, 27, 5), (0x0000F000, 12, 4),
)  # fmt: skip


@conforms("general/int_isa/bitfield", EVERY)
def bit_fields(arch: str) -> None:
    by_rows(arch, "v_bfe_u32 v9, v0, v1, v2", FIELDS, lambda x, at, n: x >> at & ((1 << n) - 1))
    by_rows(arch, "v_bfe_i32 v9, v0, v1, v2", FIELDS, lambda x, at, n: signed(x >> at, n) if n else 0)


LERPS = (
    (0x00112233, 0xFFEEDDCC, 0x01000100), (0x7F80FE01, 0x801001FF, 0x00010100), (0x10203040, 0x11213141, 0xFFFFFFFF),
    (0xFFFFFFFF, 0, 0x01010101), (0x01030507, 0x02040608, 0), (0x000102FE, 0xFFFEFD01, 0x01000001),
    (0x89ABCDEF, 0x76543210, 0x10101010), (0x80808080, 0x7F7F7F7F, 0x01000100),
)  # fmt: skip


@conforms("general/int_isa/lerp", EVERY)
def lerp(arch: str) -> None:
    def of_bytes(x: int, y: int, rounding: int) -> int:
        parts = zip(bytes_of(x), bytes_of(y), bytes_of(rounding), strict=True)
        return packed([(a + b + (r & 1)) >> 1 for a, b, r in parts], 8)

    by_rows(arch, "v_lerp_u8 v9, v0, v1, v2", LERPS, of_bytes)


# --- sums of absolute differences

DIFFERENCES = (
    (0x00010203, 0x03020100, 7), (0xFF00AA55, 0x0010AA00, 0xFFFFFFF0), (0x12345678, 0x87654321, 0x1000),
    (0x7FFF8000, 0x80007FFF, 0x80000000), (0x0F0E0D0C, 0x01020304, 0x55AA55AA), (0x0000FFFF, 0xFFFF0000, 0),
    (0x11223344, 0x00003300, 0x1234), (0xFFFFFFFF, 0x01010101, 1),
)  # fmt: skip
WINDOWS = (
    (0x0706050403020100, 0x03020100, 0x0004000300020001, (11, 13, 17, 19)),
    (0x8877665544332211, 0x00004422, 0xFFFEFFFDF00F0001, (0xFFFFFF00, 0xFFFFFF10, 0xFFFFFF20, 0xFFFFFF30)),
    (0x0101010101010101, 0x01000100, 0x1000200030004000, (0, 1, 2, 3)),
    (0xFF00EE11DD22CC33, 0x11220033, 0x0000000100020003, (0x80000000, 0x7FFFFFFF, 0x12345678, 0x9ABCDEF0)),
    (0x0010203040506070, 0x10203040, 0xAAAA55550000FFFF, (5, 8, 13, 21)),
    (0xFEDCBA9876543210, 0x08060402, 0x7FFF800100020003, (0xFFFF0001, 0x0000FFFF, 0x13579BDF, 0x2468ACE0)),
    (0x0123456789ABCDEF, 0x00FF0080, 0x0011002200330044, (0x101, 0x202, 0x303, 0x404)),
    (0x0F1E2D3C4B5A6978, 0, 0xFFFFEEEE11112222, (0, 0x10000, 0x20000, 0x30000)),
)


def difference(x: int, y: int, *, masked: bool = False) -> int:
    return sum(abs(a - b) for a, b in zip(bytes_of(x), bytes_of(y), strict=True) if b or not masked)


def of_halves(x: int, y: int) -> int:
    return sum(abs((a & 0xFFFF) - (b & 0xFFFF)) for a, b in zip(halves_of(x), halves_of(y), strict=True))


@conforms("general/int_isa/packed_sad", EVERY)
def sums_of_differences(arch: str) -> None:
    by_rows(arch, "v_sad_u8 v9, v0, v1, v2", DIFFERENCES, lambda x, y, z: difference(x, y) + z)
    by_rows(arch, "v_sad_hi_u8 v9, v0, v1, v2", DIFFERENCES, lambda x, y, z: (difference(x, y) << 16) + z)
    by_rows(arch, "v_sad_u16 v9, v0, v1, v2", DIFFERENCES, lambda x, y, z: of_halves(x, y) + z)
    by_rows(arch, "v_msad_u8 v9, v0, v1, v2", DIFFERENCES, lambda x, y, z: difference(x, y, masked=True) + z)


@conforms("general/int_isa/packed_sad (windows)", EVERY)
def sums_of_differences_of_windows(arch: str) -> None:
    bytes_, reference, sums, wide = (list(column) for column in zip(*WINDOWS, strict=True))
    vectors = {0: np.array(bytes_, np.uint64), 2: np.array(reference, np.uint32), 4: np.array(sums, np.uint64)}
    vectors |= {6 + i: np.array([w[i] for w in wide], np.uint32) for i in range(4)}
    text = "v_qsad_pk_u16_u8 v[10:11], v[0:1], v2, v[4:5]\nv_mqsad_pk_u16_u8 v[12:13], v[0:1], v2, v[4:5]\n"
    after = execute(text + "v_mqsad_u32_u8 v[14:17], v[0:1], v2, v[6:9]", arch, vectors)
    windows = [[(x >> 8 * i & 0xFFFFFFFF) for i in range(4)] for x in bytes_]
    for register, masked in ((10, False), (12, True)):
        parts = [
            [difference(w, y, masked=masked) + field(z, i, 16) for i, w in enumerate(ws)]
            for ws, y, z in zip(windows, reference, sums, strict=True)
        ]
        expect(after.v(register, np.uint64), [packed(p, 16) for p in parts], f"{arch}: of 16 bits")
    for i in range(4):
        rows = zip(windows, reference, wide, strict=True)
        expect(after.v(14 + i), [difference(w[i], y, masked=True) + z[i] for w, y, z in rows], f"{arch}: of 32 bits")


# --- dot products

DOTS = {
    (8, False): ((0x00010203, 0x04050607, 0), (0xFF00AA55, 0x0010AA00, 17), (0xFFFFFFFF, 0x01010101, 0xFFFF0000),
                 (0x800000FF, 0x02030405, 0x7FFFFFF0), (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFF0)),
    (8, True): ((0x00010203, 0x04050607, 0), (0xFF00AA55, 0x0010AA00, -19), (0x807F01FF, 0x7F80FF01, 12345),
                (0xFFFFFFFF, 0x01010101, -7), (0x80808080, 0x80808080, 2147483500),
                (0x80808080, 0xFFFFFFFF, -2147483500)),
    (4, False): ((0x01234567, 0x76543210, 0), (0xFFFFFFFF, 0x11111111, 123), (0x89ABCDEF, 0xFEDCBA98, 0x7FFFFFF0),
                 (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFF0)),
    (4, True): ((0x01234567, 0x76543210, 0), (0x89ABCDEF, 0xFEDCBA98, -17), (0x88888888, 0x88888888, 2147483500),
                (0x88888888, 0x77777777, -2147483500), (0xFFFFFFFF, 0x11111111, 321)),
}  # fmt: skip


def dots(arch: str, name: str, bits: int, signs: tuple[bool, bool], is_signed: bool, modifiers: str = "") -> None:
    rows = [(x, y, z & 0xFFFFFFFF) for x, y, z in DOTS[bits, is_signed]]
    for saturates in (False, True):

        def function(x: int, y: int, z: int) -> int:
            total = sum(
                (signed(field(x, i, bits), bits) if signs[0] else field(x, i, bits))
                * (signed(field(y, i, bits), bits) if signs[1] else field(y, i, bits))
                for i in range(32 // bits)
            ) + (signed(z, 32) if is_signed else z)
            low, high = (-(1 << 31), (1 << 31) - 1) if is_signed else (0, (1 << 32) - 1)
            return clamp(total, low, high) if saturates else total  # noqa: B023 - called at once

        by_rows(arch, f"{name} v9, v0, v1, v2 {modifiers} {'clamp' * saturates}", rows, function)


@conforms("general/int_isa/integer_dot (unsigned)", EVERY.replace("gfx1250", ""))
def unsigned_dots(arch: str) -> None:
    dots(arch, "v_dot4_u32_u8", 8, (False, False), is_signed=False)
    dots(arch, "v_dot8_u32_u4", 4, (False, False), is_signed=False)


@conforms("general/int_isa/integer_dot (signed)", CDNA)
def signed_dots(arch: str) -> None:
    dots(arch, "v_dot4_i32_i8", 8, (True, True), is_signed=True)
    dots(arch, "v_dot8_i32_i4", 4, (True, True), is_signed=True)


@conforms("general/int_isa/integer_dot (signs)", "gfx1100 gfx1201")
def dots_of_either_sign(arch: str) -> None:
    for signs in product((False, True), repeat=2):
        modifiers = f"neg_lo:[{int(signs[0])},{int(signs[1])},0]"
        dots(arch, "v_dot4_i32_iu8", 8, signs, True, modifiers)
        dots(arch, "v_dot8_i32_iu4", 4, signs, True, modifiers)


# --- packs


@conforms("general/int_isa/packed_convert (integers)", EVERY)
def packs_of_integers(arch: str) -> None:
    numbers = ((0, 1), (-1, 1), (-32768, 32767), (-12345, 23456), (0x1234, -0x1234), (0x10000, -32769),
               (-0x7FFF8000, -1), (0xFFFF, 0), (0x8000, 0x7FFF), (0x1234, 0xABCD))  # fmt: skip
    rows = [[x & 0xFFFFFFFF for x in row] for row in numbers]
    by_rows(
        arch, "v_cvt_pk_i16_i32 v9, v0, v1", rows,
        lambda *pair: packed([clamp(signed(x, 32), -32768, 32767) for x in pair], 16),
    )  # fmt: skip
    by_rows(arch, "v_cvt_pk_u16_u32 v9, v0, v1", rows, lambda *pair: packed([min(x, 0xFFFF) for x in pair], 16))


@conforms("general/int_isa/packed_convert (floats)", EVERY)
def packs_of_floats(arch: str) -> None:
    """Halfway cases go to the even integer."""
    pairs = np.array([(0, 1), (0.25, 0.5), (-0.25, 0.25), (-0.5, 0.5), (0.5, 0.25), (-0.25, -0.5)], np.float32)
    name = "v_cvt_pk_norm_{}16_f32" if arch.startswith("gfx1") else "v_cvt_pknorm_{}16_f32"
    text = "\n".join(f"{name.format(sign)} v{register}, v0, v1" for sign, register in (("i", 8), ("u", 9)))
    after = execute(text, arch, {0: pairs[:, 0], 1: pairs[:, 1]})
    expect(after.v(8), [packed([round(float(x) * 32767) for x in pair], 16) for pair in pairs], f"{arch}: signed")
    wanted = [packed([round(max(float(x), 0) * 65535) for x in pair], 16) for pair in pairs]
    expect(after.v(9), wanted, f"{arch}: unsigned")
    rows = ((0.0, 0, 0x11223344), (1.0, 1, 0x11223344), (127.0, 2, 0xAABBCCDD), (255.0, 3, 0x01020304),
            (-1.0, 0, 0xFFFFFFFF), (260.0, 3, 0))  # fmt: skip
    vectors = {
        0: np.float32([r[0] for r in rows]),
        1: np.uint32([r[1] for r in rows]),
        2: np.uint32([r[2] for r in rows]),
    }
    got = execute("v_cvt_pk_u8_f32 v9, v0, v1, v2", arch, vectors).v(9)
    wanted = [old & ~(0xFF << 8 * at) | int(clamp(math.floor(x), 0, 255)) << 8 * at for x, at, old in rows]
    expect(got, wanted, f"{arch}: bytes")


@conforms("gfx1250/int_isa/packed_add_minmax", "gfx1250")
def packed_sums_and_bounds(arch: str) -> None:
    rows = ((0x00010002, 0x00030004, 0x00050001), (0x7FFF7FFF, 0x00010002, 0x7FFE8000),
            (0x80008000, 0xFFFFFFFE, 0x80017FFF), (0xFFFFFFFF, 0x00010001, 0x1234ABCD),
            (0x7FFF0000, 0x7FFF0001, 0x4000FFFF), (0x0000FFFF, 0xFFFF0001, 0x80007FFF))  # fmt: skip
    for sign, choose in product("iu", (max, min)):
        low, high = (-32768, 32767) if sign == "i" else (0, 0xFFFF)

        def function(*row: int) -> int:
            parts = [[x if sign == "i" else x & 0xFFFF for x in halves_of(word)] for word in row]  # noqa: B023
            return packed([choose(clamp(a + b, low, high), c) for a, b, c in zip(*parts, strict=True)], 16)  # noqa: B023

        by_rows(arch, f"v_pk_add_{choose.__name__}_{sign}16 v9, v0, v1, v2", rows, function)


@conforms("gfx1250/int_isa/saturating_pack", "gfx1250")
def saturating_packs(arch: str) -> None:
    rows = ((0, 0, 0), (0x0001FFFF, 0x01FF08F8, 0x010F10FF), (0x00FF0100, 0x7F0780F9, 0x7F0E0F10),
            (0x7FFF8000, 0x807F10EF, 0xFF10200A), (0x80017FFE, 0xF80708F7, 0x0F00010E))  # fmt: skip
    text = "v_sat_pk_u8_i16 v7, v0\nv_sat_pk4_i4_i8 v8, v1\nv_sat_pk4_u4_u8 v9, v2"
    after = execute(text, arch, dict(enumerate(registers(rows))))
    low = [after.v(register) & 0xFFFF for register in (7, 8, 9)]
    expect(low[0], [packed([clamp(x, 0, 255) for x in halves_of(r[0])], 8) for r in rows], "u8")
    expect(low[1], [packed([clamp(signed(x, 8), -8, 7) for x in bytes_of(r[1])], 4) for r in rows], "i4")
    expect(low[2], [packed([min(x, 15) for x in bytes_of(r[2])], 4) for r in rows], "u4")


# --- tables and registers by number

TABLES = (
    (0x89ABCDEF01234567, 0xFEDCBA9889ABCDEF01234567, 0xFEDCBA987654321089ABCDEF01234567, 0xFEDCBA9876543210),
    (0x0123456789ABCDEF, 0x2468ACE013579BDFDEADBEEF, 0xCCDDEEFF8899AABB4455667700112233, 0xFFFFFFFF00000000),
    (0x76543210FEDCBA98, 0xAAAAAAAA00000000FFFFFFFF, 0x55555555AAAAAAAA00000000FFFFFFFF, 0x89ABCDEF01234567),
    (0x1000000880000001, 0x100000080000000280000001, 0x10000008000000040000000280000001, 0x0123456F0000F870),
)


@conforms("gfx1250/int_isa/packed_permute", "gfx1250")
def tables_of_sixteen(arch: str) -> None:
    """The first operand is the upper part of the table."""
    for which, bits, operands in ((0, 4, "v1, v0"), (1, 6, "v2, v[0:1]"), (2, 8, "v[2:3], v[0:1]")):
        count = bits // 2
        vectors = {i: np.uint32([row[which] >> 32 * i & 0xFFFFFFFF for row in TABLES]) for i in range(count)}
        vectors[6] = np.array([row[3] for row in TABLES], np.uint64)
        after = execute(f"v_perm_pk16_b{bits}_u4 v[10:{9 + count}], {operands}, v[6:7]", arch, vectors)
        wanted = [packed([field(row[which], field(row[3], i, 4), bits) for i in range(16)], bits) for row in TABLES]
        for i in range(count):
            expect(after.v(10 + i), [w >> 32 * i & 0xFFFFFFFF for w in wanted], f"{bits} bits, dword {i}")


def lane_values(tag: int) -> Array:
    return (tag << 24 | np.arange(32) * 0x101 + 0x35).astype(np.uint32)


def registers_by_number(arch: str, moves: Moves) -> None:
    for m0, text, before, wanted in moves:
        after = execute(f"s_mov_b32 m0, {m0:#x}\n{text}", arch, {r: lane_values(tag) for r, tag in before.items()})
        for register, tag in wanted.items():
            expect(after.v(register), lane_values(tag).tolist(), f"{text} with M0 {m0:#x}: v{register}")


Moves = Sequence[tuple[int, str, dict[int, int], dict[int, int]]]
"""M0, an instruction, and the lanes' values in registers before and after it."""


@conforms("gfx1250/int_isa/relative_move", "gfx1250")
def registers_at_a_distance(arch: str) -> None:
    """M0 moves source and result, by two distances or by one."""
    moves = (
        (1, "v_movrelsd_b32 v19, v20", {20: 0, 21: 0x11}, {20: 0x11}),
        (0x20001, "v_movrelsd_2_b32 v30, v33", {32: 0, 34: 0x22}, {32: 0x22}),
        (0x20001, "v_swaprel_b32 v40, v43", {42: 0x33, 44: 0x44}, {42: 0x44, 44: 0x33}),
        (0, "v_movrelsd_b32 v10, v11", {10: 0, 11: 0x55}, {10: 0x55}),
    )
    registers_by_number(arch, moves)


@conforms("gfx1250/int_isa/relative_move (no register)", "gfx1250", refused="is beyond the 1024 VGPRs")
def registers_too_far_away(arch: str) -> None:
    """Hardware reads v0 for a source beyond the last register, and drops such a result."""
    registers_by_number(arch, [(0x3FF, "v_movrelsd_2_b32 v12, v1", {0: 0x66, 1: 0x77, 12: 0x99}, {12: 0x66})])


@conforms("semantics/permute_pk16", "gfx1250")
def tables_without_active_lanes(arch: str) -> None:
    """Without an active lane, results stay."""
    before = {20 + i: np.arange(32, dtype=np.uint32) + (i << 16) for i in range(9)}
    text = """s_mov_b64 s[4:5], exec
        s_mov_b64 exec, 0
        v_perm_pk16_b4_u4 v[20:21], v0, v1, v[8:9]
        v_perm_pk16_b6_u4 v[22:24], v0, v[2:3], v[8:9]
        v_perm_pk16_b8_u4 v[26:29], v[2:3], v[4:5], v[8:9]
        s_mov_b64 exec, s[4:5]"""
    before |= {26 + i: np.arange(32, dtype=np.uint32) + (i << 20) for i in range(4)}
    after = execute(text, arch, {i: np.arange(32, dtype=np.uint32) for i in range(10)} | before)
    for register, values in before.items():
        expect(after.v(register), values.tolist(), f"v{register}")
