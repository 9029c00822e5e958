"""The number of stages of the compiler, in texts that say how far it has come."""

from __future__ import annotations

from flydsl.arch import DEFAULT_ARCH
from flydsl.compiler.stages import stages

STAGE_COUNT = len(stages(DEFAULT_ARCH))
