"""The optimized module without what LLVM's back end gets wrong: all that change its text, in order.

They need `re`, which takes longer to import than LLVM takes for a small kernel. So first of all it is asked whether the
text has any of the words that they look for.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_ZEROS = ("0.000000e+00", "0xH0000", "0xR0000", "zeroinitializer", "0xH8000", "0xR8000")
_SUMS = ("= fadd ", "= fsub ", "@llvm.fm")
_DIVISIONS = ("= udiv ", "= urem ")
_ONE_WORD = ("i1", "i8", "i16", "i32")


def load() -> None:
    """Have `rewritten` import what it needs."""
    rewritten("", 2, str, halves=True)


def may_be_needed(llvm_ir: str, opt_level: int) -> bool:
    """False for LLVM IR text, without halves and fences, that `rewritten` would leave as it is."""
    return (
        (_has(_SUMS, llvm_ir) and _has(_ZEROS, llvm_ir))
        or (_has_long_or(llvm_ir) if opt_level else _has(_DIVISIONS, llvm_ir))
        or ("= insertelement " in llvm_ir and " -1, i" in llvm_ir)
        or (" = fcmp " in llvm_ir and " = select " in llvm_ir)
    )


def rewritten(llvm_ir: str, opt_level: int, simplified: Callable[[str], str], *, halves: bool) -> str:
    """LLVM IR text, as LLVM prints it, without what the back end gets wrong.

    simplified: what LLVM makes of a module when it looks for instructions that are known. halves: whether the module
    has halves or fences.
    """
    from flydsl.codegen import float_fences, half_products, half_vectors, known_ones, numerators
    from flydsl.codegen.signed_differences import with_opaque_zeros
    from flydsl.codegen.signed_selections import with_own_signs

    text = known_ones.by_words(llvm_ir, simplified) if opt_level else numerators.hidden(llvm_ir)
    text = with_own_signs(with_opaque_zeros(text))
    if halves:
        text = half_products.with_signed_zeros(half_vectors.with_opaque_zeros(float_fences.opened(text)))
    return text


def may_lose_signs(listing: str) -> bool:
    """False for assembly that `half_products.lost_signs` finds nothing in."""
    return "v_fma_mix" in listing


def has_clauses(listing: str) -> bool:
    """True if assembly has clauses, and source lines: see `clauses`."""
    return "\ts_clause" in listing and "\t.loc\t" in listing


def _has(words: tuple[str, ...], text: str) -> bool:
    return any(word in text for word in words)


def _has_long_or(llvm_ir: str) -> bool:
    """True if there is an `or` of a vector, or of more than a word."""
    short = sum(llvm_ir.count(f" = or {kind} ") + llvm_ir.count(f" = or disjoint {kind} ") for kind in _ONE_WORD)
    return llvm_ir.count(" = or ") != short
