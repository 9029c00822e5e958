"""Keep the sign of a product of f32 that is zero, on its way to f16: the product is a multiply-add of -0.0.

LLVM 22.1's back end rounds such a product by v_fma_mixlo_f16 with the addend +0.0, which makes -0.0 of it +0.0. A
multiply-add of -0.0 is the product whatever its sign, and the back end keeps its addend. It costs a register.
"""

from __future__ import annotations

import re

_NAME = r'%(?:"[^"]*"|[-\w.$]+)'
_PRODUCT = re.compile(
    rf"\s*(?P<name>{_NAME}) = fmul (?P<flags>(?:[a-z]+ )*)(?P<type>float|<\d+ x float>) (?P<factors>.*)"
)
_ROUNDING = re.compile(rf"\s*{_NAME} = fptrunc (?:[a-z]+ )*(?P<type>float|<\d+ x float>) (?P<source>{_NAME}) to ")
_ELEMENT = re.compile(rf"\s*(?P<name>{_NAME}) = extractelement <\d+ x float> (?P<source>{_NAME}), ")
_ANY_SIGN = {"nsz", "fast"}


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


def _with_signed_zeros(function: str) -> tuple[str, set[str]]:
    """A function, and the types of the multiply-adds in it."""
    lines = function.split("\n")
    products = {m["name"]: i for i, line in enumerate(lines) if (m := _PRODUCT.match(line))}
    elements = {m["name"]: m["source"] for line in lines if (m := _ELEMENT.match(line))}
    rounded = (m["source"] for line in lines if (m := _ROUNDING.match(line)) and " half" in line)
    kinds = set()
    for name in {elements.get(source, source) for source in rounded} & products.keys():
        at = products[name]
        product = _PRODUCT.match(lines[at])
        assert product is not None
        if _ANY_SIGN.isdisjoint(product["flags"].split()):
            lines[at] = _multiply_add(product)
            kinds.add(product["type"])
    return "\n".join(lines), kinds


def _multiply_add(product: re.Match[str]) -> str:
    kind, (factors, tail) = product["type"], _split_tail(product["factors"])
    x, y = _split_factors(factors)
    zero = "-0.000000e+00" if kind == "float" else "splat (float -0.000000e+00)"
    operands = f"{kind} {x}, {kind} {y}, {kind} {zero}"
    return f"  {product['name']} = call {product['flags']}{kind} {_function(kind)}({operands}){tail}"


def _split_tail(factors: str) -> tuple[str, str]:
    """The factors, and the metadata that follows them."""
    at = factors.find(", !")
    return (factors, "") if at < 0 else (factors[:at], factors[at:])


def _split_factors(factors: str) -> tuple[str, str]:
    """The two factors. A constant vector has commas of its own."""
    depth = 0
    for i, character in enumerate(factors):
        depth += character in "<(["
        depth -= character in ">)]"
        if character == "," and depth == 0:
            return factors[:i], factors[i + 2 :]
    raise AssertionError(factors)


def _function(kind: str) -> str:
    return "@llvm.fma." + ("f32" if kind == "float" else f"v{kind[1:].partition(' ')[0]}f32")


def _declaration(kind: str) -> str:
    return f"declare {kind} {_function(kind)}({kind}, {kind}, {kind})"


def _is_new(kind: str, llvm_ir: str) -> bool:
    return not re.search(rf"(?m)^declare .*{re.escape(_function(kind))}\(", llvm_ir)
