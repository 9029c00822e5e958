"""`and`, `or`, `not`, `in`, `is`, `get` and chained comparisons: operands after the first become functions."""

from __future__ import annotations

import ast

from flydsl.compiler.rewrite.template import expression, tuple_text
from flydsl.expr.control_flow.generated import PART

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


def operation(node: ast.BoolOp) -> ast.expr:
    """The expression for `and` or `or`."""
    function = "__fly_and__" if isinstance(node.op, ast.And) else "__fly_or__"
    rest = range(1, len(node.values))
    thunks = ", ".join(f"lambda {PART}: __VALUE_{i}" for i in rest)
    values = {f"VALUE_{i}": value for i, value in enumerate(node.values)}
    return expression(f"{function}(__VALUE_0, {thunks})", node, **values)


def negation(node: ast.UnaryOp) -> ast.expr:
    """The expression for `not`."""
    return expression("__fly_not__(__VALUE)", node, VALUE=node.operand)


def membership(node: ast.Compare) -> ast.expr:
    """The expression for `in` or `not in`."""
    word = "" if isinstance(node.ops[0], ast.In) else "not "
    return expression(f"{word}__fly_in__(__ITEM, __AMONG)", node, ITEM=node.left, AMONG=node.comparators[0])


def identity(node: ast.Compare) -> ast.expr:
    """The expression for `is` or `is not`."""
    word = "" if isinstance(node.ops[0], ast.Is) else "not "
    return expression(f"{word}__fly_is__(__ITEM, __OTHER)", node, ITEM=node.left, OTHER=node.comparators[0])


def lookup(method: ast.Attribute) -> ast.expr:
    """The expression for `x.get`, which is about to be called."""
    return expression("__fly_get__(__OWNER)", method, OWNER=method.value)


def comparison(node: ast.Compare) -> ast.expr:
    """The expression for a comparison of more than two values."""
    words = [_COMPARISONS[type(op)] for op in node.ops]
    links = [f"(lambda a, b, {PART}: a {word} b, lambda {PART}: __VALUE_{i})" for i, word in enumerate(words)]
    values = {f"VALUE_{i}": value for i, value in enumerate(node.comparators)}
    return expression(f"__fly_compare__(__FIRST, *{tuple_text(links)})", node, FIRST=node.left, **values)
