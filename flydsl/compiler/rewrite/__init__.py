"""Source rewriting: Python control flow on runtime values becomes calls that trace it.

A function is rewritten only where it must be, and never in the user's namespace: the new function has the old one's
globals and closure cells, its file and its line numbers. One module per statement.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import inspect
import sys
import textwrap
import types
from collections.abc import Callable
from typing import Any

from flydsl.compiler.rewrite.for_loop import ForLoops
from flydsl.errors import SourceLocation, TraceError
from flydsl.expr.control_flow import RUNTIME
from flydsl.utils import env


def rewrite(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with its runtime control flow rewritten; the function itself where there is none.

    Raises TraceError, with the place, for statements that cannot be traced, and where the source is not to be had.
    """
    code = function.__code__
    if not _may_loop(code):
        return function
    definition = _parse(function)
    before = ast.unparse(definition) if env.flag("FLYDSL_DEBUG_AST_DIFF") else None
    rewriter = ForLoops(code.co_filename)
    rewriter.visit(definition)
    if not rewriter.changed:
        return function
    if before is not None:
        _print_diff(before, ast.unparse(definition), definition.name)
    return _rebuilt(function, definition)


def _may_loop(code: types.CodeType) -> bool:
    """Whether a function, or one nested in it, names `range`: nothing else is rewritten yet."""
    return "range" in code.co_names or any(
        _may_loop(const) for const in code.co_consts if isinstance(const, types.CodeType)
    )


def _parse(function: Callable[..., Any]) -> ast.FunctionDef:
    """The function's definition, with positions as in its file and without decorators."""
    code = function.__code__
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError):
        raise TraceError(
            f"the source of {function.__name__} is not to be had, and its loops must be rewritten",
            at=SourceLocation(code.co_filename, code.co_firstlineno),
            hint="define it in a file or a notebook cell",
        ) from None
    tree = ast.parse(textwrap.dedent("".join(lines)))
    indent = len(lines[0]) - len(lines[0].lstrip())
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword | ast.alias):
            node.lineno += first - 1
            node.end_lineno = (node.end_lineno or 0) + first - 1
            node.col_offset += indent
            node.end_col_offset = (node.end_col_offset or 0) + indent
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        at = SourceLocation(code.co_filename, code.co_firstlineno)
        raise TraceError("loops on runtime values need a function written with def", at=at)
    definition.decorator_list = []
    return definition


def _rebuilt(function: Callable[..., Any], definition: ast.FunctionDef) -> Callable[..., Any]:
    """Compile a rewritten definition and give it the original's globals, closure cells and defaults."""
    code = function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells |= {name: types.CellType(value) for name, value in RUNTIME.items()}
    parameters = [ast.arg(arg=name) for name in cells]
    outer = ast.FunctionDef(
        name="__fly_scope__",
        args=ast.arguments(posonlyargs=[], args=parameters, kwonlyargs=[], kw_defaults=[], defaults=[]),
        body=[definition],
        decorator_list=[],
    )
    ast.copy_location(outer, definition)
    if sys.version_info >= (3, 12):
        outer.type_params = []
    module = ast.fix_missing_locations(ast.Module(body=[outer], type_ignores=[]))
    compiled = builtins.compile(module, code.co_filename, "exec", dont_inherit=True, flags=_future_flags(code))
    inner = _nested_code(_nested_code(compiled, "__fly_scope__"), definition.name)
    closure = tuple(cells[name] for name in inner.co_freevars)
    rebuilt = types.FunctionType(inner, function.__globals__, function.__name__, function.__defaults__, closure)
    rebuilt.__kwdefaults__ = function.__kwdefaults__
    rebuilt.__qualname__ = function.__qualname__
    return rebuilt


def _future_flags(code: types.CodeType) -> int:
    import __future__

    flags = [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names]
    return sum(flag for flag in flags if code.co_flags & flag)


def _nested_code(code: types.CodeType, name: str) -> types.CodeType:
    return next(const for const in code.co_consts if isinstance(const, types.CodeType) and const.co_name == name)


def _print_diff(before: str, after: str, name: str) -> None:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"{name} as written", f"{name} rewritten")
    print("\n".join(line.rstrip("\n") for line in lines))
