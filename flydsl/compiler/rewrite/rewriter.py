"""The walk over a function: every statement and expression that may depend on a runtime value is rewritten.

Whether it does is known when the function runs. For values that are known at compile time, the rewritten code does what
Python would do.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from dataclasses import dataclass, field

from flydsl.compiler.rewrite import (
    assertion,
    boolean_operators,
    conditional_expression,
    for_loop,
    if_statement,
    while_loop,
)
from flydsl.compiler.rewrite.early_exit import stopping_python_loop, with_one_return, without_break, without_continue
from flydsl.compiler.rewrite.names import assigned, changed, in_function, read, root, shared, variables
from flydsl.compiler.rewrite.template import expression, statements
from flydsl.compiler.rewrite.unread import read_after
from flydsl.errors import SourceLocation, TraceError
from flydsl.expr.control_flow.generated import READING
from flydsl.expr.control_flow.host_objects import CHANGING_METHODS

_OF_VALUES = {"ArithmeticError", "FloatingPointError", "OverflowError", "ZeroDivisionError"}
# What Python raises while it traces: programs ask for names and versions by it.
_OF_TRACING = {
    "AssertionError", "AttributeError", "ImportError", "KeyError", "LookupError", "ModuleNotFoundError", "NameError",
    "NotImplementedError", "StopIteration", "SyntaxError", "TypeError", "UnboundLocalError",
}  # fmt: skip
_MAKING_TEXT = {"ascii", "format", "format_map", "join", "repr", "safe_substitute", "str", "substitute"}
_HINT = "range(...) is a loop on the device; range_constexpr(...) unrolls and is plain Python"


@dataclass
class _Scope:
    """A function that is being rewritten.

    assigns, changes: its variables that functions inside it assign, and those whose elements they assign.
    own: its variables. globals: the names that it declares global. open: the statements around the current one,
    outermost first: a handle's name, or None for a loop that stays Python's.
    """

    assigns: list[str]
    changes: list[str]
    own: set[str]
    globals: set[str]
    open: list[_Open] = field(default_factory=list)


@dataclass
class _Open:
    """A statement that is being rewritten. handle: its handle's name, or None if it is not rewritten."""

    handle: str | None
    is_loop: bool


