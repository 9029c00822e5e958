"""Making source: templates with places for nodes of the user's, which keep their positions."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from flydsl.compiler.rewrite.names import walk
from flydsl.expr.control_flow.generated import READING

_POSITION = ("lineno", "col_offset", "end_lineno", "end_col_offset")


def statements(source: str, at: ast.AST, **nodes: Any) -> list[ast.stmt]:
    """Parse `source` and insert `nodes` where their names are. New nodes get the position of `at`.

    `__TEST` in the source stands for the node given as TEST. An expression replaces its name, a list of statements the
    statement that is only its name.
    """
    tree = ast.parse(source)
    position = {name: getattr(at, name) for name in _POSITION if hasattr(at, name)}
    for node in walk(tree):
        if node._attributes:
            vars(node).update(position)
    return _Filler(nodes).visit(tree).body


def expression(source: str, at: ast.AST, **nodes: Any) -> ast.expr:
    """Parse one expression and insert nodes, as `statements` does."""
    (statement,) = statements(source, at, **nodes)
    assert isinstance(statement, ast.Expr)
    return statement.value


def names_text(names: Sequence[str]) -> str:
    """Names as the source of a tuple of strings."""
    return repr(tuple(names))


def tuple_text(items: Sequence[str]) -> str:
    """Expressions as the source of a tuple."""
    return f"({''.join(f'{item}, ' for item in items)})"


def thunks_text(names: Sequence[str]) -> str:
    """The source of a tuple of functions that read names."""
    return tuple_text([f"lambda {READING}: {name}" for name in names])


class _Filler(ast.NodeTransformer):
    def __init__(self, nodes: dict[str, Any]) -> None:
        self._nodes = {f"__{name}": node for name, node in nodes.items()}

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Name) and isinstance(self._nodes.get(node.value.id), list):
            return self._nodes[node.value.id]
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> Any:
        return self._nodes.get(node.id, node)
