"""The order in which accesses of memory are seen, and by whom: LLVM's orderings and scopes."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from mlir import ir

from flydsl.dialect.elements import element_bits, element_type
from flydsl.dialect.location import argument_error
from flydsl.dialect.types import PointerType

__all__ = ["AtomicOrdering", "SyncScope"]


class AtomicOrdering(IntEnum):
    """The order of an access with the others, by LLVM's names and numbers."""

    NotAtomic = 0
    Unordered = 1
    Monotonic = 2
    Acquire = 4
    Release = 5
    AcqRel = 6
    SeqCst = 7


class SyncScope:
    """The threads that see accesses in that order: all, or this one. `fx.rocdl.SyncScope` has those of the GPU."""

    System = ""
    SingleThread = "singlethread"


_SCOPES = frozenset({
    "", "singlethread", "agent", "workgroup", "wavefront", "one-as", "agent-one-as", "workgroup-one-as",
    "wavefront-one-as", "singlethread-one-as",
})  # fmt: skip
LOADS = (AtomicOrdering.Unordered, AtomicOrdering.Monotonic, AtomicOrdering.Acquire, AtomicOrdering.SeqCst)
STORES = (AtomicOrdering.Unordered, AtomicOrdering.Monotonic, AtomicOrdering.Release, AtomicOrdering.SeqCst)
FENCES = (AtomicOrdering.Acquire, AtomicOrdering.Release, AtomicOrdering.AcqRel, AtomicOrdering.SeqCst)
UPDATES = (AtomicOrdering.Monotonic, *FENCES)


def scope_name(syncscope: Any) -> str:
    """LLVM's name of a scope; None, "" and "system" are all threads of all devices."""
    name = "" if syncscope is None else str(getattr(syncscope, "value", syncscope))
    name = "" if name == "system" else name
    if name not in _SCOPES:
        known = ", ".join(sorted(_SCOPES - {""}))
        raise argument_error(f"there is no syncscope {syncscope!r}", f"there are system, {known}")
    return name


def ordering_number(what: str, ordering: Any, allowed: tuple[AtomicOrdering, ...] = UPDATES) -> int:
    """LLVM's number of an ordering, given by itself or by its name. Raises ArgumentError if it is none of `allowed`."""
    try:
        found = AtomicOrdering(int(ordering))
    except (TypeError, ValueError):
        names = {member.name.lower(): member for member in AtomicOrdering}
        found = names.get(str(ordering).replace("_", "").lower(), AtomicOrdering.NotAtomic)
    if found not in allowed:
        known = ", ".join(f"fx.AtomicOrdering.{member.name}" for member in allowed)
        raise argument_error(f"{what} with ordering {ordering!r}", f"it takes {known}")
    return int(found)


def extra_alignment(kind: PointerType) -> dict[str, ir.Attribute]:
    """The attribute of an atomic at a pointer that is aligned to more than its element has bytes; else none."""
    if kind.alignment is None or kind.alignment * 8 <= element_bits(kind.element):
        return {}
    return {"alignment": ir.IntegerAttr.get(element_type("i64"), kind.alignment)}
