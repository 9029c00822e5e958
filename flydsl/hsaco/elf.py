"""The ELF file that a code object is: sections, symbols, relocations and notes.

Source: LLVM, AMDGPUUsage ("Code Object", "Relocation Records").
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from flydsl.errors import CompileError

_EM_AMDGPU = 224
_SHT_SYMTAB, _SHT_NOTE, _SHT_NOBITS, _SHT_DYNSYM = 2, 7, 8, 11
_RELOCATION = struct.Struct("<QQq")
_RELOCATED_BYTES = {1: 4, 2: 4, 3: 8, 4: 4, 5: 8, 6: 4, 7: 4, 8: 4, 9: 4, 10: 4, 11: 4, 13: 8, 14: 2}
"""By type (LLVM, AMDGPUUsage, "Relocation Records"); 12 is not in use."""
_MOST_NAME_BYTES, _NAMES_PER_FILE = 1 << 16, 16


class HsacoError(CompileError):
    """An error for bytes that are not a code object this reader understands."""


class Contents(NamedTuple):
    """The bytes of sections by name; for a relocatable object, also the parts that the linker fills in."""

    sections: Mapping[str, bytes]
    filled_by_the_linker: Mapping[str, list[slice]]


def read_contents(data: bytes) -> Contents:
    """The sections of a code object, linked or not. HsacoError for anything else, and for unknown relocations."""
    elf = Elf(data)
    sections = {section.name: elf.content(section) for section in elf.sections}
    filled: dict[str, list[slice]] = {}
    for name, content in sections.items():
        if name.startswith(".rela."):
            if len(content) % _RELOCATION.size:
                raise HsacoError(f"section {name} of the code object ends within a relocation")
            filled[name.removeprefix(".rela")] = [_relocated(*entry) for entry in _RELOCATION.iter_unpack(content)]
    return Contents(sections, filled)


def read_symbols(data: bytes) -> dict[str, int]:
    """The symbols of a code object by name: addresses, or offsets into their sections if it is not linked."""
    return {name: symbol.value for name, symbol in Elf(data).symbols.items()}


def _relocated(offset: int, info: int, _addend: int) -> slice:
    kind = info & 0xFFFF_FFFF
    if kind not in _RELOCATED_BYTES:
        raise HsacoError(f"the object has a relocation of type {kind}, which is not documented for AMD GPUs")
    return slice(offset, offset + _RELOCATED_BYTES[kind])


class Section(NamedTuple):
    name: str
    kind: int
    address: int
    offset: int
    size: int
    link: int


class ElfSymbol(NamedTuple):
    value: int
    size: int


class Elf:
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

    def section(self, name: str) -> Section:
        for section in self.sections:
            if section.name == name:
                return section
        raise HsacoError(f"the code object has no section {name}")

    def symbol(self, name: str) -> ElfSymbol:
        try:
            return self.symbols[name]
        except KeyError:
            raise HsacoError(f"the code object has no symbol {name!r}") from None

    def content(self, section: Section) -> bytes:
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

    def _read_sections(self) -> list[Section]:
        (table,) = self._unpack("<Q", 40)
        entry_size, count, names_index = self._unpack("<HHH", 58)
        headers = [self._unpack("<IIQQQQI20x", table + i * entry_size) for i in range(count)]
        if names_index >= count:
            raise HsacoError("the code object has no section names")
        names_at = headers[names_index][4]
        return [
            Section(self._string(names_at + name), kind, address, offset, size, link)
            for name, kind, _flags, address, offset, size, link in headers
        ]

    def _check_sizes(self) -> None:
        """Check the sizes of sections: overlapping ones could hold much more in total than the file."""
        size = sum(s.size for s in self.sections if s.kind != _SHT_NOBITS)
        if size > len(self._data):
            raise HsacoError(f"the sections of the code object take {size} bytes, and it has {len(self._data)}")

    def _read_symbols(self) -> dict[str, ElfSymbol]:
        """The symbols, with local ones if the linker kept them; a stripped file only has .dynsym."""
        symbols = {}
        for section in self.sections:
            if section.kind not in (_SHT_SYMTAB, _SHT_DYNSYM):
                continue
            if section.link >= len(self.sections):
                raise HsacoError(f"section {section.name} of the code object has no string table")
            names_at = self.sections[section.link].offset
            for position in range(section.offset, section.offset + section.size, 24):
                name, _info, _other, _index, value, size = self._unpack("<IBBHQQ", position)
                symbols[self._string(names_at + name)] = ElfSymbol(value, size)
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
