"""Launches of kernels: the launchers of `flydsl.launchers`, for a number of waves per SIMD."""

from __future__ import annotations

from typing import Any

from flydsl.launchers import chosen, flat, launch_flat, launch_some, launcher, tuned

__all__ = ["chosen", "flat", "for_waves", "launch_flat", "launch_some", "launcher", "tuned"]


def for_waves(count: int | None) -> dict[str, Any]:
    """The attribute that has registers allocated for `count` waves per SIMD; None for the compiler's choice."""
    return {"rocdl.waves_per_eu": count}
