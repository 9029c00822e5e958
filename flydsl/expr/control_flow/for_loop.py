"""`for i in range(...)`: an `scf.for` that carries the values that its body changes.

A rewritten loop reads:

    loop = __fly_for__(range, (n,), {}, ("i", "total"), (lambda: i, lambda: total), (), (), None)
    for __fly_item in loop:
        if loop.runtime:
            (i, total) = loop.carried()
        i = __fly_item
        total = total + A[i]
        if loop.end():
            break
    if loop.runtime:
        (i, total) = loop.results()
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mlir import ir
from mlir.dialects import arith

from flydsl.dialect.location import mlir_location, trace_error
from flydsl.errors import TraceError
from flydsl.expr.control_flow.carried import Entered, Returned, Slot, changes
from flydsl.expr.control_flow.construct import Thunks
from flydsl.expr.control_flow.loop import Loop
from flydsl.expr.control_flow.region import TracedRegion
from flydsl.expr.control_flow.tree import leaf_like, leaf_type, leaf_value
from flydsl.expr.control_flow.unrolling import NAMES as UNROLLING
from flydsl.expr.control_flow.unrolling import annotate, unroll_hint
from flydsl.expr.numeric import Index, Int32, Int64, Numeric, as_numeric
from flydsl.expr.printing.assertions import assert_step
from flydsl.expr.tracing.emit import require_trace


class ForLoop(Loop):
    """A loop over `iterable(*arguments, **options)`: a runtime loop if `iterable` is Python's range.

    stop: the name, if any, whose truth ends the loop.
    With `init=[...]` an item is the index and the values that the previous iteration yielded.
    """

    def __init__(
        self,
        iterable: Callable[..., Any],
        arguments: Sequence[Any],
        options: Mapping[str, Any],
        names: Sequence[str],
        thunks: Thunks,
        containers: Sequence[str],
        container_thunks: Thunks,
        stop: str | None,
    ) -> None:
        super().__init__(names, thunks, containers, container_thunks)
        self.runtime = iterable is builtins.range
        self._stop = None if stop is None else names.index(stop)
        if not self.runtime:
            self._items = iterable(*arguments, **options)
            return
        require_trace("range over runtime values")
        self._bounds = _bounds(arguments)
        self._init = _initial_state(options)
        self._unroll = unroll_hint(options)
        self._yielded: list[Any] | None = None
        self._begin()
        self._slots += [] if self._init is None else [Slot("init", self._init)]

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the items; a runtime loop gives one item that stands for all."""
        if not self.runtime:
            yield from self._items
            return
        region = self._open()
        self._item = region.argument(self._bounds[0])
        self._entered = Entered.make(region, self._slots)
        self._inside = self._entered.values()
        yield self._item if self._init is None else (self._item, self._inside[-1])

    def carried(self) -> tuple[Any, ...]:
        """The names' values at the start of an iteration."""
        return tuple(self._inside[: len(self._names)])

    def carry(self, values: Any) -> None:
        """Record the values that an iteration yields, in a loop with `init=[...]`."""
        if self._init is None:
            raise trace_error(
                "`yield` in a runtime loop without init",
                "for i, state in range(..., init=[...]): yields the next state at the end of its body",
            )
        self._yielded = list(values) if isinstance(values, list | tuple) else [values]

    def end(self) -> bool:
        """End an iteration. True if it was the last; a runtime loop is traced for one iteration only."""
        if self.runtime:
            after = self._after_iteration()
            self._close()
            self._require_unchanged()
            self._make_loop(after)
        return self.runtime or (self._stop is not None and bool(self._values()[self._stop]))

    def _after_iteration(self) -> list[Any]:
        after = self._current()
        if self._init is None:
            return after
        if self._yielded is None:
            raise TraceError("a loop with init=[...] yields nothing", at=self._at, hint="end its body with yield [...]")
        return [*after, self._yielded]

    def _make_loop(self, after: list[Any]) -> None:
        entered = self._entered
        given_back = entered.given_back(after, self._at)
        kept = changes(entered, given_back)
        order = sorted(kept)
        returned = Returned(self._slots, after)
        initial = [*(self._slots[i].initial[j] for i, j in order), *returned.before(self._at)]
        inside = [*(entered.arguments[i][j] for i, j in order), *returned.arguments(entered.region)]
        outputs = [*((given_back[i] or [])[j] for i, j in order), *returned.leaves]
        if self._stop is None or (self._stop, 0) not in kept:
            entered.region.terminate("scf.yield", outputs)
            entered.settle(kept)
            values = self._scf_for(initial, inside)
        else:
            entered.region.terminate("scf.yield", [self._next_item(), *outputs])
            entered.settle(kept)
            values = self._scf_while(initial, inside, order.index((self._stop, 0)))
        results = [leaf_like(leaf, value) for leaf, value in zip(initial, values, strict=True)]
        self._finish(given_back, after, dict(zip(order, results, strict=False)))
        self._finish_returned(returned, results[len(order) :])

    def _scf_for(self, initial: list[Any], inside: list[Any]) -> list[ir.Value]:
        operands = [leaf_value(leaf) for leaf in (*self._bounds, *initial)]
        kinds = [leaf_type(leaf) for leaf in initial]
        loop = ir.Operation.create("scf.for", kinds, operands, regions=1, loc=mlir_location(self._at))
        annotate(loop, self._unroll)
        self._entered.region.move_into(loop.regions[0], [self._item, *inside])
        return list(loop.results)

    def _next_item(self) -> Any:
        region = self._entered.region
        region.open()
        following = self._item + self._bounds[2]
        region.close()
        return following

    def _scf_while(self, initial: list[Any], inside: list[Any], stop: int) -> list[ir.Value]:
        """Build the loop with a `break`: it continues while the item is below the bound and the flag is not set."""
        if self._unroll:
            raise TraceError(
                "unsupported: unroll of a loop with `break`", at=self._at, hint="omit unroll, or the break"
            )
        lower, upper, _ = self._bounds
        condition = TracedRegion(self._at, self.word, {})
        item, *carried = [condition.argument(leaf) for leaf in (lower, *initial)]
        condition.open()
        goes_on = (item < upper) & ~carried[stop]
        condition.close()
        condition.terminate("scf.condition", [goes_on, item, *carried])
        operands = [leaf_value(leaf) for leaf in (lower, *initial)]
        kinds = [operand.type for operand in operands]
        loop = ir.Operation.create("scf.while", kinds, operands, regions=2, loc=mlir_location(self._at))
        condition.move_into(loop.regions[0], [item, *carried])
        self._entered.region.move_into(loop.regions[1], [self._item, *inside])
        return list(loop.results)[1:]

    def final_state(self) -> Any:
        """The values that the last iteration yielded: a list, or the value itself if there is one."""
        state = self._after[-1]
        return state[0] if len(state) == 1 else state


