"""Check the operands and modifiers of an instruction: what no assembler would accept is refused.

A listing may come from anyone, and both backends turn its numbers into memory locations. So every instruction, of any
family, is checked here when it is decoded, and later code relies on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from flydsl.hsaco.operands import (
    SGPR_FILE_SIZE,
    Immediate,
    Keyword,
    Modifiers,
    Null,
    Operand,
    Register,
    StatusBit,
    Symbol,
)
from flydsl.simulator.isa.dpp import lane_pattern
from flydsl.simulator.isa.table import HALVES, IMPLICIT, Semantics
from flydsl.simulator.waves import ACCUMULATION_ROW, VECTOR_ROWS

_SHIFTS = frozenset(("row_shl", "row_shr", "row_ror", "wave_shl", "wave_shr", "wave_rol", "wave_ror"))
_OF_RDNA = frozenset(("dpp8", "row_share", "row_xmask"))
DPP_CONTROLS = _SHIFTS | _OF_RDNA | {"quad_perm", "row_mirror", "row_half_mirror", "row_newbcast", "row_bcast"}
SDWA_SELECTORS = frozenset(("dst_sel", "dst_unused", "src0_sel", "src1_sel"))

_TO_SCALAR = ("v_readlane_b32", "v_readfirstlane_b32")
_MATRIX = ("v_mfma_", "v_smfmac_")
_WITH_AGPRS = (*_MATRIX, "v_accvgpr_")
_FLOATS = ("f16", "f32", "f64", "mix", "bmix")

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
    """The rules that differ from GPU to GPU. tuples_are_aligned: those of vector registers begin at even numbers.

    vgprs: that an instruction can name. offsets: the range of `offset:`. modifiers: what instructions have, by the
    beginning of the mnemonic.
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
    """The rules of a GPU with these sets of instructions, in waves of so many lanes."""
    if "rdna" in instruction_sets:
        dpp = _OF_DPP - {"row_newbcast", "row_bcast", "wave_shl", "wave_shr", "wave_rol", "wave_ror"}
        modifiers = {name: known for name, known in _MODIFIERS.items() if name not in _MODIFIERS_OF_RDNA}
        own = {**_MODIFIERS_OF_RDNA, **modifiers}
        if "cdna5" in instruction_sets:
            rest = {name: known for name, known in own.items() if name not in _MODIFIERS_OF_CDNA5}
            own = {**_MODIFIERS_OF_CDNA5, **rest}
            return Rules(wave_size, _OFFSETS_OF_RDNA, own, dpp, "v", True, VECTOR_ROWS)
        return Rules(wave_size, _OFFSETS_OF_RDNA, own, dpp, "v", False)
    known = _MODIFIERS
    if "cdna2" in instruction_sets:
        known = {name: _of_cdna2(words) for name, words in known.items()}
    return Rules(wave_size, _OFFSETS, known, _OF_DPP - _OF_RDNA - {"fi"}, "va", True)


def _of_cdna2(modifiers: frozenset[str]) -> frozenset[str]:
    return modifiers - _OF_CACHES | _OF_CACHES_OF_CDNA2 if modifiers >= _OF_CACHES else modifiers


_TO_BYTES = ("v_cvt_pk_fp8_", "v_cvt_pk_bf8_", "v_cvt_sr_")
_FLAGS = (_OF_CACHES | _OF_CACHES_OF_CDNA2).union(
    ("clamp", "nv", "offen", "idxen", "lds", "scale_offset", "row_mirror", "row_half_mirror")
)

_LISTS = {"op_sel": 1, "op_sel_hi": 1, "neg_lo": 1, "neg_hi": 1, "neg": 1, "quad_perm": 3, "dpp8": 7}
"""Modifiers that are lists of up to four numbers (dpp8: eight), from 0 to this one."""


