"""`a if c else b`: the sides become functions, and the runtime calls the ones it needs."""

from __future__ import annotations

import ast

from flydsl.compiler.rewrite.template import expression
from flydsl.expr.control_flow.generated import PART


def rewritten(node: ast.IfExp) -> ast.expr:
    """The expression for a conditional expression whose parts are already rewritten."""
    return expression(
        f"__fly_choose__(__TEST, lambda {PART}: __THEN, lambda {PART}: __OTHERWISE)",
        node,
        TEST=node.test,
        THEN=node.body,
        OTHERWISE=node.orelse,
    )
