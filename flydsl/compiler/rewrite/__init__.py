"""Source rewriting: Python control flow on runtime values becomes calls that trace it.

A function is rewritten only where it must be, and never in the user's namespace: the new function has the old one's
globals and closure cells, its file and its line numbers. One module per statement.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import dis
import functools
import inspect
import re
import sys
import types
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from flydsl import env
from flydsl.compiler.rewrite.rewriter import Rewriter
from flydsl.errors import TraceError
from flydsl.errors.places import definition_location, source_lines
from flydsl.expr.control_flow import RUNTIME
from flydsl.expr.control_flow.generated import without_lines
from flydsl.expr.primitive import const_expr, range_constexpr
from flydsl.expr.printing.refusals import WITH_SOURCE


def rewrite(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with its runtime control flow rewritten; the function itself if it has none.

    Raises TraceError, with the place, for statements that cannot be traced, and if the source is not available.
    """
    code = function.__code__
    if _is_rewritten(code):
        return function
    show = env.flag("FLYDSL_DEBUG_AST_DIFF")
    unbound = tuple(name for name in _CONSTEXPR if _names(code, name) and name not in function.__globals__)
    made = (_rewritten.__wrapped__ if show else _rewritten)(code.co_filename, code, show, unbound)
    return function if made is None else _with_code(function, made)


# FlyDSL knows these by name: a program need not import them.
_CONSTEXPR = {"range_constexpr": range_constexpr, "const_expr": const_expr}


def _names(code: types.CodeType, name: str) -> bool:
    """True if a function, or one nested in it, reads a global of that name."""
    return name in code.co_names or any(_names(nested, name) for nested in _nested(code))


# Code objects of two files are equal where their code is, so the file is part of the key.
@functools.lru_cache(maxsize=1024)
def _rewritten(file: str, code: types.CodeType, show: bool, unbound: tuple[str, ...]) -> types.CodeType | None:
    """Rewritten code; None if there is nothing to rewrite.

    show: whether to print the changes. unbound: names of `_CONSTEXPR` that the function does not find otherwise.
    """
    if not (_may_loop(code) or _may_branch(code) or _may_slip(code) or unbound):
        return None
    definition = _parse(code)
    if definition is None:
        return None
    before = ast.unparse(definition) if show else None
    rewriter = Rewriter(file)
    rewriter.visit(definition)
    if not (rewriter.changed or unbound):
        return None
    if before is not None:
        _print_diff(before, ast.unparse(definition), definition.name)
    free = [*code.co_freevars, *unbound, *RUNTIME]
    return without_lines(_compiled(ast.fix_missing_locations(definition), code, free))


def _is_rewritten(code: types.CodeType) -> bool:
    """True if a function is nested in one that has been rewritten, and was rewritten with it."""
    return any(name in RUNTIME for name in code.co_freevars)


def _may_loop(code: types.CodeType) -> bool:
    """True if a function, or one nested in it, names `range`: such a loop is a runtime one."""
    return "range" in code.co_names or any(map(_may_loop, _nested(code)))


def _may_branch(code: types.CodeType) -> bool:
    """True if a function, or one nested in it, tests the truth of a value, loops, or looks for a value with `get`."""
    asks = "get" in code.co_names or any(
        "_IF_" in name or name.startswith("JUMP_BACK") or name in _ASKING for name in set(_instructions(code))
    )
    return asks or any(map(_may_branch, _nested(code)))


_ASKING = ("UNARY_NOT", "CONTAINS_OP", "IS_OP", "JUMP_ABSOLUTE")  # the last is Python 3.10's jump backward


def _may_slip(code: types.CodeType) -> bool:
    """True if a function, or one nested in it, sets an element, an attribute or a global variable, or has a statement
    that is a name and nothing else.
    """
    names = [name for name in _instructions(code) if name != "CACHE"]
    read = any(one.startswith("LOAD_") and other == "POP_TOP" for one, other in pairwise(names))
    return read or not _SETTING.isdisjoint(names) or any(map(_may_slip, _nested(code)))


_SETTING = {"STORE_SUBSCR", "STORE_ATTR", "STORE_GLOBAL"}


def _instructions(code: types.CodeType) -> list[str]:
    """The names of a function's instructions. `dis` takes ten times as long, as it looks at their operands."""
    return [dis.opname[opcode] for opcode in code.co_code[::2]]


def _nested(code: types.CodeType) -> list[types.CodeType]:
    return [const for const in code.co_consts if isinstance(const, types.CodeType)]


