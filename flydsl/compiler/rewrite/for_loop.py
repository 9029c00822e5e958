"""`for ... in range(...)`; `flydsl.expr.control_flow.for_loop` shows what it becomes.

`range_constexpr` and other iterables stay Python loops, which unroll.
"""

from __future__ import annotations

import ast

from flydsl.compiler.rewrite.template import expression, names_text, statements, thunks_text, tuple_text


def is_range(node: ast.expr) -> bool:
    """True if an expression calls `range` or `fx.range`. Tracing the loop shows whether that is Python's."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
    return name == "range"


def final_yield(body: list[ast.stmt]) -> ast.Yield | None:
    """The `yield values` or `results = yield values` that ends a body."""
    last = body[-1]
    value = last.value if isinstance(last, ast.Assign | ast.Expr) else None
    return value if isinstance(value, ast.Yield) else None


def rewritten(node: ast.For, handle: str, names: list[str], containers: list[str], flag: str | None) -> list[ast.stmt]:
    """The statements for a loop whose parts are already rewritten. flag: a name whose truth ends it."""
    call = node.iter
    assert isinstance(call, ast.Call)
    body = list(node.body)
    result = _take_yield(body, handle)
    targets = f"{tuple_text(names)} = " if names else ""
    source = (
        f"{handle} = __fly_for__(__FUNCTION, __ARGUMENTS, __OPTIONS, {names_text(names)}, {thunks_text(names)}, "
        f"{names_text(containers)}, {thunks_text(containers)}, {flag!r})\n"
        f"for __fly_item in {handle}:\n"
        f"    if {handle}.runtime:\n"
        f"        {targets}{handle}.carried()\n"
        f"    __TARGET = __fly_item\n"
        f"    __BODY\n"
        f"    if {handle}.end():\n"
        f"        break\n"
        f"if {handle}.runtime:\n"
        f"    {targets}{handle}.results()\n"
        f"    __RESULT"
    )
    loop = statements(
        source,
        node.iter,
        FUNCTION=call.func,
        ARGUMENTS=ast.copy_location(ast.Tuple(elts=call.args, ctx=ast.Load()), call),
        OPTIONS=_options(call),
        TARGET=node.target,
        BODY=body,
        RESULT=result,
    )
    return [*statements(f"{flag} = False", node.iter), *loop] if flag else loop


def _options(call: ast.Call) -> ast.expr:
    keys: list[ast.expr | None] = [ast.copy_location(ast.Constant(keyword.arg), call) for keyword in call.keywords]
    return ast.copy_location(ast.Dict(keys=keys, values=[keyword.value for keyword in call.keywords]), call)


def _take_yield(body: list[ast.stmt], handle: str) -> list[ast.stmt]:
    """Replace a `results = yield values` at the end of a body. Returns the assignment that must follow the loop."""
    last, value = body[-1], final_yield(body)
    if value is None:
        return []
    body[-1:] = statements(
        f"{handle}.carry(__VALUES)", value, VALUES=value.value or ast.copy_location(ast.Constant(None), value)
    )
    if not isinstance(last, ast.Assign):
        return []
    last.value = expression(f"{handle}.final_state()", value)
    return [last]
