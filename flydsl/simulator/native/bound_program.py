"""A program as records: for each instruction its handler and its numbers, for one float mode."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from flydsl.hsaco.operands import Symbol
from flydsl.simulator.arrays import Array
from flydsl.simulator.decoding.program import Program, relocated
from flydsl.simulator.modes import FloatMode
from flydsl.simulator.native import layout
from flydsl.simulator.native.library import library
from flydsl.simulator.native.shape import bind

_WORDS = layout.RECORD_BYTES // 8
_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class BoundProgram:
    """records: (instructions + 1, 8) i64, handler and slots; the last one stands beyond the end of the code.

    symbols: (instruction, slot, symbol) of each number that only a launch knows.
    """

    records: Array
    symbols: tuple[tuple[int, int, Symbol], ...]
    has_global_atomics: bool

    def at_launch(self, addresses: Mapping[str, int]) -> Array:
        """The records with the addresses that the launch gives the symbols."""
        if not self.symbols:
            return self.records
        records = self.records.copy()
        for index, slot, symbol in self.symbols:
            try:
                value = relocated(addresses, symbol, index)
                records[index, 1 + slot] = value - (1 << 64) if value >> 63 else value
            except KeyError:
                records[index, 0] = library().fall_back_address  # the lock-step machine says which symbol it is
        return records


_bound: WeakKeyDictionary[Program, dict[int, BoundProgram]] = WeakKeyDictionary()
_lock = threading.Lock()


def bound_program(program: Program, mode: FloatMode) -> BoundProgram:
    """The program for waves of this mode, bound when first asked for."""
    with _lock:
        modes = _bound.setdefault(program, {})
        if mode.bits not in modes:
            modes[mode.bits] = _bind(program, mode)
        return modes[mode.bits]


def _bind(program: Program, mode: FloatMode) -> BoundProgram:
    handlers = library()
    records = np.zeros((len(program.instructions) + 1, _WORDS), np.int64)
    symbols, shapes = [], {}
    for index, instruction in enumerate(program.instructions):
        try:
            bound = bind(instruction, program, mode)
        except NotImplementedError:
            continue  # as unknown here as to the lock-step machine, which says so when a wave arrives
        records[index, 1:] = np.array([slot & _WORD for slot in bound.slots], np.uint64).view(np.int64)
        symbols += [(index, slot, symbol) for slot, symbol in bound.symbols]
        shapes[index] = bound.shape
    addresses = handlers.addresses(shapes.values())
    records[:, 0] = handlers.fall_back_address
    for index, shape in shapes.items():
        records[index, 0] = addresses[shape]
    return BoundProgram(records, tuple(symbols), program.has_global_atomics)
