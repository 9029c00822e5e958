"""`for i in range(...)`: the body becomes a function of the loop variable and of every name that it assigns.

    for i in range(n):                  def __fly_body_0(__fly_item, acc):
        acc = acc + A[i]                    i = __fly_item
                                            acc = acc + A[i]
                                            return (i, acc)
                                        i, acc = __fly_for__(
                                            range, (n,), __fly_body_0, ("i", "acc"), (lambda: i, lambda: acc))

`range_constexpr` and other iterables stay Python loops, which unroll.
"""

from __future__ import annotations

import ast

from flydsl.errors import SourceLocation, TraceError


class ForLoops(ast.NodeTransformer):
    """Rewrites the `for ... in range(...)` loops of one function. changed: whether there was one."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.changed = False
        self._count = 0

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if not _is_range(node.iter):
            return node
        self._check(node)
        self.changed = True
        return self._rewritten(node)

    def _check(self, node: ast.For) -> None:
        if node.orelse:
            self._refuse(node.orelse[0], "`else` on a runtime loop")
        for escape in _escapes(node.body):
            word = type(escape).__name__.lower()
            self._refuse(escape, f"`{word}` in a runtime loop")
        call = node.iter
        assert isinstance(call, ast.Call)
        if call.keywords or any(isinstance(argument, ast.Starred) for argument in call.args):
            self._refuse(call, "range with keyword or starred arguments")

    def _refuse(self, node: ast.AST, what: str) -> None:
        at = SourceLocation(self.file, node.lineno, node.col_offset, node.end_col_offset)  # type: ignore[attr-defined]
        raise TraceError(
            f"{what} cannot be traced",
            at=at,
            hint="range(...) is a loop on the device; range_constexpr(...) unrolls and is plain Python",
        )

    def _rewritten(self, node: ast.For) -> list[ast.stmt]:
        call = node.iter
        assert isinstance(call, ast.Call)
        name = f"__fly_body_{self._count}"
        self._count += 1
        names = _assigned([ast.Assign(targets=[node.target], value=call), *node.body])
        body = ast.parse(
            f"def {name}(__fly_item{''.join(f', {n}' for n in names)}):\n"
            f"    __fly_target = __fly_item\n"
            f"    return ({''.join(f'{n}, ' for n in names)})"
        ).body[0]
        assert isinstance(body, ast.FunctionDef)
        bind = body.body[0]
        assert isinstance(bind, ast.Assign)
        bind.targets = [node.target]
        body.body[1:1] = node.body
        loop = ast.parse(
            f"{''.join(f'{n}, ' for n in names)} = __fly_for__(__fly_range, __fly_bounds, {name}, "
            f"{tuple(names)!r}, ({''.join(f'lambda: {n}, ' for n in names)}))"
        ).body[0]
        assert isinstance(loop, ast.Assign)
        assert isinstance(loop.value, ast.Call)
        loop.value.args[0] = call.func
        loop.value.args[1] = ast.Tuple(elts=call.args, ctx=ast.Load())
        return [_at(body, node), _at(loop, node)]


def _at(made: ast.stmt, like: ast.For) -> ast.stmt:
    """Give generated nodes the loop's position; nodes that came from the user keep their own."""
    kept = {id(inner) for statement in [*like.body, like.target, like.iter] for inner in ast.walk(statement)}
    for node in ast.walk(made):
        if id(node) not in kept and "lineno" in node._attributes:
            ast.copy_location(node, like.iter)
    return made


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.While)
_ESCAPES = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete)


def _escapes(body: list[ast.stmt]) -> list[ast.AST]:
    """What a body that becomes a function cannot do: return, yield, delete a name, break and continue its own loop."""
    found: list[ast.AST] = []

    def look(node: ast.AST, inner_loop: bool) -> None:
        if isinstance(node, _ESCAPES) or (isinstance(node, ast.Break | ast.Continue) and not inner_loop):
            found.append(node)
        if not isinstance(node, _SCOPES):
            for child in ast.iter_child_nodes(node):
                look(child, inner_loop or isinstance(node, _LOOPS))

    for statement in body:
        look(statement, False)
    return found


def _assigned(statements: list[ast.stmt]) -> list[str]:
    """Names that the statements bind in their own scope, in order of appearance."""
    names: dict[str, None] = {}
    foreign: set[str] = set()

    def look(node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
        elif isinstance(node, ast.alias):
            names[node.asname or node.name.partition(".")[0]] = None
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            names[node.name] = None
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names[node.rest] = None
        elif isinstance(node, ast.Global | ast.Nonlocal):
            foreign.update(node.names)
        if isinstance(node, _SCOPES):
            if not isinstance(node, ast.Lambda) and not node.name.startswith("__fly_"):
                names[node.name] = None
            return
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            names.update(dict.fromkeys(n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)))
            return
        for child in ast.iter_child_nodes(node):
            look(child)

    for statement in statements:
        look(statement)
    return [name for name in names if name not in foreign]