class Rewriter(ast.NodeTransformer):
    """Rewrites one function and the functions inside it. changed: whether anything was."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.changed = False
        self._count = 0
        self._scopes: list[_Scope] = []
        self._read_after: dict[ast.If, frozenset[str]] = {}

    # --- scopes ------------------------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        assigns, changes = shared(node)
        outer = self._scopes[-1] if self._scopes else _Scope([], [], set(), set())
        own = variables(node)
        foreign = {name for n in in_function(node.body) if isinstance(n, ast.Global) for name in n.names}
        inherited = [name for name in outer.assigns if name not in own]
        self._scopes.append(_Scope([*assigns, *inherited], [*changes, *outer.changes], own, foreign))
        count = self._count
        self._read_after |= read_after(node)
        with_one_return(node)
        node.body = self._statements(node.body)
        self._scopes.pop()
        if self._count > count and inherited:  # its branches and loops now assign them
            node.body.insert(0, ast.copy_location(ast.Nonlocal(names=inherited), node.body[0]))
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    # --- statements --------------------------------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        if _is_const_expr(node.test):
            return self.generic_visit(node)
        names, containers = self._assigned([node]), self._changed([node])
        read = self._read_after.get(node)
        unread = [] if read is None else [name for name in names if name not in read]
        handle = self._new("if")
        node.test = self.visit(node.test)
        node.body, node.orelse = self._inside(_Open(handle, False), node.body, node.orelse)
        return if_statement.rewritten(node, handle, names, containers, unread)

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        if not for_loop.is_range(node.iter):
            return self._python_loop(node)
        self._check_range(node)
        node.body = without_continue(node.body)
        flag, _ = without_break(node)
        names = self._assigned([ast.Assign(targets=[node.target], value=node.iter), *node.body])
        containers = self._changed(node.body)
        handle = self._new("for")
        node.iter = self.visit(node.iter)
        (node.body,) = self._inside(_Open(handle, True), node.body)
        return for_loop.rewritten(node, handle, names, containers, flag)

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        if node.orelse:
            self._refuse(node.orelse[0], "`else` on a `while` loop", "write it after the loop")
        node.body = without_continue(node.body)
        flag, conditions = without_break(node)
        if not flag and (_is_const_expr(node.test) or isinstance(node.test, ast.Constant)):
            return self._python_loop(node)
        decides = read([node.test, *conditions])
        first: list[ast.stmt] = []
        if flag:
            first = statements(f"{flag} = False", node.test)
            node.test = expression(f"not {flag} and __TEST", node.test, TEST=node.test)
        names, containers = self._assigned([node.test, *node.body]), self._changed([node.test, *node.body])
        handle = self._new("while")
        (node.body,) = self._inside(_Open(handle, True), node.body)
        node.test = self.visit(node.test)
        return [*first, *while_loop.rewritten(node, handle, names, containers, decides)]

    def _python_loop(self, node: ast.For | ast.While) -> ast.AST | list[ast.stmt]:
        node.body = without_continue(node.body)
        made: list[ast.stmt] = [node]
        self.changed = True
        flag = None
        if isinstance(node, ast.For) and not node.orelse:
            flag, _ = without_break(node)
            made = stopping_python_loop(node, flag) if flag else made
        if isinstance(node, ast.While):
            node.test = expression("__fly_counted__(__TEST)", node.test, TEST=node.test)
        else:
            if isinstance(node.iter, ast.Name | ast.Attribute):
                node.iter = self._own_iterator(node.iter, f"a loop over {ast.unparse(node.iter)}")
            node.iter = expression(f"__fly_items__(__ITEMS, lambda {READING}: {flag})", node.iter, ITEMS=node.iter)
        self._scopes[-1].open.append(_Open(None, True))
        self.generic_visit(node)
        self._scopes[-1].open.pop()
        return made

    def _inside(self, opened: _Open, *bodies: list[ast.stmt]) -> list[list[ast.stmt]]:
        self._scopes[-1].open.append(opened)
        made = [self._statements(body) for body in bodies]
        self._scopes[-1].open.pop()
        return made

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in body:
            result = self.visit(statement)
            made += result if isinstance(result, list) else [result]
        return made

    def visit_Assert(self, node: ast.Assert) -> ast.AST | list[ast.stmt]:
        if _is_const_expr(node.test) or (node.msg is not None and _binds(node.msg)):
            return self.generic_visit(node)
        self.changed = True
        node.msg = assertion.message(node)
        node.test, node.msg = self.visit(node.test), self.visit(node.msg)
        return assertion.rewritten(node)

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        checks = self._assigning_globals(node)
        self.generic_visit(node)
        return [*checks, node]

    def _assigning_globals(self, node: ast.stmt) -> list[ast.stmt]:
        """Checks before a statement that assigns global variables."""
        names = [name for name in assigned([node]) if name in self._scopes[-1].globals]
        self.changed = self.changed or bool(names)
        return [check for name in names for check in statements(f"__fly_global__({name!r})", node)]

    # --- ways out ----------------------------------------------------------------------------------------------------

    def visit_Return(self, node: ast.Return) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return self._escape(node, "return", self._scopes[-1].open)

    def visit_Break(self, node: ast.Break) -> ast.AST | list[ast.stmt]:
        return self._escape(node, "break", self._open_in_loop())

    def visit_Continue(self, node: ast.Continue) -> ast.AST | list[ast.stmt]:
        return self._escape(node, "continue", self._open_in_loop())

    def visit_Raise(self, node: ast.Raise) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        innermost = [statement for statement in self._scopes[-1].open if statement.handle][-1:]
        return self._escape(node, "raise", innermost) if node.exc else node

    def visit_Try(self, node: ast.Try) -> ast.AST | list[ast.stmt]:
        innermost = [statement for statement in self._scopes[-1].open if statement.handle][-1:]
        for handler in node.handlers:
            self._check_handler(handler)
        self.generic_visit(node)
        self._tell_of_handlers(node)
        return self._escape(node, "try", innermost) if node.handlers else node

    def _tell_of_handlers(self, node: ast.Try) -> None:
        """Have the first handler that seems to wait for the device's errors warned of, if the body is on the device."""
        waiting = next((h for h in node.handlers if not _is_of_tracing(h.type)), None)
        if waiting is None:
            return
        self.changed = True
        before = f"__fly_tried_{node.lineno}_{node.col_offset}"
        what = "except" if waiting.type is None else f"except {ast.unparse(waiting.type)}"
        first = statements(f"{before} = __fly_operations__()", node.body[0])
        last = statements(f"__fly_caught__({before}, {what!r}, {waiting.lineno})", node.body[-1])
        node.body = [*first, *node.body, *last]

    def _check_handler(self, handler: ast.ExceptHandler) -> None:
        """Refuse to wait for what a runtime value would raise in Python."""
        for name in ast.walk(handler.type) if handler.type else ():
            if isinstance(name, ast.Name) and name.id in _OF_VALUES:
                self._refuse(name, f"`except {name.id}`", "the device raises nothing: check the operands with an `if`")

    def _open_in_loop(self) -> list[_Open]:
        """The statements that `break` and `continue` leave."""
        opened = self._scopes[-1].open
        innermost = max((i for i, statement in enumerate(opened) if statement.is_loop), default=0)
        return opened[innermost:]

    def _escape(self, node: ast.stmt, what: str, left: list[_Open]) -> ast.AST | list[ast.stmt]:
        handles = [statement.handle for statement in left if statement.handle]
        if not handles:
            return node
        return [*statements(f"__fly_escape__({what!r}, {', '.join(reversed(handles))})", node), node]

    # --- expressions -------------------------------------------------------------------------------------------------

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if _is_const_expr(node.test) or _binds(node.body, node.orelse):
            return node
        self.changed = True
        return conditional_expression.rewritten(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if _binds(*node.values[1:]):
            return node
        self.changed = True
        return boolean_operators.operation(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        self.changed = True
        return boolean_operators.negation(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
            self.changed = True
            return boolean_operators.membership(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.Is | ast.IsNot) and not _is_none(node):
            self.changed = True
            return boolean_operators.identity(node)
        if len(node.ops) == 1 or _binds(*node.comparators):
            return node
        self.changed = True
        return boolean_operators.comparison(node)

    # --- objects of the host -----------------------------------------------------------------------------------------

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return self._changing(node, "element")

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self._changing(node, node.attr)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        method = node.func
        if isinstance(method, ast.Attribute) and (method.attr in CHANGING_METHODS or method.attr.endswith("_")):
            method.value = self._host_object(method.value, "element")
        elif isinstance(method, ast.Name) and method.id in ("setattr", "delattr") and node.args:
            node.args[0] = self._host_object(node.args[0], "attribute")
        elif isinstance(method, ast.Name) and method.id == "next" and node.args:
            node.args[0] = self._own_iterator(node.args[0], ast.unparse(node))
        if isinstance(method, ast.Attribute) and method.attr == "get" and node.args:
            self.changed = True
            node.func = boolean_operators.lookup(method)
        name = getattr(method, "attr", getattr(method, "id", ""))
        return self._text(node) if name in _MAKING_TEXT else node

    # --- texts -------------------------------------------------------------------------------------------------------

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self._formatted(node)
        return self._text(node) if any(isinstance(part, ast.FormattedValue) for part in node.values) else node

    def _formatted(self, node: ast.JoinedStr) -> None:
        """Visit the values of an f-string, and of the f-strings that their formats are."""
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)
                if isinstance(part.format_spec, ast.JoinedStr):
                    self._formatted(part.format_spec)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """`left % right` is a remainder or makes a text: only if either is a number in the source is that known."""
        formats = isinstance(node.op, ast.Mod) and not _is_number(node.left) and not _is_number(node.right)
        self.generic_visit(node)
        return self._text(node) if formats else node

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        checks = self._assigning_globals(node)
        self.generic_visit(node)
        if not isinstance(node.op, ast.Mod) or not isinstance(node.target, ast.Name) or _is_number(node.value):
            return [*checks, node]
        value = self._text(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        return [*checks, node, ast.copy_location(ast.Assign([node.target], value), node)]

    def _text(self, node: ast.expr) -> ast.expr:
        """An expression that makes a text, which knows whether a runtime value is in it."""
        self.changed = True
        return expression("__fly_text__(__VALUE)", node, VALUE=node)

    # --- statements of one expression --------------------------------------------------------------------------------

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name | ast.Attribute):
            self.changed = True
            source = f"__fly_named__(__VALUE, {ast.unparse(node.value)!r})"
            node.value = expression(source, node.value, VALUE=node.value)
        return node

    def _changing(self, node: ast.Subscript | ast.Attribute, what: str) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            node.value = self._host_object(node.value, what)
        return node

    def _host_object(self, node: ast.expr, what: str) -> ast.expr:
        """An expression that is about to be changed, with a check for the host's objects."""
        roots = list(root(node))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in ("globals", "vars"):
            return self._changed_object(node, what)
        if not roots or any(name in scope.own for scope in self._scopes for name in roots):
            return node
        return self._changed_object(node, what)

    def _changed_object(self, node: ast.expr, what: str) -> ast.expr:
        self.changed = True
        return expression(f"__fly_changed__(__OBJECT, {ast.unparse(node)!r}, {what!r})", node, OBJECT=node)

    def _own_iterator(self, node: ast.expr, what: str) -> ast.expr:
        """An expression whose items are about to be taken, with a check for iterators that a branch did not make."""
        self.changed = True
        return expression(f"__fly_iterator__(__OBJECT, {what!r})", node, OBJECT=node)

    # --- what the walk knows -----------------------------------------------------------------------------------------

    def _new(self, word: str) -> str:
        self.changed = True
        self._count += 1
        return f"__fly_{word}_{self._count}"

    def _assigned(self, nodes: Sequence[ast.AST]) -> list[str]:
        return list(dict.fromkeys([*assigned(nodes), *self._scopes[-1].assigns]))

    def _changed(self, nodes: Sequence[ast.AST]) -> list[str]:
        return list(dict.fromkeys([*changed(nodes), *self._scopes[-1].changes]))

    def _check_range(self, node: ast.For) -> None:
        if node.orelse:
            self._refuse(node.orelse[0], "`else` on a runtime loop")
        call = node.iter
        assert isinstance(call, ast.Call)
        if any(isinstance(argument, ast.Starred) for argument in call.args) or not all(k.arg for k in call.keywords):
            self._refuse(call, "range with starred arguments")
        nested = [inner for inner in in_function(node.body) if isinstance(inner, ast.For)]
        allowed = [for_loop.final_yield(loop.body) for loop in (node, *nested) if _has_init(loop)]
        for inner in in_function(node.body):
            if isinstance(inner, ast.Yield | ast.YieldFrom | ast.Await) and inner not in allowed:
                hint = "for i, state in range(..., init=[...]): yields the next state, at the end of its body"
                self._refuse(inner, f"`{type(inner).__name__.lower()}` in a runtime loop", hint)

    def _refuse(self, node: ast.AST, what: str, hint: str = _HINT) -> None:
        at = SourceLocation(self.file, node.lineno, node.col_offset, node.end_col_offset)  # type: ignore[attr-defined]
        raise TraceError(f"{what} cannot be traced", at=at, hint=hint)


def _has_init(node: ast.For) -> bool:
    """True for a loop over `range(..., init=...)`, whose body yields."""
    return isinstance(node.iter, ast.Call) and any(k.arg == "init" for k in node.iter.keywords)


def _is_of_tracing(kind: ast.expr | None) -> bool:
    """True if a handler waits only for errors that tracing raises. Classes of the program's own count as such."""
    if kind is None:
        return False
    parts = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    builtin = [part.id for part in parts if isinstance(part, ast.Name) and hasattr(builtins, part.id)]
    return all(name in _OF_TRACING for name in builtin)


def _is_const_expr(node: ast.expr) -> bool:
    """True if an expression is marked as known at compile time: a call of `const_expr`."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
    return name == "const_expr"


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, str)


def _is_none(node: ast.Compare) -> bool:
    """True if a comparison has None on a side."""
    return any(isinstance(side, ast.Constant) and side.value is None for side in (node.left, *node.comparators))


def _binds(*nodes: ast.expr) -> bool:
    """True if an expression assigns a name, yields or awaits: a nested function cannot do that for its parent."""
    kinds = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)
    return any(isinstance(inner, kinds) for node in nodes for inner in ast.walk(node))
