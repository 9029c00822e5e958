"""Which workgroup of a thread goes on next."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

from flydsl.simulator.native.turns import Turns


def test_the_first_has_every_second_turn_and_the_others_share_the_rest() -> None:
    turns = _turns("abcd")
    shares = Counter(cast(Any, turns.next()) for _ in range(60))
    assert shares == {"a": 30, "b": 10, "c": 10, "d": 10}


def test_when_the_first_is_done_the_second_takes_its_place() -> None:
    turns = _turns("abc")
    turns.remove(cast(Any, "a"))
    assert Counter(cast(Any, turns.next()) for _ in range(20)) == {"b": 10, "c": 10}


def test_there_is_no_turn_when_all_are_done() -> None:
    turns = _turns("a")
    assert cast(Any, turns.next()) == "a"
    turns.remove(cast(Any, "a"))
    assert turns.next() is None


def _turns(groups: str) -> Turns:
    turns = Turns(cast(Any, groups[0]))
    for group in groups[1:]:
        turns.add(cast(Any, group))
    return turns
