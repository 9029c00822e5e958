"""The names that a piece of source assigns, changes and reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeGuard

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def assigned(statements: Sequence[ast.AST]) -> list[str]:
    """Names that the statements bind or delete in their own scope, in order of appearance."""
    names: dict[str, None] = {}

    def look(node: ast.AST) -> None:
        names.update(dict.fromkeys(_bound(node)))
        if isinstance(node, _COMPREHENSIONS):
            names.update(dict.fromkeys(n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)))
        elif not isinstance(node, SCOPES):
            for child in ast.iter_child_nodes(node):
                look(child)

    for statement in statements:
        look(statement)
    return list(names)


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
    elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest
    elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        yield node.name


def changed(statements: Sequence[ast.AST]) -> list[str]:
    """Names whose elements or attributes the statements, or functions in them, assign: `x[i] = v`, `x.a.b += v`."""
    names: dict[str, None] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
                names.update(dict.fromkeys(root(node)))
    return list(names)


def root(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def read(nodes: Sequence[ast.expr]) -> list[str]:
    """Names whose values expressions read; not those whose length alone they take, which a trace knows."""
    inner = [n for node in nodes for n in ast.walk(node)]
    measured = {id(n.args[0]) for n in inner if _is_length(n)}
    loaded = (n for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return list(dict.fromkeys(n.id for n in loaded if id(n) not in measured))


def _is_length(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and bool(node.args)


def shared(function: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[list[str], list[str]]:
    """The variables of a function that functions inside it assign, and those whose elements they assign.

    A call of such a function changes them wherever the call stands.
    """
    assigns: dict[str, None] = {}
    changes: dict[str, None] = {}
    local = variables(function)
    for node in ast.walk(function):
        if node is function or not isinstance(node, FUNCTIONS):
            continue
        outer = [name for n in ast.walk(node) if isinstance(n, ast.Nonlocal) for name in n.names]
        assigns.update(dict.fromkeys(name for name in outer if name in local))
        own = variables(node)
        changes.update(dict.fromkeys(name for name in changed(node.body) if name in local and name not in own))
    return list(assigns), list(changes)


def variables(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Parameters and assigned names of a function, except those that it declares nonlocal or global."""
    arguments = [n.arg for n in ast.walk(function.args) if isinstance(n, ast.arg)]
    foreign = {name for n in in_function(function.body) if isinstance(n, ast.Nonlocal | ast.Global) for name in n.names}
    return {*arguments, *assigned(function.body)} - foreign


def in_function(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The nodes within statements, except those inside nested functions and classes."""
    pending = list(reversed(nodes))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, SCOPES):
            pending += reversed(list(ast.iter_child_nodes(node)))
