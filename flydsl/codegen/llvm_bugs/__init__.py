"""The bugs of LLVM 22.1 that kernels meet, and what goes around each. `tests/codegen/llvm_bugs` says when one is gone.

| what LLVM does | where | what goes around it |
|---|---|---|
| rounds operands of bf16 to f16 | before its optimizer | `bfloat_ranges` |
| moves reads behind barriers | before its optimizer | `barriers` |
| has no instruction for some fences | behind its optimizer | `float_fences` |
| makes -x of 0.0 - x | behind its optimizer | `signed_differences` |
| selects the other zero of 0.0 and -0.0 | behind its optimizer | `signed_selections` |
| loses -0.0 beside another f16 | behind its optimizer | `half_vectors` |
| loses the sign of a zero product that becomes f16 | behind its optimizer | `half_products` |
| drops words that are known to be ones | behind its optimizer | `known_ones` |
| divides large numerators as floats, unoptimized | behind its optimizer | `numerators` |
| loses a write at an index of one bit | an option of its back end | `indexed_writes` |
| drops a mask whose SCC is read | in its listing, and an option | `branch_masks` |
| gives instructions in clauses wrong lines | in its listing | `clauses` |

`ir_text` knows the text of LLVM's instructions. What changes the optimized module is called here, in order. It needs
`re`, which takes longer to import than LLVM takes for a small kernel. So first of all it is asked whether the text has
any of the words that they look for.
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
    """Have `work_around` import what it needs."""
    work_around("", 2, str, halves=True)


def may_be_needed(llvm_ir: str, opt_level: int) -> bool:
    """False for LLVM IR text, without halves and fences, that `work_around` would leave as it is."""
    return (
        (_has(_SUMS, llvm_ir) and _has(_ZEROS, llvm_ir))
        or (_has_long_or(llvm_ir) if opt_level else _has(_DIVISIONS, llvm_ir))
        or ("= insertelement " in llvm_ir and " -1, i" in llvm_ir)
        or (" = fcmp " in llvm_ir and " = select " in llvm_ir)
    )


def work_around(llvm_ir: str, opt_level: int, simplified: Callable[[str], str], *, halves: bool) -> str:
    """LLVM IR text, as LLVM prints it, without what the back end gets wrong.

    simplified: what LLVM makes of a module when it looks for instructions that are known. halves: whether the module
    has halves or fences.
    """
    from flydsl.codegen.llvm_bugs.float_fences import open_fences
    from flydsl.codegen.llvm_bugs.half_products import keep_signs_of_products
    from flydsl.codegen.llvm_bugs.half_vectors import hide_negative_zeros
    from flydsl.codegen.llvm_bugs.known_ones import split_wide_ors
    from flydsl.codegen.llvm_bugs.numerators import hide_numerators
    from flydsl.codegen.llvm_bugs.signed_differences import keep_signs_of_differences
    from flydsl.codegen.llvm_bugs.signed_selections import keep_signs_of_selections

    text = split_wide_ors(llvm_ir, simplified) if opt_level else hide_numerators(llvm_ir)
    text = keep_signs_of_selections(keep_signs_of_differences(text))
    if halves:
        text = keep_signs_of_products(hide_negative_zeros(open_fences(text)))
    return text


def may_lose_signs(listing: str) -> bool:
    """False for assembly that `half_products.loses_signs` finds nothing in."""
    return "v_fma_mix" in listing


def has_branches_of_lanes(listing: str) -> bool:
    """False for assembly that `branch_masks.may_be_dropped` finds nothing in."""
    return "\ts_cbranch_vcc" in listing


def has_clauses(listing: str) -> bool:
    """True if assembly has clauses, and source lines: see `clauses`."""
    return "\ts_clause" in listing and "\t.loc\t" in listing


def _has(words: tuple[str, ...], text: str) -> bool:
    return any(word in text for word in words)


def _has_long_or(llvm_ir: str) -> bool:
    """True if there is an `or` of a vector, or of more than a word."""
    short = sum(llvm_ir.count(f" = or {kind} ") + llvm_ir.count(f" = or disjoint {kind} ") for kind in _ONE_WORD)
    return llvm_ir.count(" = or ") != short
