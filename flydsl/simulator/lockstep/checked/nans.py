"""The lock-step machine that remembers which instructions made the first NaN, or infinity, out of numbers.

An instruction makes a NaN if a lane of its result is one and none of its float operands is, and an infinity if its
operands are finite. That alone is not a mistake: the compiler's square root of 0 computes a NaN that it does not use.
It is reported only if a NaN or an infinity replaces a number in memory, or if one is made and the launch stores to an
element that was a NaN before (`NanHistory.check`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from flydsl.arch.launch_limits import Dim3
from flydsl.errors import SourceLocation
from flydsl.simulator.arrays import Array
from flydsl.simulator.decoding.program import Instruction, Program
from flydsl.simulator.dispatch import Dispatch
from flydsl.simulator.errors import NotFinite
from flydsl.simulator.lockstep.bind import bind
from flydsl.simulator.lockstep.machine import Machine, Step
from flydsl.simulator.lockstep.memory import Request, Resolved
from flydsl.simulator.memory.buffers import Buffer, Memory

_TYPES = {"float32": np.float32, "float16": np.float16, "float64": np.float64}
_MOST_SHOWN = 3
_EXPONENTS = {"bf16": 0x7F80, "f16": 0x7C00}
_MATRIX = ("v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_")


@dataclass(frozen=True)
class Made:
    """The first time that an instruction made a NaN or an infinity. operands, result: in that lane."""

    instruction: Instruction
    workgroup: Dim3
    wave: int
    lane: int
    thread: Dim3
    operands: tuple[float, ...]
    result: float

    @property
    def at(self) -> SourceLocation | None:
        """The place in the source."""
        return self.instruction.location

    def __str__(self) -> str:
        place = f", {self.instruction.location}" if self.instruction.location else ""
        listed = self.instruction.listed
        operands = f" of {', '.join(f'{value:g}' for value in self.operands)}" if self.operands else ""
        return (
            f"{listed.text} (ISA line {listed.line}{place}) made {self.result:g}{operands}: workgroup "
            f"{self.workgroup}, wave {self.wave}, lane {self.lane}, thread {self.thread}"
        )


class NanHistory:
    """The NaNs that a launch made, and those in memory before it.

    made: by the instruction's index, in the interpreter by its line; ordered by time.
    """

    def __init__(self, memory: Memory) -> None:
        self.made: dict[Any, Any] = {}
        self._memory = memory
        self._before = {base: _is_finite(buffer) for base, buffer in self._writable()}
        self._stored: dict[int, Array] = {}

    def _writable(self) -> Iterator[tuple[int, Buffer]]:
        return ((base, buffer) for base, buffer in self._memory.buffers().items() if buffer.writable)

    def note_store(self, storage: Array, offsets: Array, size: int) -> None:
        """Note that lanes store `size` bytes each at offsets into a storage."""
        stored = self._stored.setdefault(storage.ctypes.data, np.zeros(storage.size, np.bool_))
        stored[offsets[:, None] + np.arange(size)] = True

    def _is_stored(self, buffer: Buffer, count: int) -> Array:
        """A mask of a buffer's first elements, to which the launch stored; all False if it made no NaN or infinity."""
        stored = self._stored.get(buffer.storage.ctypes.data)
        if stored is None or not self.made:
            return np.zeros(count, np.bool_)
        start = buffer.base - buffer.storage_base
        return np.asarray(stored[start : start + count * buffer.element_bytes].reshape(count, -1).any(axis=1))

    def check(self) -> None:
        """Raise NotFinite if memory holds a NaN or an infinity that the launch has made."""
        for base, buffer in self._writable():
            now, before = _is_finite(buffer), self._before.get(base)
            if now is None or before is None:
                continue
            new = ~now & (before | self._is_stored(buffer, now.size))
            if not new.any():
                continue
            element = int(new.argmax())
            value = _elements(buffer)[element]
            shown = "a NaN or an infinity" if value is None else f"{value:g}"
            count = int(new.sum())
            raise NotFinite(buffer.name, buffer.label, element, count, shown, self._first_of_lines()[:_MOST_SHOWN])

    def _first_of_lines(self) -> list[Any]:
        """The first instruction of each line of the source that made one."""
        of_lines: dict[object, Any] = {}
        for key, made in self.made.items():
            of_lines.setdefault((made.at.file, made.at.line) if made.at else key, made)
        return [*of_lines.values()]


