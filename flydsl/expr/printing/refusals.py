"""Errors for statements that ask a runtime value for its truth or number, which it does not have while it is traced.

Python asks for the truth of a value, or for an integer, through one method, whatever asks: `assert`, `match`, `in`, an
index of a list, `range` in a comprehension. What it was is read from the user's source.
"""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from flydsl.dialect.location import trace_error
from flydsl.errors import SourceLocation, TraceError
from flydsl.errors.places import in_standard_library, is_user_frame, location_of, user_frame, user_location

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BRANCHES = (ast.If, ast.While, ast.IfExp, ast.BoolOp, ast.UnaryOp)
WITH_SOURCE = "define it in a file or a notebook cell, or enter what `exec` runs in linecache.cache"
_LISTED = "a list, a tuple or a comprehension has as many elements as Python gives it while tracing"
_LOOP = "`for i in range(n):` as a statement is a loop on the device"
_KNOWN = "a parameter annotated fx.Constexpr[int] is known at compile time"

# Functions of Python that ask for the truth of a value -> what to write instead.
_DECIDING = {
    "max": "fx.max(a, b) compares on the device",
    "min": "fx.min(a, b) compares on the device",
    "sorted": "compare and exchange elements with fx.min and fx.max",
    "filter": "write a loop with an `if`",
    "any": "write `a or b`, or in a loop: found = found | condition",
    "all": "write `a and b`, or in a loop: good = good & condition",
    "get": "a dict finds what is known at compile time: compare with each key, or keep the values in a tensor",
    "index": "a list finds what is known at compile time: compare with each element",
    "count": "add up (a == n).to(fx.Int32) for each element a",
    "bool": "write n != 0, or the number itself as the condition of an `if`",
}

# What looks at the hash of a value -> what it does with it.
_KEYS: dict[type[Any], str] = {
    ast.Set: "a set with {}",
    ast.SetComp: "a set with {}",
    ast.Dict: "{} as a key of a dict",
    ast.DictComp: "{} as a key of a dict",
    ast.Subscript: "{} as a key of a dict",
    ast.Compare: "`in` on {}",
}
_HASHING = {"hash", "set", "frozenset", "fromkeys", "add", "setdefault", "Counter"}

# Behind the text of a value that a user prints: Python's print runs once, when the kernel is traced.
WHILE_TRACED = " (of the trace; fx.printf prints its value on the device)"
ELEMENTS_WHILE_TRACED = " (of the trace; fx.printf prints elements on the device)"
# What the `repr` of a runtime number or vector looks like, inside others too: [Int32(?), 3].
_REPR = re.compile(r"\b[A-Z]\w*\(\?\)|\bVector\(vector<")


# Methods of a text that make another one: it prints. All others ask what it says.
_MAKING_TEXTS = {
    "capitalize", "casefold", "center", "expandtabs", "format", "format_map", "join", "ljust", "lower", "lstrip",
    "removeprefix", "removesuffix", "replace", "rjust", "rstrip", "strip", "swapcase", "title", "upper", "zfill",
}  # fmt: skip


class TracedText(str):
    """The text of a runtime value, for people. Raises TraceError where a program looks at what it says."""

    __slots__ = ()

    def _refuse(self, *_: object) -> Any:
        raise trace_error(
            "the text of a runtime value says nothing of its number, which is known on the device only",
            'compare the value itself; fx.printf("{}", x) prints it on the device',
        )

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = __len__ = __contains__ = __getitem__ = __iter__ = _refuse

    def __add__(self, other: str) -> TracedText:
        return TracedText(str.__add__(self, other))

    def __radd__(self, other: str) -> TracedText:
        return TracedText(str.__add__(other, self))


def _made_by(name: str) -> Callable[..., TracedText]:
    return lambda self, *arguments: TracedText(getattr(str, name)(self, *arguments))


for _name in (name for name in dir(str) if not name.startswith("_")):
    if _name in _MAKING_TEXTS:
        setattr(TracedText, _name, _made_by(_name))
    elif _name != "maketrans":
        setattr(TracedText, _name, TracedText._refuse)


def text_of(value: Any) -> Any:
    """The text that an f-string, `%`, `format`, `join` or `repr` made; a `TracedText` if it has a runtime value's."""
    if type(value) is not str:
        return value
    has_one = WHILE_TRACED in value or ELEMENTS_WHILE_TRACED in value or _REPR.search(value)
    return TracedText(value) if has_one else value


def no_text(kind: str, spec: str) -> TraceError:
    """The error for a runtime value that Python is to format. kind: the value's type. spec: as in f"{x:spec}"."""
    return trace_error(
        f"a runtime {kind} as text: its value is known on the device only",
        f'fx.printf("{{:{spec}}}", x) prints on the device; Python\'s print runs while tracing',
    )


