"""The backend for AMD GPUs, under FlyDSL's name for it. Its stages are those of `flydsl.compiler.stages`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from flydsl.arch import get_arch
from flydsl.compiler.backends.base import BaseBackend, GPUTarget
from flydsl.compiler.stages import stages
from flydsl.runtime.device import target_arch

__all__ = ["RocmBackend"]


class RocmBackend(BaseBackend):
    """The compiler's stages for an architecture, as MLIR's pass pipeline syntax writes them.

    >>> backend = RocmBackend(RocmBackend.make_target("gfx942"))
    >>> backend.target.warp_size, backend.pipeline_fragments()[0]
    (64, 'fly-rewrite-func-signature')
    """

    name: ClassVar[str] = "rocm"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == RocmBackend.name

    @staticmethod
    def detect_target() -> GPUTarget:
        return RocmBackend.make_target(target_arch("cpu"))

    @classmethod
    def make_target(cls, arch: str) -> GPUTarget:
        found = get_arch(arch)
        return GPUTarget(RocmBackend.name, found.name, found.wave_size)

    def pipeline_fragments(self, *, compile_hints: Mapping[str, Any] | None = None) -> list[str]:
        """All stages, in order. Hints are attributes of kernels and options of LLVM here, not of stages."""
        lowering, binary = self._pipeline_parts(compile_hints=compile_hints)
        return [*lowering, binary]

    def external_binary_pipeline_fragments(
        self, *, compile_hints: Mapping[str, Any] | None = None
    ) -> tuple[list[str], str]:
        """The stages up to LLVM's dialect, and the one that makes machine code."""
        return self._pipeline_parts(compile_hints=compile_hints)

    def _pipeline_parts(self, *, compile_hints: Mapping[str, Any] | None = None) -> tuple[list[str], str]:
        *lowering, binary = [spec.name for spec in stages(get_arch(self.target.arch))]
        return lowering, binary

    def gpu_module_targets(self) -> list[str]:
        return [f'#rocdl.target<chip = "{self.target.arch}">']

    def native_lib_patterns(self) -> list[str]:
        """Names of shared libraries that compiled code depends on: none, there is no C++ build."""
        return []

    def jit_runtime_lib_basenames(self) -> list[str]:
        """Names of shared libraries that a launch loads: none."""
        return []
