"""The float environment of the host's thread during simulation: that of IEEE 754.

Rounding mode, and whether denormals are flushed, are the thread's; torch.set_flush_denormal and libraries that were
compiled with -ffast-math change them. Simulated waves have modes of their own.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import ContextDecorator
from functools import cache
from typing import Any

import numpy as np

_ENVIRONMENT_BYTES = 64  # no fenv_t is larger


@cache
def _library() -> tuple[ctypes.CDLL, ctypes.c_void_p]:
    """The C library, and its FE_DFL_ENV."""
    library = ctypes.CDLL(None)
    if sys.platform == "darwin":
        return library, ctypes.c_void_p(ctypes.addressof(ctypes.c_byte.in_dll(library, "_FE_DFL_ENV")))
    return library, ctypes.c_void_p(-1)


class IeeeFloats(ContextDecorator):
    """Compute with the default float environment, and without warnings, in this thread.

    Every launch does, so this is a class: a generator takes as long again as what it does.
    """

    def _recreate_cm(self) -> IeeeFloats:
        """One of its own for each call of a function that it decorates (`contextlib.ContextDecorator`)."""
        return IeeeFloats()

    def __enter__(self) -> None:
        library, default = _library()
        self._before = ctypes.create_string_buffer(_ENVIRONMENT_BYTES)
        library.fegetenv(self._before)
        library.fesetenv(default)
        self._without_warnings = np.errstate(all="ignore")
        self._without_warnings.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._without_warnings.__exit__(*error)
        _library()[0].fesetenv(self._before)
