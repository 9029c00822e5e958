"""Code objects with other metadata than they were made with."""

from __future__ import annotations

import struct
from typing import Any

import msgpack

_SHT_NOTE, _NT_AMDGPU_METADATA = 7, 32


def metadata_of(code: bytes) -> tuple[int, Any]:
    """Where the header of the note section is, and what the note says. LookupError where there is none."""
    try:
        (table,), (count,) = struct.unpack_from("<Q", code, 40), struct.unpack_from("<H", code, 60)
        for header in range(table, table + 64 * count, 64):
            kind, offset = struct.unpack_from("<I", code, header + 4)[0], struct.unpack_from("<Q", code, header + 24)[0]
            if kind == _SHT_NOTE:
                (size,) = struct.unpack_from("<I", code, offset + 4)
                return header, msgpack.unpackb(code[offset + 20 : offset + 20 + size])
    except (struct.error, ValueError) as error:
        raise LookupError(str(error)) from error
    raise LookupError("no notes")


def with_metadata(code: bytes, header: int, metadata: Any) -> bytes:
    """The note lies at the end of the file then, which is where its section's header says that it is."""
    content = msgpack.packb(metadata)
    note = struct.pack("<III8s", 7, len(content), _NT_AMDGPU_METADATA, b"AMDGPU\0\0") + content
    data = bytearray(code + bytes(-len(code) % 4))
    struct.pack_into("<QQ", data, header + 24, len(data), len(note))
    return bytes(data) + note
