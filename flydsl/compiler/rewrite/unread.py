"""The names that an `if` assigns and nothing reads afterwards: they may differ in type between its branches.

The analysis goes backwards through a function. A name is called read where that is in doubt.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from flydsl.compiler.rewrite.names import FUNCTIONS, SCOPES, walk

Names = frozenset[str]
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def read_after(function: ast.FunctionDef) -> dict[ast.If, Names]:
    """The names that may be read after each `if` of a function, in functions inside it too."""
    analysis = _Analysis(_read_elsewhere(function))
    analysis.block(function.body, frozenset())
    return analysis.after


class _Analysis:
    """after: what is found for each `if`. elsewhere: the names that are read at an unknown time."""

    def __init__(self, elsewhere: Names) -> None:
        self.after: dict[ast.If, Names] = {}
        self._elsewhere = elsewhere
        self._loops: list[tuple[Names, Names]] = []  # what is read after each open loop, and from its next turn on

    def block(self, statements: Sequence[ast.stmt], after: Names) -> Names:
        """The names that are read from a block's begin on. after: those read after it."""
        for statement in reversed(statements):
            after = self._statement(statement, after)
        return after

    def _statement(self, node: ast.stmt, after: Names) -> Names:
        if isinstance(node, ast.If):
            if self._loops and any(isinstance(n, ast.Break | ast.Continue) for n in walk(node)):
                after = after.union(*self._loops[-1])
            self.after[node] = after | self._elsewhere
            return _reads(node.test) | self.block(node.body, after) | self.block(node.orelse, after)
        if isinstance(node, _LOOPS):
            return self._loop(node, after)
        if isinstance(node, ast.Break | ast.Continue) and self._loops:
            return after | self._loops[-1][isinstance(node, ast.Continue)]
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bound = frozenset(target.id for target in targets if isinstance(target, ast.Name) and node.value)
            return (after - bound) | _reads(node)
        inner = [block for name in ("body", "orelse", "finalbody") if (block := getattr(node, name, None))]
        inner += [part.body for name in ("handlers", "cases") for part in getattr(node, name, ())]
        if inner and not isinstance(node, SCOPES):  # any statement may be the last one that runs, and any part the next
            before, self._elsewhere = self._elsewhere, self._elsewhere | after | _reads(node)
            for block in inner:
                self.block(block, after)
            self._elsewhere = before
        return after | _reads(node)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, after: Names) -> Names:
        behind = self.block(node.orelse, after) | after
        again = behind | _reads(node.test if isinstance(node, ast.While) else node.iter)
        for _ in range(2):  # what one turn reads is read after the turn before
            self._loops.append((after, again))
            again |= self.block(node.body, again)
            self._loops.pop()
        return again


def _reads(node: ast.AST) -> Names:
    """The names that a statement or expression reads, and those that it changes in place."""
    changed = [n.target for n in walk(node) if isinstance(n, ast.AugAssign)]
    loaded = [n for n in walk(node) if isinstance(getattr(n, "ctx", None), ast.Load)]
    return frozenset(n.id for n in (*changed, *loaded) if isinstance(n, ast.Name))


def _read_elsewhere(function: ast.FunctionDef) -> Names:
    """Names that functions inside this one read, and those that are declared global or nonlocal."""
    found: set[str] = set()
    for node in walk(function):
        if node is not function and isinstance(node, (*FUNCTIONS, ast.Lambda)):
            found |= _reads(node)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
    return frozenset(found)