def no_truth(kind: str) -> TraceError:
    """The error for a runtime value whose truth Python wants to know. kind: the value's type."""
    at = user_location()
    node, parents = _asking(at)
    what, hint = _of_truth(node, parents)
    if hint == _in_function(parents) and _is_rewritten(user_frame()):
        what, hint = _by_python(node)
    return TraceError(f"{what.format(kind=kind)}: its value is known on the device only", at=at, hint=hint)


def _of_truth(node: ast.AST | None, parents: list[ast.AST]) -> tuple[str, str]:
    """The statement that asks, and a hint. parents: those of the node, the closest first."""
    name = _called(node)
    if name in ("list", "tuple") and isinstance(node, ast.Call) and node.args:
        name = _called(node.args[0])  # such as filter, which asks when its results are taken
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        return "`in` on a runtime {kind} cannot be traced", _instead_of_in(node)
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.Tuple | ast.List):
        return "comparing lists or tuples asks for a runtime {kind}, which cannot be traced", (
            "compare their elements: (a[0] == b[0]) & (a[1] == b[1])"
        )
    if name in _DECIDING:
        return f"Python's {name}() of a runtime {{kind}} cannot be traced", _DECIDING[name]
    for child, parent in zip([None, node, *parents], [node, *parents], strict=False):
        if isinstance(parent, ast.Assert):
            return "`assert` on a runtime {kind} cannot be traced", (
                "fx.device_assert(condition, text) asserts on the device; `assert` does, too, under @flyc.jit"
            )
        if isinstance(parent, ast.match_case | ast.Match):
            return "`match` on a runtime {kind} cannot be traced", "write `if x == 3: ... elif x == 4: ... else: ...`"
        if isinstance(parent, ast.comprehension) and child in parent.ifs:
            return "`if` on a runtime {kind} in a comprehension cannot be traced", f"{_LISTED}: write a loop"
        if isinstance(parent, ast.stmt) and not isinstance(parent, _BRANCHES):
            break
    if node is not None and any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node)):
        hint = "`:=` inside `and`, `or` or `a if b else c` leaves the expression to Python: assign on the line before"
    else:
        hint = _in_function(parents)
    if name and not isinstance(parents[0], _BRANCHES):
        return f"{name}() asks Python for a runtime {{kind}}", (
            "it runs while this is traced: write an `if`, a loop, or fx.max and fx.min on the device"
        )
    return "a runtime {kind} cannot decide a Python branch", hint


def _is_rewritten(frame: FrameType | None) -> bool:
    """True for a frame of a function whose branches and loops are traced."""
    return frame is not None and any(name.startswith("__fly_") for name in frame.f_code.co_freevars)


def _by_python(node: ast.AST | None) -> tuple[str, str]:
    """The statement, and a hint, where a traced function leaves a question to Python."""
    if isinstance(node, ast.Compare):
        return "comparing objects asks for a runtime {kind}, which cannot be traced", (
            "compare their parts that are values: (a.x == b.x) & (a.y == b.y)"
        )
    return "a runtime {kind} cannot decide what Python does while this is traced", (
        "write an `if` or a loop of this function, or choose a value: `a if condition else b`"
    )


def _in_function(parents: list[ast.AST]) -> str:
    """The hint about a branch or loop that is not traced. parents: those of what asks."""
    function = next((parent for parent in parents if isinstance(parent, _FUNCTIONS)), None)
    if not parents:
        return "the source of this line cannot be read, so its branches are Python's: " + WITH_SOURCE
    if function is None:
        return (
            "`if`, `while`, `and`, `or` and `not` are traced in kernels, launchers, and functions decorated with "
            "@flyc.jit"
        )
    if any(_called(inner) == function.name for inner in ast.walk(function)):
        return f"{function.name} calls itself, which nothing ends while it is traced: write a loop in its place"
    return f"{function.name} needs @flyc.jit above it, which traces its branches and loops on runtime values"


def _instead_of_in(node: ast.Compare) -> str:
    item = ast.unparse(node.left)
    among, join = node.comparators[0], (" | ", " & ")[isinstance(node.ops[0], ast.NotIn)]
    sign = ("==", "!=")[isinstance(node.ops[0], ast.NotIn)]
    if isinstance(among, ast.List | ast.Tuple | ast.Set) and 1 <= len(among.elts) <= 4:
        return "write " + join.join(f"({item} {sign} {ast.unparse(element)})" for element in among.elts)
    return f"compare: ({item} == 1) | ({item} == 2), or for a range 0 <= {item} < 10"


