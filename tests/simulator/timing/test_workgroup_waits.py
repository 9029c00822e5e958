"""The waits of workgroups for each other, from when each of them comes to its signals."""

from __future__ import annotations

from flydsl.simulator.timing.signals import Signal
from flydsl.simulator.timing.workgroup_waits import Awaited, Course, Grid, Waits

FLAG = 0x1000


def giver(workgroup: int, address: int = FLAG) -> Signal:
    return Signal(workgroup, 0, 1, 1, gives=[address])


def waiter(workgroup: int, version: int = 1, address: int = FLAG) -> Signal:
    return Signal(workgroup, 0, 2, 2, needs=[(address, version)])


def waits(signals: list[list[Signal]], courses: list[Course], *, places: int = 8) -> Waits:
    """Of workgroups of one die that are all replayed."""
    count = len(signals)
    grid = Grid(count, 1, places, 10, dict(enumerate(signals)), dict(enumerate(courses)), range(count))
    return grid.waits()


def test_a_workgroup_that_comes_early_waits_and_ends_later() -> None:
    found = waits([[giver(0)], [waiter(1)]], [Course(0, 1000, [400], [500]), Course(0, 300, [100], [100])])
    assert found.of == {1: {0: Awaited(400, 0)}}
    assert found.end == 1000


def test_a_workgroup_that_comes_late_does_not_wait() -> None:
    found = waits([[giver(0)], [waiter(1)]], [Course(0, 600, [400], [500]), Course(0, 900, [501], [501])])
    assert not found.of
    assert found.end == 900


def test_all_wait_for_the_last_one_at_a_barrier() -> None:
    arrivals = [100, 700, 300]
    signals = [[giver(w), waiter(w, version=3)] for w in range(3)]
    courses = [Course(0, at + 50, [at, at + 10], [at + 5, at + 10]) for at in arrivals]
    found = waits(signals, courses)
    assert found.of == {0: {1: Awaited(595, 1)}, 2: {1: Awaited(395, 1)}}
    assert found.end == 750


def test_a_chain_adds_the_waits_of_its_links() -> None:
    flags = [FLAG + 4 * w for w in range(5)]
    signals = [[giver(0, flags[0])]]
    signals += [[waiter(w, address=flags[w - 1]), Signal(w, 0, 3, 3, gives=[flags[w]])] for w in range(1, 5)]
    courses = [Course(0, 200, [100], [150]), *[Course(0, 200, [50, 100], [50, 150])] * 4]
    found = waits(signals, courses)
    assert [found.of[w][0].cycles for w in range(1, 5)] == [100, 200, 300, 400]
    assert [found.of[w][0].workgroup for w in range(1, 5)] == [0, 1, 2, 3]
    assert found.end == 600


def test_a_workgroup_without_a_place_starts_when_one_ends() -> None:
    found = waits([[], [giver(1)], [waiter(2)]], [Course(0, 500, [], []), *[Course(0, 100, [50], [50])] * 2], places=1)
    assert not found.of
    assert found.end == 500 + 10 + 100 + 10 + 100


def test_who_waits_for_a_workgroup_without_a_place_waits_without_end() -> None:
    found = waits([[waiter(0)], [giver(1)]], [Course(0, 100, [50], [50])] * 2, places=1)
    assert found.endless == 1
