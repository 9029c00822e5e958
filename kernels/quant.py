"""Rows of f32 to 8 and 4 bits, with a scale per row, or per group of neighbouring elements.

    launch, _ = build_quant_module(N, "bf16", "fp8")            # s = max |x| / largest; q = x / s
    build_block_quant_module(N, "bf16", "mxfp4")(x, q, s, m)    # s a power of two for each 32 elements

Integers are rounded to the nearest, ties to even. fp8 is the target's own: at most 240 on gfx942, 448 after it. The
micro-scaled formats have scales in E8M0, 2^(b - 127): b is the exponent of max |x| / 4 for E2M1, of max |x| / 2^8 for
fp8 (2^7 where it ends at 240), rounded to the nearest power of two, so that nothing saturates. The scale of numbers of
which one is NaN is NaN, whatever the codes. E2M1 has two codes a
byte, the even element in the low half. A group is held by neighbouring lanes, which find its maximum by DPP: no memory,
no barrier. Rows of 8192 in 16 bits: 512 threads of 16 elements, about 155 instructions, up to 32 VGPRs, eight waves per
SIMD; the time is that of memory.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import range_constexpr
from kernels.kernels_common import bytes_of, element_type, fp8_type, require, require_tensor
from kernels.launches import chosen, launcher
from kernels.reduce import vector_reduce
from kernels.rows import THREADS, VECTOR_BYTES, Row, RowMemory, Tile, Tiling, row_resource
from kernels.sizes import require_elements, require_rows

DTYPES = ("f32", "f16", "bf16")
QUANTS = ("i8", "fp8")
# Format of a group -> elements that share a scale by default.
GROUPS = {"mxfp4": 32, "mxfp8": 32, "i8": 128, "fp8": 128}
# (M, N) for rows; (M, N, group) for groups.
SHAPES = ((5, 512), (3, 1), (4, 7), (1, 2048), (2, 4099))
BLOCK_SHAPES = ((5, 512, 32), (3, 96, 32), (2, 1280, 128), (1, 4096, 64))

INT8_MAX = 127.0
# Below this the largest number of a row counts as 0, whose scale is 1: its quotient could be no f32 number.
TINY = 2.0**-100
# 1.5 * 2^23: added to a number of up to 2^22 it rounds it to the nearest integer, ties to even, which the lowest bits
# of the sum then hold.
ROUNDER = 12582912.0
# Selectors of v_perm_b32: the lowest bytes of two words, and two such pairs.
_LOW_BYTES, _PAIRS = 0x0C0C0400, 0x05040100
# Half of a power of two's distance to the next one, in the bits of f32; the largest exponent, which is NaN's.
_HALF_EXPONENT, _EXPONENT_BITS, _NO_NUMBER = 0x400000, 23, 255


def magnitudes(v: Any) -> Any:
    """The bits of |v|: integers in the order of the numbers; NaN, which a float maximum leaves out, is above all."""
    return v.bitcast(fx.Int32) & 0x7FFFFFFF


def scale_and_factor(largest: Any, quant: str) -> tuple[Any, Any]:
    """(scale, what numbers are multiplied with) for the largest magnitude that shares them."""
    code = INT8_MAX if quant == "i8" else 240.0 if fp8_type() is fx.Float8E4M3FNUZ else 448.0
    scale = (largest < TINY).select(fx.Float32(1.0), largest * (1 / code))
    return scale, fx.rocdl.rcp(scale)


def codes(v: Any, factor: Any, quant: str) -> Any:
    """v * factor as codes of i8, fp8 or mxfp8, or mxfp4, in Int8."""
    if quant == "i8":
        return int8_codes(v, factor)
    return fp4_codes(v * factor) if quant == "mxfp4" else fp8_codes(v * factor)


def quantised(y: Row, quant: str) -> tuple[Row, Any]:
    """(the row of codes, its scale): y is about code * scale."""
    largest = y.map(magnitudes).fold("max", dtype=fx.Int32).bitcast(fx.Float32)
    scale, factor = scale_and_factor(largest, quant)
    return y.map(lambda v: codes(v, factor, quant)), scale


def int8_codes(v: Any, factor: Any) -> Any:
    """v * factor rounded to the nearest integers, ties to even, as Int8. They must be within its range."""
    words = fx.fma(v, fx.full_like(v, factor), fx.full_like(v, ROUNDER)).bitcast(fx.Int32)
    if words.numel % 4:
        return words.to(fx.Int8)
    pairs = [fx.rocdl.perm_b32(words[i + 1], words[i], _LOW_BYTES) for i in range_constexpr(0, words.numel, 2)]
    fours = [fx.rocdl.perm_b32(pairs[i + 1], pairs[i], _PAIRS) for i in range_constexpr(0, len(pairs), 2)]
    return fx.Vector.from_elements(fours, fx.Int32).bitcast(fx.Int8)


def fp8_codes(v: Any) -> Any:
    """f32 numbers as the target's fp8, in Int8.

    The instruction leaves half of a word as it was: in a word that is written as a whole, what was a number before.
    """
    numbers = list(v) if v.numel % 2 == 0 else [*v, 0.0]
    words = []
    for i in range_constexpr(0, len(numbers), 4):
        word = fx.rocdl.cvt_pk_fp8_f32(numbers[i], numbers[i + 1], numbers[i].bitcast(fx.Int32), False)
        words.append(fx.rocdl.cvt_pk_fp8_f32(*numbers[i + 2 : i + 4], word, True) if numbers[i + 2 :] else word)
    return fx.Vector.from_elements(words, fx.Int32).bitcast(fx.Int8)[: v.numel]


def fp4_codes(v: Any) -> Any:
    """An even number of f32 numbers as E2M1, two in an Int8, to the nearest, ties to even, at most 6.

    The sign moves to the code's top bit. Numbers from 1 on are rounded in their bits, smaller ones, which are
    0, 0.5 and 1, by a number whose unit in the last place is 0.5.
    """
    bits = v.bitcast(fx.Uint32)
    a = fx.arith.minnumf(fx.absf(v), fx.full_like(v, 6.0))
    large = a.bitcast(fx.Uint32)
    large = (large + (large >> 22 & 1) + 0x1FFFFF >> 22) - 252
    small = (a + 2.0**22).bitcast(fx.Uint32) & 3
    found = (a < 1.0).select(small, large) | bits >> 28 & 8
    joined = found[0::2] | found[1::2] << 4
    return joined.to(fx.Int8)


def e8m0(largest: Any, headroom: int) -> tuple[Any, Any]:
    """(E8M0 code, factor) for groups of a largest magnitude. headroom: exponent of the format's largest number."""
    rounded = largest.bitcast(fx.Int32) + _HALF_EXPONENT >> _EXPONENT_BITS
    code = fx.max(fx.min(rounded, _NO_NUMBER) - headroom, 0)
    code = (largest == largest).select(code, _NO_NUMBER)
    return code, (2 * 127 - code << _EXPONENT_BITS).bitcast(fx.Float32)


