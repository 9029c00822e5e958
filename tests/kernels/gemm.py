"""Operands of products, and what their kernels are compared with."""

from __future__ import annotations

from typing import Any

import torch

from kernels.shuffles import pack_int4, shuffle_scale, shuffle_weight

FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
TYPES = {"int8": torch.int8, "int4": torch.int8, "fp16": torch.float16, "bf16": torch.bfloat16}


def torch_type(dtype: str, arch: str = "gfx942") -> torch.dtype:
    """The type of A in torch; fp8 is the architecture's."""
    fp8 = torch.float8_e4m3fn if arch == "gfx950" else torch.float8_e4m3fnuz
    return fp8 if dtype == "fp8" else TYPES.get(dtype, torch.uint8)


def whole_numbers(*shape: int, seed: int = 0, limit: int = 3) -> torch.Tensor:
    """Small ones: exact in every type, in every order of summation."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randint(-limit, limit + 1, shape, generator=generator)


def factors(*shape: int) -> torch.Tensor:
    """Scales between 1/2 and 3/2."""
    return torch.rand(shape, generator=torch.Generator().manual_seed(sum(shape))) + 0.5


def plain(dtype: str, m: int, n: int, k: int, arch: str = "gfx942", seed: int = 0) -> tuple[Any, ...]:
    """A and B as numbers, A flat, and B shuffled."""
    a, b = (whole_numbers(rows, k, seed=rows + seed).to(torch_type(dtype, arch)) for rows in (m, n))
    return a.float(), b.float(), a.view(-1), pack_int4(b) if dtype == "int4" else shuffle_weight(b)


def micro_scaled(dtype: str, m: int, n: int, k: int, seed: int = 0) -> tuple[Any, ...]:
    """A (fp4, fp6, fp8) and B (fp4, or fp8 for mxfp8), a scale for 32 elements: numbers, A flat, B shuffled, and the
    scales shuffled."""
    generator = torch.Generator().manual_seed(m + n + k + seed)

    def codes(count: int, rows: int, columns: int) -> torch.Tensor:
        return torch.randint(0, count, (rows, columns), generator=generator)

    of_b, scale_a, scale_b = codes(16, n, k), codes(5, m, k // 32) + 125, codes(5, n, k // 32) + 125
    of_a = codes(16 if dtype == "fp4" else 64, m, k)
    a, in_memory = {
        "fp4": lambda: (FP4[of_a], packed_fp4(of_a)),
        "fp6": lambda: (fp6(of_a), padded_fp6(of_a)),
        "fp8": lambda: ((of_a % 16 - 8).float(), (of_a % 16 - 8).to(torch.float8_e4m3fn)),
    }[dtype.removeprefix("mx")]()
    numbers = a * powers(scale_a), FP4[of_b] * powers(scale_b)
    b = FP4[of_b].to(torch.float8_e4m3fn) if dtype == "mxfp8" else packed_fp4(of_b)
    memory = in_memory.view(-1), shuffle_weight(b)
    return *numbers, *memory, *(shuffle_scale(scale.to(torch.uint8)) for scale in (scale_a, scale_b))


def powers(scale: torch.Tensor) -> torch.Tensor:
    """E8M0 bytes, each for 32 elements of a row, as numbers."""
    return (2.0 ** (scale.float() - 127)).repeat_interleave(32, 1)


def packed_fp4(codes: torch.Tensor) -> torch.Tensor:
    """Two codes to a byte, the first in the low half."""
    return (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8)


def fp6(codes: torch.Tensor) -> torch.Tensor:
    """E2M3 codes as numbers."""
    exponent, mantissa = codes >> 3 & 3, (codes & 7) / 8
    size = torch.where(exponent == 0, mantissa, (1 + mantissa) * 2.0 ** (exponent - 1))
    return torch.where(codes >= 32, -size, size)


def padded_fp6(codes: torch.Tensor) -> torch.Tensor:
    """Four codes to three bytes, and 8 bytes of zeros after every 32 codes."""
    rows, columns = codes.shape
    four = codes.view(rows, columns // 4, 4)
    word = four[..., 0] | four[..., 1] << 6 | four[..., 2] << 12 | four[..., 3] << 18
    data = torch.stack([word & 255, word >> 8 & 255, word >> 16], -1).view(rows, columns // 32, 24)
    return torch.nn.functional.pad(data, (0, 8)).to(torch.uint8).view(rows, columns)


def nans(m: int, n: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """A result of which every element must be written."""
    return torch.full((m * n,), torch.nan, dtype=dtype)
