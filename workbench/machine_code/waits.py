"""The memory operations that are under way at each instruction, and those that each wait waits for.

A counter goes up by one for each operation that it counts, and a wait brings it down to its limit. The largest value
that it may have at an instruction is computed over all paths of control. Operations of a counter complete in the order
of their issue (scalar loads do not, and LLVM waits for all of them): a wait until n are under way waits for the one
that has n younger ones, which is looked for backwards, around loops as they run again and again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from flydsl.arch import Arch
from flydsl.arch.wait_counters import wait_counters
from flydsl.hsaco.listing import ListedInstruction, Listing
from flydsl.simulator.waits.instructions import Facts, facts_of
from workbench.machine_code.blocks import Block
from workbench.machine_code.instructions import MachineInstruction

_VISITS = 3
"""Of a block, after which a value that still grows is taken for the largest one."""


@dataclass(frozen=True)
class Wait:
    """A wait for one counter, "all" for every counter.

    cause: the last one issued of the operations that it waits for, None where nothing may be under way. count: how
    many it waits for, at most. distance: instructions from the issue of the cause to the wait.
    """

    instruction: MachineInstruction
    counter: str
    at_most: int
    cause: MachineInstruction | None
    count: int
    distance: int | None


@dataclass(frozen=True)
class Outstanding:
    """counters: those that count any operation of the function. counts: per instruction, of each of these counters,
    how many operations may be under way before it, at most. waits: every wait for memory, once per counter."""

    counters: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    waits: tuple[Wait, ...]


def outstanding(instructions: Sequence[MachineInstruction], graph: Sequence[Block], arch: Arch) -> Outstanding:
    """The operations under way in a function, whose blocks are those of `blocks`."""
    listed = tuple(ListedInstruction(i.text, i.index + 1, i.location) for i in instructions)
    facts = facts_of(Listing(listed, {label: i.index for i in instructions for label in i.labels}), arch)
    sizes = wait_counters(arch).sizes
    counters = tuple(counter for counter in sizes if any(counter in _counted_by(fact) for fact in facts))
    of_each = {counter: _values(facts, graph, counter, sizes[counter]) for counter in counters}
    waits = [
        _wait(instructions, facts, graph, fact.index, counter, of_each)
        for fact in facts
        for counter in fact.limits
        if counter in sizes or counter == "all"
    ]
    return Outstanding(counters, tuple(zip(*of_each.values(), strict=True)) or ((),) * len(facts), tuple(waits))


def _counted_by(fact: Facts) -> set[str]:
    """The counters that an instruction increments."""
    return {stream.counter for stream in (*fact.streams, *((fact.besides,) if fact.besides else ()))}


def _values(facts: Sequence[Facts], graph: Sequence[Block], counter: str, size: int) -> list[int]:
    """The largest value of a counter before each instruction."""
    values, starts, visits, todo = [0] * len(facts), [0] * len(graph), [0] * len(graph), list(range(len(graph)))
    while todo:
        number = todo.pop(0)
        value = starts[number]
        visits[number] += 1
        for index in range(graph[number].start, graph[number].end):
            values[index] = value
            value = min(value, _limit(facts[index], counter, size))
            value = min(value + (counter in _counted_by(facts[index])), size)
        for successor in graph[number].successors:
            if value > starts[successor]:
                starts[successor] = value if visits[successor] <= _VISITS else size
                todo += [] if successor in todo else [successor]
    return values


def _limit(fact: Facts, counter: str, otherwise: int) -> int:
    return fact.limits.get(counter, fact.limits.get("all", otherwise))


def _wait(
    instructions: Sequence[MachineInstruction],
    facts: Sequence[Facts],
    graph: Sequence[Block],
    index: int,
    counter: str,
    values: Mapping[str, Sequence[int]],
) -> Wait:
    at_most = facts[index].limits[counter]
    of = [name for name in values if counter in (name, "all")]
    count = sum(max(values[name][index] - at_most, 0) for name in of)
    left = at_most
    for distance, before in enumerate(_backwards(graph, index), start=1) if count else ():
        if _counted_by(facts[before]) & {*of}:
            if not left:
                return Wait(instructions[index], counter, at_most, instructions[before], count, distance)
            left -= 1
    return Wait(instructions[index], counter, at_most, None, 0, None)


def _backwards(graph: Sequence[Block], index: int) -> Iterator[int]:
    """The instructions before one, from the last to the first, each loop as often as a counter may count."""
    number = next(i for i, block in enumerate(graph) if block.start <= index < block.end)
    yield from reversed(range(graph[number].start, index))
    visits: dict[int, int] = {}
    while True:
        # An edge back to the head of a loop comes from the block with the largest number, inside of the loop.
        before = [i for i in graph[number].predecessors if visits.get(i, 0) < 64]
        if not before:
            return
        number = max(before, key=lambda i: (len(graph[i].loops), i))
        visits[number] = visits.get(number, 0) + 1
        yield from reversed(range(graph[number].start, graph[number].end))
