"""The names that a piece of source assigns, changes and reads."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeGuard

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
_PARTS = (ast.Subscript, ast.Attribute)
_FOREIGN = (ast.Nonlocal, ast.Global)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def assigned(statements: Sequence[ast.AST]) -> list[str]:
    """Names that the statements bind or delete in their own scope, in order of appearance."""
    names: dict[str, None] = {}

    def look(node: ast.AST) -> None:
        bound = _BOUND.get(type(node))
        if bound is not None and (name := bound(node)):
            names[name] = None
        if isinstance(node, _COMPREHENSIONS):
            names.update(dict.fromkeys(n.target.id for n in walk(node) if isinstance(n, ast.NamedExpr)))
        elif not isinstance(node, SCOPES):
            for child in _children(node):
                look(child)

    for statement in statements:
        look(statement)
    return list(names)


_BOUND: dict[type, Callable[[Any], str | None]] = {
    ast.Name: lambda node: None if isinstance(node.ctx, ast.Load) else node.id,
    ast.alias: lambda node: node.asname or node.name.partition(".")[0],
    ast.MatchMapping: lambda node: node.rest,
    **dict.fromkeys((ast.MatchAs, ast.MatchStar, ast.ClassDef, *FUNCTIONS), attrgetter("name")),
}
"""The name that a node binds, if any, by its class."""


def changed(statements: Sequence[ast.AST]) -> list[str]:
    """Names whose elements or attributes the statements, or functions in them, assign: `x[i] = v`, `x.a.b += v`."""
    names: dict[str, None] = {}
    for statement in statements:
        for node in walk(statement):
            if isinstance(node, _PARTS) and not isinstance(node.ctx, ast.Load):
                names.update(dict.fromkeys(root(node)))
    return list(names)


def root(node: ast.expr) -> Iterator[str]:
    """The variable that an element or attribute belongs to, `x` of `x[i].a`; nothing for one of a call's result."""
    while isinstance(node, _PARTS):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def read(nodes: Sequence[ast.expr]) -> list[str]:
    """Names whose values expressions read; not those of which only `len` is taken, which a trace knows."""
    inner = [n for node in nodes for n in walk(node)]
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
    for node in walk(function):
        if node is function or not isinstance(node, FUNCTIONS):
            continue
        outer = [name for n in walk(node) if isinstance(n, ast.Nonlocal) for name in n.names]
        assigns.update(dict.fromkeys(name for name in outer if name in local))
        own = variables(node)
        changes.update(dict.fromkeys(name for name in changed(node.body) if name in local and name not in own))
    return list(assigns), list(changes)


def variables(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Parameters and assigned names of a function, except those that it declares nonlocal or global."""
    arguments = [n.arg for n in walk(function.args) if isinstance(n, ast.arg)]
    foreign = {name for n in in_function(function.body) if isinstance(n, _FOREIGN) for name in n.names}
    return {*arguments, *assigned(function.body)} - foreign


def in_function(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The nodes within statements, except those inside nested functions and classes."""
    pending = list(reversed(nodes))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, SCOPES):
            pending += reversed(_children(node))


def walk(*nodes: ast.AST) -> Iterator[ast.AST]:
    """Nodes and all that they hold, the outer ones first, as `ast.walk` finds them; no contexts and operators."""
    pending = deque(nodes)
    while pending:
        node = pending.popleft()
        pending.extend(_children(node))
        yield node


def _children(node: ast.AST) -> Sequence[ast.AST]:
    """The nodes that a node holds, but for contexts and operators. `ast` takes four times as long to find them."""
    if isinstance(node, _LEAVES):
        return ()
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and value._fields:
            found.append(value)
    return found


_LEAVES = (ast.Name, ast.Constant)  # most of all nodes