def _parse(code: types.CodeType) -> ast.FunctionDef | None:
    """A function's definition, with positions as in its file and without decorators.

    None if the source is not available and the function has no loops: its branches may be known at compile time, and
    one that is not is an error when it runs.
    """
    try:
        lines, first = source_lines(code)
    except (OSError, TypeError):
        if not _may_loop(code):
            return None
        raise TraceError(
            f"the source of {code.co_name} cannot be read, and its loops must be rewritten",
            at=definition_location(code),
            hint=WITH_SOURCE,
        ) from None
    # The lines may be too few where dead code has a string that is not indented.
    definition = _first_statement(lines, first) or _first_statement(inspect.getsourcelines(code)[0], first)
    if not isinstance(definition, ast.FunctionDef):
        if not _may_loop(code):
            return None
        raise TraceError(
            f"{code.co_name} has a loop, so it must be written with def",
            at=definition_location(code),
            hint="give the function a name: def, with a body of lines",
        )
    definition.decorator_list = []
    if not _is_source_of(code, definition):
        raise TraceError(
            f"the source of {code.co_name} has changed since it was loaded",
            at=definition_location(code),
            hint="reload its module, or restart the kernel of the notebook",
        )
    return definition


def _first_statement(lines: Sequence[str], first: int) -> ast.stmt | None:
    """The first statement of source that begins at a line of its file; None if it is not Python."""
    try:
        # Under an `if`, indented source parses as it is, and columns stay those of the file; so do lines, after others.
        above = "\n" * (first - 2) + "if True:\n" if lines[0][:1].isspace() else "\n" * (first - 1)
        tree = ast.parse(above + "".join(lines))
    except SyntaxError:
        return None
    return next((node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not isinstance(node, ast.If)), None)


def _is_source_of(code: types.CodeType, definition: ast.FunctionDef) -> bool:
    """True if the definition compiles to this code: the file may have been edited after it was loaded."""
    if _has_asserts_of_pytest(code):
        return True
    again = _compiled(definition, code, list(code.co_freevars))
    return _essence(again) == _essence(code)


def _has_asserts_of_pytest(code: types.CodeType) -> bool:
    """True if pytest has rewritten assert statements of a function, or of one nested in it."""
    return any(name.startswith("@py_assert") for name in code.co_varnames) or any(
        map(_has_asserts_of_pytest, _nested(code))
    )


def _essence(code: types.CodeType) -> tuple[Any, ...]:
    """The behaviour of a function, for comparison: calls compile differently if the module's imports are known."""
    consts = [_essence(c) if isinstance(c, types.CodeType) else _unqualified(c) for c in code.co_consts]
    instructions = zip(code.co_code[::2], code.co_code[1::2], strict=True)
    operators = [(opcode, argument) for opcode, argument in instructions if opcode in _OPERATORS]
    return code.co_names, code.co_varnames, consts, operators


_OPERATORS = {number for name, number in dis.opmap.items() if re.match("BINARY|INPLACE|COMPARE|UNARY", name)}


def _unqualified(const: Any) -> str:
    """A constant's text. Python 3.10 has nested functions' qualified names among them, which tell where they are."""
    return repr(const).rpartition("<locals>.")[2]


def _with_code(function: Callable[..., Any], code: types.CodeType) -> Callable[..., Any]:
    """A function with rewritten code and the original's globals, closure cells and defaults."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells = {name: types.CellType(value) for name, value in (RUNTIME | _CONSTEXPR).items()} | cells
    closure = tuple(cells[name] for name in code.co_freevars)
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    return made


def _compiled(definition: ast.FunctionDef, code: types.CodeType, free: list[str]) -> types.CodeType:
    """Code of a definition in the file and under the `__future__` imports of `code`, with free variables `free`."""
    outer = ast.FunctionDef(
        name="__fly_scope__",
        args=ast.arguments(
            posonlyargs=[], args=[ast.arg(arg=name) for name in free], kwonlyargs=[], kw_defaults=[], defaults=[]
        ),
        # A function of a module that calls itself means the module's name, not one of this scope.
        body=[] if definition.name in free else [ast.Global(names=[definition.name])],
        decorator_list=[],
    )
    if sys.version_info >= (3, 12):
        outer.type_params = []
    ast.fix_missing_locations(ast.copy_location(outer, definition))
    outer.body.append(definition)
    module = ast.Module(body=[outer], type_ignores=[])
    compiled = builtins.compile(module, code.co_filename, "exec", dont_inherit=True, flags=_future_flags(code))
    return _nested_code(_nested_code(compiled, "__fly_scope__"), definition.name)


def _future_flags(code: types.CodeType) -> int:
    import __future__

    flags = [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names]
    return sum(flag for flag in flags if code.co_flags & flag)


def _nested_code(code: types.CodeType, name: str) -> types.CodeType:
    return next(const for const in code.co_consts if isinstance(const, types.CodeType) and const.co_name == name)


def _print_diff(before: str, after: str, name: str) -> None:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"{name} as written", f"{name} rewritten")
    print("\n".join(line.rstrip("\n") for line in lines))
