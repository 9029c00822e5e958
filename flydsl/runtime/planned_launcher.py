"""Launchers as lists of steps in Python: most compute and check a few sizes, and launch.

MLIR's ExecutionEngine takes 18 ms to compile one and keeps 1.6 MB for each, more than the launches themselves cost.

A step works on the numbers of a run, a list: integers and addresses, those of the arguments first. A number may have a
sign or not, and more bits than its type, of which the low ones count.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from flydsl.runtime.argument_slots import ArgumentSlots
from flydsl.runtime.host import Call


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch: the places of its sizes, LDS bytes and stream, and what its kernel gets.

    arguments: for each operand of the kernel the launcher's argument that it is, by number; None for a number, which
    needs memory of its own. numbers: the places of those.
    """

    kernel: str
    sizes: tuple[int, ...]
    lds_bytes: int
    stream: int
    arguments: tuple[int | None, ...]
    numbers: tuple[int, ...]


@dataclass(slots=True)
class Run:
    """A run of a launcher. memories: what its numbers have addresses of."""

    numbers: list[Any]
    frame: _Frame
    call: Call
    memories: list[Any] = field(default_factory=list)

    def at(self, places: Sequence[int]) -> list[Any]:
        return [self.numbers[place] for place in places]


Step = Callable[[Run], None]


@dataclass(slots=True)
class Block:
    """Steps, and how the number of the block that follows is found; it is None at the end."""

    steps: list[Step] = field(default_factory=list)
    following: Callable[[Run], int | None] = lambda run: None


class PlannedLauncher:
    """A launcher as blocks. kernels: those that it launches, by number. template: the numbers before a run."""

    def __init__(
        self, codes: Sequence[str], template: Sequence[Any], blocks: Sequence[Block], launches: Sequence[Launch]
    ) -> None:
        self.kernels = [launch.kernel for launch in launches]
        self._codes, self._template, self._blocks, self._launches = codes, template, blocks, launches
        self._frames: list[_Frame] = []

    def run(self, values: Sequence[Any], call: Call) -> None:
        """Run the launcher on its flattened arguments. Raises what a launch raised, and TooLarge."""
        # More than one is needed if a device calls the launcher that is running.
        frame = self._frames.pop() if self._frames else _Frame(self._codes, self._launches)
        try:
            frame.arguments.fill(values)
            run = Run([*values, *self._template[len(values) :]], frame, call)
            number: int | None = 0
            while number is not None:
                block = self._blocks[number]
                for step in block.steps:
                    step(run)
                number = block.following(run)
        finally:
            self._frames.append(frame)


class _Frame:
    """The memory of a run: arguments, the numbers that kernels get, and for each launch pointers to its operands."""

    def __init__(self, codes: Sequence[str], launches: Sequence[Launch]) -> None:
        self.arguments = ArgumentSlots(codes)
        self._numbers = [(ctypes.c_uint64 * len(launch.numbers))() for launch in launches]
        self._pointers = [self._pointers_of(*pair) for pair in zip(launches, self._numbers, strict=True)]

    def _pointers_of(self, launch: Launch, numbers: ctypes.Array[ctypes.c_uint64]) -> ctypes.Array[ctypes.c_void_p]:
        first = ctypes.addressof(numbers)
        of_numbers = iter(range(first, first + ctypes.sizeof(numbers), 8))
        addresses = [next(of_numbers) if i is None else self.arguments.addresses[i] for i in launch.arguments]
        return (ctypes.c_void_p * max(len(addresses), 1))(*addresses)

    def operands(self, launch: int, numbers: Sequence[int]) -> ctypes.Array[ctypes.c_void_p]:
        """The pointers to the operands of a launch, whose numbers these are."""
        if numbers:
            self._numbers[launch][:] = list(numbers)
        return self._pointers[launch]


def computing(result: int, compute: Callable[..., int], operands: Sequence[int]) -> Step:
    """The step that computes a number of others, by their places."""

    def step(run: Run) -> None:
        run.numbers[result] = compute(*run.at(operands))

    return step


def launching(number: int, launch: Launch) -> Step:
    """The step that launches."""

    def step(run: Run) -> None:
        gx, gy, gz, bx, by, bz, lds_bytes, stream = run.at((*launch.sizes, launch.lds_bytes, launch.stream))
        operands = run.frame.operands(number, run.at(launch.numbers))
        run.call.launch(number, (gx, gy, gz), (bx, by, bz), lds_bytes, stream, operands)

    return step


def allocating(result: int, size_bytes: int) -> Step:
    """The step that gives a number the address of memory of its own."""

    def step(run: Run) -> None:
        run.memories.append(ctypes.create_string_buffer(size_bytes))
        run.numbers[result] = ctypes.addressof(run.memories[-1])

    return step


def storing(value: int, size_bytes: int, address: int) -> Step:
    """The step that stores an unsigned number in memory."""

    def step(run: Run) -> None:
        ctypes.memmove(run.numbers[address], run.numbers[value].to_bytes(size_bytes, "little"), size_bytes)

    return step


def printing(number: int, values: int) -> Step:
    """The step that prints as a format says, or refuses. values: the place of the address of what is printed."""
    return lambda run: run.call.print(number, run.numbers[values])


def going_to(block: int, arguments: Sequence[int], operands: Sequence[int]) -> Callable[[Run], int]:
    """The end of a block that goes on to another one, whose arguments get the values of operands."""

    def following(run: Run) -> int:
        for place, value in zip(arguments, run.at(operands), strict=True):
            run.numbers[place] = value
        return block

    return following


def choosing(condition: int, if_true: Callable[[Run], int], if_false: Callable[[Run], int]) -> Callable[[Run], int]:
    """The end of a block that goes on in one of two ways."""
    return lambda run: (if_true if run.numbers[condition] & 1 else if_false)(run)
