"""Example 04 of the documents, in the form in which it is there to be used: kernels.preshuffle_gemm_v2."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch

import flydsl.expr as fx
from flydsl.compiler import jit_function
from flydsl.errors import ArgumentError
from kernels import preshuffle_gemm
from kernels import preshuffle_gemm_v2 as kernel
from tests.kernels.checks import checking
from tests.kernels.gemm import factors, nans, plain

F16, FP8 = (getattr(torch, name) for name in kernel.DTYPES)
REFERENCE_SIZE = 4096


def operands(shape: tuple[int, int, int], dtype: Any) -> tuple[Any, Any, Any]:
    """A and B of small whole numbers, and C of NaNs: every element of C must be written."""
    m, n, k = shape
    generator = torch.Generator().manual_seed(m + n + k)
    a, b = (torch.randint(-3, 4, size, generator=generator).to(dtype) for size in ((m, k), (n, k)))
    return a, b, torch.full((m, n), torch.nan, dtype=torch.float16)


def fits(shape: tuple[int, int, int], dtype: Any) -> bool:
    """K is a whole number of packs of 16 bytes."""
    return shape[2] * dtype.itemsize % kernel.CHUNK_BYTES == 0


@pytest.mark.checked
@pytest.mark.parametrize("dtype", [F16, FP8], ids=kernel.DTYPES)
@pytest.mark.parametrize("shape", kernel.SHAPES, ids=str)
@pytest.mark.diagonal(4)
def test_equals_torch(shape: tuple[int, int, int], dtype: Any) -> None:
    if not fits(shape, dtype):
        shape = (*shape[:2], shape[2] + 8)
    a, b, c = operands(shape, dtype)
    kernel.preshuffle_gemm(a, kernel.shuffle(b), c)
    assert torch.equal(c, kernel.reference(a, b))


@pytest.mark.parametrize("dtype", [F16, FP8], ids=kernel.DTYPES)
@pytest.mark.diagonal(2)
def test_random_values(dtype: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(size, generator=generator).to(dtype) for size in ((128, 256), (128, 256)))
    c = torch.full((128, 128), torch.nan, dtype=torch.float16)
    kernel.preshuffle_gemm(a, kernel.shuffle(b), c)
    torch.testing.assert_close(c, kernel.reference(a, b), rtol=2e-3, atol=2e-2)


def test_what_lies_behind_c_is_left_alone() -> None:
    a, b, _ = operands((100, 72, 64), F16)
    memory = torch.full((8000,), torch.nan, dtype=torch.float16)
    c = memory[:7200].view(100, 72)
    kernel.preshuffle_gemm(a, kernel.shuffle(b), c)
    assert torch.equal(c, kernel.reference(a, b))
    assert memory[7200:].isnan().all()


def test_m_may_change_without_compiling_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = operands((256, 128, 64), F16)
    shuffled = kernel.shuffle(b)
    kernel.preshuffle_gemm(a[:128], shuffled, c[:128])
    monkeypatch.setattr(jit_function, "Pipeline", None)  # what compiles
    kernel.preshuffle_gemm(a, shuffled, c)
    assert torch.equal(c, kernel.reference(a, b))


def test_shuffle_puts_what_a_lane_reads_side_by_side() -> None:
    b = torch.arange(128 * 64).reshape(128, 64).to(torch.float16)
    shuffled = kernel.shuffle(b)
    assert torch.equal(shuffled.sort().values, b.flatten().sort().values)
    # The first lane has row 0, k 0-7; lane 1 has row 1; lane 16 has row 0 again, k 8-15.
    for lane, row, k in ((0, 0, 0), (1, 1, 0), (16, 0, 8), (63, 15, 24)):
        assert torch.equal(shuffled[8 * lane : 8 * lane + 8], b[row, k : k + 8])


@cache
def artifact(dtype: Any) -> Any:
    """The compiled launch for M = N = K = 4096, which is not run."""
    n = REFERENCE_SIZE
    a, b = (torch.empty(size, dtype=dtype) for size in ((n, n), (n * n,)))
    c = torch.empty(n, n, dtype=torch.float16)
    plan = kernel.Plan(n=n, k=n, dtype={F16: fx.Float16, FP8: fx.Float8E4M3FNUZ}[dtype])
    return kernel.launch.lower(a, b, c, plan).artifact


def instructions(isa: str) -> list[str]:
    return [line for line in isa.splitlines() if line.startswith("\t") and line.strip()[0] not in ".;"]


def test_machine_code_is_as_good_as_the_reference() -> None:
    """FlyDSL 0.2.2 takes 878 instructions, 144 VGPRs and 256 MFMA for this program."""
    compiled = artifact(F16)
    lines, resources = instructions(compiled.isa), compiled.kernels[0].resources
    assert len(lines) <= 878
    assert sum("v_mfma_f32_16x16x16_f16" in line for line in lines) == 256
    assert resources.vgprs <= 144
    assert resources.scratch_bytes == 0
    assert resources.vgpr_spills == resources.sgpr_spills == 0


def test_shared_memory_is_dynamic() -> None:
    compiled = artifact(F16)
    assert compiled.kernels[0].resources.lds_bytes == 0


def test_fp8_needs_no_scratch_memory() -> None:
    compiled = artifact(FP8)
    resources = compiled.kernels[0].resources
    assert sum("v_mfma_f32_16x16x32_fp8_fp8" in line for line in instructions(compiled.isa)) == 256
    assert resources.scratch_bytes == 0
    assert resources.vgpr_spills == resources.sgpr_spills == 0


def test_shared_memory_is_read_and_written_by_128_bits() -> None:
    lds = [line for line in instructions(artifact(F16).isa) if "\tds_" in line]
    assert lds
    assert {line.split()[0] for line in lds} == {"ds_read_b128", "ds_write_b128"}


@pytest.mark.parametrize(
    ("a", "b", "c", "said"),
    [
        ((128, 64, torch.float32), (128 * 64, torch.float32), (128, 128), "float32"),
        ((128, 64, F16), (128 * 64, torch.bfloat16), (128, 128), "float16 and torch.bfloat16"),
        ((128, 64, F16), (64 * 64, F16), (128, 128), r"B of 4096 values"),
        ((128, 64, F16), (128 * 64, F16), (127, 128), r"C \(127, 128\)"),
        ((128, 63, F16), (128 * 64, F16), (128, 128), "K is a multiple of 8"),
        ((128, 72, FP8), (128 * 128, FP8), (128, 128), "K is a multiple of 16"),
    ],
)
def test_operands_that_do_not_fit(a: Any, b: Any, c: Any, said: str) -> None:
    A, B = torch.zeros(a[:2], dtype=a[2]), torch.zeros(b[0], dtype=b[1])
    C = torch.full(c, torch.nan, dtype=torch.float16)
    with pytest.raises(ArgumentError, match=said):
        kernel.preshuffle_gemm(A, B, C)
    assert C.isnan().all()


def product(dtype: str, m: int, n: int, tile: tuple[int, int, int], arch: str = "gfx942", tiles: int = 3) -> None:
    """Compare the launcher's result with torch's, with every check on."""
    k = tile[2] * tiles
    a, b, flat_a, shuffled = plain(dtype, m, n, k, arch)
    scales = (factors(m), factors(n))
    names = dict(zip(("tile_m", "tile_n", "tile_k"), tile, strict=True))
    c = nans(m, n)
    launch = kernel.compile_preshuffle_gemm_v2(N=n, K=k, in_dtype=dtype, **names)
    with checking():
        launch(c, flat_a, shuffled, *scales, m, n)
    expected = preshuffle_gemm.reference(a, b, *(scales if dtype == "fp8" else ()))
    torch.testing.assert_close(c.view(m, n).float(), expected, rtol=2**-8, atol=1e-2)


@pytest.mark.checked
@pytest.mark.parametrize(
    ("dtype", "m", "tile"),
    [("fp8", 33, (32, 64, 256)), ("bf16", 1, (16, 64, 128)), ("fp16", 65, (64, 128, 32)), ("fp8", 17, (128, 128, 128))],
    ids=str,
)
@pytest.mark.diagonal(2)
def test_scales_and_tiles(dtype: str, m: int, tile: tuple[int, int, int]) -> None:
    product(dtype, m, tile[1], tile)


@pytest.mark.parametrize(("dtype", "tile"), [("fp8", (32, 64, 256)), ("bf16", (64, 128, 64))], ids=str)
def test_on_cdna4(dtype: str, tile: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    product(dtype, 33, tile[1], tile, "gfx950", tiles=2)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"N": 100}, "N=100"),
        ({"K": 100}, "K=100"),
        ({"tile_k": 384, "K": 768}, "tile_k=384"),
        ({"tile_m": 24}, "tile_m=24"),
        ({"in_dtype": "int8"}, "in_dtype='int8'"),
        ({"out_dtype": "f32"}, "out_dtype='f32'"),
    ],
)
def test_sizes_that_do_not_fit(changed: dict[str, Any], said: str) -> None:
    sizes: dict[str, Any] = {"N": 128, "K": 512, "tile_m": 32, "tile_n": 128, "tile_k": 128}
    with pytest.raises(ArgumentError, match=said):
        kernel.compile_preshuffle_gemm_v2(**(sizes | changed))
