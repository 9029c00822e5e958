"""`assert a, f"..."`: a call with the condition, and a function that gives the message's text and the values in it."""

from __future__ import annotations

import ast

from flydsl.compiler.rewrite.template import statements
from flydsl.expr.control_flow.generated import PART


def rewritten(node: ast.Assert) -> list[ast.stmt]:
    """The statement for an assertion whose parts are already rewritten."""
    source = f"__fly_assert__(__TEST, lambda {PART}: __MESSAGE)"
    return statements(source, node, TEST=node.test, MESSAGE=node.msg)


def message(node: ast.Assert) -> ast.expr:
    """The text of an assertion's message with the placeholders of `str.format`, and the values, as a tuple."""
    parts = node.msg.values if isinstance(node.msg, ast.JoinedStr) else [] if node.msg is None else [node.msg]
    text, values = "", []
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            text += part.value.replace("{", "{{").replace("}", "}}")
        elif isinstance(part, ast.FormattedValue) and part.conversion == -1:
            text += f"{{{_format_spec(part)}}}"
            values.append(part.value)
        else:
            text += "{}"
            values.append(part.value if isinstance(part, ast.FormattedValue) else part)
    at = node.msg or node
    elements = [ast.Constant(text), *values]
    return ast.fix_missing_locations(ast.copy_location(ast.Tuple(elements, ast.Load()), at))


def _format_spec(part: ast.FormattedValue) -> str:
    """The format of a value as `str.format` takes it, if it is known: the width of another value is not."""
    if not isinstance(part.format_spec, ast.JoinedStr):
        return ""
    texts = [str(t.value) for t in part.format_spec.values if isinstance(t, ast.Constant)]
    return f":{''.join(texts)}" if len(texts) == len(part.format_spec.values) else ""
