"""Check the operands and modifiers of an instruction: what no assembler would accept is refused.

A listing may come from anyone, and both backends turn its numbers into memory locations. So every instruction, of any
family, is checked here when it is decoded, and later code relies on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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
from flydsl.simulator.decoding.modifier_rules import FLOATS, Rules, check_modifier
from flydsl.simulator.isa.dpp import lane_pattern
from flydsl.simulator.isa.table import HALVES, IMPLICIT, Semantics
from flydsl.simulator.waves import ACCUMULATION_ROW

_TO_SCALAR = ("v_readlane_b32", "v_readfirstlane_b32")
_MATRIX = ("v_mfma_", "v_smfmac_")
_WITH_AGPRS = (*_MATRIX, "v_accvgpr_")


def check(semantics: Semantics, operands: Sequence[Operand], modifiers: Modifiers, encoding: str, rules: Rules) -> None:
    """Raise ValueError for an operand or modifier that the instruction cannot have. operands: results first."""
    for name in modifiers.values:
        check_modifier(name, modifiers, semantics.mnemonic, rules)
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
    if (operand.negate or operand.absolute) and (is_result or is_packed or word not in (*FLOATS, "bfloat")):
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


# --- encodings


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


def _check_lanes(modifiers: Modifiers, rules: Rules) -> None:
    """Check that every lane takes its operand from a lane of the wave."""
    try:
        pattern = lane_pattern(modifiers, rules.wave_size)
    except NotImplementedError as error:
        raise ValueError(str(error)) from None
    if not ((pattern.source >= 0) & (pattern.source < rules.wave_size)).all():
        raise ValueError("a lane beyond the last")