def headroom(quant: str) -> int:
    """The exponent of a micro-scaled format's largest number: 4 to 6, 128 to 240, or 256 to 448."""
    return 2 if quant == "mxfp4" else 7 if fp8_type() is fx.Float8E4M3FNUZ else 8


def group_max(v: Any, lanes: int) -> Any:
    """The largest magnitude of the numbers of `lanes` neighbouring lanes, NaN if there is one."""
    return fx.coop.warp_reduce(vector_reduce(magnitudes(v), "max"), "max", width=lanes).bitcast(fx.Float32)


def require_codes(output: Any, quant: str, scales: Any) -> None:
    """Raise ArgumentError where codes or scales have another type than the format's."""
    require_tensor("Output", output, *(bytes_of(fp8_type()) if "fp8" in quant else bytes_of()))
    require_tensor("the scales", scales, *(bytes_of(fx.Float8E8M0FNU) if quant[:2] == "mx" else (fx.Float32,)))


def store_scale(scales: fx.Tensor, row: Any, scale: Any, tiling: Tiling) -> None:
    """Write the scale of a row, by one of its threads."""
    _, thread = tiling.place()
    fx.buffer_ops.buffer_store(scale, row_resource(scales, row), 0, mask=thread == 0)


@flyc.kernel
def quant_kernel(tensors: Any, m: fx.Int32, tiling: fx.Constexpr[Tiling], quant: fx.Constexpr[str]) -> None:
    """Output[row], Scales[row] = Input[row] in 8 bits, for rows below m."""
    Input, Output, Scales = tensors.values()
    require_codes(Output, quant, Scales)
    row, _ = tiling.place()
    if tiling.rows == 1 or row < m:
        y, scale = quantised(RowMemory(Input, tiling, row).row(), quant)
        store_scale(Scales, row, scale, tiling)
        y.store(RowMemory(Output, tiling, row))


