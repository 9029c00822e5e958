"""The order in which a thread's workgroups in execution continue."""

from __future__ import annotations

from collections.abc import Iterator

from flydsl.simulator.native.group import WorkgroupSlot


class Turns:
    """Groups that take turns: every second turn goes to the group that came first, the others share the rest.

    A workgroup may wait for one that starts later, so all of them get turns. But where one never ends, the ones after
    it probably do not either: with equal shares it would take as many times longer to find out as there are groups.

    waiting: the turns since the last one in which a group did more than wait for memory.
    """

    def __init__(self, *groups: WorkgroupSlot) -> None:
        self._groups = list(groups)
        self._is_firsts_turn = False
        self._other = 0
        self.waiting = 0

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[WorkgroupSlot]:
        return iter(self._groups)

    def next(self) -> WorkgroupSlot | None:
        """The group whose turn it is; None if none is left."""
        self._is_firsts_turn = not self._is_firsts_turn
        if not self._groups:
            return None
        if self._is_firsts_turn or len(self._groups) == 1:
            return self._groups[0]
        self._other = self._other % (len(self._groups) - 1) + 1
        return self._groups[self._other]

    def add(self, group: WorkgroupSlot) -> None:
        self._groups.append(group)

    def remove(self, group: WorkgroupSlot) -> None:
        self._groups.remove(group)
