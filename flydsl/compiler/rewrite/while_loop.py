"""`while` loops; `flydsl.expr.control_flow.while_loop` shows what one becomes."""

from __future__ import annotations

import ast

from flydsl.compiler.rewrite.template import names_text, statements, thunks_text, tuple_text


def rewritten(node: ast.While, handle: str, names: list[str], containers: list[str], read: list[str]) -> list[ast.stmt]:
    """The statements for a loop whose parts are already rewritten. read: the names in its condition."""
    targets = f"{tuple_text(names)} = " if names else ""
    return statements(
        f"{handle} = __fly_while__({names_text(names)}, {thunks_text(names)}, {names_text(containers)}, "
        f"{thunks_text(containers)}, {thunks_text(read)})\n"
        f"if {handle}.runtime:\n"
        f"    {targets}{handle}.before()\n"
        f"while {handle}.test(__TEST):\n"
        f"    if {handle}.runtime:\n"
        f"        {targets}{handle}.after()\n"
        f"    __BODY\n"
        f"    if {handle}.end():\n"
        f"        break\n"
        f"if {handle}.runtime:\n"
        f"    {targets}{handle}.results()",
        node.test,
        TEST=node.test,
        BODY=node.body,
    )
