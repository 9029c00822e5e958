"""FlyDSL's path of the enumerations that all targets have."""

from flydsl.expr.memory.atomics import AtomicOp
from flydsl.expr.memory.memory_order import AtomicOrdering, SyncScope

__all__ = ["AtomicOp", "AtomicOrdering", "SyncScope"]
