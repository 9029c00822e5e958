"""Operations under way before each instruction, along every path of control.

An operation is under way from its instruction until every stream that counts it has let it go. For each there is an
interval: at least and at most so many younger ones of its stream have been issued, on some path. A wait until at most n
are under way lets those go that have at least n younger ones on every path.

A call goes on in any function of the listing, and behind itself with what a function leaves: what the caller had under
way of its own, and what the functions have started. One that is elsewhere is taken to wait for everything, as LLVM's
functions do when they are entered and before they return (LLVM, SIInsertWaitcnts.cpp).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from flydsl.arch import Arch
from flydsl.arch.wait_counters import wait_counters
from flydsl.hsaco.listing import Listing
from flydsl.simulator.waits.blocks import Block, blocks_of, entries_of, functions_of
from flydsl.simulator.waits.instructions import Facts, facts_of

_VISITS = 3
"""The visits of a block after which the upper end of an interval that still grows is given up."""


class Key(NamedTuple):
    """An operation, by the index of its instruction, and the number of a stream that counts it."""

    instruction: int
    stream: int


class UnderWay(NamedTuple):
    """least, most: younger operations of the stream. always: it is under way on every path.

    wait: the last wait for the counter that did not let it go: its index, and the count that would have.
    """

    least: int
    most: int
    always: bool
    wait: tuple[int, int] | None = None


State = dict[Key, UnderWay]


class Use(NamedTuple):
    """An instruction that uses registers too early. key: the operation; writes: it overwrites them."""

    instruction: int
    key: Key
    under_way: UnderWay
    registers: int
    writes: bool


@dataclass(frozen=True)
class Snapshot:
    """A state before an instruction, and the operations that the instruction lets go, if it is a wait."""

    index: int
    state: State
    let_go: tuple[Key, ...]


class Flow:
    """The flow of a listing's operations. facts: of each instruction; uses: those that come too early on some path."""

    def __init__(self, listing: Listing, arch: Arch, facts: Sequence[Facts] | None = None) -> None:
        self.facts = facts_of(listing, arch) if facts is None else facts
        self.counters = wait_counters(arch)
        self.streams = self.counters.all_streams
        self._number = {stream: i for i, stream in enumerate(self.streams)}
        self._sizes = [self.counters.sizes[stream.counter] for stream in self.streams]
        self.blocks = blocks_of(self.facts, listing.labels)
        self._functions = functions_of(self.facts, self.blocks, listing.labels)
        self._starts = self._solved(entries_of(self.blocks, listing.labels))
        self.uses: list[Use] = []
        for block, start in self._reached():
            self._follow(block, start, self.uses.append)

    def snapshots(self) -> Iterator[Snapshot]:
        """The state before every instruction that some path reaches, in the order of blocks."""
        for block, start in self._reached():
            found: list[tuple[int, State]] = []
            end = self._follow(block, start, at=_recorder(found))
            found.append((block.end, end))
            for (index, state), (_, after) in pairwise(found):
                is_wait = bool(self.facts[index].limits)
                yield Snapshot(index, state, tuple(key for key in state if key not in after) if is_wait else ())

    def counter_of(self, key: Key) -> str:
        """The counter that the operation is under way by."""
        return self.streams[key.stream].counter

    def enough(self, key: Key, under_way: UnderWay) -> int:
        """The largest count that a wait here may have to let the operation go."""
        return under_way.least if self.streams[key.stream].in_order else 0

    def _reached(self) -> Iterator[tuple[Block, State]]:
        for block, start in zip(self.blocks, self._starts, strict=True):
            if start is not None:
                yield block, start

    def _solved(self, entries: Sequence[int]) -> list[State | None]:
        """The state at the start of each block; None where no path goes."""
        states: list[State | None] = [{} if i in entries else None for i in range(len(self.blocks))]
        visits, todo = [0] * len(self.blocks), sorted(entries)
        left: State | None = None if self._functions.returns else {}  # by the functions that have returned
        called: dict[int, State] = {}  # the states of callers
        while todo:
            number = todo.pop(0)
            visits[number] += 1
            block = self.blocks[number]
            end = self._follow(block, states[number] or {})
            flows = [(successor, end) for successor in block.successors]
            if self.facts[block.end - 1].is_call:
                called[number] = end
                flows = [(entry, end) for entry in self._functions.entries] + self._behind(number, end, left)
            elif number in self._functions.returns:
                joined = _joined(left, end, gives_up=visits[number] > _VISITS)
                left = left if joined is None else joined
                flows = [flow for caller, state in called.items() for flow in self._behind(caller, state, left)]
            for successor, state in flows:
                joined = _joined(states[successor], state, gives_up=visits[number] > _VISITS)
                if joined is not None:
                    states[successor] = joined
                    if successor not in todo:
                        todo.append(successor)
        return states

    def _behind(self, caller: int, before: State, left: State | None) -> list[tuple[int, State]]:
        """The block behind a call, and the state there, of what functions leave; nothing before one has returned."""
        if left is None:
            return []
        own = self._functions.instructions
        state = {key: one for key, one in left.items() if key in before or key.instruction in own}
        return [(successor, state) for successor in self.blocks[caller].successors]

    def _follow(
        self,
        block: Block,
        start: State,
        on_use: Callable[[Use], None] | None = None,
        at: Callable[[int, State], None] | None = None,
    ) -> State:
        """The state after a block. on_use: is told of uses that come too early; at: of the state before each one."""
        state, facts = dict(start), self.facts
        waited_for = self._registers(state)
        for index in range(block.start, block.end):
            fact = facts[index]
            if at is not None:
                at(index, state)
            if (fact.reads | fact.writes) & waited_for:
                for use in self._early(fact, state):
                    del state[use.key]
                    if on_use is not None:
                        on_use(use)
                waited_for = self._registers(state)
            if fact.streams or fact.limits:
                self._pass(fact, state)
                waited_for = self._registers(state)
        return state

    def _registers(self, state: State) -> int:
        """The registers that operations under way will write."""
        found = 0
        for key in state:
            found |= self.facts[key.instruction].results
        return found

    # --- one instruction

    def _early(self, fact: Facts, state: State) -> list[Use]:
        """The operations whose registers the instruction reads or overwrites while they are under way."""
        found = []
        for key, under_way in state.items():
            results = self.facts[key.instruction].results
            if self._is_other_half(fact, key):
                continue
            if fact.reads & results:
                found.append(Use(fact.index, key, under_way, fact.reads & results, False))
            elif fact.writes & results and not self._replaces_in_order(fact, key):
                found.append(Use(fact.index, key, under_way, fact.writes & results, True))
        return found

    def _replaces_in_order(self, fact: Facts, key: Key) -> bool:
        """True for a load into registers of another load of the same stream, if both write in the order of issue."""
        stream = self.streams[key.stream]
        writes_in_order = self.counters.loads_write_in_order or stream.name != "vector"
        return stream.in_order and writes_in_order and fact.streams == (stream,) and bool(fact.results)

    def _is_other_half(self, fact: Facts, key: Key) -> bool:
        """True for a load into one half of registers, or a store of it, of which another load writes the other one."""
        other = self.facts[key.instruction]
        return "" not in (fact.half, other.half) and fact.half != other.half

    def _pass(self, fact: Facts, state: State) -> None:
        """Change a state as an instruction does that starts an operation, or waits."""
        for counter, most in fact.limits.items():
            self._wait(fact.index, counter, most, state)
        for stream in (*fact.streams, *((fact.besides,) if fact.besides else ())):
            self._count(self._number[stream], state)
        for stream in fact.streams:
            state[Key(fact.index, self._number[stream])] = UnderWay(0, 0, True)

    def _count(self, number: int, state: State) -> None:
        """One more operation of a stream is issued: those before it get older, and the oldest have made room for it."""
        if not self.streams[number].in_order:
            return
        size = self._sizes[number]
        for key in [key for key in state if key.stream == number]:
            least, most, always, wait = state[key]
            if least + 1 >= size:
                del state[key]
            else:
                state[key] = UnderWay(least + 1, min(most + 1, size), always, wait)

    def _wait(self, index: int, counter: str, most: int, state: State) -> None:
        for key in list(state):
            stream = self.streams[key.stream]
            if counter not in (stream.counter, "all"):
                continue
            under_way = state[key]
            if most == 0 or (stream.in_order and under_way.least >= most):
                del state[key]
            else:
                state[key] = under_way._replace(wait=(index, self.enough(key, under_way)))


def _recorder(found: list[tuple[int, State]]) -> Callable[[int, State], None]:
    return lambda index, state: found.append((index, dict(state)))


def _joined(before: State | None, other: State, *, gives_up: bool) -> State | None:
    """The state where another path joins; None if it is as before. gives_up: intervals grow to no end."""
    if before is None:
        return dict(other)
    found = {key: _both(before.get(key), other.get(key)) for key in before.keys() | other.keys()}
    if gives_up:
        found = {key: value._replace(most=1 << 16) if value.most != _most(before, key) else value
                 for key, value in found.items()}  # fmt: skip
    same = found.keys() == before.keys() and all(found[key][:3] == before[key][:3] for key in found)
    return None if same else found


def _both(one: UnderWay | None, other: UnderWay | None) -> UnderWay:
    if one is None or other is None:
        known = one or other
        assert known is not None
        return known._replace(always=False)
    weaker = one if one.least <= other.least else other
    return UnderWay(weaker.least, max(one.most, other.most), one.always and other.always, weaker.wait)


def _most(state: Mapping[Key, UnderWay], key: Key) -> int:
    return state[key].most if key in state else -1
