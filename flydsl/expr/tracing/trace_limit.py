"""A limit for endless traces: `while True:`, or a forgotten `k += 1`, on values that are known while tracing.

Every traced operation counts, and every iteration of a loop that Python runs and that may not end. Beyond the limit the
trace is refused, with the loop's line. A warning comes earlier, since passes take seconds on so many operations.

A `break` on a runtime condition never ends a loop that Python runs: each of its iterations is traced, until there are
no more items. If they have no end, or an unknown one and many have come, the loop is refused sooner.
"""

from __future__ import annotations

import ast
import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from flydsl import env
from flydsl.dialect.location import trace_error
from flydsl.errors import SourceLocation, TraceError
from flydsl.errors.places import TRACER, source_lines, user_frames, user_location

VARIABLE = "FLYDSL_COMPILE_MAX_TRACED_OPS"
_WARN_AT = 50_000
_MOST_AFTER_A_BREAK = 1000


class _Count:
    """The number of operations in the current trace, and the number at which to warn or stop."""

    operations = 0
    limit = sys.maxsize
    next_stop = sys.maxsize


_count = _Count()


@contextmanager
def limited() -> Iterator[_Count]:
    """Count the operations traced in the `with` block. Raises TraceError past the limit."""
    outer = (_count.operations, _count.limit, _count.next_stop)
    _count.operations, _count.limit = 0, env.max_traced_ops()
    _count.next_stop = min(_WARN_AT, _count.limit)
    try:
        yield _count
    finally:
        _count.operations, _count.limit, _count.next_stop = outer


def count_operation() -> None:
    """Count one operation."""
    _count.operations += 1
    if _count.operations >= _count.next_stop:
        _stop()


def traced_operations() -> int:
    """The number of operations that have been traced."""
    return _count.operations


def warn_of_handler(before: int, handler: str, line: int) -> None:
    """Warn at its line of a handler, such as "except Exception", if operations were traced in its `try`.

    before: how many had been traced at the beginning of that.
    """
    place = user_location()
    if _count.operations > before and place is not None:
        warnings.warn_explicit(
            f"`{handler}` catches what tracing raises: the device raises nothing, so it never runs there; check the "
            "operands with an `if`",
            UserWarning,
            place.file,
            line,
        )


def counted(condition: Any) -> Any:
    """The condition of a `while` that Python decides, which is about to be tested: each iteration counts."""
    count_operation()
    return condition


def counted_items(items: Iterable[Any], broken: Callable[[], Any]) -> Iterable[Any]:
    """The items of a `for` that Python runs, counted if their number is not known beforehand.

    What has no items is Python's to refuse, at the user's line. broken: gives whether the loop has met a `break`, of
    which only a runtime value is looked at. Raises TraceError if that is one and the items do not end.
    """
    is_open = hasattr(items, "__iter__") and not hasattr(items, "__len__")
    return _counted_items(items, broken) if is_open else items


def _counted_items(items: Iterable[Any], broken: Callable[[], Any]) -> Iterator[Any]:
    after_a_break = 0
    for item in items:
        count_operation()
        yield item
        after_a_break += not isinstance(broken(), bool | None)
        if after_a_break >= (1 if _has_no_end(items) else _MOST_AFTER_A_BREAK):
            raise _not_ended_by_break(after_a_break)


def _has_no_end(items: Iterable[Any]) -> bool:
    endless_repeat = isinstance(items, itertools.repeat) and "," not in repr(items)
    return endless_repeat or isinstance(items, itertools.count | itertools.cycle)


def _not_ended_by_break(iterations: int) -> TraceError:
    so_far = "whose items have no end" if iterations == 1 else f"which has not ended {iterations} iterations later"
    return trace_error(
        f"`break` on a runtime condition does not end a loop that Python unrolls, {so_far}",
        "`while` and range(...) are loops on the device, which `break` ends; a list of the items is unrolled whole",
    )


def _stop() -> None:
    if _count.operations < _count.limit:
        _count.next_stop = _count.limit
        loop = _loop()
        place = loop or user_location() or SourceLocation("<unknown>", 1)
        unrolled = f", in the loop at {loop}, which Python unrolls; range(...) makes it a loop on the device"
        warnings.warn_explicit(
            f"compiling takes long: {_count.operations} operations are traced{'' if loop is None else unrolled}",
            UserWarning,
            place.file,
            place.line,
        )
        return
    loop = _loop()
    raise TraceError(
        f"more than {_count.limit} operations are traced{'' if loop is None else ', and this loop has not ended'}",
        at=loop or user_location(),
        hint="a loop on values that are known at compile time is unrolled: does it come to an end? range(...) with a "
        f"runtime bound, or `while` on a value of the DSL, is a loop on the device; {VARIABLE} sets the limit",
    )


def _loop() -> SourceLocation | None:
    """The loop that is being unrolled, found among the running lines of the traced functions.

    The innermost `while`, which may not end; else the outermost `for`.
    """
    loops = list(_loops())
    return next((at for at, is_while in loops if is_while), loops[-1][0] if loops else None)


def _loops() -> Iterator[tuple[SourceLocation, bool]]:
    """The running loops, innermost first, each with True if it is a `while`."""
    for frame in user_frames(TRACER):
        yield from _loops_around(frame.f_code, frame.f_lineno)


def _loops_around(code: CodeType, line: int) -> Iterator[tuple[SourceLocation, bool]]:
    try:
        lines, first = source_lines(code)
        tree = ast.parse("if True:\n" + "".join(lines) if lines[0][:1].isspace() else "\n" + "".join(lines))
    except (OSError, TypeError, SyntaxError, IndexError):
        return
    ast.increment_lineno(tree, first - 2)
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]
    around = [node for node in loops if node.lineno <= line <= (node.end_lineno or line)]
    for node in sorted(around, key=lambda node: -node.lineno):
        yield SourceLocation(code.co_filename, node.lineno, node.col_offset), isinstance(node, ast.While)