@cache
def build_quant_module(N: int, dtype_str: str = "f16", quant_dtype_str: str = "i8") -> tuple[Any, dict[str, int]]:
    """(launcher, its configuration): (Input (M, N), Output (M, N) of 8 bits, Scales (M) in f32, m_in, stream)."""
    require(quant_dtype_str in QUANTS, f"quantisation to {quant_dtype_str!r}", f"one of {', '.join(QUANTS)}")
    dtype = element_type(dtype_str)
    tiling = Tiling.of(N, dtype)
    launch = partial(launch_rows, dtype, tiling, quant_dtype_str)
    figures = {"threads": tiling.threads, "elements": tiling.width}
    return launcher("launch_quant", "Input Output Scales", launch, m_in=fx.Int32), figures


def launch_rows(dtype: Any, tiling: Tiling, quant: str, tensors: dict[str, Any], m: Any, stream: Any) -> None:
    """Launch the kernel for m rows, inside a launcher. dtype: of Input."""
    require_rows("Input", tensors["Input"], m, tiling.columns, dtype, apart=True)
    require_rows("Output", tensors["Output"], m, tiling.columns, apart=True)
    require_elements("Scales", tensors["Scales"], m, or_more=True)
    tiling.launch(quant_kernel(tensors, m, tiling, quant), m, stream)


@flyc.kernel
def block_quant_kernel(
    tensors: Any, m: fx.Int32, tiling: fx.Constexpr[Tiling], quant: fx.Constexpr[str], group: fx.Constexpr[int]
) -> None:
    """Output, Scales = the rows of Input below m, each group of elements with its scale."""
    Input, Output, Scales = tensors.values()
    require_codes(Output, quant, Scales)
    row, thread = tiling.place()
    lanes = group // tiling.width
    if tiling.rows == 1 or row < m:
        x, out = RowMemory(Input, tiling, row), RowMemory(Output, tiling, row, packed=2 if quant == "mxfp4" else 1)
        scales = row_resource(Scales, row)

        def visit(tile: Tile, carried: Any) -> Any:
            v = x.row().at(tile)
            largest = group_max(v, lanes)
            if quant.startswith("mx"):
                scale, factor = e8m0(largest, headroom(quant))
                scale = scale.to(fx.Uint8)
            else:
                scale, factor = scale_and_factor(largest, quant)
            out.store(tile, codes(v, factor, quant))
            first = (thread % lanes == 0) & (thread < tile.lanes)
            place = (tile.first + thread * tiling.width) // group
            fx.buffer_ops.buffer_store(scale, scales, place, mask=first)
            return carried

        tiling.walk(visit, fx.Int32(0))


@cache
def build_block_quant_module(N: int, dtype_str: str = "bf16", quant: str = "mxfp4", group: int | None = None) -> Any:
    """The launcher (Input (M, N), Output, Scales (M, N / group), m_in, stream).

    quant: "mxfp4" (Output (M, N / 2) bytes, Scales bytes), "mxfp8" (Scales bytes), "i8", "fp8" (Scales f32).
    group: elements that share a scale: 32, 64, 128 or 256, and N a multiple; by default 32, with f32 scales 128.
    """
    require(quant in GROUPS, f"quantisation of groups to {quant!r}", f"one of {', '.join(GROUPS)}")
    group = group or GROUPS[quant]
    fits = group in (32, 64, 128, 256) and N % group == 0
    require(fits, f"groups of {group} in rows of {N}", "32, 64, 128 or 256, and N a multiple of it")
    dtype = element_type(dtype_str)
    tiling = replace(Tiling.of(N, dtype), width=VECTOR_BYTES * 8 // dtype.width)

    def launch(tensors: dict[str, Any], m: Any, stream: Any) -> None:
        require_rows("Input", tensors["Input"], m, N, dtype, apart=True)
        require_rows("Output", tensors["Output"], m, N, bits=4 if quant == "mxfp4" else 8, apart=True)
        require_rows("Scales", tensors["Scales"], m, N // group, apart=True)
        tiling.launch(block_quant_kernel(tensors, m, tiling, quant, group), m, stream)

    return launcher("launch_block_quant", "Input Output Scales", launch, m_in=fx.Int32)


@chosen("Input Output Scales", "columns quant", THREADS)
def quant_rows(tensors: dict[str, Any], m_in: fx.Int32, columns: int, quant: str, threads: int, stream: Any) -> None:
    """The kernel of `build_quant_module` for rows of `columns` elements."""
    dtype = tensors["Input"].dtype
    launch_rows(dtype, Tiling.of(columns, dtype, threads), quant, tensors, m_in, stream)


def reference(x: Any, quant: str = "i8", largest: float = INT8_MAX) -> tuple[Any, Any]:
    """(x / scale in f32, scales): per-row quantisation before it is rounded. largest: of the format."""
    scales = x.float().abs().amax(-1) / largest
    scales[scales == 0] = 1
    return x.float() / scales[:, None], scales