def refuse_as_key(kind: str) -> None:
    """Raise TraceError if the user's code hashes a runtime value, for a set, a dict, or itself. kind: its type.

    Equal numbers have equal hashes, but which runtime values are equal is not known yet. Whoever keeps values by what
    they are, rather than by their number, may go on: the compiler, and functions that remember their results.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and in_standard_library(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or not is_user_frame(frame):
        return
    at = location_of(frame.f_code, frame.f_lasti, frame.f_lineno)
    node = _asking(at)[0]
    name = _called(node)
    what = f"Python's {name}() of {{}}" if name in _HASHING else _KEYS.get(type(node))
    if what is not None:
        raise TraceError(
            f"{what.format(f'a runtime {kind}')} cannot be traced: its value is known on the device only",
            at=at,
            hint="a set and a dict find what is known at compile time: compare with ==, or count in a tensor",
        )


def no_integer(kind: str) -> TraceError:
    """The error for a runtime value where Python wants an integer. kind: the value's type."""
    at = user_location()
    node, parents = _asking(at)
    what, hint = _of_integer(node, parents)
    return TraceError(what.format(kind=kind), at=at, hint=hint)


def _of_integer(node: ast.AST | None, parents: list[ast.AST]) -> tuple[str, str]:
    name = _called(node)
    if isinstance(node, ast.Subscript):
        return f"a runtime {{kind}} is the index into {_short(node.value)}, which Python looks up while tracing", (
            "range_constexpr(...) unrolls a loop, so that its index is known; for a runtime index keep the values in a "
            "tensor, such as fx.make_rmem_tensor(4, fx.Float32), or choose with `a if i == 0 else b`"
        )
    if name == "int":
        return "int() of a runtime {kind}: its value is known on the device only", f".to(fx.Int32) converts; {_KNOWN}"
    if name == "range":
        if any(isinstance(parent, ast.comprehension) for parent in parents):
            return "range of a runtime {kind} in a comprehension cannot be traced", f"{_LISTED}; {_LOOP}"
        if isinstance(parents[0], ast.For):
            return "range of a runtime {kind} cannot be a Python loop", _in_function(parents)
        return f"range of a runtime {{kind}} inside {_short(parents[0])} cannot be traced", _LOOP
    return "a runtime {kind} is not a Python integer", (
        f"a value that Python itself needs must be known at compile time: {_KNOWN}; "
        "int(x) on the device is x.to(fx.Int32)"
    )


def _called(node: ast.AST | None) -> str:
    """The name of the function that a call calls; empty for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _short(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:37]}..."


# --- the source ------------------------------------------------------------------------------------------------------


def _asking(at: SourceLocation | None) -> tuple[ast.AST | None, list[ast.AST]]:
    """The expression at a place, and what it stands in, the closest first; None if the source does not tell."""
    if at is None or at.column is None:
        return None, []
    return next(nodes_with_parents(at.file, lambda node: _is_at(node, at)), (None, []))


def _is_at(node: ast.AST, at: SourceLocation) -> bool:
    place = (getattr(node, "lineno", None), getattr(node, "col_offset", None))
    ends = at.end_column is None or getattr(node, "end_col_offset", None) == at.end_column
    return place == (at.line, at.column) and ends and not isinstance(node, ast.Expr)


def nodes_with_parents(file: str, wanted: Callable[[ast.AST], bool]) -> Iterator[tuple[ast.AST, list[ast.AST]]]:
    """The wanted nodes of a source file, outermost first, with what they stand in, the closest first."""
    if SourceLocation(file, 1).source_line is None:
        return
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return
    pending: list[tuple[ast.AST, list[ast.AST]]] = [(tree, [])]
    while pending:
        node, parents = pending.pop()
        if wanted(node):
            yield node, parents
        pending += [(child, [node, *parents]) for child in reversed(list(ast.iter_child_nodes(node)))]


def change_within(at: SourceLocation | None, path: str) -> SourceLocation | None:
    """The place where an `if` or a loop calls a method of a variable, such as `append`.

    at: the place of its condition or range. path: the variable as written in the source.
    """
    if at is None:
        return None
    constructs = nodes_with_parents(
        at.file, lambda node: isinstance(node, ast.If | ast.For | ast.While) and _spans(node, at)
    )
    for construct, _ in reversed(list(constructs)):
        for node in ast.walk(construct):
            if isinstance(node, ast.Call) and _object(node.func) == path:
                return SourceLocation(at.file, node.lineno, node.col_offset, node.end_col_offset)
    return None


def _spans(node: ast.AST, at: SourceLocation) -> bool:
    head = node.iter if isinstance(node, ast.For) else node.test  # type: ignore[attr-defined]
    return bool(head.lineno <= at.line <= (head.end_lineno or head.lineno))


def _object(function: ast.expr) -> str | None:
    """The object of a method, as written in the source."""
    return ast.unparse(function.value) if isinstance(function, ast.Attribute) else None