def check(semantics: Semantics, operands: Sequence[Operand], modifiers: Modifiers, encoding: str, rules: Rules) -> None:
    """Raise ValueError for an operand or modifier that the instruction cannot have. operands: results first."""
    for name in modifiers.values:
        _check_modifier(name, modifiers, semantics.mnemonic, rules)
    _check_wave_size(semantics.mnemonic, rules)
    words = [w for w in (*semantics.results, *semantics.sources) if w not in IMPLICIT]
    results = sum(w not in IMPLICIT for w in semantics.results)
    for i, (operand, word, places) in enumerate(
        zip(operands, words, _places(semantics, words, results, rules), strict=True)
    ):
        _check_operand(operand, word, places, rules, is_packed=semantics.packed, is_result=i < results)
        _check_signs(operand, word, is_result=i < results, is_packed=semantics.packed, encoding=encoding)
        if "sdwa" in encoding:
            _check_sdwa(operand, word, modifiers, source=i - results)
    if encoding in ("sdwa", "dpp", "e64_dpp"):
        _check_encoding(semantics)
    if "dpp" in encoding:
        _check_lanes(modifiers, rules)
        if not any(map(_is_vgpr, operands[results : results + 1])):
            raise ValueError("DPP takes its operand from a vector register")
    _check_address(semantics.mnemonic, operands, words, results, modifiers)


def _check_wave_size(mnemonic: str, rules: Rules) -> None:
    """The registers of a matrix instruction of RDNA tell how many lanes it is for."""
    if mnemonic.startswith(("v_wmma_", "v_swmmac_")):
        lanes = 64 if "/wave64" in mnemonic else 32
        if lanes != rules.wave_size:
            raise ValueError(f"with the registers of {lanes} lanes in waves of {rules.wave_size}")


def registers(operands: Iterable[Operand | None]) -> Iterator[Register]:
    """The registers among some operands."""
    return (o.atom for o in operands if o is not None and isinstance(o.atom, Register))


# --- operands


def _places(semantics: Semantics, words: Sequence[str], results: int, rules: Rules) -> Iterator[str]:
    """The places that each word allows its operand: a register file, several of them, or "#" for a constant."""
    family = semantics.mnemonic.partition("_")[0]
    last = len(words) - 1
    for i, word in enumerate(words):
        is_result = i < results
        if word in ("imm", "word", "label"):
            yield "#"
        elif word == "register":
            yield "v"
        elif family == "tensor":
            yield "s"
        elif family == "s" or word == "mask":
            yield "s" if is_result else "s#"
        elif family == "v":
            of_scalars = semantics.mnemonic.startswith("v_s_")
            places = _of_vector_instruction(semantics.mnemonic, is_result=is_result, place=i - results)
            yield ("s" if is_result else "s#") if of_scalars else places
        elif family == "buffer" and i >= last - 1:  # the resource and the scalar offset
            yield "s" if i < last else "s#"
        else:
            based = family in ("global", "scratch", "cluster") or semantics.mnemonic.endswith("/base")
            yield "s" if based and i == last else rules.vector_files


def _of_vector_instruction(mnemonic: str, *, is_result: bool, place: int) -> str:
    """place: of a source, the number of sources before it."""
    if is_result:
        return "s" if mnemonic in _TO_SCALAR else "va" if mnemonic.startswith(_WITH_AGPRS) else "v"
    if mnemonic.startswith("v_mfma_"):
        return ("va", "va", "va#", "vs#", "vs#")[place]  # A, B, C and the scales
    if mnemonic.startswith(_MATRIX):
        return "va"
    if mnemonic.startswith("v_wmma_"):
        return ("v", "v", "v#", "vs#", "vs#")[place]  # A, B, C and the scales
    if mnemonic.startswith("v_swmmac_"):
        return "v"
    return "vas#" if mnemonic.startswith(_WITH_AGPRS) else "vs#"


