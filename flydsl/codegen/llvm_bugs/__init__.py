"""The bugs of LLVM 22.1 that kernels meet, and what goes around each. `tests/codegen/llvm_bugs` says when one is gone.

`BUGS` are those that another text of the optimized module goes around, one row each, in the order in which the text is
rewritten. `ir_text` knows the text of LLVM's instructions. The others:

| LLVM | where | what goes around it |
|---|---|---|
| rounds operands of bf16 to f16 | before its optimizer | `bfloat_ranges` |
| moves reads behind barriers | before its optimizer | `barriers` |
| loses a write at an index of one bit | an option of its back end | `indexed_writes` |
| drops a mask whose SCC is read | in its listing, and an option | `branch_masks` |
| loses the sign of a zero product that it makes itself | in its listing, then in the text | `half_products` |
| gives instructions in clauses wrong lines | in its listing | `clauses` |

Rewriting needs `re`, which takes longer to import than LLVM takes for a small kernel. So a row says which words a text
has in which LLVM may go wrong, and its module is imported only for such a text.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Simplify = Callable[[str], str]

_ZEROS = ("0.000000e+00", "0xH0000", "0xR0000", "zeroinitializer", "0xH8000", "0xR8000")
_ONE_WORD = ("i1", "i8", "i16", "i32")


class Bug:
    """A bug of LLVM's back end that another text of the optimized module goes around.

    effect: what LLVM does. rewrite: the function that makes that text, "module.function" in this package. occurs:
    False for a text that the function would leave as it is. levels: those of the optimizer at which LLVM does it.
    asks_llvm: the function takes what LLVM makes of a module when it looks for what is known, too.
    """

    def __init__(
        self,
        effect: str,
        rewrite: str,
        occurs: Callable[[str], bool],
        *,
        levels: tuple[int, ...] = (0, 1, 2, 3),
        asks_llvm: bool = False,
    ) -> None:
        self.effect = effect
        self.rewrite = rewrite
        self.occurs = occurs
        self.levels = levels
        self.asks_llvm = asks_llvm

    @property
    def function(self) -> Callable[..., str]:
        """The function that rewrites the text."""
        module, _, name = self.rewrite.partition(".")
        return getattr(__import__(f"{__name__}.{module}", fromlist=[name]), name)


def _has(*groups: tuple[str, ...]) -> Callable[[str], bool]:
    """True for a text that has a word of each group."""
    return lambda text: all(any(word in text for word in group) for group in groups)


def _has_ones(text: str) -> bool:
    """True if there is an `or` of a vector or of more than a word, or a vector into which ones are written."""
    short = sum(text.count(f" = or {kind} ") + text.count(f" = or disjoint {kind} ") for kind in _ONE_WORD)
    return text.count(" = or ") != short or ("= insertelement " in text and " -1, i" in text)


BUGS = (
    Bug(
        "drops words that are known to be ones",
        "known_ones.split_wide_ors",
        _has_ones,
        levels=(1, 2, 3),
        asks_llvm=True,
    ),
    Bug("divides large numerators as floats", "numerators.hide_numerators", _has(("= udiv ", "= urem ")), levels=(0,)),
    Bug(
        "makes -x of 0.0 - x",
        "signed_differences.keep_signs_of_differences",
        _has(("= fadd ", "= fsub ", "@llvm.fm"), _ZEROS),
    ),
    Bug(
        "selects the other zero of 0.0 and -0.0",
        "signed_selections.keep_signs_of_selections",
        _has((" = fcmp ",), (" = select ",)),
    ),
    Bug(
        "has no instruction for some fences",
        "float_fences.open_fences",
        _has(("@llvm.arithmetic.fence.",)),
    ),
    Bug("loses -0.0 beside another f16", "half_vectors.hide_negative_zeros", _has(("half 0xH8000",))),
    Bug(
        "loses the sign of a zero product that becomes f16",
        "half_products.keep_signs_of_products",
        _has(("fmul",), (" to half", "x half>")),
    ),
    Bug(
        "moves products of RDNA into branches",
        "sunk_products.pin_products",
        _has(("@llvm.amdgcn.wmma", "@llvm.amdgcn.swmma"), (" br i1 ",)),
        levels=(1, 2, 3),
    ),
    Bug(
        "waits for asynchronous copies before each access to LDS",
        "async_copies.wait_for_none",
        _has(('"flydsl.async_copies"',)),
    ),
)


def load() -> None:
    """Have `work_around` import what it needs."""
    for bug in BUGS:
        bug.function  # noqa: B018 - its module is imported


def work_around(llvm_ir: str, opt_level: int, simplify: Simplify) -> str:
    """LLVM IR text, as LLVM prints it, without what the back end gets wrong.

    simplify: what LLVM makes of a module when it looks for instructions that are known.
    """
    for bug in BUGS:
        if opt_level in bug.levels and bug.occurs(llvm_ir):
            llvm_ir = bug.function(llvm_ir, simplify) if bug.asks_llvm else bug.function(llvm_ir)
    return llvm_ir


def may_lose_signs(listing: str) -> bool:
    """False for assembly that `half_products.loses_signs` finds nothing in."""
    return "v_fma_mix" in listing


def has_branches_of_lanes(listing: str) -> bool:
    """False for assembly that `branch_masks.may_be_dropped` finds nothing in."""
    return "\ts_cbranch_vcc" in listing


def has_clauses(listing: str) -> bool:
    """True if assembly has clauses, and source lines: see `clauses`."""
    return "\ts_clause" in listing and "\t.loc\t" in listing
