"""Example 03 of the documents: the product of one tile by matrix instructions; and products like it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import LayoutError
from tests.kernels import examples
from tests.launchers import launcher_of

WAVES_2X2 = fx.make_layout((2, 2, 1), (1, 2, 0))
F32 = fx.rocdl.MFMA(16, 16, 4, fx.Float32)


@flyc.kernel
def product_kernel(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    tiled_mma: fx.TiledMma,
    copy_A: fx.TiledCopy,
    copy_B: fx.TiledCopy,
    copy_C: fx.TiledCopy,
    tile: fx.Constexpr[tuple],
    tiles_k: fx.Int32,
    order: fx.Constexpr,
):
    """One tile of C = A B^T. Rows of A, B and C past their ends are cut off by the bounds of the buffers."""
    tid = fx.thread_idx.x
    bid_m, bid_n, _ = fx.block_idx
    bm, bn, bk = tile

    A, B, C = (fx.rocdl.make_buffer_tensor(tensor, max_size=False) for tensor in (A, B, C))
    gA = fx.flat_divide(A, (bm, bk))[None, None, bid_m, None]  # (M, K, k)
    gB = fx.flat_divide(B, (bn, bk))[None, None, bid_n, None]  # (N, K, k)
    gC = fx.flat_divide(C, (bm, bn))[None, None, bid_m, bid_n]

    thr_mma = tiled_mma.get_slice(tid)
    thr_A, thr_B, thr_C = copy_A.get_slice(tid), copy_B.get_slice(tid), copy_C.get_slice(tid)
    frag_A = thr_mma.make_fragment_A(gA[None, None, 0])
    frag_B = thr_mma.make_fragment_B(gB[None, None, 0])
    frag_C = thr_mma.make_fragment_C(gC)
    src_A, src_B = thr_A.partition_S(gA), thr_B.partition_S(gB)

    frag_C.fill(0)
    for k in range(tiles_k):
        fx.copy(copy_A.atom, src_A[None, None, None, k], thr_A.retile(frag_A))
        fx.copy(copy_B.atom, src_B[None, None, None, k], thr_B.retile(frag_B))
        fx.gemm(tiled_mma, frag_C, frag_A, frag_B, frag_C, traversal_order=order)

    # Columns past the end of a row would be those of the next one.
    where = thr_C.partition_D(fx.make_identity_tensor((bm, bn)))
    values, rows, columns = where.shape
    inside = fx.make_rmem_tensor((fx.size(values), rows, columns), fx.Boolean)
    for i in fx.range_constexpr(fx.size(inside)):
        inside[i] = where[i][1] + bid_n * bn < fx.get_scalar(C.shape[1])
    fx.copy(copy_C.atom, thr_C.retile(frag_C), thr_C.partition_D(gC), pred=inside)


@flyc.jit
def product(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    op: fx.Constexpr,
    waves: fx.Constexpr = WAVES_2X2,
    order: fx.Constexpr = None,
    repeat: fx.Constexpr[int] = 2,
):
    """`repeat`: instructions of a wave along each mode of the tile."""
    tiled_mma = fx.make_tiled_mma(fx.make_mma_atom(op), waves)
    bm, bn, bk = tile = tuple(repeat * extent for extent in tiled_mma.tile_size_mnk)
    ab = fx.make_copy_atom(fx.rocdl.BufferCopy(A.dtype.width), A.dtype)
    c = fx.make_copy_atom(fx.rocdl.BufferCopy(C.dtype.width), C.dtype)
    product_kernel(
        A,
        B,
        C,
        tiled_mma,
        fx.make_tiled_copy_A(ab, tiled_mma),
        fx.make_tiled_copy_B(ab, tiled_mma),
        fx.make_tiled_copy_C(c, tiled_mma),
        tile,
        fx.get_scalar(A.shape[1]) // bk,
        order,
    ).launch(
        grid=((fx.get_scalar(C.shape[0]) + bm - 1) // bm, (fx.get_scalar(C.shape[1]) + bn - 1) // bn),
        block=fx.size(tiled_mma.thr_layout_vmnk),
    )


def instructions(isa: str) -> list[str]:
    return [line for line in isa.splitlines() if line.startswith("\t") and line.strip()[0] not in ".;"]


def small(*shape: int, dtype: Any = torch.float32, seed: int = 0) -> torch.Tensor:
    """Small whole numbers: sums of their products are exact in every type that holds the result."""
    return torch.randint(-4, 5, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def test_example_equals_torch() -> None:
    A, B, C = torch.randn(64, 8), torch.randn(64, 8), torch.full((64, 64), torch.nan)
    examples.tiledMma(A, B, C)
    torch.testing.assert_close(C, A @ B.T)


def test_machine_code_is_as_good_as_the_reference() -> None:
    """FlyDSL 0.2.2 takes 228 instructions, 32 VGPRs and 8 MFMA for this program."""
    A, B, C = torch.randn(64, 8), torch.randn(64, 8), torch.zeros(64, 64)
    artifact = examples.tiledMma.lower(A, B, C).artifact
    artifact(A, B, C)
    torch.testing.assert_close(C, A @ B.T)
    lines, resources = instructions(artifact.isa), artifact.kernels[0].resources
    assert len(lines) <= 228
    assert sum("v_mfma_f32_16x16x4" in line for line in lines) == 8
    assert resources.vgprs <= 32
    assert resources.scratch_bytes == 0
    assert resources.vgpr_spills == resources.sgpr_spills == 0


@pytest.mark.parametrize(
    "shape",
    [(64, 64, 8), (64, 64, 40), (128, 192, 16), (63, 64, 8), (65, 64, 8), (1, 1, 8), (64, 63, 8), (100, 129, 24)],
    ids=str,
)
@pytest.mark.diagonal(2)
def test_sizes_around_the_tile(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    A, B, C = small(m, k), small(n, k, seed=1), torch.full((m, n), torch.nan)
    product(A, B, C, F32)
    assert torch.equal(C, A @ B.T)


def test_what_lies_behind_c_is_left_alone() -> None:
    A, B, memory = small(70, 8), small(70, 8, seed=1), torch.full((5000,), torch.nan)
    C = memory[:4900].view(70, 70)
    product(A, B, C, F32)
    assert torch.equal(C, A @ B.T)
    assert memory[4900:].isnan().all()


@pytest.mark.parametrize("transposed", ["A", "B", "AB", "C", "ABC"])
@pytest.mark.diagonal(2)
def test_transposed_operands(transposed: str) -> None:
    def matrix(name: str, rows: int, columns: int) -> torch.Tensor:
        seed = ord(name)
        return small(columns, rows, seed=seed).T if name in transposed else small(rows, columns, seed=seed)

    A, B, C = matrix("A", 64, 16), matrix("B", 128, 16), matrix("C", 64, 128)
    product(A, B, C, F32)
    assert torch.equal(C, A @ B.T)


@pytest.mark.checked
@pytest.mark.parametrize(
    ("op", "ab", "c"),
    [
        (fx.rocdl.MFMA(32, 32, 2, fx.Float32), torch.float32, torch.float32),
        (fx.rocdl.MFMA(32, 32, 8, fx.Float16), torch.float16, torch.float32),
        (fx.rocdl.MFMA(16, 16, 16, fx.Float16), torch.float16, torch.float32),
        (fx.rocdl.MFMA(16, 16, 16, fx.BFloat16), torch.bfloat16, torch.float32),
        (fx.rocdl.MFMA(16, 16, 32, fx.Float8E4M3FNUZ), torch.float8_e4m3fnuz, torch.float32),
        (fx.rocdl.MFMA(16, 16, 32, fx.Int8), torch.int8, torch.int32),
        (fx.rocdl.MFMA(32, 32, 16, fx.Int8), torch.int8, torch.int32),
        (fx.rocdl.MFMA(16, 16, 4, fx.Float64), torch.float64, torch.float64),
    ],
    ids=str,
)
@pytest.mark.diagonal(2)
def test_instructions(op: Any, ab: torch.dtype, c: torch.dtype) -> None:
    m, n, k = (2 * extent for extent in op.shape_mnk)
    A, B, C = small(m, k, dtype=ab), small(n, k, dtype=ab, seed=1), torch.full((m, n), 77, dtype=c)
    product(A, B, C, op, repeat=1)
    assert torch.equal(C.double(), A.double() @ B.double().T)


@pytest.mark.parametrize(
    "waves", [None, fx.make_layout((1, 4, 1), (0, 1, 0)), fx.make_layout((2, 1), (1, 0)), (2, 2, 1)], ids=str
)
@pytest.mark.diagonal(2)
def test_arrangements_of_waves(waves: Any) -> None:
    A, B, C = small(64, 8), small(128, 8, seed=1), torch.full((64, 128), torch.nan)
    product(A, B, C, F32, waves)
    assert torch.equal(C, A @ B.T)


@pytest.mark.parametrize("dtype", [fx.Float32, fx.Float16, fx.BFloat16, fx.Float64])
@pytest.mark.diagonal(2)
def test_multiply_adds_of_single_threads(dtype: Any) -> None:
    kind = {
        fx.Float32: torch.float32,
        fx.Float16: torch.float16,
        fx.BFloat16: torch.bfloat16,
        fx.Float64: torch.float64,
    }
    A, B = small(16, 4, dtype=kind[dtype]), small(16, 4, dtype=kind[dtype], seed=1)
    C = torch.full((16, 16), torch.nan, dtype=kind[dtype])
    product(A, B, C, fx.UniversalFMA(dtype), fx.make_layout((8, 8, 1), (1, 8, 0)))
    assert torch.equal(C.double(), A.double() @ B.double().T)


@pytest.mark.parametrize("order", [None, *fx.GemmTraversalOrder, "kmn_serpentine"], ids=str)
@pytest.mark.diagonal(3)
def test_the_order_of_calls_does_not_change_the_result(order: Any) -> None:
    A, B, C = small(32, 16), small(32, 16, seed=1), torch.full((32, 32), torch.nan)
    product(A, B, C, F32, None, order)
    assert torch.equal(C, A @ B.T)


def test_orders_are_also_spelt_as_flydsl_does() -> None:
    assert fx.GemmTraversalOrder.KMN_Serpentine is fx.GemmTraversalOrder.KMN_SERPENTINE
    A, B, C = small(32, 16), small(32, 16, seed=1), torch.zeros(32, 32)
    codes = [
        product.lower(A, B, C, F32, None, order).artifact.isa for order in ("kmn", "kmn_serpentine", "KMN_SERPENTINE")
    ]
    assert codes[1] == codes[2] != codes[0]
    with pytest.raises(LayoutError, match="'KMX'"):
        product(A, B, C, F32, None, "kmx")


def test_fnuz_atoms_take_the_formats_of_gfx950(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx950")
    A, B, C = small(32, 64), small(32, 64, seed=1), torch.full((32, 32), torch.nan)
    A, B = (tensor.to(torch.float8_e4m3fn) for tensor in (A, B))
    expected = A.float() @ B.float().T

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        product(A, B, C, fx.rocdl.MFMA(16, 16, 32, fx.Float8E4M3FNUZ))

    with pytest.warns(UserWarning, match="gfx950 takes the bits of f8E4M3FNUZ .* for f8E4M3FN"):
        launch(*(t.view(torch.float8_e4m3fnuz) for t in (A, B)), C)
    assert torch.equal(C, expected)


# --- fragments and their modes ---------------------------------------------------------------------------------------


def multiply(body: Any, m: int = 64, n: int = 64, k: int = 8) -> None:
    """Run a kernel body on the partitions and fragments of one tile, and compare with torch."""

    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        tiles = ((A, (m, k)), (B, (n, k)), (C, (m, n)))
        tA, tB, tC = (fx.zipped_divide(tensor, fx.make_tile(*tile))[None, 0] for tensor, tile in tiles)
        tiled_mma = fx.make_tiled_mma(fx.make_mma_atom(F32), WAVES_2X2)
        body(tiled_mma, fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), fx.thread_idx.x, tA, tB, tC)

    launch = launcher_of(kernel, grid=1, block=256)
    A, B, C = small(m, k), small(n, k, seed=1), torch.full((m, n), torch.nan)
    launch(A, B, C)
    assert torch.equal(C, A @ B.T)


def test_partitions_of_the_mma_are_copied_by_single_values() -> None:
    """partition_A, _B and _C have the form of the fragments, so that no tiled copy is needed."""

    def body(tiled_mma: Any, atom: Any, thread: Any, tA: Any, tB: Any, tC: Any) -> None:
        thr_mma = tiled_mma.get_slice(thread)
        pA, pB, pC = thr_mma.partition_A(tA), thr_mma.partition_B(tB), thr_mma.partition_C(tC)
        fA, fB, fC = (fx.make_fragment_like(part) for part in (pA, pB, pC))
        fx.copy(atom, pA, fA)
        fx.copy(atom, pB, fB)
        fC.fill(0)
        fx.gemm(tiled_mma, fC, fA, fB, fC)
        fx.copy(atom, fC, pC)

    multiply(body)


@pytest.mark.parametrize("modes", [1, 2])
def test_gemm_of_fragments_with_fewer_modes(modes: int) -> None:
    """Of one call each; and of several along M and N, at one position of K."""

    def body(tiled_mma: Any, atom: Any, thread: Any, tA: Any, tB: Any, tC: Any) -> None:
        thr_mma = tiled_mma.get_slice(thread)
        fA, fB, fC = thr_mma.make_fragment_A(tA), thr_mma.make_fragment_B(tB), thr_mma.make_fragment_C(tC)
        fx.copy(atom, thr_mma.partition_A(tA), fA)
        fx.copy(atom, thr_mma.partition_B(tB), fB)
        fC.fill(0)
        for k in fx.range_constexpr(2):
            if fx.const_expr(modes == 2):
                fx.gemm(tiled_mma.atom, fC, fA[None, None, k], fB[None, None, k], fC)
            else:
                for i in fx.range_constexpr(4):
                    m, n = i % 2, i // 2
                    c = fC[None, m, n]
                    fx.gemm(tiled_mma.atom, c, fA[None, m, k], fB[None, n, k], c)
        fx.copy(atom, fC, thr_mma.partition_C(tC))

    multiply(body)


@pytest.mark.parametrize("order", ["KMN", "MNK", "NMK_SERPENTINE"])
def test_gemm_into_another_fragment(order: str) -> None:
    """D = A B^T + C with D and C apart: C, here 3, is added once, however many calls K takes."""

    def body(tiled_mma: Any, atom: Any, thread: Any, tA: Any, tB: Any, tC: Any) -> None:
        thr_mma = tiled_mma.get_slice(thread)
        fA, fB = thr_mma.make_fragment_A(tA), thr_mma.make_fragment_B(tB)
        three, result = thr_mma.make_fragment_C(tC), thr_mma.make_fragment_C(tC)
        fx.copy(atom, thr_mma.partition_A(tA), fA)
        fx.copy(atom, thr_mma.partition_B(tB), fB)
        three.fill(3)
        fx.gemm(tiled_mma, result, fA, fB, three, traversal_order=order)
        result.store(result.load() - three.load())
        fx.copy(atom, result, thr_mma.partition_C(tC))

    multiply(body)


def test_fragments_of_several_stages() -> None:
    """The halves of K are loaded into stages of their own, before any of them is multiplied."""

    def body(tiled_mma: Any, atom: Any, thread: Any, tA: Any, tB: Any, tC: Any) -> None:
        thr_mma = tiled_mma.get_slice(thread)
        gA, gB = (fx.flat_divide(t, (64, 8))[None, None, 0, None] for t in (tA, tB))
        copy_A = fx.make_tiled_copy_A(atom, tiled_mma).get_slice(thread)
        copy_B = fx.make_tiled_copy_B(atom, tiled_mma).get_slice(thread)
        fA = thr_mma.make_fragment_A(gA[None, None, 0], stages=2)
        fB = thr_mma.make_fragment_B(gB[None, None, 0], stages=2)
        fC = thr_mma.make_fragment_C(tC)
        fx.copy(atom, copy_A.partition_S(gA), copy_A.retile(fA))
        for stage in fx.range_constexpr(2):
            fx.copy(atom, copy_B.partition_S(gB)[None, None, None, stage], copy_B.retile(fB)[None, None, None, stage])
        fC.fill(0)
        for stage in fx.range_constexpr(2):
            fx.gemm(tiled_mma, fC, fA[None, None, None, stage], fB[None, None, None, stage], fC)
        fx.copy(atom, fC, thr_mma.partition_C(tC))

    multiply(body, k=16)
