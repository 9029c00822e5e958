"""Keep the sign of a product of f32 that is zero, on its way to f16: the product is a multiply-add of -0.0.

LLVM 22.1's back end rounds such a product by v_fma_mixlo_f16 with the addend +0.0, which makes -0.0 of it +0.0. A
multiply-add of -0.0 is the product whatever its sign, and the back end keeps its addend. It costs a register.

The back end makes products of its own, too, of divisions and powers for instance, and where it has v_fma_mixlo_bf16
each product of bf16 is one. Where the assembly shows that such a one lost its sign, the module is emitted again, with
products of bf16 as multiply-adds of -0.0, and with an empty inline assembly before each rounding, which the back end
does not look into.
"""

from __future__ import annotations

import re

from flydsl.codegen.llvm_bugs.ir_text import NAME, functions, has_any_sign, opaque, split_operands

_PRODUCT = re.compile(
    rf"\s*(?P<name>{NAME}) = fmul (?P<flags>(?:[a-z]+ )*)(?P<type>float|<\d+ x float>) (?P<factors>.*)"
)
_ROUNDING = re.compile(rf"\s*{NAME} = fptrunc (?:[a-z]+ )*(?P<type>float|<\d+ x float>) (?P<source>{NAME}) to ")
_MOVE = re.compile(rf"\s*(?P<name>{NAME}) = (?:extractelement|insertelement|shufflevector|freeze) (?P<operands>.*)")
_MULTIPLIES = re.compile(r"= (?:fmul|fdiv|(?:tail )?call(?= [^@\n]*@llvm\.powi\.)) (?P<flags>(?:[a-z]+ )*)")
_WITH_ADDEND_ZERO = re.compile(r"^\tv_fma_mix(?:lo|hi)_b?f16\w* [^,\n]+, [^,\n]+, [^,\n]+, 0\b(?![.x])", re.M)
_ROUNDED = re.compile(
    rf"(?m)^(?P<start>\s*{NAME} = fptrunc (?:[a-z]+ )*)(?P<type>float|<\d+ x float>) (?P<source>{NAME})"
    r"(?P<end> to .*)$"
)
_OF_BFLOATS = re.compile(
    rf"(?m)^\s*(?P<name>{NAME}) = (?P<operation>fmul|fdiv) (?P<flags>(?:[a-z]+ )*)(?P<type>bfloat|<\d+ x bfloat>) "
    r"(?P<operands>.*)$"
)


def keep_signs_of_products(llvm_ir: str) -> str:
    """LLVM IR text, as LLVM prints it, in which no product whose sign counts becomes an f16 as it is."""
    changed = [_with_signed_zeros(part) for part in functions(llvm_ir)]
    types = sorted({kind for _, kinds in changed for kind in kinds})
    return "".join(
        [text for text, _ in changed] + [f"\n{_declaration(kind)}\n" for kind in types if _is_new(kind, llvm_ir)]
    )


def loses_signs(listing: str, llvm_ir: str) -> bool:
    """True if a product in the assembly of a module may have lost its sign, and the LLVM IR does not say it may."""
    if not _WITH_ADDEND_ZERO.search(listing):
        return False
    return any(not has_any_sign(m["flags"]) for m in _MULTIPLIES.finditer(llvm_ir))


def hide_products(llvm_ir: str, *, vectors: bool) -> str:
    """The module with nothing that the back end makes such an instruction of. vectors: with those of bf16, too.

    Vectors of bf16 have products of their own, which are right, unless the back end takes them apart.
    """
    kinds = set()

    def of_bfloats(found: re.Match[str]) -> str:
        if has_any_sign(found["flags"]) or (found["type"] != "bfloat" and not vectors):
            return found[0]
        kinds.add(found["type"].replace("bfloat", "float"))
        return _in_f32(found)

    text = _OF_BFLOATS.sub(of_bfloats, _ROUNDED.sub(_opaque, llvm_ir))
    return "".join([text, *(f"\n{_declaration(kind)}\n" for kind in sorted(kinds) if _is_new(kind, llvm_ir))])


def _opaque(rounding: re.Match[str]) -> str:
    lines, value = _hidden(rounding["type"], rounding["source"], f"hidden at {rounding.start()}")
    return "\n".join([*lines, f"{rounding['start']}{rounding['type']} {value}{rounding['end']}"])


def _hidden(kind: str, value: str, name: str) -> tuple[list[str], str]:
    """A value that the back end knows nothing of, element by element, as any number of them has registers then."""
    if kind == "float":
        return [opaque(f'%"{name}"', "float", value)], f'%"{name}"'
    lines, result = [], "poison"
    for i in range(int(kind[1:].partition(" ")[0])):
        lines.append(f'  %"{i} of {name}" = extractelement {kind} {value}, i32 {i}')
        lines.append(opaque(f'%"{i} {name}"', "float", f'%"{i} of {name}"'))
        lines.append(f'  %"{i} in {name}" = insertelement {kind} {result}, float %"{i} {name}", i32 {i}')
        result = f'%"{i} in {name}"'
    return lines, result


def _in_f32(operation: re.Match[str]) -> str:
    """A product or quotient of bf16, rounded once."""
    kind, wide, name = operation["type"], operation["type"].replace("bfloat", "float"), f"wide at {operation.start()}"
    x, y, *metadata = split_operands(operation["operands"])
    tail = "".join(f", {part}" for part in metadata)
    lines = [f'  %"{i} {name}" = fpext {kind} {operand} to {wide}' for i, operand in enumerate((x, y))]
    if operation["operation"] == "fmul":
        operands = f'{wide} %"0 {name}", {wide} %"1 {name}", {wide} {_negative_zero(wide)}'
        lines.append(f'  %"{name}" = call {operation["flags"]}{wide} {_function(wide)}({operands}){tail}')
        value = f'%"{name}"'
    else:
        lines.append(f'  %"{name}" = fdiv {operation["flags"]}{wide} %"0 {name}", %"1 {name}"{tail}')
        hidden, value = _hidden(wide, f'%"{name}"', f"hidden {name}")
        lines += hidden
    return "\n".join([*lines, f"  {operation['name']} = fptrunc {wide} {value} to {kind}{tail}"])


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
        if not has_any_sign(product["flags"]):
            lines[at] = _multiply_add(product)
            kinds.add(product["type"])
    return "\n".join(lines), kinds


def _origins(names: list[str], lines: list[str]) -> set[str]:
    """The values of these names, and those that are elements of them."""
    moves = {m["name"]: re.findall(NAME, m["operands"]) for line in lines if (m := _MOVE.match(line))}
    found, waiting = set(names), list(names)
    while waiting:
        new = set(moves.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def _multiply_add(product: re.Match[str]) -> str:
    kind, (x, y, *metadata) = product["type"], split_operands(product["factors"])
    tail = "".join(f", {part}" for part in metadata)
    operands = f"{kind} {x}, {kind} {y}, {kind} {_negative_zero(kind)}"
    return f"  {product['name']} = call {product['flags']}{kind} {_function(kind)}({operands}){tail}"


def _negative_zero(kind: str) -> str:
    return "-0.000000e+00" if kind == "float" else "splat (float -0.000000e+00)"


def _function(kind: str) -> str:
    return "@llvm.fma." + ("f32" if kind == "float" else f"v{kind[1:].partition(' ')[0]}f32")


def _declaration(kind: str) -> str:
    return f"declare {kind} {_function(kind)}({kind}, {kind}, {kind})"


def _is_new(kind: str, llvm_ir: str) -> bool:
    return not re.search(rf"(?m)^declare .*{re.escape(_function(kind))}\(", llvm_ir)
