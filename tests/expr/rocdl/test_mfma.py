"""Every matrix instruction by name equals the matrix product of what the lanes hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.atoms.matrix_intrinsics import MATRIX_INTRINSICS, MatrixIntrinsic
from flydsl.errors import ArchError, ArgumentError, FlyError
from flydsl.expr import buffer_ops, rocdl
from flydsl.expr.typing import T
from tests.launchers import launcher_of
from tests.messages import raises_saying

LANES = 64
ON_GFX942 = [i for i in MATRIX_INTRINSICS.values() if "gfx942" in i.archs]
TORCH_TYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "xf32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i8": torch.int8,
    "fp8": torch.float8_e4m3fnuz,
    "bf8": torch.float8_e5m2fnuz,
}
# Of each four elements along k, a sparse A holds the first two: index 0 and 1, two bits each.
FIRST_TWO_OF_FOUR = 0x44444444


def formats(intrinsic: MatrixIntrinsic) -> tuple[str, str]:
    """The element formats of A and B, from the end of the name."""
    parts = intrinsic.name.removesuffix("_1k").split("_")
    if parts[-1] in TORCH_TYPES:
        return (parts[-2], parts[-1]) if parts[-2] in TORCH_TYPES else (parts[-1], parts[-1])
    element = next(name for name in ("bf16", "f16", "f32", "f64", "i8") if parts[-1].endswith(name))
    return element, element


def lanes_of(matrices: torch.Tensor, rows: int) -> torch.Tensor:
    """A lane's elements, (64, n), of A (blocks, rows, k), or of B with rows and columns exchanged.

    A lane holds n neighbours along k; lanes count rows first, then blocks, then along k.
    """
    blocks, _, k = matrices.shape
    groups = LANES // (rows * blocks)
    grouped = matrices.reshape(blocks, rows, groups, k // groups)
    return grouped.permute(2, 0, 1, 3).reshape(LANES, k // groups)


def product_in_lanes(product: torch.Tensor) -> torch.Tensor:
    """A lane's elements of the result (blocks, m, n), in register order (AMD matrix instruction calculator)."""
    blocks, m, n = product.shape
    count = blocks * m * n // LANES
    lanes = torch.empty(LANES, count, dtype=product.dtype)
    for lane in range(LANES):
        for register in range(count):
            lanes[lane, register] = product[place(register, lane, m, n, blocks, product.dtype == torch.float64)]
    return lanes


