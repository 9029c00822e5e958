"""The 64-byte kernel descriptor, which the command processor reads at dispatch.

Source: LLVM, AMDGPUUsage ("Kernel Descriptor") and AMDHSAKernelDescriptor.h.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from flydsl.hsaco.elf import HsacoError

_ROUND_MODES = ("near_even", "plus_infinity", "minus_infinity", "zero")
_DENORM_MODES = ("flush_src_dst", "flush_dst", "flush_src", "flush_none")
# kernel_code_properties, in the order in which the command processor lays the registers out.
_USER_SGPRS = (
    ("private_segment_buffer", 4),
    ("dispatch_ptr", 2),
    ("queue_ptr", 2),
    ("kernarg_segment_ptr", 2),
    ("dispatch_id", 2),
    ("flat_scratch_init", 2),
    ("private_segment_size", 1),
)


class UserSgpr(NamedTuple):
    """One value that the command processor puts into scalar registers before a wave starts."""

    name: str
    first_sgpr: int
    sgpr_count: int


class KernelDescriptor(NamedTuple):
    """The 64 bytes that describe a kernel to the command processor.

    Fields that a generation does not have are None: `ieee_mode` and `dx10_clamp` on gfx12, `accum_offset` where
    accumulation registers are not in the unified file.
    """

    lds_bytes: int
    scratch_bytes: int
    kernarg_bytes: int
    entry_offset_bytes: int  # from the descriptor's own address to the first instruction
    compute_pgm_rsrc1: int
    compute_pgm_rsrc2: int
    compute_pgm_rsrc3: int
    kernel_code_properties: int
    kernarg_preload: int
    user_sgpr_count: int
    user_sgprs: tuple[UserSgpr, ...]
    workgroup_id_x: bool
    workgroup_id_y: bool
    workgroup_id_z: bool
    workgroup_info: bool
    workitem_id_dims: int  # 1: x only; 2: x and y; 3: x, y and z
    private_segment: bool
    wavefront_size32: bool
    uses_dynamic_stack: bool
    round_mode_32: str
    round_mode_16_64: str
    denorm_mode_32: str
    denorm_mode_16_64: str
    fp16_overflow: bool
    ieee_mode: bool | None
    dx10_clamp: bool | None
    wgp_mode: bool | None
    vgpr_granules: int  # how many granules of vector registers a wave is given; their size is the architecture's
    accum_offset: int | None  # the VGPR number at which the AGPRs start


def decode_kernel_descriptor(data: bytes, arch_name: str) -> KernelDescriptor:
    """Decode the 64 bytes of a kernel descriptor; some bits mean different things from generation to generation."""
    if len(data) != 64:
        raise HsacoError(f"a kernel descriptor has 64 bytes, not {len(data)}")
    major, minor, stepping = _version(arch_name)
    lds, scratch, kernarg, entry, rsrc3, rsrc1, rsrc2, properties, preload = struct.unpack("<III4xq20xIIIHH4x", data)
    gfx12 = major >= 12
    unified = major == 9 and (minor >= 4 or stepping == 10)
    user_sgpr_count = _bits(rsrc2, 1, 6 if major == 12 and minor >= 5 else 5)
    user_sgprs = tuple(_user_sgprs(properties, preload))
    if sum(register.sgpr_count for register in user_sgprs) > user_sgpr_count:
        raise HsacoError(f"the kernel descriptor asks for more values than its {user_sgpr_count} user SGPRs hold")
    return KernelDescriptor(
        lds_bytes=lds,
        scratch_bytes=scratch,
        kernarg_bytes=kernarg,
        entry_offset_bytes=entry,
        compute_pgm_rsrc1=rsrc1,
        compute_pgm_rsrc2=rsrc2,
        compute_pgm_rsrc3=rsrc3,
        kernel_code_properties=properties,
        kernarg_preload=preload,
        user_sgpr_count=user_sgpr_count,
        user_sgprs=user_sgprs,
        workgroup_id_x=_bit(rsrc2, 7),
        workgroup_id_y=_bit(rsrc2, 8),
        workgroup_id_z=_bit(rsrc2, 9),
        workgroup_info=_bit(rsrc2, 10),
        workitem_id_dims=_bits(rsrc2, 11, 2) + 1,
        private_segment=_bit(rsrc2, 0),
        wavefront_size32=_bit(properties, 10),
        uses_dynamic_stack=_bit(properties, 11),
        round_mode_32=_ROUND_MODES[_bits(rsrc1, 12, 2)],
        round_mode_16_64=_ROUND_MODES[_bits(rsrc1, 14, 2)],
        denorm_mode_32=_DENORM_MODES[_bits(rsrc1, 16, 2)],
        denorm_mode_16_64=_DENORM_MODES[_bits(rsrc1, 18, 2)],
        fp16_overflow=_bit(rsrc1, 26),
        ieee_mode=None if gfx12 else _bit(rsrc1, 23),
        dx10_clamp=None if gfx12 else _bit(rsrc1, 21),
        wgp_mode=_bit(rsrc1, 29) if major >= 10 else None,
        vgpr_granules=_bits(rsrc1, 0, 6) + 1,
        accum_offset=4 * (_bits(rsrc3, 0, 6) + 1) if unified else None,
    )


def _user_sgprs(properties: int, preload: int) -> Iterator[UserSgpr]:
    first = 0
    for position, (name, count) in enumerate(_USER_SGPRS):
        if _bit(properties, position):
            yield UserSgpr(name, first, count)
            first += count
    preloaded = _bits(preload, 0, 7)
    if preloaded:
        yield UserSgpr("kernarg_preload", first, preloaded)


def _version(arch_name: str) -> tuple[int, int, int]:
    """Major, minor and stepping: minor and stepping are one hexadecimal digit each."""
    match = re.fullmatch(r"gfx(\d+)([0-9a-f])([0-9a-f])", arch_name)
    if not match:
        raise HsacoError(f"the code object is for {arch_name!r}, which is not an AMD GPU")
    return int(match[1]), int(match[2], 16), int(match[3], 16)


def _bits(word: int, shift: int, width: int) -> int:
    return (word >> shift) & ((1 << width) - 1)


def _bit(word: int, shift: int) -> bool:
    return bool((word >> shift) & 1)
