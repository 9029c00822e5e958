"""Control flow on runtime values: what rewritten source calls."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mlir import ir

from flydsl.dialect.location import mlir_location, user_location
from flydsl.errors import TraceError
from flydsl.expr.emit import emit, require_trace
from flydsl.expr.numeric import Index, Int32, Int64, Numeric, as_numeric
from flydsl.expr.tree import Tree, flatten, leaf_type, leaf_value
from flydsl.expr.typing import FlyValue


def for_loop(
    iterable: Callable[..., Any],
    arguments: Sequence[Any],
    body: Callable[..., tuple[Any, ...]],
    names: Sequence[str],
    thunks: Sequence[Callable[[], Any]],
) -> tuple[Any, ...]:
    """`for ... in iterable(*arguments)`. body: from the item and the assigned names' values to their new values.

    names, thunks: the names that the body assigns, and how to read each one's value before the loop.
    """
    values = [_value_before(name, thunk) for name, thunk in zip(names, thunks, strict=True)]
    if iterable is not builtins.range:
        for item in iterable(*arguments):
            values = list(body(item, *values))
        return tuple(values)
    return _scf_for(arguments, body, names, values)


def _value_before(name: str, thunk: Callable[[], Any]) -> Any:
    try:
        return thunk()
    except NameError:
        return LoopLocal(name)


def _carried_or_local(name: str, value: Any) -> Any:
    """A name's value before a runtime loop; tensors and layouts cannot be carried from iteration to iteration."""
    if isinstance(value, LoopLocal) or not any(isinstance(leaf, FlyValue) for leaf in flatten(value).leaves):
        return value
    return LoopLocal(
        name,
        f"{name!r} holds {value!r} before a runtime loop that assigns it; loops carry numbers and vectors only",
        f"give the value inside the loop another name than {name}",
    )


class LoopLocal:
    """Stands for a name that has no value before a runtime loop, and none after it. Any use is an error.

    reason, hint: why, where it is not that the name is first assigned inside the loop.
    """

    def __init__(self, name: str, reason: str | None = None, hint: str | None = None) -> None:
        self._reason = reason or f"{name!r} is first assigned inside a runtime loop, so it has no value outside of it"
        self._hint = hint or f"assign {name} before the loop"

    def _fail(self, *_: Any, **__: Any) -> NoReturn:
        raise TraceError(self._reason, at=user_location(), hint=self._hint)

    def __getattr__(self, name: str) -> NoReturn:
        self._fail()

    __call__ = __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = __index__ = __float__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _fail
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __and__ = __rand__ = __or__ = __ror__ = _fail
    __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __neg__ = __invert__ = _fail
    __lt__ = __le__ = __gt__ = __ge__ = _fail


def _scf_for(
    arguments: Sequence[Any], body: Callable[..., tuple[Any, ...]], names: Sequence[str], values: list[Any]
) -> tuple[Any, ...]:
    """Trace the body once as an `scf.for` whose carried values are the assigned names that have one before it."""
    require_trace("range over runtime values")
    at = user_location()
    lower, upper, step = _bounds(arguments)
    values = [_carried_or_local(name, value) for name, value in zip(names, values, strict=True)]
    carried = [i for i, value in enumerate(values) if not isinstance(value, LoopLocal)]
    trees = {i: flatten(values[i]) for i in carried}
    init = [leaf_value(leaf) for i in carried for leaf in trees[i].leaves]
    types = [value.type for value in init]
    bounds = [bound.ir_value() for bound in (lower, upper, step)]
    loop = ir.Operation.create("scf.for", types, [*bounds, *init], regions=1, loc=mlir_location(at))
    block = ir.Block.create_at_start(loop.regions[0], [bounds[0].type, *types])
    with ir.InsertionPoint(block):
        item = lower.dtype.of(block.arguments[0])
        results = body(item, *_rebuilt(values, trees, carried, list(block.arguments)[1:]))
        outputs = [value for i in carried for value in _checked(names[i], trees[i], results[i])]
        emit("scf.yield", outputs)
    # A name without a value before the loop has none after it.
    return tuple(_rebuilt(values, trees, carried, list(loop.results)))


def _rebuilt(values: Sequence[Any], trees: dict[int, Tree], carried: list[int], leaves: list[ir.Value]) -> list[Any]:
    """The names' values with the carried ones made from the loop's own SSA values."""
    result, position = list(values), 0
    for i in carried:
        count = len(trees[i].leaves)
        result[i] = trees[i].rebuild(leaves[position : position + count])
        position += count
    return result


def _checked(name: str, before: Tree, value: Any) -> list[ir.Value]:
    """The SSA values of a carried name after an iteration. Raises TraceError where its type or shape has changed."""
    after = flatten(value)
    if after.structure != before.structure or len(after.leaves) != len(before.leaves):
        raise TraceError(
            f"{name!r} is {before.structure} before the loop and {after.structure} after an iteration",
            at=user_location(),
            hint="a runtime loop carries values of one structure; range_constexpr unrolls and lets them change",
        )
    return [_like(name, old, new) for old, new in zip(before.leaves, after.leaves, strict=True)]


def _like(name: str, old: Any, new: Any) -> ir.Value:
    if isinstance(old, Numeric) and isinstance(new, Numeric) and new.is_static:
        new = old.dtype(new)
    value, expected = leaf_value(new), leaf_type(old)
    if value.type != expected:
        raise TraceError(
            f"{name!r} is {expected} before the loop and {value.type} after an iteration",
            at=user_location(),
            hint=f"give it its final type before the loop, such as {name} = fx.Float32(0), or convert it back",
        )
    return value


def _bounds(arguments: Sequence[Any]) -> tuple[Numeric, Numeric, Numeric]:
    """Lower bound, upper bound and step of a range, in one integer type.

    A runtime loop counts upward. A static step that does not is refused; with a runtime one the loop runs zero times.
    """
    if not 1 <= len(arguments) <= 3:
        raise TraceError(f"range expects 1 to 3 arguments, got {len(arguments)}", at=user_location())
    numbers = [as_numeric(argument) for argument in arguments]
    for number in numbers:
        if not isinstance(number, Numeric) or number.is_float:
            raise TraceError(f"range of {number!r}: its arguments are integers", at=user_location())
    lower, upper = (Int32(0), numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    step = numbers[2] if len(numbers) == 3 else Int32(1)
    if step.is_static and int(step) <= 0:
        raise TraceError(
            f"range with step {int(step)}: a runtime loop counts upward",
            at=user_location(),
            hint="count upward and subtract inside the loop",
        )
    dtypes = [number.dtype for number in numbers]
    # The loop compares signed numbers; those of 32 bits without a sign need one more.
    wide = any(dtype.width + (not dtype.signed) > 32 for dtype in dtypes)
    dtype = Index if Index in dtypes else Int64 if wide else Int32
    lower, upper, step = dtype(lower), dtype(upper), dtype(step)
    if not step.is_static:
        # With a step that does not count upward the device would loop for ever.
        upper = (step > 0).select(upper, lower)
    return lower, upper, step


# Names that rewritten functions see through their closure.
RUNTIME: dict[str, Callable[..., Any]] = {"__fly_for__": for_loop}
