"""The float environment of the host's thread during simulation: that of IEEE 754.

Rounding mode, and whether denormals are flushed, are the thread's; torch.set_flush_denormal and libraries that were
compiled with -ffast-math change them. Simulated waves have modes of their own.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np

_ENVIRONMENT_BYTES = 64  # no fenv_t is larger


@cache
def _library() -> tuple[ctypes.CDLL, ctypes.c_void_p]:
    """The C library, and its FE_DFL_ENV."""
    library = ctypes.CDLL(None)
    if sys.platform == "darwin":
        return library, ctypes.c_void_p(ctypes.addressof(ctypes.c_byte.in_dll(library, "_FE_DFL_ENV")))
    return library, ctypes.c_void_p(-1)


@contextmanager
def ieee_floats() -> Iterator[None]:
    """Compute with the default float environment, and without warnings, in this thread."""
    library, default = _library()
    before = ctypes.create_string_buffer(_ENVIRONMENT_BYTES)
    library.fegetenv(before)
    library.fesetenv(default)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        library.fesetenv(before)
