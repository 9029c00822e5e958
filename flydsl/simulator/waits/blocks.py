"""Basic blocks of a listing, all of its functions together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flydsl.simulator.waits.instructions import Facts


@dataclass(frozen=True)
class Block:
    """Instructions start to end - 1, which run one after the other. successors: the blocks that may follow."""

    start: int
    end: int
    successors: tuple[int, ...]


def blocks_of(facts: Sequence[Facts], labels: Mapping[str, int]) -> list[Block]:
    """The blocks, in the order of the listing."""
    count = len(facts)
    behind = {fact.index + 1 for fact in facts if fact.targets or not fact.falls_through}
    starts = sorted(i for i in {0, *labels.values(), *behind} if i < count)
    number = {start: i for i, start in enumerate(starts)}
    found = []
    for start, end in zip(starts, [*starts[1:], count], strict=True):
        last = facts[end - 1]
        following = [*last.targets, *([end] if last.falls_through else [])]
        successors = dict.fromkeys(number[place] for place in following if place < count)
        found.append(Block(start, end, tuple(successors)))
    return found if count else []


def entries_of(blocks: Sequence[Block], labels: Mapping[str, int]) -> list[int]:
    """The blocks in which a path begins: the first one, and those of kernels and functions, whose labels are global."""
    places = {0, *(index for label, index in labels.items() if not label.startswith("."))}
    return [i for i, block in enumerate(blocks) if block.start in places]
