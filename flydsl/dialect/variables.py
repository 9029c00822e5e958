"""`fly.variable`: from here on, a variable of the source has this value.

It stands in a module only where names are kept for a debugger (`flydsl.expr.control_flow.variables`). Its operand is
the elements of the variable from `offset` on, of `elements` in all.
"""

from __future__ import annotations

from typing import Any

ELEMENTS = ("i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "bf16", "f32", "f64")
"""The element types of variables that debug information describes."""
PARAMETERS = "fly.parameters"
"""The attribute of a kernel with the names of its parameters, one for each argument, where names are kept."""


def variable_attributes(name: str, element: str, offset: int, elements: int) -> dict[str, Any]:
    """The attributes of a `fly.variable`. name: "function:variable". element: of ELEMENTS."""
    return {"variable": name, "element": element, "offset": offset, "elements": elements}


def ended_attributes(name: str, element: str, elements: int) -> dict[str, Any]:
    """The attributes of a `fly.variable` from which on a variable of that type has no value; the operand has no
    meaning."""
    return {**variable_attributes(name, element, 0, elements), "ended": 1}
