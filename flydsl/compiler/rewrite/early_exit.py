"""`return`, `break` and `continue` under an `if`: the statements after it become the other branch.

    if n <= i:              if n <= i:
        return                  __fly_returned = None
    A[i] = 0                else:
                                A[i] = 0
                            return __fly_returned

The result is the same program, and it can be traced if the condition is a runtime value. If both branches may continue,
a flag says whether one has left. A `return` in a loop breaks it, and a flag says so to what follows:

    for i in range(n):      __fly_left = False
        if A[i] > 0:        for i in range(n):
            return i            if A[i] > 0:
    return n                        __fly_returned, __fly_left = i, True
                                    break
                            if not __fly_left:
                                __fly_returned = n
                            return __fly_returned

An exit inside `try` or `with`, and a `return` of a loop that stands under no `if`, is not changed.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeGuard

from flydsl.compiler.rewrite.names import in_function
from flydsl.compiler.rewrite.template import expression, statements
from flydsl.expr.control_flow.if_statement import LEFT, RETURNED

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.While
Exit = type[ast.Return] | type[ast.Continue] | type[ast.Break]


def with_one_return(function: Function) -> None:
    """Make a function with a `return` under an `if` end in one return statement."""
    if not any(_leaves(node, ast.Return) for node in function.body if not isinstance(node, ast.Return)):
        return
    function.body = [
        *statements(f"{RETURNED} = __fly_unset__", function.body[0]),
        *_tail(function.body, ast.Return, (), function.body[-1]),
        *statements(f"return {RETURNED}", function.body[-1]),
    ]


def without_continue(body: list[ast.stmt]) -> list[ast.stmt]:
    """A loop's body without a `continue` under an `if`."""
    return _tail(body, ast.Continue, ())


def without_break(loop: Loop) -> tuple[str | None, list[ast.expr]]:
    """Make a loop's body set a flag where it would break. Returns the flag's name, or None if nothing changes.

    Also returns the conditions under which it is set.
    """
    if not any(isinstance(node, ast.If) and _leaves(node, ast.Break) for node in loop.body):
        return None, []
    flag = f"__fly_broken_{loop.lineno}_{loop.col_offset}"
    conditions = [node.test for node in in_function(loop.body) if isinstance(node, ast.If) and _leaves(node, ast.Break)]
    loop.body = _tail(loop.body, ast.Break, (flag,))
    return flag, conditions


def stopping_python_loop(loop: ast.For, flag: str) -> list[ast.stmt]:
    """A loop that Python runs and whose body sets a flag, which may turn out to be a runtime value."""
    assign = ast.copy_location(ast.Assign(targets=[loop.target], value=_name("__fly_item", loop.target)), loop)
    loop.target = ast.copy_location(ast.Name("__fly_item", ast.Store()), loop.target)
    loop.body = statements(
        f"if not {flag}:\n    __BODY\nif __fly_stops__({flag}):\n    break", loop.iter, BODY=[assign, *loop.body]
    )
    return [*statements(f"{flag} = False", loop.iter), loop]


def _name(name: str, at: ast.AST) -> ast.expr:
    return expression(name, at)


def _tail(body: Sequence[ast.stmt], kind: Exit, flags: tuple[str, ...], last: ast.stmt | None = None) -> list[ast.stmt]:
    """Statements that end a function or an iteration, without exits under `if`.

    flags: what an exit sets. last: the last statement of a function that returns None after them.
    """
    made: list[ast.stmt] = []
    for position, statement in enumerate(body):
        if isinstance(statement, kind):
            return [*made, *_replacement(statement, flags)]
        if isinstance(statement, ast.If) and _leaves(statement, kind):
            return [*made, *_branches(statement, body[position + 1 :], kind, flags, last)]
        if kind is ast.Return and _returns_in_loop(statement):
            return [*made, *_loop(statement, body[position + 1 :], flags, last)]
        made.append(statement)
    return [*made, *(statements(f"{RETURNED} = None", last) if last else [])]


