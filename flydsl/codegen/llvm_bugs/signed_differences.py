"""Keep the sign of 0.0 - x: the zero comes out of an empty inline assembly, which LLVM does not look into.

LLVM 22.1's back end takes 0.0 - x for -x where an instruction can negate its operand (`SelectVOP3ModsImpl`), and it
makes 0.0 - x of 0.0 + -x, and of -x - -0.0. Where x is 0.0 that is -0.0, and 1 / (0.0 - x) the wrong infinity.
"""

from __future__ import annotations

import re

from flydsl.codegen.llvm_bugs.ir_text import NAME, has_any_sign, opaque, split_operands

_ELEMENT = r"(?:half|bfloat|float|double)\b"
_ZERO = r"(?<![-\w.])(?:0\.000000e\+00|0x[HR]0000)\b"
_OF_ZERO = re.compile(rf"= (?:f(?:add|sub) |[^@\n]*@llvm\.fm)[^\n]*(?:{_ZERO}|zeroinitializer)")
# x - -0.0, which LLVM makes x + 0.0 where it optimizes.
_LESS_MINUS_ZERO = re.compile(
    rf"= fsub (?P<before>[^\n]*, )(?P<splat>splat \({_ELEMENT} )?(?:-0\.000000e\+00|0x(?P<kind>[HR])8000)\b\)?"
)
_OPERATION = re.compile(
    rf"\s*(?P<name>{NAME}) = "
    r"(?P<operation>fadd|fsub|fneg|fmul|fdiv|fpext|fptrunc|(?:tail )?call(?= [^@]*@llvm\.fm(?:a|uladd)\.)) "
    rf"(?P<flags>(?:(?!{_ELEMENT})[a-z]+ )*)(?P<type>(?:<(?P<count>\d+) x )?(?P<element>{_ELEMENT})>?) (?P<operands>.*)"
)
_CONSTANT = re.compile(rf"(?P<zero>{_ZERO})|zeroinitializer|<(?P<elements>{_ELEMENT} [^<>]*)>")
_MINUS_ONE = re.compile(r"(?:-1\.000000e\+00|0xHBC00|0xRBF80)\b")
_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}


def keep_signs_of_differences(llvm_ir: str) -> str:
    """Optimized LLVM IR text, as LLVM prints it, in which the back end takes no difference for a negation."""
    llvm_ir = _LESS_MINUS_ZERO.sub(_plus_zero, llvm_ir)
    if not _OF_ZERO.search(llvm_ir):
        return llvm_ir
    negated: set[str] = set()
    return "\n".join(_with_opaque_zeros(line, i, negated) for i, line in enumerate(llvm_ir.split("\n")))


def _plus_zero(difference: re.Match[str]) -> str:
    zero = f"0x{difference['kind']}0000" if difference["kind"] else "0.000000e+00"
    return f"= fadd {difference['before']}{'zeroinitializer' if difference['splat'] else zero}"


def _with_opaque_zeros(line: str, number: int, negated: set[str]) -> str:
    """One operation, preceded by those that make its zeros. Adds to the names of what the back end may negate."""
    operation = _OPERATION.match(line)
    if operation is None:
        return line
    name, operands = operation["operation"], operation["operands"]
    has_negated = _MINUS_ONE.search(operands) or not negated.isdisjoint(re.findall(NAME, operands))
    is_sum = name == "fadd" or name.endswith("call")
    if name == "fneg" or (has_negated and not is_sum):
        negated.add(operation["name"])
    is_difference = (name == "fsub" and _is_zero_in(split_operands(operands)[0])) or (is_sum and has_negated)
    if not is_difference or has_any_sign(operation["flags"]):
        return line
    return "\n".join(_opaque(line, number, operation))


def _is_zero_in(operand: str) -> bool:
    return re.search(rf"{_ZERO}|zeroinitializer", operand) is not None


def _opaque(line: str, number: int, operation: re.Match[str]) -> list[str]:
    """The operation without constant zeros, after what makes them. Their names have spaces, unlike LLVM's own."""
    element, bits = operation["element"], _BITS[operation["element"]]
    word, zero = f'%"bits of the zero in line {number}"', f'%"zero in line {number}"'
    lines = [
        opaque(word, f"i{bits}", "0", scalar=True),
        f"  {zero} = bitcast i{bits} {word} to {element}",
    ]

    def named(constant: re.Match[str]) -> str:
        if constant["zero"]:
            return zero
        known = constant["elements"] or ", ".join([f"{element} 0.000000e+00"] * int(operation["count"]))
        elements = known.split(", ")
        are_zero = [constant["elements"] is None or _is_zero_in(each) for each in elements]
        value = f"<{', '.join(f'{element} poison' if z else e for e, z in zip(elements, are_zero, strict=True))}>"
        for i in (i for i, is_zero in enumerate(are_zero) if is_zero):
            name = f'%"constant {len(lines)} in line {number}"'
            lines.append(f"  {name} = insertelement {operation['type']} {value}, {element} {zero}, i32 {i}")
            value = name
        return value

    start = operation.start("operands")
    changed = line[:start] + _CONSTANT.sub(named, line[start:])
    return [*lines, changed]
