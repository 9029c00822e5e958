"""The AMD GPU of this machine: its architecture, and how many there are."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import lru_cache

from flydsl import env
from flydsl.arch import ARCHS, DEFAULT_ARCH, get_arch
from flydsl.atoms.instruction_sets import FROM_CDNA3, GFX12
from flydsl.errors import ArchError, DeviceError

_ENUMERATION_S = 30


def get_rocm_arch(timeout_s: float = _ENUMERATION_S) -> str:
    """The GPU's architecture: `FLYDSL_GPU_ARCH`, `HSA_OVERRIDE_GFX_VERSION`, `rocm_agent_enumerator`, else gfx942.

    timeout_s: how long the enumerator may take.
    """
    return arch_from_environment() or _enumerated_arch(timeout_s) or DEFAULT_ARCH.name


def arch_from_environment() -> str | None:
    """The value of `FLYDSL_GPU_ARCH` or `HSA_OVERRIDE_GFX_VERSION`; None if neither is set."""
    return env.text("FLYDSL_GPU_ARCH") or arch_of_version(env.text("HSA_OVERRIDE_GFX_VERSION"))


def arch_of_version(version: str) -> str | None:
    """The architecture's name from ROCm's version notation; its last two parts become hexadecimal digits.

    >>> arch_of_version("9.4.2"), arch_of_version("12.0.1"), arch_of_version("9.0.10")
    ('gfx942', 'gfx1201', 'gfx90a')
    """
    if not version:
        return None
    match = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", version)
    if match is None:
        raise ArchError(
            f"HSA_OVERRIDE_GFX_VERSION={version!r} is not of the form 9.4.2",
            hint="write three numbers with dots, as for ROCm",
        )
    major, minor, stepping = map(int, match.groups())
    return "gfx" + f"{major}{minor:x}{stepping:x}"


@lru_cache(maxsize=1)
def _enumerated_arch(timeout_s: float = _ENUMERATION_S) -> str | None:
    tool = shutil.which("rocm_agent_enumerator")
    if tool is None:
        return None
    found = subprocess.run([tool], capture_output=True, text=True, timeout=timeout_s, check=False).stdout.split()
    # The enumerator also lists the host's CPU, as number 000.
    return next((name for name in found if not name.endswith("000")), None)


SMEM_CAPACITY_MAP = {arch.name: arch.lds_bytes_per_workgroup for arch in ARCHS}
"""Architecture -> bytes of LDS that a workgroup can have."""


def check_smem_capacity(allocated_bytes: int, arch: str | None = None) -> None:
    """Raise DeviceError, a RuntimeError, if a workgroup of an architecture cannot have so much LDS.

    An unknown architecture, or none, allows everything.
    """
    limit = None if arch is None else SMEM_CAPACITY_MAP.get(arch)
    if limit is not None and allocated_bytes > limit:
        raise DeviceError(
            f"Shared Memory Overflow: {allocated_bytes} bytes of LDS, where a workgroup of {arch} has {limit}",
            hint="allocate less, or use one part after the other",
        )


def supports_bf16_global_atomics(arch: str | None = None) -> bool:
    """True if an architecture (by default the GPU's) adds pairs of bf16 in global memory in one instruction."""
    return (arch or get_rocm_arch()) in (*FROM_CDNA3, *GFX12)


def bf16_global_atomics_arch_description() -> str:
    """The architectures that have bf16 global atomics, in words."""
    return ", ".join((*FROM_CDNA3, *GFX12))


def get_warp_size(arch: str | None = None) -> int:
    """Lanes of a wave of an architecture, by default the GPU's: 64, from RDNA on 32."""
    return get_arch(arch or get_rocm_arch()).wave_size


def get_rocm_device_count() -> int:
    """The number of AMD GPUs that torch can see."""
    import torch

    return torch.cuda.device_count() if torch.version.hip else 0


def is_rdna_arch(arch: str | None = None) -> bool:
    """True if an architecture (by default the GPU's) is of the RDNA family: numbers 10.., 11.. and 120.."""
    return re.match(r"\D+(10|11|120)\d", arch or get_rocm_arch()) is not None