def _branches(
    statement: ast.If, rest: Sequence[ast.stmt], kind: Exit, flags: tuple[str, ...], last: ast.stmt | None = None
) -> list[ast.stmt]:
    then_ends, else_ends = (not _falls_through(side, kind) for side in (statement.body, statement.orelse))
    if rest and not (then_ends or else_ends):
        flag = f"{LEFT}{statement.lineno}_{statement.col_offset}"
        branch = _branches(statement, [], kind, (*flags, flag))
        after = _unless(flag, rest[0], _tail(rest, kind, flags, last))
        return [*statements(f"{flag} = False", statement.test), *branch, *after]
    then = _tail([*statement.body, *([] if then_ends else rest)], kind, flags, last)
    otherwise = _tail([*statement.orelse, *([] if else_ends else rest)], kind, flags, last)
    return [ast.copy_location(ast.If(test=statement.test, body=then, orelse=otherwise), statement)]


def _unless(flag: str, at: ast.AST, rest: list[ast.stmt]) -> list[ast.stmt]:
    """Statements where a flag is not set. Where it is, that stands there: names need no value on this way."""
    return statements(f"if not {flag}:\n    __REST\nelse:\n    {flag} = True", at, REST=rest)


def _loop(loop: Loop, rest: Sequence[ast.stmt], flags: tuple[str, ...], last: ast.stmt | None) -> list[ast.stmt]:
    """A loop with a `return` under an `if`, and the statements that follow it."""
    flag = f"{LEFT}{loop.lineno}_{loop.col_offset}"
    after = [] if _is_endless(loop) else _tail(rest, ast.Return, flags, last)
    loop.body = _breaking(loop.body, (*flags, flag))
    follows = _unless(flag, loop, after) if after else []
    return [*statements(f"{flag} = False", loop), loop, *follows]


def _breaking(body: Sequence[ast.stmt], flags: tuple[str, ...]) -> list[ast.stmt]:
    """A loop's body whose returns set flags and break it; the last flag also breaks it after a loop inside."""
    made: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.Return):
            return [*made, *_replacement(statement, flags), ast.copy_location(ast.Break(), statement)]
        if isinstance(statement, ast.If):
            statement.body = _breaking(statement.body, flags)
            statement.orelse = _breaking(statement.orelse, flags)
        elif _returns_in_loop(statement):
            statement.body = _breaking(statement.body, flags)
            made += [statement, *statements(f"if {flags[-1]}:\n    break", statement)]
            continue
        made.append(statement)
    return made


def _returns_in_loop(node: ast.AST) -> TypeGuard[Loop]:
    """True for a loop with a `return` under an `if`, or in such a loop inside of it."""
    if not isinstance(node, ast.For | ast.While) or node.orelse:
        return False
    return any(_leaves(child, ast.Return) for child in node.body if not isinstance(child, ast.Return))


def _is_endless(loop: Loop) -> bool:
    """True for `while True`, which only a `return` or `break` ends; the latter is not one of a `return`."""
    endless = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    return endless and not any(_leaves(child, ast.Break) for child in loop.body)


def _replacement(statement: ast.stmt, flags: tuple[str, ...]) -> list[ast.stmt]:
    made = [made for flag in flags for made in statements(f"{flag} = True", statement)]
    if not isinstance(statement, ast.Return):
        return made or statements("pass", statement)
    value = statement.value or ast.copy_location(ast.Constant(None), statement)
    return [*statements(f"{RETURNED} = __VALUE", statement, VALUE=value), *made]


def _falls_through(body: Sequence[ast.stmt], kind: Exit) -> bool:
    """True if the end of a branch can be reached."""
    return not any(
        isinstance(statement, kind | ast.Raise)
        or (
            isinstance(statement, ast.If)
            and statement.orelse
            and not any(_falls_through(side, kind) for side in (statement.body, statement.orelse))
        )
        for statement in body
    )


def _leaves(node: ast.AST, kind: Exit) -> bool:
    """True if an `if` statement has such an exit in its branches, and not inside another statement there.

    A `return` may be in a loop, too.
    """
    if isinstance(node, kind) or (kind is ast.Return and _returns_in_loop(node)):
        return True
    return isinstance(node, ast.If) and any(_leaves(child, kind) for child in (*node.body, *node.orelse))
