"""The text of LLVM IR: functions, kernels, declarations; names, flags and operands of an instruction; opaque values.

Names that rewriters make have spaces, unlike LLVM's own.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = r'%(?:"[^"]*"|[-\w.$]+)'
"""A regular expression of a local value's name."""

_ANY_SIGN = {"nsz", "fast"}
_FUNCTION = re.compile(r"(?m)^(?=define )")
_KERNEL = re.compile(
    r'(?m)^define\b[^@\n]*\bamdgpu_kernel\b[^@\n]*@(?:"(?P<quoted>[^"]*)"|(?P<name>[\w.$-]+))\((?P<rest>.*)$'
)
_DECLARATION = re.compile(r"(?m)^declare (?P<result>.+) @(?P<name>[\w.$-]+)\((?P<parameters>.*)\)")


def functions(llvm_ir: str) -> list[str]:
    """The lines before the first function, and each function with what follows it. Joined they are the text.

    >>> functions("target\\ndefine void @a() {}\\ndefine void @b() {}")
    ['target\\n', 'define void @a() {}\\n', 'define void @b() {}']
    """
    return _FUNCTION.split(llvm_ir)


def kernels(llvm_ir: str) -> Iterator[tuple[str, list[str], str]]:
    """The kernels that a module defines: the name, the parameters, and the attributes that follow.

    >>> list(kernels("define protected amdgpu_kernel void @add(ptr byref(%S) %0, i32 %n) memory(read) #0 {"))
    [('add', ['ptr byref(%S) %0', 'i32 %n'], ' memory(read) #0 {')]
    """
    for found in _KERNEL.finditer(llvm_ir):
        parameters, attributes = up_to_closing(found["rest"])
        yield found["quoted"] or found["name"], list(filter(None, split_operands(parameters))), attributes


def up_to_closing(text: str) -> tuple[str, str]:
    """A text before and after the parenthesis that closes one before it."""
    depth = 1
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[:i], text[i + 1 :]
    return text, ""


def declarations(llvm_ir: str) -> Iterator[tuple[str, str, list[str]]]:
    """The functions that a module declares: the name, the type of the result, and those of the parameters.

    >>> list(declarations("declare float @f(i32, ptr)"))
    [('f', 'float', ['i32', 'ptr'])]
    """
    for found in _DECLARATION.finditer(llvm_ir):
        yield found["name"], found["result"], list(filter(None, split_operands(found["parameters"])))


def has_any_sign(flags: str) -> bool:
    """True for the flags of an operation that is indifferent to the sign of a zero.

    >>> has_any_sign("nnan nsz "), has_any_sign("contract ")
    (True, False)
    """
    return not _ANY_SIGN.isdisjoint(flags.split())


def opaque(name: str, kind: str, value: str, *, scalar: bool = False) -> str:
    """The instruction that gives a value another name: an empty inline assembly, which LLVM does not look into.

    scalar: in scalar registers.

    >>> print(opaque("%y", "float", "%x"))
      %y = call float asm "", "=v,0"(float %x)
    """
    return f'  {name} = call {kind} asm "", "={"s" if scalar else "v"},0"({kind} {value})'


def split_operands(operands: str) -> list[str]:
    """The operands, which commas separate. A constant vector has commas of its own.

    >>> split_operands("%a, <2 x i32> <i32 5, i32 -1>, !dbg !7")
    ['%a', '<2 x i32> <i32 5, i32 -1>', '!dbg !7']
    """
    parts, depth, start = [], 0, 0
    for i, character in enumerate(operands):
        depth += character in "<([{"
        depth -= character in ">)]}"
        if character == "," and depth == 0:
            parts.append(operands[start:i].strip())
            start = i + 1
    return [*parts, operands[start:].strip()]
