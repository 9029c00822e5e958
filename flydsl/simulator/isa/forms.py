"""Forms of operands that the mnemonic does not tell, but modifiers or other operands: what follows "/" in an entry."""

from __future__ import annotations

from collections.abc import Sequence

from flydsl.hsaco.operands import Immediate, Modifiers, Operand, Register

SCALED_FORMATS = ("fp8", "bf8", "fp6", "bf6", "fp4")
"""The formats of scaled MFMA by their number in CBSZ and BLGP."""
SIXTEEN_BITS = {"f16": "f16", "bf16": "bf16", "bf16f32": "bf16"}
"""The type of WMMA's D, if it has 16 bits, by the types of D and C as mnemonics name them."""
_FORMAT = "MATRIX_FMT_"


def forms(mnemonic: str, operands: Sequence[Operand], modifiers: Modifiers, register_indexing: str) -> list[str]:
    """The forms that an instruction may have an entry for; the first that there is holds. "" is the plain one.

    An atomic with sc0 returns the old value, a buffer load with lds has no result register, matrices have several
    formats and are those of waves of 32 or 64, clamp may name a format, a register number may be relative, a tensor's
    descriptor has two parts or four. register_indexing: see `program.decode`.
    """
    if register_indexing and mnemonic.startswith("v_"):
        return [register_indexing]
    if mnemonic.startswith(("v_wmma_", "v_swmmac_")):
        return [_wmma_formats(modifiers) if mnemonic.endswith("_f8f6f4") else _wave_matrix(mnemonic, operands)]
    if mnemonic.startswith("tensor_"):
        return [str(len(operands))]
    if mnemonic.startswith("s_barrier_") and operands and isinstance(operands[0].atom, Immediate):
        number = int(operands[0].atom.value) & 0xFFFF
        return [str(number - 0x10000 if number > 0x7FFF else number)]
    if mnemonic.startswith("s_sendmsg_rtn_") and len(operands) == 2:
        return [getattr(operands[1].atom, "text", "")]
    if mnemonic.endswith("_f8f6f4"):
        return [_mfma_formats(modifiers)]
    if mnemonic.startswith("v_cvt_") and "fp8" in mnemonic and modifiers.flag("clamp"):
        return ["clamp", ""]
    return [*_of_memory(mnemonic, operands, modifiers), ""]


def _of_memory(mnemonic: str, operands: Sequence[Operand], modifiers: Modifiers) -> list[str]:
    returns = modifiers.flag("sc0") or modifiers.flag("glc") or "RETURN" in modifiers.text("th", "")
    based = mnemonic.startswith("flat_") and _is_based(operands)
    variants = (
        (returns and based, "returning/base"),
        (based, "base"),
        (returns, "returning"),
        (modifiers.flag("lds"), "lds"),
    )
    return [variant for is_set, variant in variants if is_set]


def _is_based(operands: Sequence[Operand]) -> bool:
    """True if the last operand is a scalar base."""
    return bool(operands) and isinstance(operands[-1].atom, Register) and operands[-1].atom.file == "s"


def _mfma_formats(modifiers: Modifiers) -> str:
    """The formats of A and B, or what there is no entry for."""
    numbers = (modifiers.integer(name) for name in ("cbsz", "blgp"))
    return "_".join(SCALED_FORMATS[n] if n < len(SCALED_FORMATS) else f"format {n}" for n in numbers)


def _wmma_formats(modifiers: Modifiers) -> str:
    """The formats of A and B."""
    names = (modifiers.text(f"matrix_{side}_fmt", f"{_FORMAT}FP8") for side in "ab")
    return "_".join(name.removeprefix(_FORMAT).lower() for name in names)


def _wave_matrix(mnemonic: str, operands: Sequence[Operand]) -> str:
    """The facts that the registers of D and a constant C tell; of RDNA 3, whose D has one element of 16 bits to a
    register, also those of A, which hold whole rows."""
    atoms = [operand.atom for operand in operands]
    is_16_bit = mnemonic.split("_")[2] in SIXTEEN_BITS
    d, a = [getattr(atom, "count", 0) for atom in atoms[:2]] if len(atoms) > 1 else (0, 0)
    has_whole_rows = a == 8 and "_16x16x16_" in mnemonic
    is_of_64 = 0 < d < (4 if is_16_bit and not has_whole_rows else 8)
    is_constant = is_16_bit and any(isinstance(c, Immediate) and c.value != 0 for c in atoms[3:])
    return "/".join(form for form, is_set in (("wave64", is_of_64), ("constant", is_constant)) if is_set)
