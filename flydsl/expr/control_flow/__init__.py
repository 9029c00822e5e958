"""Control flow on runtime values: the functions that rewritten source calls, one module per statement."""

from __future__ import annotations

from typing import Any

from flydsl.expr.control_flow.boolean_operators import (
    all_of,
    any_of,
    comparison,
    identity,
    lookup,
    membership,
    negation,
    stops,
)
from flydsl.expr.control_flow.conditional_expression import conditional_expression
from flydsl.expr.control_flow.construct import escape
from flydsl.expr.control_flow.for_loop import ForLoop
from flydsl.expr.control_flow.host_objects import (
    require_no_branch,
    require_no_function,
    require_not_hosts,
    require_own_iterator,
)
from flydsl.expr.control_flow.if_statement import IfStatement
from flydsl.expr.control_flow.undefined import UNSET
from flydsl.expr.control_flow.while_loop import WhileLoop
from flydsl.expr.printing.assertions import assert_statement
from flydsl.expr.printing.refusals import text_of
from flydsl.expr.tracing.trace_limit import counted, counted_items, traced_operations, warn_of_handler

# The names under which rewritten functions see them, through their closure.
RUNTIME: dict[str, Any] = {
    "__fly_if__": IfStatement,
    "__fly_for__": ForLoop,
    "__fly_while__": WhileLoop,
    "__fly_assert__": assert_statement,
    "__fly_choose__": conditional_expression,
    "__fly_and__": all_of,
    "__fly_or__": any_of,
    "__fly_not__": negation,
    "__fly_compare__": comparison,
    "__fly_in__": membership,
    "__fly_is__": identity,
    "__fly_get__": lookup,
    "__fly_text__": text_of,
    "__fly_operations__": traced_operations,
    "__fly_caught__": warn_of_handler,
    "__fly_counted__": counted,
    "__fly_items__": counted_items,
    "__fly_stops__": stops,
    "__fly_iterator__": require_own_iterator,
    "__fly_escape__": escape,
    "__fly_changed__": require_not_hosts,
    "__fly_global__": require_no_branch,
    "__fly_named__": require_no_function,
    "__fly_unset__": UNSET,
}