def _check_operand(operand: Operand, word: str, places: str, rules: Rules, *, is_packed: bool, is_result: bool) -> None:
    atom = operand.atom
    if isinstance(atom, Register):
        _check_register(atom, word, places, rules, is_packed=is_packed)
    elif isinstance(atom, Null):
        if "s" not in places or (word == "any" and not is_result):
            raise ValueError(f"null as {word}")
    elif word == "label":
        if not isinstance(atom, (Symbol, Keyword)):
            raise ValueError("the target of a branch is not a label")
    elif isinstance(atom, Keyword):
        if word != "word" and not (word == "any" and atom.text == "off"):
            raise ValueError(f"{atom.text} as an operand")
    elif "#" not in places:
        raise ValueError(f"{_spelled(atom)} where there must be a register")
    elif isinstance(atom, Immediate):
        _check_immediate(atom, word)
    elif isinstance(atom, Symbol):
        if word != ("i64" if atom.relocation.endswith("rel64") else "i32"):
            raise ValueError(f"the address of {atom.name} as {word}")
    elif isinstance(atom, StatusBit):
        if "x" in word.removesuffix("x2") or word in ("mask", "any", "offset"):
            raise ValueError(f"{atom.name} as {word}")
    elif word != "i64" and not (word == "i32" and atom.name.endswith(("_lo", "_hi"))):
        raise ValueError(f"{atom.name} as {word}")


def _check_sdwa(operand: Operand, word: str, modifiers: Modifiers, *, source: int) -> None:
    """Check the operands and modifiers of SDWA. source: index of the source; results come before all sources."""
    if word == "mask":
        if not isinstance(operand.atom, Register):
            raise ValueError("a constant as a mask in SDWA")
    elif source >= 2:
        raise ValueError("SDWA of more than two sources")
    elif source < 0 and register_count(word) != 1 and modifiers.text("dst_sel", "DWORD") != "DWORD":
        raise ValueError("a part of a register for a wide result")


def _check_signs(operand: Operand, word: str, *, is_result: bool, is_packed: bool, encoding: str) -> None:
    if (operand.negate or operand.absolute) and (is_result or is_packed or word not in (*_FLOATS, "bfloat")):
        raise ValueError(f"negation or absolute value of an operand of type {word}")
    if operand.sign_extend and encoding != "sdwa":
        raise ValueError("sext outside of SDWA")


def _check_register(register: Register, word: str, places: str, rules: Rules, *, is_packed: bool) -> None:
    name = _spelled(register)
    if register.file not in places:
        kind = {"s": "scalar", "v": "vector", "a": "accumulation"}[register.file]
        raise ValueError(f"the {kind} register {name} here")
    size = {"s": SGPR_FILE_SIZE, "v": rules.vgprs}.get(register.file, ACCUMULATION_ROW)
    if not 0 <= register.first < register.first + register.count <= size:
        raise ValueError(f"{name}: there is no such register")
    wanted = register_count(word, is_packed=is_packed, wave_size=rules.wave_size)
    if wanted is None:
        if register.count > 2:
            raise ValueError(f"{name} as an address")
    elif register.count != wanted:
        raise ValueError(f"{name} for {wanted} register{'s' * (wanted > 1)}")
    alignment = 1 if register.count == 1 else 4 if register.file == "s" and register.count > 2 else 2
    if register.file == "v" and not rules.tuples_are_aligned:
        alignment = 1
    if register.first % alignment:
        raise ValueError(f"{name} does not begin at a multiple of {alignment}")


def register_count(word: str, *, is_packed: bool = False, wave_size: int = 64) -> int | None:
    """Number of registers that an operand of this word takes; None if the operand decides.

    >>> register_count("f64x4"), register_count("mask"), register_count("f32", is_packed=True)
    (8, 2, 2)
    """
    if word == "any":
        return None
    type_, _, count = word.rstrip("~").partition("x")
    if type_ in ("f16", "i16", "bf16", "bfloat", "mi", "bmi"):  # f16x2 too, and "mix" and "bmix"
        return 1
    if type_ == "mask":
        return wave_size // 32
    width = 2 if type_ in ("i64", "f64") or (is_packed and not count) else 1
    return width * int(count or 1)


def _check_immediate(atom: Immediate, word: str) -> None:
    if word == "word":
        raise ValueError(f"the number {atom.value} as a name")
    if word == "imm":
        if isinstance(atom.value, float) or not -0x8000 <= atom.value <= 0xFFFF:
            raise ValueError(f"{atom.value} as a number of 16 bits")
    elif isinstance(atom.value, float):
        _check_float(atom, word)
    elif not -(1 << 31) <= atom.value < 1 << (64 if word in ("i64", "f64") else 32):
        raise ValueError(f"{atom.value} as a number of 32 bits")


