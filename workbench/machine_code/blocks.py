"""Basic blocks, how control flows between them, and the loops it makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.machine_code.instructions import MachineInstruction


@dataclass(frozen=True)
class Block:
    """Instructions start to end - 1, which run one after the other.

    label: "" if no branch leads to it. successors, predecessors: blocks by number. loops: the numbers of the header
    blocks of the loops that contain it, outermost first.
    """

    label: str
    start: int
    end: int
    successors: tuple[int, ...]
    predecessors: tuple[int, ...]
    loops: tuple[int, ...]


def blocks(instructions: Sequence[MachineInstruction]) -> tuple[Block, ...]:
    """The control-flow graph of a function; its entry is block 0."""
    if not instructions:
        return ()
    starts = _starts(instructions)
    ends = [*starts[1:], len(instructions)]
    number = {start: i for i, start in enumerate(starts)}
    labels = {label: number[i.index] for i in instructions for label in i.labels}
    successors = [_successors(instructions[end - 1], i, len(starts), labels) for i, end in enumerate(ends)]
    predecessors = [tuple(i for i, to in enumerate(successors) if block in to) for block in range(len(starts))]
    loops = _loops(successors, predecessors)
    return tuple(
        Block(next(iter(instructions[start].labels), ""), start, end, successors[i], predecessors[i], loops[i])
        for i, (start, end) in enumerate(zip(starts, ends, strict=True))
    )


def _starts(instructions: Sequence[MachineInstruction]) -> list[int]:
    after = {i.index + 1 for i in instructions if i.target is not None or i.ends_path}
    labelled = {i.index for i in instructions if i.labels}
    return sorted(index for index in {0} | labelled | after if index < len(instructions))


def _successors(last: MachineInstruction, block: int, count: int, labels: dict[str, int]) -> tuple[int, ...]:
    found = [] if last.ends_path or block + 1 == count else [block + 1]
    if last.target in labels:
        found.append(labels[last.target])
    return tuple(dict.fromkeys(found))


def _loops(successors: Sequence[tuple[int, ...]], predecessors: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Natural loops: an edge to a block that dominates where it comes from closes one."""
    dominators = _dominators(successors, predecessors)
    bodies: dict[int, set[int]] = {}
    for block, targets in enumerate(successors):
        for head in targets:
            if head in dominators[block]:
                bodies.setdefault(head, {head}).update(_body(head, block, predecessors))
    return [
        tuple(sorted((head for head, body in bodies.items() if block in body), key=lambda head: -len(bodies[head])))
        for block in range(len(successors))
    ]


def _body(head: int, tail: int, predecessors: Sequence[tuple[int, ...]]) -> set[int]:
    """The blocks from which `tail` is reached without passing `head`."""
    body, waiting = {head}, [tail]
    while waiting:
        block = waiting.pop()
        if block not in body:
            body.add(block)
            waiting += predecessors[block]
    return body


def _dominators(successors: Sequence[tuple[int, ...]], predecessors: Sequence[tuple[int, ...]]) -> list[set[int]]:
    """Per block, the blocks on every path from the entry to it; empty for blocks that no path reaches."""
    reachable = _reachable(successors)
    dominators = [{0}] + [set(reachable) for _ in successors[1:]]
    changed = True
    while changed:
        changed = False
        for block in sorted(reachable - {0}):
            incoming = [dominators[p] for p in predecessors[block] if p in reachable]
            found = set.intersection(*incoming) | {block}
            if found != dominators[block]:
                dominators[block], changed = found, True
    return [found if block in reachable else set() for block, found in enumerate(dominators)]


def _reachable(successors: Sequence[tuple[int, ...]]) -> set[int]:
    found, waiting = set(), [0]
    while waiting:
        block = waiting.pop()
        if block not in found:
            found.add(block)
            waiting += successors[block]
    return found
