"""The modifiers that an instruction may have on each GPU, and the values that each modifier may have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from flydsl.hsaco.operands import Modifiers
from flydsl.simulator.isa.table import Semantics
from flydsl.simulator.waves import VECTOR_ROWS

_SHIFTS = frozenset(("row_shl", "row_shr", "row_ror", "wave_shl", "wave_shr", "wave_rol", "wave_ror"))
_OF_RDNA = frozenset(("dpp8", "row_share", "row_xmask"))
DPP_CONTROLS = _SHIFTS | _OF_RDNA | {"quad_perm", "row_mirror", "row_half_mirror", "row_newbcast", "row_bcast"}
SDWA_SELECTORS = frozenset(("dst_sel", "dst_unused", "src0_sel", "src1_sel"))

FLOATS = ("f16", "f32", "f64", "mix", "bmix")

_PARTS = {"DWORD", "WORD_0", "WORD_1", "BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3"}
_MATRIX_FORMATS = ("FP8", "BF8", "FP6", "BF6", "FP4")
_WORDS_OF = {
    "dst_sel": _PARTS,
    "src0_sel": _PARTS,
    "src1_sel": _PARTS,
    "dst_unused": {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"},
    **{f"matrix_{side}_fmt": {f"MATRIX_FMT_{name}" for name in _MATRIX_FORMATS} for side in "ab"},
    **{f"matrix_{side}_scale": {f"MATRIX_SCALE_ROW{i}" for i in range(2)} for side in "ab"},
    **{f"matrix_{side}_scale_fmt": {f"MATRIX_SCALE_FMT_{name}" for name in ("E8", "E5M3", "E4M3")} for side in "ab"},
}
_CHOICES = {"mul": (2, 4), "div": (2,), "row_bcast": (15, 31)}
_RANGES = {
    **dict.fromkeys(("bitop3", "offset0", "offset1"), (0, 255)),
    **dict.fromkeys(("abid", "bank_mask", "row_mask", "row_newbcast", "row_share", "row_xmask", "scale_sel"), (0, 15)),
    **dict.fromkeys(("blgp", "cbsz"), (0, 7)),
    **dict.fromkeys(("byte_sel", "index_key"), (0, 3)),
    **dict.fromkeys(("bound_ctrl", "fi"), (0, 1)),
    **dict.fromkeys(("row_ror", "row_shl", "row_shr"), (1, 15)),
    **dict.fromkeys(("wave_rol", "wave_ror", "wave_shl", "wave_shr"), (1, 1)),
}
_OFFSETS = {
    "ds": (0, 0xFFFF),
    "buffer": (0, 0xFFF),
    "global": (-0x1000, 0xFFF),
    "scratch": (-0x1000, 0xFFF),
    "flat": (0, 0xFFF),
    "s": (-(1 << 20), (1 << 20) - 1),
}
"""The range of `offset:`, by the beginning of the mnemonic."""

_LANE_OF_32 = r"(?:[12]?\d|3[01])"
_SWIZZLES = (
    r"swizzle\(BITMASK_PERM,\s*\"[01pi]{5}\"\)",
    r"swizzle\(QUAD_PERM(?:,\s*[0-3]){4}\)",
    r"swizzle\(SWAP,\s*(?:1|2|4|8|16)\)",
    r"swizzle\(REVERSE,\s*(?:2|4|8|16|32)\)",
    rf"swizzle\(BROADCAST,\s*(?:2|4|8|16|32),\s*{_LANE_OF_32}\)",
    rf"swizzle\(FFT,\s*{_LANE_OF_32}\)",
    rf"swizzle\(ROTATE,\s*[01],\s*{_LANE_OF_32}\)",
)

_OF_CACHES = frozenset(("sc0", "sc1", "nt"))
_OF_CACHES_OF_CDNA2 = frozenset(("glc", "slc", "scc"))
_OF_CACHES_OF_RDNA3 = frozenset(("glc", "slc", "dlc"))
_OF_FLAT = _OF_CACHES | {"offset"}
_MODIFIERS = {
    "s_load_": frozenset(("offset", "glc")),
    "s_buffer_load_": frozenset(("offset", "glc")),
    "s_": frozenset[str](),
    "ds_read2": frozenset(("offset0", "offset1")),
    "ds_write2": frozenset(("offset0", "offset1")),
    "ds_wrxchg2": frozenset(("offset0", "offset1")),
    "ds_": frozenset(("offset",)),
    "buffer_": _OF_FLAT | {"offen", "idxen"},
    "v_mfma_f64_": frozenset(("cbsz", "abid", "neg")),
    "v_mfma_scale_": frozenset(("cbsz", "blgp", "op_sel", "op_sel_hi")),
    "v_mfma_": frozenset(("cbsz", "abid", "blgp")),
    "v_smfmac_": frozenset(("cbsz", "abid")),
    "v_cvt_scalef32_pk32_": frozenset[str](),
    "v_cvt_scalef32_2xpk16_": frozenset[str](),
    "v_cvt_scalef32_sr_pk32_": frozenset[str](),
    "v_cvt_scalef32_": frozenset(("op_sel",)),
    "v_ashr_pk_": frozenset(("op_sel",)),
    "v_bitop3_b16": frozenset(("bitop3", "op_sel")),
    "v_bitop3_": frozenset(("bitop3",)),
    "v_permlane": frozenset(("fi", "bound_ctrl")),
    "global_": _OF_FLAT,
    "scratch_": _OF_FLAT,
    "flat_": _OF_FLAT,
}
"""The modifiers that instructions have, by the beginning of the mnemonic; `_of_vectors` has those of the others."""

_OF_DPP = DPP_CONTROLS | {"row_mask", "bank_mask", "bound_ctrl", "fi"}
_CACHED = frozenset(("offset", "th", "scope"))
_REUSE = ("matrix_a_reuse", "matrix_b_reuse")
_OF_MATRICES = tuple(f"matrix_{side}_{name}" for side in "ab" for name in ("fmt", "scale", "scale_fmt"))
_MODIFIERS_OF_RDNA: Mapping[str, frozenset[str]] = {
    "s_load_": _CACHED,
    "s_buffer_load_": _CACHED,
    "buffer_": _CACHED | {"offen", "idxen"},
    "v_permlane16_": frozenset(("op_sel",)),
    "v_permlanex16_": frozenset(("op_sel",)),
    "v_cvt_f32_fp8": frozenset(("byte_sel",)) | _OF_DPP,
    "v_cvt_f32_bf8": frozenset(("byte_sel",)) | _OF_DPP,
    "v_cvt_sr_": frozenset(("byte_sel",)) | _OF_DPP,
    "v_dot4_i32_iu8": frozenset(("neg_lo", "clamp")) | _OF_DPP,
    "v_dot8_i32_iu4": frozenset(("neg_lo", "clamp")) | _OF_DPP,
    "v_dot4_f32_": frozenset(("neg_lo", "neg_hi")) | _OF_DPP,
    "v_permlane": frozenset[str](),
    "v_wmma_i32_": frozenset(("neg_lo", "clamp", *_REUSE)),
    "v_wmma_scale": frozenset(("neg_lo", "neg_hi", *_REUSE, *_OF_MATRICES)),
    "v_wmma_": frozenset(("neg_lo", "neg_hi", *_REUSE, "matrix_a_fmt", "matrix_b_fmt")),
    "v_swmmac_i32_": frozenset(("neg_lo", "clamp", "index_key", *_REUSE)),
    "v_swmmac_": frozenset(("neg_lo", "neg_hi", "index_key", *_REUSE)),
    "global_": _CACHED,
    "scratch_": _CACHED,
    "flat_": _CACHED,
    "cluster_": _CACHED,
    "tensor_": frozenset(("th", "scope")),
}
_SCALED = _CACHED | {"scale_offset", "nv"}
_MODIFIERS_OF_CDNA5: Mapping[str, frozenset[str]] = {
    "s_load_": _SCALED,
    "s_buffer_load_": _CACHED | {"nv"},
    "buffer_": _CACHED | {"offen", "idxen", "nv"},
    "global_": _SCALED,
    "scratch_": _SCALED,
    "flat_": _SCALED,
    "cluster_": _SCALED,
    "v_dual_": frozenset(("bitop3",)),
    "v_bitop3_b16": frozenset(("bitop3", "op_sel")) | _OF_DPP,
    "v_bitop3_": frozenset(("bitop3",)) | _OF_DPP,
    "v_permlane16_swap": frozenset(("fi", "bound_ctrl")),
    "v_cvt_scale_pk": frozenset(("scale_sel",)),
    "v_cvt_f16_fp8": frozenset(("byte_sel", "op_sel")) | _OF_DPP,
    "v_cvt_f32_fp8": frozenset(("byte_sel", "clamp")) | _OF_DPP,
    "v_cvt_sr_fp8_f32": frozenset(("byte_sel", "clamp")) | _OF_DPP,
    "v_cvt_sr_pk_": frozenset[str](),
    "v_cvt_scalef32_sr_pk8_": frozenset[str](),
    "v_cvt_scalef32_sr_pk16_": frozenset[str](),
    "v_cvt_f16_bf8": frozenset(("byte_sel", "op_sel")) | _OF_DPP,
}
_SIGNED_24_BITS = (-(1 << 23), (1 << 23) - 1)
_OFFSETS_OF_RDNA = {
    "ds": (0, 0xFFFF),
    "buffer": (0, (1 << 23) - 1),
    "global": _SIGNED_24_BITS,
    "scratch": _SIGNED_24_BITS,
    "flat": _SIGNED_24_BITS,
    "cluster": _SIGNED_24_BITS,
    "s": _SIGNED_24_BITS,
}


@dataclass(frozen=True)
class Rules:
    """The rules that differ between GPUs.

    offsets: the range of `offset:`, and modifiers: the names of modifiers, both by the beginning of the mnemonic.
    dpp: the modifiers of DPP. vector_files: "v", or "va" with accumulation registers. tuples_are_aligned: whether
    tuples of vector registers begin at even numbers. vgprs: how many an instruction can name.
    """

    wave_size: int
    offsets: Mapping[str, tuple[int, int]]
    modifiers: Mapping[str, frozenset[str]]
    dpp: frozenset[str]
    vector_files: str
    tuples_are_aligned: bool
    vgprs: int = 256


@cache
def rules_of(instruction_sets: tuple[str, ...], wave_size: int) -> Rules:
    """The rules of a GPU with these sets of instructions, in waves of this size."""
    if "rdna" in instruction_sets:
        dpp = _OF_DPP - {"row_newbcast", "row_bcast", "wave_shl", "wave_shr", "wave_rol", "wave_ror"}
        modifiers = {name: known for name, known in _MODIFIERS.items() if name not in _MODIFIERS_OF_RDNA}
        own = {**_MODIFIERS_OF_RDNA, **modifiers}
        if "cdna5" in instruction_sets:
            rest = {name: known for name, known in own.items() if name not in _MODIFIERS_OF_CDNA5}
            own = {**_MODIFIERS_OF_CDNA5, **rest}
            return Rules(wave_size, _OFFSETS_OF_RDNA, own, dpp, "v", True, VECTOR_ROWS)
        if "rdna3" in instruction_sets:
            halves = dict.fromkeys(("v_wmma_f16_", "v_wmma_bf16_"), frozenset(("neg_lo", "neg_hi", "op_sel")))
            own = halves | {name: _of_rdna3(words) for name, words in own.items()}
            return Rules(wave_size, _OFFSETS, own, dpp, "v", False)
        return Rules(wave_size, _OFFSETS_OF_RDNA, own, dpp, "v", False)
    known = _MODIFIERS
    if "cdna2" in instruction_sets:
        known = {name: _of_cdna2(words) for name, words in known.items()}
    return Rules(wave_size, _OFFSETS, known, _OF_DPP - _OF_RDNA - {"fi"}, "va", True)


def _of_cdna2(modifiers: frozenset[str]) -> frozenset[str]:
    return modifiers - _OF_CACHES | _OF_CACHES_OF_CDNA2 if modifiers >= _OF_CACHES else modifiers


def _of_rdna3(modifiers: frozenset[str]) -> frozenset[str]:
    return modifiers - {"th", "scope"} | _OF_CACHES_OF_RDNA3 if modifiers >= _CACHED else modifiers


_TO_BYTES = ("v_cvt_pk_fp8_", "v_cvt_pk_bf8_", "v_cvt_sr_")
_FLAGS = (_OF_CACHES | _OF_CACHES_OF_CDNA2 | _OF_CACHES_OF_RDNA3).union(
    ("clamp", "nv", "offen", "idxen", "lds", "scale_offset", "row_mirror", "row_half_mirror")
)

_LISTS = {"op_sel": 1, "op_sel_hi": 1, "neg_lo": 1, "neg_hi": 1, "neg": 1, "quad_perm": 3, "dpp8": 7}
"""Modifiers that are lists of up to four numbers (dpp8: eight), from 0 to this one."""


_BITS = ("op_sel", "neg_lo", "neg_hi")


def without_zeros(modifiers: Modifiers) -> Modifiers:
    """The modifiers without lists of zeros, which LLVM accepts for any instruction of VOP3 and which change nothing."""
    said = {n: v for n, v in modifiers.values.items() if n not in _BITS or not isinstance(v, tuple) or any(v)}
    return modifiers if len(said) == len(modifiers.values) else Modifiers(said)


def check_names(semantics: Semantics, modifiers: Modifiers, encoding: str, rules: Rules) -> None:
    """Raise ValueError for a modifier that the instruction does not have: it would mean nothing here."""
    if modifiers.values:
        known = _known_modifiers(semantics, encoding, rules)
        unknown = [name for name in modifiers.values if name not in known]
        if unknown:
            raise ValueError(f"{unknown[0]} is not a modifier of it")


def _known_modifiers(semantics: Semantics, encoding: str, rules: Rules) -> frozenset[str]:
    mnemonic = semantics.mnemonic
    named, _, variant = mnemonic.partition("/")
    known = next((names for beginning, names in rules.modifiers.items() if named.startswith(beginning)), None)
    if known is None:
        return _of_vectors(semantics, encoding, rules)
    return known | {"lds"} if variant == "lds" else known


def _of_vectors(semantics: Semantics, encoding: str, rules: Rules) -> frozenset[str]:
    """The modifiers that an instruction of the vector ALU may have, of those that both backends know."""
    words = (*semantics.results, *semantics.sources)
    is_float = any(word.startswith(FLOATS) for word in words)
    is_mix, is_packed = "mix" in words or "bmix" in words, semantics.packed or semantics.mnemonic == "v_pk_mov_b32"
    known = set[str]()
    if is_float or semantics.packed or "modifiers" in words:
        known.add("clamp")
    if is_float and not is_packed and not semantics.mnemonic.startswith("v_cmp"):
        known |= {"mul", "div"}
    if (
        is_packed
        or semantics.mnemonic.startswith(_TO_BYTES)
        or any(w.startswith(("f16", "i16", "bf16", "bfloat", "mix", "bmix")) for w in words)
    ):
        known.add("op_sel")
    if is_packed or is_mix or semantics.mnemonic.startswith("v_dot2_f32_"):
        known.add("op_sel_hi")
    if semantics.packed or semantics.mnemonic.startswith("v_dot"):
        known |= {"neg_lo", "neg_hi"}
    if "dpp" in encoding:
        known |= rules.dpp
    return frozenset(known | SDWA_SELECTORS if encoding == "sdwa" else known)


def check_modifier(name: str, modifiers: Modifiers, mnemonic: str, rules: Rules) -> None:
    """Raise ValueError for a value that the modifier of this name cannot have."""
    value = modifiers.values[name]
    if name in _LISTS:
        _check_list(name, value)
    elif name in _WORDS_OF:
        if value not in _WORDS_OF[name]:
            raise ValueError(f"{name}:{value}")
    elif name in _CHOICES:
        if value not in _CHOICES[name]:
            raise ValueError(f"{name}:{value}")
    elif name in _RANGES:
        _check_range(name, value, *_RANGES[name])
    elif name == "offset" and isinstance(value, str) and mnemonic == "ds_swizzle_b32":
        _check_swizzle(value)
    elif name == "offset":
        _check_range(name, value, *rules.offsets.get(mnemonic.partition("_")[0], (0, 0)))
    elif name in ("th", "scope"):
        if not isinstance(value, (str, int)):
            raise ValueError(f"{name}:{value}")
    elif value != 1 if name in _FLAGS else not isinstance(value, int):
        raise ValueError(f"{name}:{value}")


def _check_list(name: str, value: object) -> None:
    most = _LISTS[name]
    numbers = value if isinstance(value, tuple) else (value,)
    if len(numbers) > (8 if name == "dpp8" else 4) or not all(isinstance(n, int) and 0 <= n <= most for n in numbers):
        raise ValueError(f"{name}:{value}: up to four numbers, at most {most}")


def _check_range(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name}:{value} is not from {low} to {high}")


def _check_swizzle(text: str) -> None:
    """Check `swizzle(MODE,…)` as LLVM writes it (AMDGPUAsmUtils, Swizzle)."""
    if not any(re.fullmatch(pattern, text) for pattern in _SWIZZLES):
        raise ValueError(f"offset:{text}")