def _initial_state(options: Mapping[str, Any]) -> list[Any] | None:
    others = sorted(set(options) - {"init", *UNROLLING})
    if others:
        raise trace_error(
            f"range with {others[0]}= is unsupported",
            f"range takes bounds, a step, init= and {'= or '.join(UNROLLING)}=",
        )
    init = options.get("init")
    if init is not None and not isinstance(init, list | tuple):
        raise trace_error(f"init of range must be a list, got {init!r}", "pass init=[value]")
    return None if init is None else list(init)


def _bounds(arguments: Sequence[Any]) -> tuple[Numeric, Numeric, Numeric]:
    """Lower bound, upper bound and step of a range, in one integer type.

    A runtime loop counts upward. A static step below 1 is an error, and so is `-n`; with another runtime step below 1
    the loop runs zero times, and where indices are checked that is an error.
    """
    if not 1 <= len(arguments) <= 3:
        raise trace_error(
            f"range expects 1 to 3 arguments, got {len(arguments)}",
            "range(stop), range(start, stop) or range(start, stop, step)",
        )
    numbers = [as_numeric(argument) for argument in arguments]
    for number in numbers:
        if not isinstance(number, Numeric) or number.is_float:
            raise trace_error(
                f"range takes integers, not {number!r}",
                "convert it: int(...) of a Python number, .to(fx.Int32) of a value of the device",
            )
    lower, upper = (Int32(0), numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    step = numbers[2] if len(numbers) == 3 else Int32(1)
    if (step.is_static and int(step) <= 0) or _is_negated(step):
        shown = int(step) if step.is_static else f"-{step.dtype.__name__}(?)"
        raise trace_error(
            f"range with step {shown}: a runtime loop counts upward", "count upward and subtract inside the loop"
        )
    dtypes = [number.dtype for number in numbers]
    # The loop compares signed numbers; those of 32 bits without a sign need one more.
    wide = any(dtype.width + (not dtype.signed) > 32 for dtype in dtypes)
    dtype = Index if Index in dtypes else Int64 if wide else Int32
    lower, upper, step = dtype(lower), dtype(upper), dtype(step)
    if not step.is_static:
        # With a step that does not count upward the device would loop for ever.
        signed = step.to(Int64) if dtype is Index else step  # an index is compared without a sign
        assert_step(signed)
        upper = (signed > 0).select(upper, lower)
    return lower, upper, step


def _is_negated(step: Numeric) -> bool:
    """True for a runtime `-n`."""
    made = None if step.is_static else step.ir_value().owner
    if not isinstance(made, arith.SubIOp):
        return False
    zero = made.lhs.owner
    return isinstance(zero, arith.ConstantOp) and zero.literal_value == 0
