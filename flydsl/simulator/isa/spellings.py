"""The mnemonics of the table as each GPU spells them.

The rows of the table are spelled as LLVM spells them for gfx942. There are two other ways:

- The CDNA GPUs also have LLVM's older spellings for gfx90a, which it still assembles. Inline assembly stands in a
  listing as written. v_mfma_f32_16x16x16f16 is v_mfma_f32_16x16x16_f16, and v_mfma_f32_32x32x4bf16_1k is
  v_mfma_f32_32x32x4_2b_bf16.
- RDNA has names of its own for much that it shares with CDNA: ds_load_b128 is ds_read_b128, v_add_nc_u32 is v_add_u32.
  `_RENAMED` are the rules, tried in order, and `_ABSENT` says which rows it does not have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import cache

from flydsl.simulator.isa.table import ENTERED, Semantics, entries_of, look_up, mnemonic_of

_MFMA = re.compile(r"(v_mfma_\w+_\d+x\d+x\d+)(?:_\d+b)?_(f64|f32|xf32|f16|bf16|i8)$")

_BITS = {"": "32", "x2": "64", "x3": "96", "x4": "128", "x8": "256", "x16": "512"}
_SMALL = {"ubyte": "u8", "sbyte": "i8", "ushort": "u16", "sshort": "i16", "short": "b16", "byte": "b8"}
_DS = {"read": "load", "write": "store", "wrxchg": "storexchg"}
_MEMORY = r"(global|flat|scratch|buffer|s|s_buffer)"

_RENAMED: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (rf"{_MEMORY}_(load|store)_dword(x\d+)?", lambda m: f"{m[1]}_{m[2]}_b{_BITS[m[3] or '']}"),
    (rf"{_MEMORY}_(load|store)_([us]?(?:byte|short))", lambda m: f"{m[1]}_{m[2]}_{_SMALL[m[3]]}"),
    (rf"{_MEMORY}_(load|store)_([us]?(?:byte|short))_d16(_hi)?",
     lambda m: f"{m[1]}_{m[2]}_d16{m[4] or ''}_{_SMALL[m[3]]}"),
    (r"(\w+_atomic)_(add|sub|inc|dec)(_x2)?", lambda m: f"{m[1]}_{m[2]}_u{64 if m[3] else 32}"),
    (r"(\w+_atomic)_([su])(min|max)(_x2)?",
     lambda m: f"{m[1]}_{m[3]}_{'i' if m[2] == 's' else 'u'}{64 if m[4] else 32}"),
    (r"(\w+_atomic)_(and|or|xor|swap|cmpswap)(_x2)?", lambda m: f"{m[1]}_{m[2]}_b{64 if m[3] else 32}"),
    (r"ds_(read|write|wrxchg)(2)?(st64)?(_.*)",
     lambda m: f"ds_{_DS[m[1]]}{'_2addr' if m[2] else ''}{'_stride64' if m[3] else ''}{m[4]}"),
    (r"s_(and|or)n([12])_(.*)", lambda m: f"s_{m[1]}_not{int(m[2]) - 1}_{m[3]}"),
    (r"s_ff1_i32_(b\d+)", lambda m: f"s_ctz_i32_{m[1]}"),
    (r"s_flbit_i32_b(\d+)", lambda m: f"s_clz_i32_u{m[1]}"),
    (r"s_flbit_i32(_i64)?", lambda m: f"s_cls_i32{m[1] or ''}"),
    (r"v_(add|sub|subrev)_([iu](?:16|32))", lambda m: f"v_{m[1]}_nc_{m[2]}"),
    (r"v_(add|sub)[cb]_co_u32", lambda m: f"v_{m[1]}_co_ci_u32"),
    (r"v_subbrev_co_u32", lambda m: "v_subrev_co_ci_u32"),
    (r"v_ffbh_u32", lambda m: "v_clz_i32_u32"),
    (r"v_ffbh_i32", lambda m: "v_cls_i32"),
    (r"v_ffbl_b32", lambda m: "v_ctz_i32_b32"),
    (r"v_cvt_flr_i32_f32", lambda m: "v_cvt_floor_i32_f32"),
    (r"v_cvt_rpi_i32_f32", lambda m: "v_cvt_nearest_i32_f32"),
    (r"v_cvt_pknorm_(\w+)", lambda m: f"v_cvt_pk_norm_{m[1]}"),
    (r"v_cvt_pkrtz_f16_f32", lambda m: "v_cvt_pk_rtz_f16_f32"),
    (r"v_mul_legacy_f32", lambda m: "v_mul_dx9_zero_f32"),
    (r"v_cmp(x?)_tru_(f\d+)", lambda m: f"v_cmp{m[1]}_t_{m[2]}"),
)  # fmt: skip
_RENAMED_FROM_RDNA4: tuple[tuple[str, str], ...] = (
    (r"s_(add|sub|addk)_([iu]32)", r"s_\1_co_\2"),
    (r"s_(add|sub)[cb]_u32", r"s_\1_co_ci_u32"),
    (r"v_mad_([ui]64_[ui]32)", r"v_mad_co_\1"),
)
_RENAMED_ON_RDNA3: tuple[tuple[str, str], ...] = (
    (r"s_inst_prefetch", "s_set_inst_prefetch_distance"),
    (r"v_dot2c_f32_f16", "v_dot2acc_f32_f16"),
    (r"(\w+_atomic)_sub_clamp_u32", r"\1_csub_u32"),
)
_ALIASES = {
    f"{beginning}{name}": f"{beginning}{new}"
    for beginning in ("v_", "s_", "v_pk_")
    for name, new in (
        *(
            (f"{n}_f{bits}", f"{n}_num_f{bits}")
            for n in ("min", "max", "min3", "max3", "med3")
            for bits in (16, 32, 64)
        ),
        *((f"{n}_f{bits}", f"{n}_num_f{bits}") for n in ("minmax", "maxmin") for bits in (16, 32)),
    )
}
_ALIASES |= {
    f"{space}_atomic_{name}": f"{space}_atomic_{new}"
    for space in ("global", "flat", "buffer")
    for name, new in (
        *(("fmin", "min_num_f32"), ("fmax", "max_num_f32"), ("min_f32", "min_num_f32"), ("max_f32", "max_num_f32")),
        *(("csub", "sub_clamp_u32"), ("csub_u32", "sub_clamp_u32")),
    )
}
_ALIASES |= {
    f"ds_{name}{rtn}_f{bits}": f"ds_{name}_num{rtn}_f{bits}"
    for name in ("min", "max")
    for rtn in ("", "_rtn")
    for bits in (32, 64)
}
_ALIASES |= {f"global_{name}_dword_addtid": f"global_{name}_addtid_b32" for name in ("load", "store")}
_ALIASES |= {"v_fma_legacy_f32": "v_fma_dx9_zero_f32"}
_ALIASES |= {
    "v_dot4_i32_i8": "v_dot4_i32_iu8",
    "v_dot8_i32_i4": "v_dot8_i32_iu4",
}  # without signs but where neg_lo says
"""Names of earlier generations that LLVM accepts for RDNA 4."""
_ALIASES_ON_RDNA3 = {
    f"{space}_atomic_{name}": f"{space}_atomic_{new}"
    for space in ("global", "flat", "buffer")
    for name, new in (
        ("fmin", "min_f32"),
        ("fmax", "max_f32"),
        ("fcmpswap", "cmpswap_f32"),
        ("csub", "csub_u32"),
    )
}
_ALIASES_ON_RDNA3 |= {"v_fmac_legacy_f32": "v_fmac_dx9_zero_f32"}


@cache
def older_spellings() -> dict[str, str]:
    """The rows by their names for gfx90a, where these differ."""
    matches = [match for match in map(_MFMA.match, map(mnemonic_of, ENTERED)) if match]
    return {m[1] + m[2] + ("_1k" if m[2] == "bf16" else ""): m[0] for m in matches}


_ABSENT = (
    r"v_(mfma|smfmac|accvgpr)_.*|\w+_load_lds_.*|buffer_(wb|inv).*|s_dcache_(inv_vol|wb.*)|s_(cmpk|ff0|set_gpr_idx)_.*"
    r"|s_(barrier|inst_prefetch|memtime|memrealtime)|(buffer|flat|global)_atomic_(add|min|max)_f64(/.*)?|v_clrexcp"
    r"|ds_(add(_rtn)?_f64|cmpst_.*|wrap_.*|(min|max)(_rtn)?_f(32|64))|v_cmpx_.*|v_cmp_(f|t|tru)_.*|\w+_legacy_[fiu]16"
    r"|v_dot2_[iu]32_[iu]16|v_dot4_i32_i8|v_dot8_i32_i4|v_dot\d+c_.*|v_(exp|log)_legacy_f32|v_fmac_f64"
    r"|v_(mac|mad|madak|madmk)_f16|v_mul_lo_i32"
    r"|v_pk_(add|fma|mul)_f32|v_pk_mov_b32|v_subrev_u16|v_cvt_pkaccum_u8_f32|v_(pk_)?(min|max|min3|max3|med3)_f\d+"
    r"|.*/(lds|gpr_idx.*)"
)
"""The rows that are for every CDNA, but not for RDNA: it has not the instruction, or one that does something else."""


_ABSENT_ON_CDNA5 = r"s_wait(cnt|_event|_(bvh|exp|sample)cnt)|v_dot2_(bf16_bf16|f16_f16|f32_bf16|f32_f16)"
"""Instructions of RDNA 4 that gfx1250 does not have."""
_PRESENT_ON_CDNA5 = (
    r"v_pk_(add|fma|mul)_f32|v_fmac_f64|(buffer|flat|global)_atomic_(add|min|max)_f64(/.*)?|ds_add(_rtn)?_f64|v_mov_b64"
)
"""Instructions of CDNA that gfx1250 has, but RDNA 4 does not."""
_PRESENT_ON_RDNA3 = (
    r"s_cmpk_.*|s_(barrier|inst_prefetch)|ds_wrap_.*|ds_(min|max)(_rtn)?_f(32|64)|v_cmp_(f|t|tru)_([fiu](32|64)|f16)|v_dot2c_f32_f16"
    r"|v_(min|max)_f\d+|v_(min3|max3|med3)_f(16|32)|v_pk_(min|max)_f16"
)
"""Instructions of CDNA that RDNA 3 has, but RDNA 4 does not."""
_SCALAR_FLOATS = r"s_(add|sub|mul|ceil|floor|trunc|rndne|fmac|fmaak|fmamk|min|max)_f(16|32)|s_cmp_\w+_f(16|32)|s_cvt_.*"
"""Instructions that RDNA 3 has from 3.5 on."""
_ABSENT_ON_RDNA3 = (
    r"v_s_.*|\w+_(num|minimum|maximum|minimum3|maximum3|minimummaximum|maximumminimum)(_rtn)?_f\d+(/.*)?"
    r"|s_(buffer_)?load_([us]?(byte|short)|dwordx3)|s_(add|sub)_nc_u64|s_mul_u64|s_sleep_var|s_barrier_.*|s_wait_\w*cnt"
    r"|s_wait_(alu|\w*dscnt)|global_(inv|wb|wbinv)|s_(buffer_)?prefetch_.*|\w+_(load|store)_block"
    r"|\w+_atomic_(pk_add_\w+|cond_sub_u32)(/.*)?|ds_(pk_add|cond_sub|sub_clamp)_.*|v_permlanex?16_var_b32"
    r"|flat_atomic_sub_clamp_u32(/.*)?|v_cmpx_(f|t)_[iu]16|v_cvt_\w*(fp8|bf8)\w*|v_swmmac_.*"
)
"""Instructions of RDNA 4 that RDNA 3 does not have."""


def name_on(mnemonic: str, instruction_sets: Collection[str]) -> str | None:
    """The mnemonic of a row of the table on a GPU with these sets; None if it has no such instruction.

    >>> [name_on(row, ["rdna"]) for row in ("ds_read2st64_b64", "s_andn1_saveexec_b64", "s_ff0_i32_b32")]
    ['ds_load_2addr_stride64_b64', 's_and_not0_saveexec_b64', None]
    >>> [name_on("s_addc_u32", sets) for sets in (["rdna4", "rdna"], ["rdna3", "rdna"], ["cdna3"])]
    ['s_add_co_ci_u32', 's_addc_u32', 's_addc_u32']
    """
    if not is_on(mnemonic, instruction_sets):
        return None
    if "rdna" not in instruction_sets:
        return mnemonic
    plain = mnemonic_of(mnemonic)
    if "rdna3" in instruction_sets:
        return _substituted(_renamed(plain), _RENAMED_ON_RDNA3)
    if "cdna5" not in instruction_sets:
        return _substituted(_renamed(plain), _RENAMED_FROM_RDNA4)
    is_cdna = re.fullmatch(_PRESENT_ON_CDNA5, mnemonic)
    renamed = plain if is_cdna else _substituted(_renamed(plain), _RENAMED_FROM_RDNA4)
    return _substituted(renamed, _RENAMED_ON_CDNA5)


def is_on(mnemonic: str, instruction_sets: Collection[str]) -> bool:
    """True for a row of the table that is for a GPU with these sets."""
    if "rdna" not in instruction_sets:
        return True
    row = look_up(mnemonic, instruction_sets)
    if row is None:
        return False
    is_absent = row.instruction_set in ("", "ocp") and re.fullmatch(_ABSENT, mnemonic)
    if "rdna3" in instruction_sets:
        return _is_on_rdna3(mnemonic, instruction_sets, is_absent=bool(is_absent))
    if "cdna5" not in instruction_sets:
        return not is_absent
    if re.fullmatch(_PRESENT_ON_CDNA5, mnemonic):
        return True
    return not is_absent and (row.instruction_set == "cdna5" or not re.fullmatch(_ABSENT_ON_CDNA5, mnemonic))


def _is_on_rdna3(mnemonic: str, instruction_sets: Collection[str], *, is_absent: bool) -> bool:
    if re.fullmatch(_PRESENT_ON_RDNA3, mnemonic):
        return True
    if re.fullmatch(_SCALAR_FLOATS, mnemonic):
        return "rdna3.5" in instruction_sets
    return not is_absent and not re.fullmatch(_ABSENT_ON_RDNA3, mnemonic)


_RENAMED_ON_CDNA5: tuple[tuple[str, str], ...] = (
    (r"(\w+_atomic)_(min|max)_f64", r"\1_\2_num_f64"),
    (r"s_(get|set|swap)pc_b64", r"s_\1_pc_i64"),
    (r"s_call_b64", "s_call_i64"),
)


def _substituted(mnemonic: str, rules: tuple[tuple[str, str], ...]) -> str:
    for pattern, new in rules:
        mnemonic = re.sub(f"^{pattern}$", new, mnemonic)
    return mnemonic


def _renamed(mnemonic: str) -> str:
    matches = ((re.fullmatch(pattern, mnemonic), rename) for pattern, rename in _RENAMED)
    return next((rename(match) for match, rename in matches if match), mnemonic)


def entries_on(instruction_sets: tuple[str, ...]) -> dict[str, Semantics]:
    """The part of the table that a GPU with these sets executes, by entry."""
    entries = entries_of(instruction_sets).items()
    return {entry: s for entry, s in entries if is_on(s.mnemonic, instruction_sets)}


def in_table(mnemonic: str, instruction_sets: tuple[str, ...]) -> str | None:
    """The row for a mnemonic of a listing for a GPU with these sets; None for a spelling that the GPU does not have.

    >>> in_table("ds_load_b128", ("rdna",)), in_table("v_mfma_f32_16x16x16f16", ("cdna3",))
    ('ds_read_b128', 'v_mfma_f32_16x16x16_f16')
    """
    if "rdna" not in instruction_sets:
        return older_spellings().get(mnemonic, mnemonic)
    return _rdna_rows(instruction_sets).get(mnemonic)


@cache
def _rdna_rows(instruction_sets: tuple[str, ...]) -> dict[str, str]:
    """The rows by their names on RDNA, and by those of CDNA that LLVM accepts instead."""
    rows: dict[str, str] = {}
    for mnemonic in dict.fromkeys(mnemonic_of(s.mnemonic) for s in entries_on(instruction_sets).values()):
        rows.setdefault(mnemonic, mnemonic)
        rows[name_on(mnemonic, instruction_sets) or mnemonic] = mnemonic
    aliases = _ALIASES | _ALIASES_ON_RDNA3 if "rdna3" in instruction_sets else _ALIASES
    return rows | {alias: rows[name] for alias, name in aliases.items() if name in rows}