class NanMachine(Machine):
    """Executes a program and looks at its float results."""

    def __init__(
        self,
        dispatch: Dispatch,
        steps: Sequence[Step],
        workgroup_ids: Sequence[Dim3],
        instruction_limit: int,
        history: NanHistory,
    ) -> None:
        waves = dispatch.waves(list(workgroup_ids))
        looking = [own or step for own, step in zip(_looking_steps(dispatch.program), steps, strict=True)]
        super().__init__(dispatch.program, looking, waves, dispatch.memory, dispatch.symbols, instruction_limit)
        self._history = history

    def _resolve_global(self, request: Request) -> list[Resolved]:
        found = super()._resolve_global(request)
        for access in found if request.is_write else ():
            self._history.note_store(access.storage, access.offsets, request.size)
        return found

    def look_at(self, operands: Sequence[Any], result: Array) -> None:
        """Remember the instruction if it makes its first NaN or infinity, in a lane whose operands are numbers."""
        made_of = self._history.made
        if self.instruction.index in made_of:
            return
        floats = [value for value in _leaves(operands) if _is_float(value)]
        has_nan, is_finite = _matrix_operands(self.instruction, operands)
        for value in floats:
            has_nan = has_nan | np.isnan(value)
            is_finite = is_finite & np.isfinite(value)
        made = (np.isnan(result) & ~has_nan) | (np.isinf(result) & is_finite)
        if not made.any():
            return
        active = np.broadcast_to(made, (self.selected_count, self.lane_count)) & self.exec_mask()
        if active.any():
            row, lane = (int(place) for place in np.argwhere(active)[0])
            wave = int(self._selected_indices()[row])
            made_of[self.instruction.index] = Made(
                self.instruction,
                self.waves.workgroup_ids[int(self.waves.workgroup[wave])],
                wave % self.waves.waves_per_workgroup,
                lane,
                self.waves.thread(wave, lane),
                tuple(_at(value, row, lane) for value in floats[:4]),
                _at(result, row, lane),
            )


_bound: WeakKeyDictionary[Program, list[Step | None]] = WeakKeyDictionary()


def _looking_steps(program: Program) -> list[Step | None]:
    """The steps of a program's instructions that may have float results; None for the others."""
    if program not in _bound:
        _bound[program] = [_looking_step(instruction, program) for instruction in program.instructions]
    return _bound[program]


def _looking_step(instruction: Instruction, program: Program) -> Step | None:
    semantics = instruction.semantics
    if semantics is None or not any(result.startswith(("f16", "f32", "f64")) for result in semantics.results):
        return None
    evaluate = semantics.evaluate
    looking = replace(instruction, semantics=replace(semantics, evaluate=_looking(evaluate)))
    try:
        return bind(looking, program)
    except NotImplementedError:  # a form that the machine reports when it is executed
        return None


def _looking(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    def look(machine: NanMachine, *operands: Any) -> Any:
        found = evaluate(machine, *operands)
        for result in _leaves([found]):
            if _is_float(result) and not np.isfinite(result).all():
                machine.look_at(operands, result)
        return found

    return look


def _leaves(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple | list):
            yield from _leaves(value)
        else:
            yield value


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _matrix_operands(instruction: Instruction, operands: Sequence[Any]) -> tuple[Any, Any]:
    """(has_nan, is_finite) of the 16-bit operands of a matrix instruction; (False, True) for other instructions."""
    exponent = next((bits for type_, bits in _EXPONENTS.items() if instruction.mnemonic.endswith(type_)), None)
    if exponent is None or not instruction.mnemonic.startswith(_MATRIX):
        return np.bool_(False), np.bool_(True)
    words = [value for value in _leaves(operands) if isinstance(value, np.ndarray) and value.dtype.kind in "iu"]
    halves = [half for word in words for half in (word & 0xFFFF, (word >> 16) & 0xFFFF)]
    is_there = any(bool((half & exponent == exponent).any()) for half in halves)
    return np.bool_(is_there), np.bool_(not is_there)


def _at(value: Array, row: int, lane: int) -> float:
    return float(value[row if value.shape[0] > 1 else 0, lane if value.shape[1] > 1 else 0])


def _is_finite(buffer: Buffer) -> Array | None:
    """A mask of the finite elements of a buffer of floats; None for other buffers."""
    type_ = buffer.label.partition("[")[0]
    size = buffer.data.size // buffer.element_bytes * buffer.element_bytes if buffer.element_bytes else 0
    if type_ in _TYPES:
        return np.isfinite(buffer.data[:size].copy().view(_TYPES[type_]))
    if type_ == "bfloat16":
        exponent = _EXPONENTS["bf16"]
        return np.asarray(buffer.data[:size].copy().view(np.uint16) & exponent != exponent)
    return None


def _elements(buffer: Buffer) -> Any:
    type_ = buffer.label.partition("[")[0]
    size = buffer.data.size // buffer.element_bytes * buffer.element_bytes
    if type_ in _TYPES:
        return buffer.data[:size].copy().view(_TYPES[type_])
    return [None] * (size // buffer.element_bytes)
