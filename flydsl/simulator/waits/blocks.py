"""Basic blocks of a listing, all of its functions together."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from flydsl.simulator.waits.instructions import RETURNS, Facts


@dataclass(frozen=True)
class Block:
    """Instructions start to end - 1, which run one after the other. successors: the blocks that may follow."""

    start: int
    end: int
    successors: tuple[int, ...]


def blocks_of(facts: Sequence[Facts], labels: Mapping[str, int]) -> list[Block]:
    """The blocks, in the order of the listing."""
    count = len(facts)
    behind = {fact.index + 1 for fact in facts if fact.targets or not fact.falls_through or fact.is_call}
    starts = sorted(i for i in {0, *labels.values(), *behind} if i < count)
    number = {start: i for i, start in enumerate(starts)}
    found = []
    for start, end in zip(starts, [*starts[1:], count], strict=True):
        last = facts[end - 1]
        following = [*last.targets, *([end] if last.falls_through else [])]
        successors = dict.fromkeys(number[place] for place in following if place < count)
        found.append(Block(start, end, tuple(successors)))
    return found if count else []


_ADDRESS = re.compile(r"([A-Za-z_$][\w.$]*)@(?:rel32|rel64|gotpcrel|abs)")


@dataclass(frozen=True)
class Functions:
    """The functions of a listing that its own code calls. entries: their first blocks; returns: the blocks in which
    they return; instructions: theirs. Nothing in them of a listing that calls none, or only what is elsewhere."""

    entries: frozenset[int]
    returns: frozenset[int]
    instructions: frozenset[int]


def functions_of(facts: Sequence[Facts], blocks: Sequence[Block], labels: Mapping[str, int]) -> Functions:
    """The functions. One is known by its address, which code must mention to call it."""
    if not any(fact.is_call for fact in facts):
        return Functions(frozenset(), frozenset(), frozenset())
    mentioned = {name for fact in facts if "@" in fact.text for name in _ADDRESS.findall(fact.text)}
    places = {labels[name] for name in mentioned if name in labels}
    entries = {i for i, block in enumerate(blocks) if block.start in places}
    body, todo = set(entries), list(entries)
    while todo:
        following = set(blocks[todo.pop()].successors) - body
        body |= following
        todo += following
    returns = {i for i in body if facts[blocks[i].end - 1].mnemonic in RETURNS}
    instructions = {index for i in body for index in range(blocks[i].start, blocks[i].end)}
    return Functions(frozenset(entries), frozenset(returns), frozenset(instructions))


def function_entries_of(facts: Sequence[Facts], blocks: Sequence[Block], labels: Mapping[str, int]) -> frozenset[int]:
    """The entries that are not of kernels: of functions that code here calls, and of those that return, and never end
    a wave."""
    found = set(functions_of(facts, blocks, labels).entries)
    for entry in entries_of(blocks, labels):
        ends = {facts[blocks[i].end - 1].mnemonic for i in _reached_from([entry], blocks)}
        if not ends.isdisjoint(RETURNS) and "s_endpgm" not in ends:
            found.add(entry)
    return frozenset(found)


def _reached_from(entries: Collection[int], blocks: Sequence[Block]) -> set[int]:
    body, todo = set(entries), list(entries)
    while todo:
        following = set(blocks[todo.pop()].successors) - body
        body |= following
        todo += following
    return body


def entries_of(blocks: Sequence[Block], labels: Mapping[str, int]) -> list[int]:
    """The blocks in which a path begins: the first one, and those of kernels and functions, whose labels are global."""
    places = {0, *(index for label, index in labels.items() if not label.startswith("."))}
    return [i for i, block in enumerate(blocks) if block.start in places]
