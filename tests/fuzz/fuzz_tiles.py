"""Tiled copies and products of matrices with random layouts compute what torch computes, or are refused.

Copies: layouts of threads and values, tiles, widths, types and strides; of matrices whose edges cut tiles in two, with
a predicate for each copy. Products: instructions, layouts of waves, sizes
that are no multiples of the tile, transposed operands, orders of traversal. Opt levels and GPUs take turns.
"""

from __future__ import annotations

import os
import random
from math import prod
from typing import Any
from unittest import mock

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.arch import Arch
from flydsl.errors import FlyError
from flydsl.simulator.errors import MemoryFault
from tests.fuzz.archs import ARCHS
from tests.kernels.test_tiled_mma import product

COPIED = {torch.float32: fx.Float32, torch.float16: fx.Float16, torch.int8: fx.Int8, torch.float64: fx.Float64}
_TORCH = {fx.Float32: torch.float32, fx.Float16: torch.float16, fx.BFloat16: torch.bfloat16, fx.Int8: torch.int8,
          fx.Float64: torch.float64, fx.Float8E4M3FN: torch.float8_e4m3fn, fx.Float8E5M2: torch.float8_e5m2,
          fx.Float8E4M3FNUZ: torch.float8_e4m3fnuz}  # fmt: skip
_RESULTS = {fx.Int8: torch.int32, fx.Float64: torch.float64}
_EVERY_CDNA = (
    (16, 16, 4, fx.Float32), (32, 32, 2, fx.Float32), (16, 16, 16, fx.Float16), (32, 32, 8, fx.BFloat16),
    (16, 16, 4, fx.Float64),
)  # fmt: skip
MULTIPLIED = {
    "cdna2": _EVERY_CDNA,
    "cdna3": (*_EVERY_CDNA, (16, 16, 32, fx.Int8), (32, 32, 16, fx.Float8E4M3FNUZ)),
    "cdna4": (*_EVERY_CDNA, (16, 16, 32, fx.Float16), (32, 32, 16, fx.BFloat16), (16, 16, 64, fx.Int8),
              (32, 32, 32, fx.Int8), (16, 16, 32, fx.Float8E4M3FN)),
    **dict.fromkeys(
        ("rdna3", "rdna3.5"), ((16, 16, 16, fx.Float16), (16, 16, 16, fx.BFloat16), (16, 16, 16, fx.Int8))
    ),
    "rdna4": ((16, 16, 16, fx.Float16), (16, 16, 16, fx.BFloat16), (16, 16, 16, fx.Int8), (16, 16, 16, fx.Float8E5M2)),
    "cdna5": ((16, 16, 4, fx.Float32), (16, 16, 32, fx.Float16), (16, 16, 32, fx.BFloat16), (16, 16, 64, fx.Int8),
              (16, 16, 64, fx.Float8E4M3FN), (16, 16, 128, fx.Float8E5M2)),
}  # fmt: skip
"""Shapes and types of matrix instructions, by the set of instructions that they are in."""


@flyc.kernel
def copy_kernel(
    A: fx.Tensor, B: fx.Tensor, bits: fx.Constexpr[int], dtype: fx.Constexpr, tile: fx.Constexpr[tuple],
    thr: fx.Constexpr, val: fx.Constexpr, through_lds: fx.Constexpr[bool],
):  # fmt: skip
    atom = fx.make_copy_atom(fx.UniversalCopy(bits), dtype)
    tile_mn, layout_tv = fx.make_layout_tv(thr, val)
    part = fx.make_tiled_copy(atom, layout_tv, tile_mn).get_slice(fx.thread_idx.x)
    tiles_A, tiles_B = (fx.zipped_divide(tensor, fx.make_tile(*tile)) for tensor in (A, B))
    source = part.partition_S(fx.slice(tiles_A, (None, fx.block_idx.x)))
    target = part.partition_D(fx.slice(tiles_B, (None, fx.block_idx.x)))
    if through_lds:
        shared = fx.make_view(fx.get_dyn_shared(dtype), fx.make_ordered_layout(tile, (1, 0)))
        one = fx.make_copy_atom(fx.UniversalCopy(dtype.width), dtype)
        fx.copy(one, source, part.partition_D(shared))
        fx.barrier()
        source = part.partition_S(shared)
    fragment = fx.make_fragment_like(source)
    fx.copy(atom, source, fragment)
    fx.copy(atom, fragment, target)


@flyc.jit
def copy(
    A: fx.Tensor, B: fx.Tensor, blocks: fx.Int32, bits: fx.Constexpr[int], dtype: fx.Constexpr,
    tile: fx.Constexpr[tuple], thr: fx.Constexpr, val: fx.Constexpr, through_lds: fx.Constexpr[bool],
):  # fmt: skip
    smem = prod(tile) * dtype.width // 8 if through_lds else 0
    copy_kernel(A, B, bits, dtype, tile, thr, val, through_lds).launch(grid=blocks, block=fx.size(thr), smem=smem)


