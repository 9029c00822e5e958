"""When Python looks for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Look for no garbage meanwhile. What was made is looked at afterwards, as what is young.

    Also a decorator, but of nothing that calls the user's code: tracebacks show it.

    A compilation makes many objects, and few that only a collector finds. Looking meanwhile, Python decides that there
    is much to look at, and looks at every object of the process: a tenth of a second where torch is loaded.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
