"""Keep the sign of a product of f32 that is zero, on its way to f16: the product is a multiply-add of -0.0.

LLVM 22.1's back end rounds such a product by v_fma_mixlo_f16 with the addend +0.0, which makes -0.0 of it +0.0. A
multiply-add of -0.0 is the product whatever its sign, and the back end keeps its addend. It costs a register.

The back end makes products of its own, too, of divisions and powers for instance. Where the assembly shows that such
a one lost its sign, the module is emitted again without that instruction.
"""

from __future__ import annotations

import re

from flydsl.codegen.operands import split_operands

_NAME = r'%(?:"[^"]*"|[-\w.$]+)'
_PRODUCT = re.compile(
    rf"\s*(?P<name>{_NAME}) = fmul (?P<flags>(?:[a-z]+ )*)(?P<type>float|<\d+ x float>) (?P<factors>.*)"
)
_ROUNDING = re.compile(rf"\s*{_NAME} = fptrunc (?:[a-z]+ )*(?P<type>float|<\d+ x float>) (?P<source>{_NAME}) to ")
_MOVE = re.compile(rf"\s*(?P<name>{_NAME}) = (?:extractelement|insertelement|shufflevector|freeze) (?P<operands>.*)")
_ANY_SIGN = {"nsz", "fast"}
_MULTIPLIES = re.compile(r"= (?:fmul|fdiv|(?:tail )?call(?= [^@\n]*@llvm\.powi\.)) (?P<flags>(?:[a-z]+ )*)")
_WITH_ADDEND_ZERO = re.compile(r"^\tv_fma_mix(?:lo|hi)_b?f16\w* [^,\n]+, [^,\n]+, [^,\n]+, 0\b(?![.x])", re.M)

ITS_FEATURES = '"target-features"="'  # how LLVM IR says what a function's target has
# Of a target without the instruction.
WITHOUT_MIX = "-fma-mix-insts,-fma-mix-bf16-insts"


def with_signed_zeros(llvm_ir: str) -> str:
    """LLVM IR text, as LLVM prints it, in which no product whose sign counts becomes an f16 as it is."""
    if "fmul" not in llvm_ir or (" to half" not in llvm_ir and "x half>" not in llvm_ir):
        return llvm_ir
    parts = re.split(r"(?m)^(?=define )", llvm_ir)
    changed = [_with_signed_zeros(part) for part in parts]
    types = sorted({kind for _, kinds in changed for kind in kinds})
    return "".join(
        [text for text, _ in changed] + [f"\n{_declaration(kind)}\n" for kind in types if _is_new(kind, llvm_ir)]
    )


def lost_signs(listing: str, llvm_ir: str) -> bool:
    """True if a product in the assembly of a module may have lost its sign, and the LLVM IR does not say it may."""
    if not _WITH_ADDEND_ZERO.search(listing):
        return False
    return any(_ANY_SIGN.isdisjoint(m["flags"].split()) for m in _MULTIPLIES.finditer(llvm_ir))


def without_mix(llvm_ir: str) -> str:
    """The module for a target without that instruction: what its functions say of their target wins."""
    return llvm_ir.replace(ITS_FEATURES, f"{ITS_FEATURES}{WITHOUT_MIX},")


def _with_signed_zeros(function: str) -> tuple[str, set[str]]:
    """A function, and the types of the multiply-adds in it."""
    lines = function.split("\n")
    products = {m["name"]: i for i, line in enumerate(lines) if (m := _PRODUCT.match(line))}
    rounded = [m["source"] for line in lines if (m := _ROUNDING.match(line)) and " half" in line]
    kinds = set()
    for name in sorted(_origins(rounded, lines) & products.keys()):
        at = products[name]
        product = _PRODUCT.match(lines[at])
        assert product is not None
        if _ANY_SIGN.isdisjoint(product["flags"].split()):
            lines[at] = _multiply_add(product)
            kinds.add(product["type"])
    return "\n".join(lines), kinds


def _origins(names: list[str], lines: list[str]) -> set[str]:
    """The values of these names, and those that are elements of them."""
    moves = {m["name"]: re.findall(_NAME, m["operands"]) for line in lines if (m := _MOVE.match(line))}
    found, waiting = set(names), list(names)
    while waiting:
        new = set(moves.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def _multiply_add(product: re.Match[str]) -> str:
    kind, (x, y, *metadata) = product["type"], split_operands(product["factors"])
    tail = "".join(f", {part}" for part in metadata)
    zero = "-0.000000e+00" if kind == "float" else "splat (float -0.000000e+00)"
    operands = f"{kind} {x}, {kind} {y}, {kind} {zero}"
    return f"  {product['name']} = call {product['flags']}{kind} {_function(kind)}({operands}){tail}"


def _function(kind: str) -> str:
    return "@llvm.fma." + ("f32" if kind == "float" else f"v{kind[1:].partition(' ')[0]}f32")


def _declaration(kind: str) -> str:
    return f"declare {kind} {_function(kind)}({kind}, {kind}, {kind})"


def _is_new(kind: str, llvm_ir: str) -> bool:
    return not re.search(rf"(?m)^declare .*{re.escape(_function(kind))}\(", llvm_ir)