def any_layout(numbers: random.Random, extents: tuple[int, ...]) -> Any:
    """A compact layout of two modes, rows or columns first."""
    shape = (numbers.choice(extents), numbers.choice(extents))
    return fx.make_ordered_layout(shape, numbers.choice([(0, 1), (1, 0)]))


def check_copy(seed: int) -> bool:
    """Whether a copy was made. AssertionError if it is not what torch makes of it."""
    numbers = random.Random(seed)
    kind = numbers.choice(list(COPIED))
    dtype, thr, val = COPIED[kind], any_layout(numbers, (1, 2, 4, 8)), any_layout(numbers, (1, 2, 4))
    repeats = numbers.choice((1, 1, 2)), numbers.choice((1, 1, 2))
    tile = tuple(t * v * r for t, v, r in zip(thr.shape, val.shape, repeats, strict=True))
    if numbers.random() < 0.1:
        tile = (tile[0] + numbers.choice((0, 1)), tile[1] * 3 // 2)
    grid = numbers.choice((1, 2)), numbers.choice((1, 2))
    bits = dtype.width * numbers.choice((1, 1, 2, 4))
    shape = tuple(t * g for t, g in zip(tile, grid, strict=True))
    A, B = (any_matrix(numbers, shape, kind) for _ in range(2))
    B.zero_()
    through_lds = numbers.random() < 0.3
    said = (
        f"check_copy({seed}): {kind}, threads {thr}, values {val}, tile {tile}, {bits} bits, {A.stride()} {B.stride()}"
    )
    try:
        copy(A, B, prod(grid), bits, dtype, tile, thr, val, through_lds)
    except FlyError as error:
        # Wide accesses of what is not aligned are faults, and a tile that threads do not divide is exceeded by them;
        # nothing else goes past an end.
        reaches_past = any(n % (t * v) for n, t, v in zip(tile, thr.shape, val.shape, strict=True))
        is_told = error.at is not None and bool(error.hint)
        is_right = is_told and (bits > dtype.width or reaches_past or not isinstance(error, MemoryFault))
        if not is_right:
            raise AssertionError(f"{said}: {error}") from error
        return False
    assert torch.equal(A, B), f"{said}\n{A}\nbecomes\n{B}"
    return True


@flyc.kernel
def edges_kernel(
    A: fx.Tensor, B: fx.Tensor, bits: fx.Constexpr[int], dtype: fx.Constexpr, thr: fx.Constexpr, val: fx.Constexpr,
    through_lds: fx.Constexpr[bool],
):  # fmt: skip
    atom = fx.make_copy_atom(fx.UniversalCopy(bits), dtype)
    tiled = fx.make_tiled_copy_tv(atom, thr, val)
    part, (i, j, _) = tiled.get_slice(fx.thread_idx.x), fx.block_idx
    tile = tuple(t * v for t, v in zip(thr.shape, val.shape, strict=True))
    tile_A, tile_B = (fx.flat_divide(tensor, tile)[None, None, i, j] for tensor in (A, B))
    at = part.partition_S(fx.make_identity_tensor(tile))[(0, None), None, None]
    inside = fx.make_fragment_like(at, dtype=fx.Boolean)
    for k in fx.range_constexpr(fx.size(inside.shape).unpack()):
        inside[k] = fx.elem_less((at[k][0] + i * tile[0], at[k][1] + j * tile[1]), A.shape)
    fragment = fx.make_fragment_like(part.partition_S(tile_A))
    fragment.fill(0)
    fx.copy(atom, part.partition_S(tile_A), fragment, pred=inside)
    if through_lds:
        shared = fx.make_view(fx.get_dyn_shared(dtype), fx.make_ordered_layout(tile, (1, 0)))
        one = fx.make_copy_atom(fx.UniversalCopy(dtype.width), dtype)
        fx.copy(one, fragment, part.partition_D(shared))
        fx.barrier()
        fx.copy(one, part.partition_S(shared), fragment)
    fx.copy(atom, fragment, part.partition_D(tile_B), pred=inside)


@flyc.jit
def copy_to_the_edges(
    A: fx.Tensor, B: fx.Tensor, grid: fx.Constexpr, bits: fx.Constexpr[int], dtype: fx.Constexpr, thr: fx.Constexpr,
    val: fx.Constexpr, through_lds: fx.Constexpr[bool],
):  # fmt: skip
    smem = fx.size(thr) * fx.size(val) * dtype.width // 8 if through_lds else 0
    edges_kernel(A, B, bits, dtype, thr, val, through_lds).launch(grid=grid, block=fx.size(thr), smem=smem)


def check_edges(seed: int) -> None:
    """AssertionError if a matrix whose edges cut tiles in two is not copied, or what lies around it changes."""
    numbers = random.Random(seed)
    kind = numbers.choice(list(COPIED))
    dtype, thr, val = COPIED[kind], any_layout(numbers, (1, 2, 4, 8, 5)), any_layout(numbers, (1, 2, 4, 3))
    through_lds = numbers.random() < 0.5
    wide = val.shape[1] if val.shape[1] in (2, 4) and val.stride[1] == 1 and dtype.width * val.shape[1] <= 128 else 1
    tile = tuple(t * v for t, v in zip(thr.shape, val.shape, strict=True))
    m, n = numbers.randint(1, 2 * tile[0] + 1), wide * numbers.randint(1, -(-2 * tile[1] // wide))
    around = torch.full((m + 2, n + 2 * wide), 77).to(kind)
    A, B = any_matrix(numbers, (m, n), kind).contiguous(), around[1 : m + 1, wide : wide + n]
    grid = tuple(-(-extent // size) for extent, size in zip((m, n), tile, strict=True))
    said = f"check_edges({seed}): {kind}, {(m, n)}, threads {thr}, values {val}, {wide} at once"
    try:
        copy_to_the_edges(A, B, grid, dtype.width * wide, dtype, thr, val, through_lds)
    except FlyError as error:
        raise AssertionError(f"{said}: {error}") from error
    expected = torch.full_like(around, 77)
    expected[1 : m + 1, wide : wide + n] = A
    assert torch.equal(around, expected), f"{said}\n{A}\nbecomes\n{around}"


def any_matrix(numbers: random.Random, shape: tuple[int, ...], kind: torch.dtype) -> torch.Tensor:
    """Small whole numbers, whose sums of products are exact; rows or columns first."""
    generator = torch.Generator().manual_seed(numbers.randrange(1 << 32))
    is_transposed = numbers.random() < 0.3
    made = torch.randint(-4, 5, shape[::-1] if is_transposed else shape, generator=generator).to(kind)
    return made.T if is_transposed else made


def check_product(seed: int, arch: Arch) -> None:
    """AssertionError if a product is not torch's."""
    numbers = random.Random(seed)
    m, n, k, dtype = numbers.choice(MULTIPLIED[arch.instruction_sets[0]])
    signs = {"sign_a": True, "sign_b": True} if arch.wave_size == 32 and dtype is fx.Int8 else {}
    op = (fx.rocdl.MFMA if arch.wave_size == 64 else fx.rocdl.WMMA)(m, n, k, dtype, **signs)
    ab, c = _TORCH[dtype], _RESULTS.get(dtype, torch.float32)
    extents = numbers.choice((1, 2)), numbers.choice((1, 2)), 1
    waves = fx.make_ordered_layout(extents, numbers.choice(((1, 0, 2), (0, 1, 2))))
    repeat = numbers.choice((1, 2))
    depth = repeat * op.shape_mnk[2]
    m, n, k = numbers.randint(1, 130), numbers.randint(1, 130), depth * numbers.randint(1, 3)
    A, B = any_matrix(numbers, (m, k), ab), any_matrix(numbers, (n, k), ab)
    C = torch.full((m, n), 77, dtype=c)  # rows that are cut off lie past its end, as it is row-major
    order = numbers.choice([None, *fx.GemmTraversalOrder])
    said = f"check_product({seed}, {arch.name}): {op}, {waves}, {order}, {(m, n, k)}, {A.stride()} {B.stride()}"
    try:
        product(A, B, C, op, waves, order, repeat)
    except FlyError as error:
        raise AssertionError(f"{said}: {error}") from error
    assert torch.equal(C.double(), A.double() @ B.double().T), said


def run(seed: int, count: int) -> None:
    """Check `count` copies and products, in the matrix and at its edges. Most copies must be made, and not refused."""
    chosen, findings, made, copies = random.Random(seed), [], 0, 0
    for number in range(count):
        one = chosen.randrange(1 << 32)
        arch = chosen.choice(ARCHS)
        with mock.patch.dict(os.environ, FLYDSL_COMPILE_OPT_LEVEL=str(chosen.randrange(4)), FLYDSL_GPU_ARCH=arch.name):
            try:
                if number % 4 == 3:
                    check_product(one, arch)
                elif number % 4 == 2:
                    check_edges(one)
                else:
                    copies += 1
                    made += check_copy(one)
            except AssertionError as finding:
                findings.append(str(finding))
    assert not findings, "\n\n".join(findings)
    assert made * 4 >= copies, f"only {made} of {copies} copies were made"
