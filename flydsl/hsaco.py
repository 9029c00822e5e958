"""Read an AMD GPU code object back: what an HSACO says about its kernels and their machine code.

An HSACO is an ELF64 shared object. Three of its parts matter here:

- the note `NT_AMDGPU_METADATA`, a MessagePack map that lists kernels, arguments and register counts,
- the 64-byte kernel descriptor `<kernel>.kd` in `.rodata`, which the command processor reads at dispatch,
- `.text`, the machine code.

Source: LLVM, AMDGPUUsage ("Code Object", "Code Object Metadata", "Kernel Descriptor") and AMDHSAKernelDescriptor.h.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from flydsl.errors import CompileError

_EM_AMDGPU = 224
_NT_AMDGPU_METADATA = 32
_SHT_SYMTAB, _SHT_NOTE, _SHT_NOBITS, _SHT_DYNSYM = 2, 7, 8, 11

# In an ELF header: the table of section headers and the size of one, and in a section header its flags.
_SECTION_TABLE = struct.Struct("<40xQ10xH")
_SECTION_FLAGS, _SECTION_FLAGS_AT = struct.Struct("<Q"), 8
_SHF_EXCLUDE = 0x8000_0000

_RELOCATION = struct.Struct("<QQq")
_RELOCATED_BYTES = {1: 4, 2: 4, 3: 8, 4: 4, 5: 8, 6: 4, 7: 4, 8: 4, 9: 4, 10: 4, 11: 4, 13: 8, 14: 2}
"""By type (LLVM, AMDGPUUsage, "Relocation Records"); 12 is not in use."""

_MOST_REGISTERS = 1024  # of any kind, of any generation
_MOST_KERNARG_BYTES = 1 << 16
_MOST_NAME_BYTES, _NAMES_PER_FILE = 1 << 16, 16

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


class HsacoError(CompileError):
    """Bytes that are not a code object this reader understands."""


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


class KernelArg(NamedTuple):
    """One entry of the kernarg segment. `kind` is the metadata's: `global_buffer`, `by_value`, `hidden_…`."""

    name: str
    offset: int  # in bytes
    size: int  # in bytes
    kind: str


