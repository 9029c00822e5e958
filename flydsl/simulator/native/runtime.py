"""The functions that native code calls, and modules that have those which they need."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from flydsl.simulator.native.runtime_gaps import gap_functions
from flydsl.simulator.native.runtime_movement import moving_functions
from flydsl.simulator.native.runtime_resolve import resolving_functions
from flydsl.simulator.native.runtime_schedule import leave_function

_DEFINITION = re.compile(r"^define .*?^}$", re.DOTALL | re.MULTILINE)
_CALLED = re.compile(r"@([\w.]+)\(")
_INTRINSICS = {
    "llvm.cttz.i64": "declare i64 @llvm.cttz.i64(i64, i1)",
    "llvm.floor.v64f64": "declare <64 x double> @llvm.floor.v64f64(<64 x double>)",
    "llvm.memcpy.p0.p0.i64": "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "llvm.memset.p0.i64": "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "llvm.vector.reduce.or.v64i64": "declare i64 @llvm.vector.reduce.or.v64i64(<64 x i64>)",
    "llvm.vector.reduce.umax.v64i64": "declare i64 @llvm.vector.reduce.umax.v64i64(<64 x i64>)",
}


@cache
def _functions() -> dict[str, str]:
    """The definition of each function."""
    definitions = _DEFINITION.findall(resolving_functions() + gap_functions() + moving_functions() + leave_function())
    return {_CALLED.findall(text)[0]: text for text in definitions}


def complete_module(text: str, declarations: Iterable[str] = ()) -> str:
    """A module of `text`, the functions that it calls, and the declarations of intrinsics."""
    functions = _functions()
    declared = {d for d in declarations if _CALLED.findall(d)[0] not in functions}
    parts, included, open_texts = [text], set(), [text]
    while open_texts:
        for name in _CALLED.findall(open_texts.pop()):
            if name in _INTRINSICS:
                declared.add(_INTRINSICS[name])
            elif name in functions and name not in included:
                included.add(name)
                parts.append(functions[name])
                open_texts.append(functions[name])
    return "\n".join([*sorted(declared), *parts]) + "\n"
