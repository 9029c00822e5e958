"""The architecture that the kernel being traced is compiled for."""

from __future__ import annotations

import re

from mlir import ir


def target_name() -> str | None:
    """The name of the architecture, from the `gpu.module` around the insertion point; None outside of one."""
    try:
        op = ir.InsertionPoint.current.block.owner
    except ValueError:
        return None
    while op is not None:
        if op.operation.name == "gpu.module" and "targets" in op.attributes:
            found = re.search(r'chip = "(\w+)"', str(op.attributes["targets"]))
            return found[1] if found else None
        op = op.parent
    return None
