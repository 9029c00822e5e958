"""Reads of LDS that come before a load straight to LDS has brought its data, or before other waves know that it has.

Which bytes a read of LDS is about, a listing does not tell. So loads are only found of which no read can be in time:

- those under way at a read, in a listing where no such load has completed before any read;
- those under way at a barrier and waited for after it, in a listing where no such load has completed before a barrier
  that a read follows, and where nothing else is stored to LDS that the barriers could be for.

Any other one may bring a tile that is not read yet, or only by its own wave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from flydsl.simulator.isa.operations import writes_lds
from flydsl.simulator.waits.flow import Flow, Key, Snapshot
from flydsl.simulator.waits.instructions import Facts

_ARRIVALS = ("s_barrier", "s_barrier_signal", "s_barrier_signal_isfirst")

Place = tuple[int, bool]
"""A load that has completed, by its index, and whether its wave has met a barrier since."""

Carried = tuple[Key, int, int]
"""A load that is under way at a barrier, the first such barrier, and the count that would let it go there."""


@dataclass(frozen=True)
class EarlyLdsRead:
    """A load to LDS and the first of the reads that come too early for it. key: of the load.

    barrier: the first one that its wave arrives at before it has completed; None if there is none in between.
    enough: the largest count of a wait before that barrier, or the read, that would let it go.
    waited: whether its own wave has waited for it before the read, and only the others do not know.
    """

    read: int
    key: Key
    barrier: int | None
    enough: int
    waited: bool


def early_lds_reads(flow: Flow) -> list[EarlyLdsRead]:
    """The loads of a listing that every read comes too early for."""
    loads = {fact.index for fact in flow.facts if writes_lds(fact.kind)}
    if not loads:
        return []
    snapshots = {snapshot.index: snapshot for snapshot in flow.snapshots()}
    completed = _completed(flow, snapshots, loads)
    carried = _carried(flow, snapshots, loads)
    at_reads = {place for places in completed.values() for place in places}
    if not at_reads:
        return list(_under_way(flow, snapshots, loads, carried))
    stores = any(fact.kind == "LDS" and not fact.writes for fact in flow.facts)
    if stores or any(met for _, met in at_reads):
        return []
    return list(_behind_barriers(completed, carried))


def _is_read(fact: Facts) -> bool:
    return fact.kind == "LDS" and bool(fact.writes)


def _carried(flow: Flow, snapshots: Mapping[int, Snapshot], loads: set[int]) -> dict[int, Carried]:
    """The loads that are under way at a barrier."""
    found: dict[int, Carried] = {}
    for snapshot in snapshots.values():
        if flow.facts[snapshot.index].mnemonic not in _ARRIVALS:
            continue
        for key, under_way in snapshot.state.items():
            if key.instruction in loads:
                found.setdefault(key.instruction, (key, snapshot.index, flow.enough(key, under_way)))
    return found


def _under_way(
    flow: Flow, snapshots: Mapping[int, Snapshot], loads: set[int], carried: Mapping[int, Carried]
) -> Iterator[EarlyLdsRead]:
    """The loads that are under way at a read, each with the first one."""
    reads: dict[Key, tuple[int, int]] = {}
    for snapshot in snapshots.values():
        if _is_read(flow.facts[snapshot.index]):
            for key, under_way in snapshot.state.items():
                if key.instruction in loads:
                    found = snapshot.index, flow.enough(key, under_way)
                    reads[key] = min(reads.get(key, found), found)
    for key, (index, enough) in reads.items():
        _, barrier, before = carried.get(key.instruction, (key, None, enough))
        yield EarlyLdsRead(index, key, barrier, before, False)


def _behind_barriers(
    completed: Mapping[int, frozenset[Place]], carried: Mapping[int, Carried]
) -> Iterator[EarlyLdsRead]:
    """The loads that are waited for only after a barrier, each with the first read after that."""
    for load, (key, barrier, enough) in carried.items():
        reads = [index for index, places in completed.items() if (load, False) in places]
        if reads:
            yield EarlyLdsRead(min(reads), key, barrier, enough, True)


def _completed(flow: Flow, snapshots: Mapping[int, Snapshot], loads: set[int]) -> dict[int, frozenset[Place]]:
    """At every read of LDS that some path reaches, the loads that have completed before it on some path."""
    starts = [frozenset[Place]() if block.start in snapshots else None for block in flow.blocks]
    found: dict[int, frozenset[Place]] = {}
    todo = [i for i, start in enumerate(starts) if start is not None]
    while todo:
        number = todo.pop(0)
        there = set(starts[number] or ())
        for index in range(flow.blocks[number].start, flow.blocks[number].end):
            fact = flow.facts[index]
            if _is_read(fact):
                found[index] = frozenset(there)
            if fact.mnemonic in _ARRIVALS:
                there = {(load, True) for load, _ in there}
            let_go = {key.instruction for key in snapshots[index].let_go} & loads
            if let_go or index in loads:
                there = {(load, met) for load, met in there if load not in let_go and load != index}
                there |= {(load, False) for load in let_go}
        for successor in flow.blocks[number].successors:
            before = starts[successor]
            if before is not None and not there <= before:
                starts[successor] = before | there
                todo.append(successor)
    return found
