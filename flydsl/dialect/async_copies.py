"""Copies into LDS for which the program itself waits are marked, so that LLVM's back end adds no waits of its own.

The mark is an alias scope. LLVM's optimizer learns nothing from it, as no access is said to be outside of it; after
the optimizer `codegen.llvm_bugs.async_copies` says so of the accesses to LDS.
"""

from __future__ import annotations

from mlir import ir

_SCOPE = '#llvm.alias_scope<id = "flydsl.async_copies", domain = <id = "flydsl">>'


def mark() -> dict[str, ir.Attribute]:
    """The attributes of an operation that copies into LDS asynchronously."""
    return {"alias_scopes": ir.ArrayAttr.get([ir.Attribute.parse(_SCOPE)])}
