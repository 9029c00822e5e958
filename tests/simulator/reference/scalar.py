"""SOP1, SOP2, SOPC, SOPK: once per wave.

Words of a signature: i32 and i64, scalar registers; `scc` and `exec` on either side; on the right, `old`, the
destination before, `k`, a 16-bit constant, and `field`, the control word of s_bfe.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.simulator.reference.case import M16, M32, M64, Case, integer, s16, s32, signed

CASES: dict[str, Case] = {}


def define(name: str, signature: str, function: Callable[..., Any]) -> None:
    CASES[name] = integer(signature, function)


def nonzero(result: int, bits: int) -> tuple[int, bool]:
    """With SCC: whether the result is not zero."""
    result &= (1 << bits) - 1
    return result, result != 0


def overflow(value: int) -> tuple[int, bool]:
    """With SCC: signed overflow."""
    return value & M32, value != s32(value)


def carry(value: int) -> tuple[int, bool]:
    return value & M32, not 0 <= value <= M32


for _bits in (32, 64):
    _t = f"i{_bits}"
    define(f"s_mov_b{_bits}", f"{_t} = {_t}", lambda a: a)
    define(f"s_cmov_b{_bits}", f"{_t} = {_t} old scc", lambda a, old, scc: a if scc else old)
    define(f"s_cselect_b{_bits}", f"{_t} = {_t} {_t} scc", lambda a, b, scc: a if scc else b)
define("s_movk_i32", "i32 = k", s16)
define("s_cmovk_i32", "i32 = k old scc", lambda k, old, scc: s16(k) if scc else old)

define("s_add_u32", "i32 scc = i32 i32", lambda a, b: carry(a + b))
define("s_addc_u32", "i32 scc = i32 i32 scc", lambda a, b, c: carry(a + b + c))
define("s_sub_u32", "i32 scc = i32 i32", lambda a, b: carry(a - b))
define("s_subb_u32", "i32 scc = i32 i32 scc", lambda a, b, c: carry(a - b - c))
define("s_add_i32", "i32 scc = i32 i32", lambda a, b: overflow(s32(a) + s32(b)))
define("s_sub_i32", "i32 scc = i32 i32", lambda a, b: overflow(s32(a) - s32(b)))
define("s_addk_i32", "i32 scc = k old", lambda k, old: overflow(s32(old) + s16(k)))
define("s_mulk_i32", "i32 = k old", lambda k, old: old * s16(k))
define("s_mul_i32", "i32 = i32 i32", lambda a, b: a * b)
define("s_mul_hi_u32", "i32 = i32 i32", lambda a, b: a * b >> 32)
define("s_mul_hi_i32", "i32 = i32 i32", lambda a, b: s32(a) * s32(b) >> 32)
define("s_abs_i32", "i32 scc = i32", lambda a: nonzero(abs(s32(a)), 32))
define("s_absdiff_i32", "i32 scc = i32 i32", lambda a, b: nonzero(abs(s32(a - b)), 32))
for _n in (1, 2, 3, 4):
    define(f"s_lshl{_n}_add_u32", "i32 scc = i32 i32", lambda a, b, n=_n: carry((a << n) + b))
define("s_min_i32", "i32 scc = i32 i32", lambda a, b: (min(a, b, key=s32), s32(a) < s32(b)))
define("s_max_i32", "i32 scc = i32 i32", lambda a, b: (max(a, b, key=s32), s32(a) >= s32(b)))
define("s_min_u32", "i32 scc = i32 i32", lambda a, b: (min(a, b), a < b))
define("s_max_u32", "i32 scc = i32 i32", lambda a, b: (max(a, b), a >= b))

BITWISE: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}
for _name, _function in BITWISE.items():
    for _bits in (32, 64):
        define(
            f"s_{_name}_b{_bits}",
            f"i{_bits} scc = i{_bits} i{_bits}",
            lambda a, b, f=_function, w=_bits: nonzero(f(a, b), w),
        )


def save_exec(function: Callable[[int, int], int]) -> Callable[[int, int], tuple[int, bool, int]]:
    """The result is the old EXEC."""
    return lambda a, old: (old, function(a, old) & M64 != 0, function(a, old) & M64)


def write_exec(function: Callable[[int, int], int]) -> Callable[[int, int], tuple[int, bool, int]]:
    return lambda a, old: (function(a, old) & M64, function(a, old) & M64 != 0, function(a, old) & M64)


_FIRST_NEGATED = {"andn1": lambda a, b: ~a & b, "orn1": lambda a, b: ~a | b}
for _name, _function in (BITWISE | _FIRST_NEGATED).items():
    define(f"s_{_name}_saveexec_b64", "i64 scc exec = i64 exec", save_exec(_function))
define("s_andn1_wrexec_b64", "i64 scc exec = i64 exec", write_exec(lambda a, b: ~a & b))
define("s_andn2_wrexec_b64", "i64 scc exec = i64 exec", write_exec(lambda a, b: a & ~b))


def find_first(x: int, bits: int, wanted: int, *, from_top: bool = False) -> int:
    order = reversed(range(bits)) if from_top else range(bits)
    for count, i in enumerate(order):
        if x >> i & 1 == wanted:
            return count
    return M32


def sign_run(x: int, bits: int) -> int:
    return find_first(x, bits, 1 - (x >> (bits - 1)), from_top=True)


def bit_field(x: int, control: int, bits: int, *, is_signed: bool) -> tuple[int, bool]:
    offset, width = control & (bits - 1), control >> 16 & 0x7F
    taken = (signed(x, bits) if is_signed else x) >> offset & ((1 << width) - 1)
    if is_signed and 0 < width < bits:
        taken = signed(taken, width)
    return nonzero(taken, bits)


for _bits in (32, 64):
    _t, _top = f"i{_bits}", (1 << _bits) - 1
    define(f"s_not_b{_bits}", f"{_t} scc = {_t}", lambda a, w=_bits: nonzero(~a, w))
    define(f"s_brev_b{_bits}", f"{_t} = {_t}", lambda a, w=_bits: int(f"{a:0{w}b}"[::-1], 2))
    define(f"s_lshl_b{_bits}", f"{_t} scc = {_t} i32", lambda a, n, w=_bits: nonzero(a << (n & (w - 1)), w))
    define(f"s_lshr_b{_bits}", f"{_t} scc = {_t} i32", lambda a, n, w=_bits: nonzero(a >> (n & (w - 1)), w))
    define(f"s_ashr_i{_bits}", f"{_t} scc = {_t} i32", lambda a, n, w=_bits: nonzero(signed(a, w) >> (n & (w - 1)), w))
    define(f"s_ff0_i32_b{_bits}", f"i32 = {_t}", lambda a, w=_bits: find_first(a, w, 0))
    define(f"s_ff1_i32_b{_bits}", f"i32 = {_t}", lambda a, w=_bits: find_first(a, w, 1))
    define(f"s_flbit_i32_b{_bits}", f"i32 = {_t}", lambda a, w=_bits: find_first(a, w, 1, from_top=True))
    define(f"s_bcnt1_i32_b{_bits}", f"i32 scc = {_t}", lambda a: nonzero(bin(a).count("1"), 32))
    define(f"s_bcnt0_i32_b{_bits}", f"i32 scc = {_t}", lambda a, w=_bits: nonzero(w - bin(a).count("1"), 32))
    define(f"s_bitset0_b{_bits}", f"{_t} = i32 old", lambda i, old, w=_bits: old & ~(1 << (i & (w - 1))))
    define(f"s_bitset1_b{_bits}", f"{_t} = i32 old", lambda i, old, w=_bits: old | 1 << (i & (w - 1)))
    define(f"s_bitcmp0_b{_bits}", f"scc = {_t} i32", lambda a, i, w=_bits: not a >> (i & (w - 1)) & 1)
    define(f"s_bitcmp1_b{_bits}", f"scc = {_t} i32", lambda a, i, w=_bits: a >> (i & (w - 1)) & 1)
    define(f"s_bfm_b{_bits}", f"{_t} = i32 i32", lambda a, b, w=_bits: ((1 << (a & (w - 1))) - 1) << (b & (w - 1)))
    for _letter in "ui":
        define(
            f"s_bfe_{_letter}{_bits}",
            f"{_t} scc = {_t} field",
            lambda a, c, w=_bits, s=_letter == "i": bit_field(a, c, w, is_signed=s),
        )
    define(
        f"s_wqm_b{_bits}",
        f"{_t} scc = {_t}",
        lambda a, w=_bits: nonzero(sum(15 << i for i in range(0, w, 4) if a >> i & 15), w),
    )
    define(
        f"s_quadmask_b{_bits}",
        f"{_t} scc = {_t}",
        lambda a, w=_bits: nonzero(sum(1 << i for i in range(w // 4) if a >> 4 * i & 15), w),
    )
define("s_flbit_i32", "i32 = i32", lambda a: sign_run(a, 32))
define("s_flbit_i32_i64", "i32 = i64", lambda a: sign_run(a, 64))
define("s_bitreplicate_b64_b32", "i64 = i32", lambda a: sum((a >> i & 1) * 3 << 2 * i for i in range(32)))
define("s_sext_i32_i8", "i32 = i32", lambda a: signed(a, 8))
define("s_sext_i32_i16", "i32 = i32", s16)
define("s_pack_ll_b32_b16", "i32 = i32 i32", lambda a, b: a & M16 | (b & M16) << 16)
define("s_pack_lh_b32_b16", "i32 = i32 i32", lambda a, b: a & M16 | b >> 16 << 16)
define("s_pack_hh_b32_b16", "i32 = i32 i32", lambda a, b: a >> 16 | b >> 16 << 16)

RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}
for _name, _holds in RELATIONS.items():
    define(f"s_cmp_{_name}_i32", "scc = i32 i32", lambda a, b, f=_holds: f(s32(a), s32(b)))
    define(f"s_cmp_{_name}_u32", "scc = i32 i32", lambda a, b, f=_holds: f(a, b))
    define(f"s_cmpk_{_name}_i32", "scc = i32 k", lambda a, k, f=_holds: f(s32(a), s16(k)))
    define(f"s_cmpk_{_name}_u32", "scc = i32 k", lambda a, k, f=_holds: f(a, k & M16))
define("s_cmp_eq_u64", "scc = i64 i64", lambda a, b: a == b)
define("s_cmp_lg_u64", "scc = i64 i64", lambda a, b: a != b)
