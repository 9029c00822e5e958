"""The kernels of a code object: their metadata, descriptors and machine code.

Source: LLVM, AMDGPUUsage ("Code Object Metadata").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from flydsl.hsaco.descriptor import KernelDescriptor, decode_kernel_descriptor
from flydsl.hsaco.elf import Elf, HsacoError, Section

_NT_AMDGPU_METADATA = 32
_MOST_REGISTERS = 1024  # of any kind, of any generation
_MOST_KERNARG_BYTES = 1 << 16


class KernelArg(NamedTuple):
    """One entry of the kernarg segment. `kind` is the metadata's: `global_buffer`, `by_value`, `hidden_…`."""

    name: str
    offset: int  # in bytes
    size: int  # in bytes
    kind: str


class KernelInfo(NamedTuple):
    """The description of one kernel in a code object.

    vgprs and agprs are counted apart, as LLVM's NumVgprs and NumAgprs; total_vgprs is what a wave takes from the
    register file (where the file is unified, the AGPRs start at the next multiple of 4). sgprs is LLVM's TotalNumSgprs:
    VCC and the other special registers are in it. cluster: the workgroups that run together along x, y and z, where it
    is known. code_range is (start, stop) in bytes into `.text`.
    """

    name: str
    symbol: str
    kernarg_bytes: int
    args: tuple[KernelArg, ...]
    lds_bytes: int
    scratch_bytes: int
    wave_size: int
    max_workgroup_size: int
    required_workgroup_size: tuple[int, int, int] | None
    cluster: tuple[int, int, int] | None
    sgprs: int
    vgprs: int
    agprs: int
    total_vgprs: int
    sgpr_spills: int
    vgpr_spills: int
    uses_dynamic_stack: bool
    descriptor: KernelDescriptor
    code_range: tuple[int, int]


@dataclass(frozen=True)
class Hsaco:
    """A code object that was read. `target` is written as in "amdgcn-amd-amdhsa--gfx942:sramecc+"."""

    target: str
    text: bytes
    text_address: int
    kernels: Mapping[str, KernelInfo]

    @property
    def arch_name(self) -> str:
        """The processor name, without feature settings."""
        return _arch_name(self.target)

    def code(self, kernel: str) -> bytes:
        """The machine code of one kernel. KeyError for a kernel that is not in the code object."""
        start, stop = self.kernels[kernel].code_range
        return self.text[start:stop]


def read_hsaco(data: bytes) -> Hsaco:
    """Read a linked code object (version 3 and later). HsacoError for anything else, truncated files included."""
    elf = Elf(data)
    metadata = _metadata(elf)
    try:
        target = str(metadata["amdhsa.target"])
        text = elf.section(".text")
        kernels = {str(k[".name"]): _kernel_info(elf, text, target, k) for k in metadata["amdhsa.kernels"]}
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise HsacoError(f"the code object's metadata is not as documented: {error!r:.300}") from error
    return Hsaco(target, elf.content(text), text.address, kernels)


def _kernel_info(elf: Elf, text: Section, target: str, kernel: Mapping[str, Any]) -> KernelInfo:
    name, symbol = str(kernel[".name"]), str(kernel[".symbol"])
    descriptor_address = elf.symbol(symbol).value
    descriptor = decode_kernel_descriptor(elf.at_address(descriptor_address, 64), _arch_name(target))
    start = descriptor_address + descriptor.entry_offset_bytes - text.address
    stop = start + elf.symbol(symbol.removesuffix(".kd")).size
    if not 0 <= start <= stop <= text.size:
        raise HsacoError(f"kernel {name!r} has its code at {start}..{stop}, outside of .text ({text.size} bytes)")
    numbers = _Numbers(name, kernel)
    total_vgprs, agprs = numbers.get(".vgpr_count", _MOST_REGISTERS), numbers.get(".agpr_count", _MOST_REGISTERS, 0)
    if agprs > total_vgprs and descriptor.accum_offset is not None:
        raise HsacoError(f"kernel {name!r} has {agprs} AGPRs among {total_vgprs} vector registers")
    kernarg_bytes = numbers.get(".kernarg_segment_size", _MOST_KERNARG_BYTES)
    return KernelInfo(
        name=name,
        symbol=symbol,
        kernarg_bytes=kernarg_bytes,
        args=tuple(_kernel_arg(name, i, arg, kernarg_bytes) for i, arg in enumerate(kernel.get(".args", ()))),
        lds_bytes=numbers.get(".group_segment_fixed_size"),
        scratch_bytes=numbers.get(".private_segment_fixed_size"),
        wave_size=numbers.get(".wavefront_size"),
        max_workgroup_size=numbers.get(".max_flat_workgroup_size"),
        required_workgroup_size=_three_sizes(name, kernel, ".reqd_workgroup_size"),
        cluster=_three_sizes(name, kernel, ".cluster_dims"),
        sgprs=numbers.get(".sgpr_count", _MOST_REGISTERS),
        vgprs=_vgprs(elf, name, total_vgprs, agprs, unified=descriptor.accum_offset is not None),
        agprs=agprs,
        total_vgprs=total_vgprs,
        sgpr_spills=numbers.get(".sgpr_spill_count", default=0),
        vgpr_spills=numbers.get(".vgpr_spill_count", default=0),
        uses_dynamic_stack=bool(kernel.get(".uses_dynamic_stack", False)),
        descriptor=descriptor,
        code_range=(start, stop),
    )


