"""fly-rocdl-cluster-attr: cluster dimensions of a launch as a kernel attribute for the backend (gfx1250).

Launches have no cluster dimensions yet, so the pass changes nothing.
"""

from __future__ import annotations

from mlir import ir

from flydsl.arch import Arch

name = "fly-rocdl-cluster-attr"


def apply(module: ir.Operation, arch: Arch) -> None:
    """Nothing to attach before launches have clusters."""