class KernelInfo(NamedTuple):
    """What a code object says about one kernel.

    vgprs and agprs are counted apart, as LLVM's NumVgprs and NumAgprs; total_vgprs is what a wave takes from the
    register file (where the file is unified, the AGPRs start at the next multiple of 4). sgprs is LLVM's TotalNumSgprs:
    VCC and the other special registers are in it. code_range is (start, stop) in bytes into `.text`.
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
    """A code object that was read: `target` is as in "amdgcn-amd-amdhsa--gfx942:sramecc+"."""

    target: str
    text: bytes
    text_address: int
    kernels: Mapping[str, KernelInfo]

    @property
    def arch_name(self) -> str:
        """The processor, without feature settings."""
        return _arch_name(self.target)

    def code(self, kernel: str) -> bytes:
        """The machine code of one kernel. KeyError for a kernel that is not in the code object."""
        start, stop = self.kernels[kernel].code_range
        return self.text[start:stop]


def read_hsaco(data: bytes) -> Hsaco:
    """Read a linked code object (version 3 and later). HsacoError for anything else, truncated files included."""
    elf = _Elf(data)
    metadata = _metadata(elf)
    try:
        target = str(metadata["amdhsa.target"])
        text = elf.section(".text")
        kernels = {str(k[".name"]): _kernel_info(elf, text, target, k) for k in metadata["amdhsa.kernels"]}
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise HsacoError(f"the code object's metadata is not as documented: {error!r:.300}") from error
    return Hsaco(target, elf.content(text), text.address, kernels)


class Contents(NamedTuple):
    """The bytes of sections by name, and of a relocatable object the parts of them that the linker fills in."""

    sections: Mapping[str, bytes]
    filled_by_the_linker: Mapping[str, list[slice]]


def read_contents(data: bytes) -> Contents:
    """The sections of a code object, linked or not. HsacoError for anything else, and for unknown relocations."""
    elf = _Elf(data)
    sections = {section.name: elf.content(section) for section in elf.sections}
    filled: dict[str, list[slice]] = {}
    for name, content in sections.items():
        if name.startswith(".rela."):
            if len(content) % _RELOCATION.size:
                raise HsacoError(f"section {name} of the code object ends within a relocation")
            filled[name.removeprefix(".rela")] = [_relocated(*entry) for entry in _RELOCATION.iter_unpack(content)]
    return Contents(sections, filled)


def read_symbols(data: bytes) -> dict[str, int]:
    """The symbols of a code object by name: addresses, and in one that is not linked offsets into their sections."""
    return {name: symbol.value for name, symbol in _Elf(data).symbols.items()}


def excluded(data: bytes, name: str) -> bytes:
    """A relocatable object whose section of that name, if there is one, does not go into what is linked from it."""
    changed = bytearray(data)
    for i, section in enumerate(_Elf(data).sections):
        if section.name == name:
            table, entry_size = _SECTION_TABLE.unpack_from(data)
            at = table + i * entry_size + _SECTION_FLAGS_AT
            (flags,) = _SECTION_FLAGS.unpack_from(data, at)
            _SECTION_FLAGS.pack_into(changed, at, flags | _SHF_EXCLUDE)
    return bytes(changed)


def _relocated(offset: int, info: int, _addend: int) -> slice:
    kind = info & 0xFFFF_FFFF
    if kind not in _RELOCATED_BYTES:
        raise HsacoError(f"the object has a relocation of type {kind}, which is not documented for AMD GPUs")
    return slice(offset, offset + _RELOCATED_BYTES[kind])


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


def _kernel_info(elf: _Elf, text: _Section, target: str, kernel: Mapping[str, Any]) -> KernelInfo:
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
        required_workgroup_size=_required_workgroup_size(name, kernel.get(".reqd_workgroup_size")),
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
        """A whole number from 0 to `most`. HsacoError for anything else, KeyError where it has to be there."""
        value = self._entries[key] if default is None else self._entries.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            raise HsacoError(f"{key} of {self._owner!r} is {value!r:.100}: it is a number from 0 to {most}")
        return value


def _required_workgroup_size(kernel: str, sizes: Any) -> tuple[int, int, int] | None:
    if not sizes:
        return None
    if (
        not isinstance(sizes, list)
        or len(sizes) != 3
        or not all(isinstance(n, int) and 1 <= n < 1 << 32 for n in sizes)
    ):
        raise HsacoError(f".reqd_workgroup_size of {kernel!r} is {sizes!r:.100}: it is three numbers")
    return sizes[0], sizes[1], sizes[2]


def _vgprs(elf: _Elf, kernel: str, total_vgprs: int, agprs: int, *, unified: bool) -> int:
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


def _metadata(elf: _Elf) -> Mapping[str, Any]:
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


class _Section(NamedTuple):
    name: str
    kind: int
    address: int
    offset: int
    size: int
    link: int


class _Symbol(NamedTuple):
    value: int
    size: int


class _Elf:
    """The part of ELF64 little-endian that a code object needs: sections, symbols and notes, every read checked."""

    def __init__(self, data: bytes) -> None:
        self._data, self._name_bytes = data, 0
        if data[:4] != b"\x7fELF":
            raise HsacoError(f"not a code object: it starts with {data[:4]!r}, not with ELF's magic number")
        if data[4:6] != b"\x02\x01":
            raise HsacoError("not a code object: AMD GPU code objects are 64-bit little-endian ELF files")
        machine = self._unpack("<H", 18)[0]
        if machine != _EM_AMDGPU:
            raise HsacoError(f"not a code object: its ELF machine is {machine}, AMD GPUs are {_EM_AMDGPU}")
        self.sections = self._read_sections()
        self._check_sizes()
        self.symbols = self._read_symbols()

    def section(self, name: str) -> _Section:
        for section in self.sections:
            if section.name == name:
                return section
        raise HsacoError(f"the code object has no section {name}")

    def symbol(self, name: str) -> _Symbol:
        try:
            return self.symbols[name]
        except KeyError:
            raise HsacoError(f"the code object has no symbol {name!r}") from None

    def content(self, section: _Section) -> bytes:
        return b"" if section.kind == _SHT_NOBITS else self._slice(section.offset, section.size)

    def at_address(self, address: int, size: int) -> bytes:
        for section in self.sections:
            if section.address and 0 <= address - section.address <= section.size - size:
                return self._slice(section.offset + address - section.address, size)
        raise HsacoError(f"the code object has no {size} bytes at address {address:#x}")

    def notes(self) -> Iterator[tuple[bytes, int, bytes]]:
        for section in self.sections:
            if section.kind != _SHT_NOTE:
                continue
            position, stop = section.offset, section.offset + section.size
            while position < stop:
                name_size, content_size, kind = self._unpack("<III", position)
                content_at = position + 12 + _align4(name_size)
                owner = self._slice(position + 12, name_size).rstrip(b"\0")
                yield owner, kind, self._slice(content_at, content_size)
                position = content_at + _align4(content_size)

    def _read_sections(self) -> list[_Section]:
        (table,) = self._unpack("<Q", 40)
        entry_size, count, names_index = self._unpack("<HHH", 58)
        headers = [self._unpack("<IIQQQQI20x", table + i * entry_size) for i in range(count)]
        if names_index >= count:
            raise HsacoError("the code object has no section names")
        names_at = headers[names_index][4]
        return [
            _Section(self._string(names_at + name), kind, address, offset, size, link)
            for name, kind, _flags, address, offset, size, link in headers
        ]

    def _check_sizes(self) -> None:
        """Sections that overlap could hold, all together, much more than the file."""
        size = sum(s.size for s in self.sections if s.kind != _SHT_NOBITS)
        if size > len(self._data):
            raise HsacoError(f"the sections of the code object take {size} bytes, and it has {len(self._data)}")

    def _read_symbols(self) -> dict[str, _Symbol]:
        """Local symbols too, where the linker kept them; .dynsym is what is left in a stripped file."""
        symbols = {}
        for section in self.sections:
            if section.kind not in (_SHT_SYMTAB, _SHT_DYNSYM):
                continue
            if section.link >= len(self.sections):
                raise HsacoError(f"section {section.name} of the code object has no string table")
            names_at = self.sections[section.link].offset
            for position in range(section.offset, section.offset + section.size, 24):
                name, _info, _other, _index, value, size = self._unpack("<IBBHQQ", position)
                symbols[self._string(names_at + name)] = _Symbol(value, size)
        return symbols

    def _string(self, position: int) -> str:
        stop = self._data.find(b"\0", position, position + _MOST_NAME_BYTES) if position < len(self._data) else -1
        self._name_bytes += stop - position
        if stop < 0 or self._name_bytes > _NAMES_PER_FILE * len(self._data):  # names may share their ends
            raise HsacoError(f"the code object has no name at byte {position}")
        return self._data[position:stop].decode("utf-8", "replace")

    def _unpack(self, layout: str, position: int) -> tuple[Any, ...]:
        return struct.unpack(layout, self._slice(position, struct.calcsize(layout)))

    def _slice(self, position: int, size: int) -> bytes:
        if position + size > len(self._data):
            raise HsacoError(f"the code object is truncated: {len(self._data)} bytes, {position + size} are needed")
        return self._data[position : position + size]


def _align4(size: int) -> int:
    return (size + 3) & ~3
