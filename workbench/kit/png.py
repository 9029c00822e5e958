"""Pixels as a PNG file: for pictures with too many parts to have an element for each."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_OF_PALETTE, _RGBA = 3, 6


def png(pixels: NDArray[np.uint8], palette: Sequence[str] = ()) -> bytes:
    """A picture. pixels: of shape (height, width), numbers of colours; without a palette (height, width, 4), RGBA.

    palette: the colours as "#rrggbb", at most 256. Source: PNG specification, third edition, W3C.
    """
    height, width, *_ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)  # the filter is none
    colors = b"".join(bytes.fromhex(color.removeprefix("#")) for color in palette)
    head = struct.pack(">IIBBBBB", width, height, 8, _OF_PALETTE if palette else _RGBA, 0, 0, 0)
    chunks = [_chunk(b"IHDR", head), _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)), _chunk(b"IEND", b"")]
    if palette:
        chunks.insert(1, _chunk(b"PLTE", colors))
    return _SIGNATURE + b"".join(chunks)


def png_address(pixels: NDArray[np.uint8], palette: Sequence[str] = ()) -> str:
    """The picture as the address of an image, which contains it."""
    return f"data:image/png;base64,{base64.b64encode(png(pixels, palette)).decode()}"


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