def place(register: int, lane: int, m: int, n: int, blocks: int, is_f64: bool) -> tuple[int, int, int]:
    if is_f64:
        return (lane // n % 4, lane // 16, lane % n) if blocks == 4 else (0, 4 * register + lane // n, lane % n)
    if m == 4:
        return lane // 4, register, lane % 4
    per_block = m * n // LANES
    within, step = register % per_block, 4 * (LANES // n)
    return register // per_block, step * (within // 4) + 4 * (lane // n) + within % 4, lane % n


def words(elements: torch.Tensor) -> torch.Tensor:
    """The elements of each lane as 32-bit words."""
    return elements.contiguous().view(torch.int32)


@pytest.mark.slow
@pytest.mark.parametrize("intrinsic", ON_GFX942, ids=lambda i: i.name)
@pytest.mark.diagonal(3)
def test_equals_the_matrix_product(intrinsic: MatrixIntrinsic) -> None:
    i, accumulated = intrinsic, {"f32": torch.float32, "i32": torch.int32, "f64": torch.float64}
    a_format, b_format = formats(i)
    result = accumulated[i.name.split("_")[1]]
    random = torch.Generator().manual_seed(0)
    a, b = (torch.randint(-4, 5, (i.blocks, rows, i.k), generator=random) for rows in (i.m, i.n))
    c = torch.randint(-9, 10, (i.blocks, i.m, i.n), generator=random).to(result)
    if i.sparse:
        a = a * torch.tensor([1, 1, 0, 0]).repeat(i.k // 4)
    a_lanes = lanes_of(a, i.m)
    if i.sparse:
        a_lanes = a_lanes.reshape(LANES, -1, 4)[:, :, :2].reshape(LANES, -1)
    operands = [
        words(a_lanes.to(TORCH_TYPES[a_format])),
        words(lanes_of(b, i.n).to(TORCH_TYPES[b_format])),
        words(product_in_lanes(c)),
    ]
    got = torch.zeros_like(operands[2])
    run(i, operands, got)
    expected = product_in_lanes((a.double() @ b.double().transpose(1, 2)).to(result) + c)
    assert torch.equal(got.view(result), expected)


def run(intrinsic: MatrixIntrinsic, operands: list[torch.Tensor], out: torch.Tensor) -> None:
    counts = [operand.shape[1] for operand in operands]

    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, Out: fx.Tensor):
        lane = fx.thread_idx.x
        registers = [
            fx.Vector.from_elements([X[lane, j] for j in range(count)])
            for X, count in zip((A, B, C), counts, strict=True)
        ]
        index = [FIRST_TWO_OF_FOUR] if intrinsic.sparse else []
        result = getattr(rocdl, intrinsic.name)(None, [*registers, *index, 0, 0])
        rsrc = buffer_ops.create_buffer_resource(Out)
        if isinstance(result, fx.Vector):
            for j, word in enumerate(result.bitcast(fx.Int32)):
                Out[lane, j] = word
        else:
            buffer_ops.buffer_store(result, rsrc, lane)

    launch = launcher_of(kernel, grid=1, block=LANES)
    launch(*operands, out)


def undefined(kind: str) -> Any:
    """Some value of a type."""
    words = {"f32": 1, "i32": 1, "f64": 2, "i64": 2}
    if kind in words:
        return {"f32": fx.Float32, "i32": fx.Int32, "f64": fx.Float64, "i64": fx.Int64}[kind](0)
    count, element = kind.removeprefix("vector<").removesuffix(">").split("x")
    bits = {"f32": 32, "i32": 32, "f64": 64, "f16": 16, "bf16": 16, "i16": 16}[element]
    return fx.Vector.filled([int(count) * bits // 32], fx.thread_idx.x, fx.Int32)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_every_target_compiles_what_it_has(arch: str, compiled: Callable[..., str]) -> None:
    has = [i for i in MATRIX_INTRINSICS.values() if arch in i.archs]

    def body(A: Any) -> None:
        rsrc = buffer_ops.create_buffer_resource(A)
        for i in has:
            index = [fx.thread_idx.x] if i.sparse else []
            result = getattr(rocdl, i.name)([*map(undefined, (i.a, i.b, i.c)), *index])
            parts = list(result.bitcast(fx.Int32)) if isinstance(result, fx.Vector) else [result]
            for part in parts[:1]:
                buffer_ops.buffer_store(part, rsrc, fx.thread_idx.x)

    isa = compiled(body, arch)
    assert isa.count("v_mfma_") + isa.count("v_smfmac_") >= len(has)


@pytest.mark.parametrize("shape", ["16x16x128", "32x32x64"])
def test_scaled(shape: str, compiled: Callable[..., str]) -> None:
    result = 4 if shape == "16x16x128" else 16

    def body(A: Any) -> None:
        registers = fx.Vector.filled([8], fx.thread_idx.x, fx.Int32)
        c = fx.Vector.filled([result], 0.0, fx.Float32)
        scale = fx.thread_idx.x
        function = getattr(rocdl, f"mfma_scale_f32_{shape}_f8f6f4")
        A[fx.thread_idx.x] = function(None, [registers, registers, c, 4, 4, 0, scale, 1, scale])[0]

    assert f"v_mfma_scale_f32_{shape}_f8f6f4" in compiled(body, "gfx950")
    with pytest.raises(ArchError, match="gfx942 does not have it"):
        compiled(body, "gfx942")


def quad(value: float = 0.0) -> Any:
    return fx.Vector.filled([4], value, fx.Float16)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda c: rocdl.mfma_f32_16x16x32_f16(None, [quad(), quad(), c]), ArchError, "it is for gfx950"),
        (
            lambda c: rocdl.mfma_f32_16x16x16f16(T.f32, [quad(), quad(), c]),
            ArgumentError,
            "the result is vector<4xf32>",
        ),
        (lambda c: rocdl.mfma_f32_16x16x16f16([quad(), c, c]), ArgumentError, "operand b .* not vector<4xf32>"),
        (lambda c: rocdl.mfma_f32_16x16x16f16([quad(), quad()]), ArgumentError, "3 to 6 operands"),
        (
            lambda c: rocdl.mfma_f32_16x16x16f16([quad(), quad(), c, 8]),
            ArgumentError,
            "cbsz .*: 8 is outside of 0 to 7",
        ),
        (
            lambda c: rocdl.mfma_f32_16x16x16f16([quad(), quad(), c, fx.thread_idx.x]),
            ArgumentError,
            "must be known at compile time",
        ),
        (lambda c: rocdl.mfma_f32_16x16x16f16(), ArgumentError, "takes a list of 3 to 6 operands"),
    ],
)
def test_wrong_calls_are_refused_at_the_users_line(
    call: Callable[[Any], Any], error: type[FlyError], says: str, compiled: Callable[..., str]
) -> None:
    with raises_saying(error, says) as info:
        compiled(lambda A: call(fx.Vector.filled([4], 0.0, fx.Float32)))
    assert info.value.at.file == __file__


def test_flydsls_kernels_split_the_operands_of_a_matrix_instruction_themselves() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        lane = fx.thread_idx.x
        zero = fx.Vector.filled(4, 0.0, fx.Float32)
        operands = rocdl._split_mfma_operands([A[lane], B[lane], zero, 0, 0, 0])
        once = rocdl.mfma_f32_16x16x4f32(T.vec(4, T.f32), *operands).result
        operands = (*rocdl._split_mfma_operands([A[lane], B[lane], once])[:5], rocdl._blgp_attr(0))
        twice = rocdl.mfma_f32_16x16x4f32(T.vec(4, T.f32), *operands).result
        for i in fx.range_constexpr(4):
            C[lane * 4 + i] = fx.Vector(twice)[i]

    a, b, c = torch.randn(4, 16), torch.randn(4, 16), torch.zeros(256)
    launcher_of(kernel, grid=1, block=64)(a.flatten(), b.flatten(), c)
    torch.testing.assert_close(c, product_in_lanes(2 * (a.T @ b)[None]).flatten())
