"""Control over Python's garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from flydsl.system.interrupts import finalizers_interrupted_afterwards

# Whoever freezes, freezes all there is: more than 100,000 objects where torch is loaded. Python 3.12 itself freezes the
# immortal ones that a full collection comes across, some hundreds.
_FROZEN_BY_SOMEBODY = 10_000


@contextmanager
def collection_paused() -> Iterator[None]:
    """Look for no garbage meanwhile; also a decorator. What was made is looked at afterwards, as what is young.

    A compilation makes many objects, and few that only a collector finds. Looking meanwhile, Python decides that there
    is much to look at, and looks at every object of the process: a tenth of a second where torch is loaded.
    """
    before = gc.get_threshold()
    with finalizers_interrupted_afterwards():
        # A threshold of 0 stops it: gc.disable() stays another thread's to call meanwhile.
        gc.set_threshold(0, *before[1:])
        try:
            yield
        finally:
            try:
                _resume(before)
            except KeyboardInterrupt:  # it may have come before the threshold was set
                _resume(before)
                raise


def _resume(threshold: tuple[int, int, int]) -> None:
    if threshold[0] and not gc.get_threshold()[0]:
        gc.set_threshold(*threshold)
        _collect_what_is_due()


def _collect_what_is_due() -> list[list[int]]:
    """Make a few containers: Python starts a collection that is due when one is made, and here it loses no Ctrl-C."""
    return [[i] for i in range(2)]


def take_for_old() -> None:
    """Put all objects among the old ones, without looking at them: imported modules stay.

    Otherwise the import leaves Python with so many new objects that the first call has it look at every one of the
    process. Does nothing if the program has frozen objects, which would be unfrozen.
    """
    if gc.get_freeze_count() < _FROZEN_BY_SOMEBODY:
        gc.freeze()
        gc.unfreeze()
