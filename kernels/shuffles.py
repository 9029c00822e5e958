"""The orders in which kernels of CDNA expect weights and scales: functions of torch tensors, on the host.

| function | from | to |
|---|---|---|
| `shuffle_weight` | rows of any type | blocks of 16 rows and 16 bytes |
| `pack_int4` | i8 from -8 to 7 | two to a byte, shuffled |
| `shuffle_scale` | E8M0, one for 32 elements of a row | words of 2 x 16 rows and 2 x 128 elements |
"""

from __future__ import annotations

from typing import Any

from kernels.kernels_common import require

ROWS = 16
CHUNK_BYTES = 16


def shuffle_weight(weight: Any) -> Any:
    """(N, K) of any type, or of packed bytes, such that the 16 bytes that a lane needs lie side by side: one dimension.

    Byte (n, kb) goes to (n // 16) 16 KB + (kb // 16) 256 + (n % 16) 16 + kb % 16, where a row has KB bytes.
    """
    import torch

    bytes_ = weight.contiguous().view(torch.uint8)
    rows, columns = bytes_.shape
    wanted = f"rows are a multiple of {ROWS}, their bytes of {4 * CHUNK_BYTES}"
    fits = rows % ROWS == columns % (4 * CHUNK_BYTES) == 0
    require(fits, f"a weight of {rows} rows of {columns} bytes", wanted)
    blocks = bytes_.view(rows // ROWS, ROWS, columns // CHUNK_BYTES, CHUNK_BYTES).permute(0, 2, 1, 3)
    return blocks.contiguous().view(-1).view(weight.dtype)


def pack_int4(weight: Any) -> Any:
    """(N, K) of i8 from -8 to 7, shuffled and packed: of 8 values, the first 4 are the low halves of 4 bytes."""
    import torch

    fits = weight.dtype == torch.int8 and weight.min() >= -8 and weight.max() <= 7
    require(fits, f"pack_int4 of {weight.dtype}", "int8 from -8 to 7")
    halves = shuffle_weight(weight).view(torch.uint8).view(-1, 2, 4) & 15
    return (halves[:, 0] | halves[:, 1] << 4).view(-1).view(torch.int8)


def shuffle_scale(scale: Any) -> Any:
    """(rows, K/32) of E8M0 bytes in the order of the scaled matrix instructions: one dimension.

    Rows are filled up to a multiple of 32 with zeros, and K/32 to one of 8. Scale (m, k) goes to byte
    (m // 32) 32 S + (k // 8) 256 + (k % 4) 64 + (m % 16) 4 + (k // 4 % 2) 2 + m // 16 % 2, where a row has S scales.
    """
    import torch

    rows, columns = scale.shape
    padded = torch.zeros(-(-rows // 32) * 32, -(-columns // 8) * 8, dtype=torch.uint8, device=scale.device)
    padded[:rows, :columns] = scale.view(torch.uint8)
    blocks = padded.view(-1, 2, 16, padded.shape[1] // 8, 2, 4).permute(0, 3, 5, 2, 4, 1)
    return blocks.contiguous().view(-1)
