"""The target of a compilation, and the class that a compiler backend derives from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flydsl.expr.flydsl_names.names import unknown_name


@dataclass(frozen=True)
class GPUTarget:
    """A compilation target. backend: its name; arch: such as gfx942; warp_size: threads of a wave."""

    backend: str
    arch: str
    warp_size: int


class BaseBackend(ABC):
    """The stages that a launcher is compiled by, for one target. `register_backend` names it."""

    def __init__(self, target: GPUTarget) -> None:
        if not self.supports_target(target):
            raise ValueError(f"{type(self).__name__} does not support {target}")
        self.target = target

    @staticmethod
    @abstractmethod
    def supports_target(target: GPUTarget) -> bool:
        """True if the backend compiles for a target."""

    @staticmethod
    @abstractmethod
    def detect_target() -> GPUTarget:
        """The target of launches on CPU tensors."""

    @classmethod
    def make_target(cls, arch: str) -> GPUTarget:
        """The target of an architecture."""
        found = cls.detect_target()
        return GPUTarget(found.backend, arch, found.warp_size)

    @abstractmethod
    def pipeline_fragments(self, *, compile_hints: Mapping[str, Any]) -> list[str]:
        """The stages in order: names of ours, as RocmBackend lists them, or pipelines in MLIR's syntax."""

    @abstractmethod
    def gpu_module_targets(self) -> list[str]:
        """The attributes that name the target on a GPU module."""

    def hash(self) -> str:
        """A text that differs where compiled code may."""
        return str(self.target)


__getattr__ = unknown_name(__name__, globals())