class _Numbers:
    """The numbers of one kernel's, or argument's, metadata."""

    def __init__(self, owner: str, entries: Mapping[str, Any]) -> None:
        self._owner, self._entries = owner, entries

    def get(self, key: str, most: int = 0xFFFF_FFFF, default: int | None = None) -> int:
        """A whole number from 0 to `most`. HsacoError for anything else, KeyError if it is required and missing."""
        value = self._entries[key] if default is None else self._entries.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            raise HsacoError(f"{key} of {self._owner!r} is {value!r:.100}: it is a number from 0 to {most}")
        return value


def _three_sizes(name: str, kernel: Mapping[str, Any], key: str) -> tuple[int, int, int] | None:
    """Numbers along x, y and z in a kernel's metadata, None where it has none."""
    sizes = kernel.get(key)
    if not sizes:
        return None
    if (
        not isinstance(sizes, list)
        or len(sizes) != 3
        or not all(isinstance(n, int) and 1 <= n < 1 << 32 for n in sizes)
    ):
        raise HsacoError(f"{key} of {name!r} is {sizes!r:.100}: it is three numbers")
    return sizes[0], sizes[1], sizes[2]


def _vgprs(elf: Elf, kernel: str, total_vgprs: int, agprs: int, *, unified: bool) -> int:
    """The VGPRs without AGPRs. The metadata has only the total, in which the first part is rounded up to 4; the
    unrounded number is an absolute symbol, unless the code object was stripped."""
    if not agprs or not unified:
        return total_vgprs
    exact = elf.symbols.get(f"{kernel}.num_vgpr")
    rounded = total_vgprs - agprs
    if exact is None:
        return rounded
    if not rounded - 4 < exact.value <= rounded:
        raise HsacoError(f"kernel {kernel!r} has {exact.value} VGPRs by its symbol, {rounded} by its metadata")
    return exact.value


def _kernel_arg(kernel: str, index: int, arg: Mapping[str, Any], kernarg_bytes: int) -> KernelArg:
    name = str(arg.get(".name", f"arg{index}"))
    numbers = _Numbers(name, arg)
    offset, size = numbers.get(".offset"), numbers.get(".size")
    if offset + size > kernarg_bytes:
        raise HsacoError(
            f"argument {name!r} of kernel {kernel!r} ends at {offset + size}, its kernarg segment at {kernarg_bytes}"
        )
    return KernelArg(name, offset, size, str(arg[".value_kind"]))


def _metadata(elf: Elf) -> Mapping[str, Any]:
    import msgpack

    for owner, kind, content in elf.notes():
        if owner == b"AMDGPU" and kind == _NT_AMDGPU_METADATA:
            try:
                metadata = msgpack.unpackb(content)
            except (ValueError, TypeError, OverflowError, msgpack.exceptions.UnpackException) as error:
                raise HsacoError(f"the code object's metadata is not valid MessagePack: {error}") from error
            if isinstance(metadata, dict):
                return metadata
    raise HsacoError("the ELF file has no AMDGPU metadata: it is not a linked code object of version 3 or later")


def _arch_name(target: str) -> str:
    return target.split(":")[0].rpartition("-")[2]
