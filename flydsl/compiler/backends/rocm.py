"""The pipeline for AMD GPUs, under FlyDSL's name for it."""

from __future__ import annotations

from typing import ClassVar

from flydsl.arch import get_arch
from flydsl.compiler.stages import stages

__all__ = ["RocmBackend"]


class RocmBackend:
    """The compiler's stages for an architecture, as MLIR's pass pipeline syntax writes them.

    >>> RocmBackend("gfx942").pipeline_fragments()[0]
    'fly-rewrite-func-signature'
    """

    name: ClassVar[str] = "rocm"

    def __init__(self, arch: str) -> None:
        self.arch = get_arch(arch)

    def pipeline_fragments(self) -> list[str]:
        """All stages, in order."""
        return [spec.name for spec in stages(self.arch)]

    def _pipeline_parts(self) -> tuple[list[str], list[str], list[str]]:
        """The stages that lower the fly dialect, those that lower to LLVM, and those that make machine code."""
        specs = stages(self.arch)
        lowering, to_llvm, binary = ([spec.name for spec in specs if spec.phase == phase] for phase in "ABC")
        return lowering, to_llvm, binary
