"""checking("nan") in the interpreter: the first operation of a line that makes a NaN or an infinity out of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mlir import ir

from flydsl.dialect.ops import printed_name
from flydsl.errors import SourceLocation
from flydsl.interpreter.elements import Array
from flydsl.interpreter.execution import Execution
from flydsl.simulator.lockstep.checked.nans import NanHistory

_MOST_OPERANDS = 4
_CONVERSIONS = ("arith.sitofp", "arith.uitofp")  # a large integer may be infinite in f16


@dataclass(frozen=True)
class MadeByOperation:
    """The first time that an operation of a line made something that is not a number. lane: in the workgroup."""

    operation: str
    at: SourceLocation | None
    workgroup: tuple[int, int, int]
    lane: int
    thread: tuple[int, int, int]
    operands: tuple[float, ...]
    result: float

    def __str__(self) -> str:
        place = f" ({self.at})" if self.at else ""
        of = f" of {', '.join(f'{value:g}' for value in self.operands)}" if self.operands else ""
        by = f"workgroup {self.workgroup}, lane {self.lane}, thread {self.thread}"
        return f"{self.operation}{place} made {self.result:g}{of}: {by}"


def look_at(x: Execution, op: ir.Operation, operands: Sequence[Any], made: Any, history: NanHistory) -> None:
    """Remember an operation if an active lane of its result is the first that is not a number, of numbers."""
    floats = [held for held in operands if _is_float(held)]
    if not floats and op.name not in _CONVERSIONS:
        return  # a constant, or what was in memory
    for result in made if isinstance(made, tuple | list) else [made]:
        if not _is_float(result) or np.isfinite(result).all():
            continue
        has_nan = _in_lanes(x, [np.isnan(held) for held in floats])
        finite = ~_in_lanes(x, [~np.isfinite(held) for held in floats])
        new = x.mask & (_in_lanes(x, [np.isnan(result)]) & ~has_nan | _in_lanes(x, [np.isinf(result)]) & finite)
        at = x.place()
        key = (at.file, at.line) if at else op.name
        if not new.any() or key in history.made:
            continue
        lane = int(new.argmax())
        number = lane + x.first_lane
        values = np.atleast_1d(_of_lane(result, lane))
        history.made[key] = MadeByOperation(
            printed_name(op.name),
            at,
            x.position.workgroup,
            number,
            x.position.thread(number),
            tuple(float(np.atleast_1d(_of_lane(held, lane))[0]) for held in floats[:_MOST_OPERANDS]),
            float(values[~np.isfinite(values)][0]),
        )


def _is_float(held: Any) -> bool:
    return isinstance(held, np.ndarray) and held.dtype.kind == "f"


def _in_lanes(x: Execution, parts: Sequence[Array]) -> Array:
    """The lanes in which any element of any part holds."""
    found = np.zeros(x.lanes, np.bool_)
    for part in parts:
        found |= part.reshape(len(part), -1).any(axis=1)
    return found


def _of_lane(held: Array, lane: int) -> Any:
    return held[lane if len(held) > 1 else 0]
