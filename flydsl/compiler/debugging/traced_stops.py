"""`breakpoint()` in a kernel that is traced: it says that values have no numbers there, and where they have."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from flydsl.expr.tracing.breakpoints import breakpoints_call

_MESSAGE = (
    "breakpoint() while a kernel is traced: its values have no numbers yet; put `with flydsl.interpreting():` around "
    "the launch, or set FLYDSL_INTERPRET=1, to stop with those of all lanes"
)


def explaining_breakpoints() -> AbstractContextManager[None]:
    """Say so where `breakpoint()` starts Python's own pdb in the `with` block. Other debuggers are left alone."""
    return nullcontext() if _is_replaced() else breakpoints_call(_stop)


def _is_replaced() -> bool:
    """True if `pdb.set_trace` is another's, such as pytest's, which gives the terminal back first."""
    loaded = sys.modules.get("pdb")
    return loaded is not None and loaded.set_trace.__module__ != "pdb"


def _stop(*args: Any, **options: Any) -> None:
    import pdb

    print(_MESSAGE, file=sys.stderr)
    pdb.Pdb().set_trace(sys._getframe(1))
