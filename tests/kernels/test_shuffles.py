from __future__ import annotations

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import shuffles


def test_the_place_of_every_byte_of_a_weight() -> None:
    rows, columns = 32, 128
    weight = torch.arange(rows * columns).to(torch.int16)  # bytes are halves of these
    shuffled = shuffles.shuffle_weight(weight.view(rows, columns))
    for n, k in ((0, 0), (1, 0), (0, 8), (15, 127), (16, 1), (31, 96)):
        kb = 2 * k
        byte = n // 16 * 16 * 2 * columns + kb // 16 * 256 + n % 16 * 16 + kb % 16
        assert shuffled[byte // 2] == weight[n * columns + k]


def test_eight_int4_take_four_bytes() -> None:
    weight = torch.arange(64).remainder(16).sub(8).to(torch.int8).repeat(16, 1)
    packed = shuffles.pack_int4(weight).view(torch.uint8)
    assert packed.numel() == 16 * 32
    # -8 to -1 of the first row: the low halves are -8 to -5, the high ones -4 to -1.
    assert packed[:4].tolist() == [0xC8, 0xD9, 0xEA, 0xFB]


def test_the_place_of_every_scale() -> None:
    rows, columns = 40, 16
    scale = torch.randint(1, 255, (rows, columns), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    shuffled = shuffles.shuffle_scale(scale)
    assert shuffled.numel() == 64 * columns
    for m, k in ((0, 0), (17, 0), (3, 5), (39, 15), (31, 8)):
        byte = m // 32 * 32 * columns + k // 8 * 256 + k % 4 * 64 + m % 16 * 4 + k // 4 % 2 * 2 + m // 16 % 2
        assert shuffled[byte] == scale[m, k]
    assert shuffled.sum() == scale.sum()  # what is filled up is 0


def test_what_does_not_fit() -> None:
    with pytest.raises(ArgumentError, match="17 rows of 64 bytes"):
        shuffles.shuffle_weight(torch.zeros(17, 64, dtype=torch.int8))
    with pytest.raises(ArgumentError, match="int8 from -8 to 7"):
        shuffles.pack_int4(torch.full((16, 64), 9, dtype=torch.int8))
