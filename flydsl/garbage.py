"""When Python looks for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Look for no garbage meanwhile; also a decorator. What was made is then looked at with all that is old.

    A compilation makes many objects, and next to none that only a collector finds. To find that out takes a tenth of a
    second where torch is loaded, as every object of the process is looked at.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # what the program itself has frozen stays so
            gc.freeze()
            gc.unfreeze()  # into the oldest generation
        gc.enable()
