"""`if` statements; `flydsl.expr.control_flow.if_statement` shows what one becomes."""

from __future__ import annotations

import ast

from flydsl.compiler.rewrite.template import names_text, statements, thunks_text, tuple_text


def rewritten(node: ast.If, handle: str, names: list[str], containers: list[str], unread: list[str]) -> list[ast.stmt]:
    """The statements for an `if` whose parts are already rewritten. unread: the names that nothing reads after it."""
    targets = f"{tuple_text(names)} = " if names else ""
    return statements(
        f"{handle} = __fly_if__(__TEST, {names_text(names)}, {thunks_text(names)}, {names_text(containers)}, "
        f"{thunks_text(containers)}{f', {names_text(unread)}' if unread else ''})\n"
        f"if {handle}.then():\n"
        f"    __BODY\n"
        f"if {handle}.otherwise():\n"
        f"    if {handle}.runtime:\n"
        f"        {targets}{handle}.restored()\n"
        f"    __ORELSE\n"
        f"if {handle}.runtime:\n"
        f"    {targets}{handle}.merged()",
        node.test,
        TEST=node.test,
        BODY=node.body,
        ORELSE=node.orelse,
    )