def _check_float(atom: Immediate, word: str) -> None:
    if word == "offset":
        raise ValueError(f"{atom.value} as an offset")
    several = {"mix": ("f16", "f32"), "bmix": ("f32",), "bfloat": ("f32",), "bf16": ("f32",), "mask": ("i64",)}
    types = several.get(word.removesuffix("x2"), (word.rstrip("~").partition("x")[0],))
    try:
        for type_ in types:
            atom.bits(type_)
    except OverflowError:
        raise ValueError(f"{atom.value} as {word}") from None


def _spelled(atom: object) -> str:
    if not isinstance(atom, Register):
        return str(getattr(atom, "text", getattr(atom, "name", getattr(atom, "value", atom))))
    last = atom.first + atom.count - 1
    return f"{atom.file}{atom.first}" if atom.count == 1 else f"{atom.file}[{atom.first}:{last}]"


# --- addresses


def _check_address(
    mnemonic: str, operands: Sequence[Operand], words: Sequence[str], results: int, modifiers: Modifiers
) -> None:
    """Check the registers of an address: vector, scalar, or both."""
    family = mnemonic.partition("_")[0]
    if family not in ("global", "cluster", "scratch", "buffer") or "addtid" in mnemonic:
        return
    vector = _width(operands[words.index("any", results)])
    if family == "buffer":
        expected = modifiers.flag("offen") + modifiers.flag("idxen")
        if vector != expected:
            raise ValueError(f"an address of {vector} registers with {expected} of offen and idxen")
        return
    scalar = _width(operands[-1])
    allowed = ((0, 0), (1, 0), (0, 1), (1, 1)) if family == "scratch" else ((2, 0), (1, 2))
    if (vector, scalar) not in allowed:
        raise ValueError(f"an address of {vector} vector and {scalar} scalar registers")


def _width(operand: Operand) -> int:
    return operand.atom.count if isinstance(operand.atom, Register) else 0


# --- modifiers


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
    """The modifiers that an instruction of the vector ALU has, of those that both backends know."""
    words = (*semantics.results, *semantics.sources)
    is_float = any(word.startswith(_FLOATS) for word in words)
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


def _check_modifier(name: str, modifiers: Modifiers, mnemonic: str, rules: Rules) -> None:
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


def _check_encoding(semantics: Semantics) -> None:
    """Check SDWA and DPP: they take one or two vector registers to one, and v_cvt_pk_f32_* to two."""
    mnemonic = semantics.mnemonic
    words = semantics.sources if mnemonic.startswith("v_cvt_pk_f32_") else (*semantics.results, *semantics.sources)
    named = [w for w in words if w not in IMPLICIT]
    is_wide = any(("x" in w and w not in HALVES) or w in ("register", "imm", "word") for w in named)
    if not mnemonic.startswith("v_") or mnemonic.startswith(_WITH_AGPRS) or "lane" in mnemonic or is_wide:
        raise ValueError(f"{mnemonic} in SDWA or DPP")


def _is_vgpr(operand: Operand) -> bool:
    return isinstance(operand.atom, Register) and operand.atom.file == "v"


def _check_swizzle(text: str) -> None:
    """Check `swizzle(MODE,…)` as LLVM writes it (AMDGPUAsmUtils, Swizzle)."""
    if not any(re.fullmatch(pattern, text) for pattern in _SWIZZLES):
        raise ValueError(f"offset:{text}")


def _check_lanes(modifiers: Modifiers, rules: Rules) -> None:
    """Check that every lane takes its operand from a lane of the wave."""
    try:
        pattern = lane_pattern(modifiers, rules.wave_size)
    except NotImplementedError as error:
        raise ValueError(str(error)) from None
    if not ((pattern.source >= 0) & (pattern.source < rules.wave_size)).all():
        raise ValueError("a lane beyond the last")
