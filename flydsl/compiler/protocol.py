"""How types of the DSL lie in memory."""

from __future__ import annotations

from flydsl.expr.names import unknown_name
from flydsl.expr.struct import align_of as dsl_align_of
from flydsl.expr.struct import size_of as dsl_size_of

__all__ = ["dsl_align_of", "dsl_size_of"]

__getattr__ = unknown_name(__name__, globals())
