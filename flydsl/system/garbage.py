"""Control over Python's garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from flydsl.system.interrupts import finalizers_interrupted_afterwards

# A program that calls gc.freeze() freezes all objects: more than 100,000 if torch is loaded. Python 3.12 itself freezes
# the immortal ones that a full collection finds, some hundreds.
_FEWEST_FROZEN_BY_A_PROGRAM = 10_000


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause Python's garbage collector in the `with` block; also a decorator. New objects count as young afterwards.

    A compilation makes many objects, few of them in cycles. With the collector on, their number would start collections
    of every object of the process, which take a tenth of a second each if torch is loaded.
    """
    before = gc.get_threshold()
    with finalizers_interrupted_afterwards():
        # A threshold of 0 stops it, and leaves gc.disable() to other threads.
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
    """Make a few containers, upon which Python starts a collection that is due: here, where no Ctrl-C gets lost."""
    return [[i] for i in range(2)]


def move_to_oldest_generation() -> None:
    """Move all objects to the garbage collector's oldest generation without looking at them, as modules stay.

    Otherwise an import leaves so many new objects that the first call starts a collection of every object of the
    process. Does nothing if the program has frozen objects, which this would unfreeze.
    """
    if gc.get_freeze_count() < _FEWEST_FROZEN_BY_A_PROGRAM:
        gc.freeze()
        gc.unfreeze()
