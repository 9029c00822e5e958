"""`range(..., unroll=4)`: the number of copies that LLVM makes of the body of a runtime loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir import ir

from flydsl.dialect.location import argument_error

NAMES = ("unroll", "unroll_full")


def unroll_hint(options: Mapping[str, Any]) -> str:
    """The LLVM attribute of a loop for the options of `range`; empty without them.

    unroll: the number of copies of the body, 1 to keep LLVM from unrolling; -1, FlyDSL's default, says nothing.
    unroll_full: True to unroll the whole loop, where its number of iterations is known at compile time.

    Raises ArgumentError for anything else, and for both at once.
    """
    count, full = options.get("unroll", -1), options.get("unroll_full", False)
    if type(full) is not bool:
        raise argument_error(
            f"unroll_full of range must be True or False, got {full!r}", "pass unroll_full=True, for example"
        )
    if type(count) is not int or (count < 1 and count != -1):
        raise argument_error(
            f"unroll of range must be a positive Python int, the number of copies of the body, got {count!r}",
            "pass unroll=4, for example",
        )
    if full and count != -1:
        raise argument_error(f"unroll={count} and unroll_full of range are mutually exclusive", "omit one of them")
    if full:
        return _annotation("full = true")
    if count == -1:
        return ""
    return _annotation("count = 1 : i32, disable = true" if count == 1 else f"count = {count} : i32")


def _annotation(unroll: str) -> str:
    return f"#llvm.loop_annotation<unroll = <{unroll}>>"


def annotate(loop: ir.Operation, hint: str) -> None:
    """Give an `scf.for` its hint, which the conversions to LLVM carry to the branch that closes the loop."""
    if hint:
        loop.attributes["loop_annotation"] = ir.Attribute.parse(hint)
