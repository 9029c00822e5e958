from __future__ import annotations

from itertools import product as pairs_of
from typing import Any

import pytest
import torch

from flydsl.arch import get_arch
from flydsl.errors import ArgumentError
from kernels import hgemm_splitk as kernel
from kernels import splitk_hgemm
from kernels.tuned import modelled
from tests.kernels.checks import checking
from tests.kernels.gemm import TYPES, whole_numbers

RING: dict[str, Any] = {"B_TO_LDS": True}
SMALL: dict[str, Any] = {"TILE_M": 16, "TILE_N": 64, "TILE_K": 128, "BLOCK_M_WARPS": 1}


def product(dtype: str, m: int, n: int, k: int, bias: bool = False, **options: Any) -> None:
    """Compare C with torch's, with every check on. Sums of small whole numbers need no rounding in f16."""
    kind = TYPES[kernel.DTYPES[dtype]]
    a, b, of_columns = (whole_numbers(*shape).to(kind) for shape in ((m, k), (n, k), (n,)))
    c = torch.full((m, n), torch.nan, dtype=kind)
    launch = kernel.compile_hgemm_kernel(dtype, n, k, HAS_BIAS=bias, **options)
    words = torch.zeros(16, dtype=torch.int32)
    with checking():
        launch(c.view(-1), a.view(-1), b.view(-1), of_columns, m, words, words)
    assert not words.any(), "the next launch finds them as this one did"
    expected = kernel.reference(a, b, of_columns if bias else None)
    tolerance = 0 if dtype == "f16" else 2**-8 * options.get("SPLIT_K", 1)
    torch.testing.assert_close(c.float(), expected, rtol=tolerance, atol=256 * tolerance)


@pytest.mark.checked
@pytest.mark.parametrize(
    ("dtype", "m", "n", "k", "options"),
    [
        ("f16", 130, 128, 256, RING),
        ("f16", 33, 128, 192, {}),
        ("bf16", 33, 64, 320, RING | {"TILE_M": 32, "TILE_N": 64, "STAGES": 3, "bias": True}),
        ("bf16", 5, 64, 512, RING | SMALL | {"SPLIT_K": 2, "bias": True}),
        ("f16", 1, 64, 512, SMALL | {"SPLIT_K": 2, "ADD_VEC": 8}),
        ("f16", 21, 64, 512, SMALL | {"SPLIT_K": 4, "ADD_VEC": 4}),
        ("f16", 33, 64, 512, RING | SMALL | {"STAGES": 3, "BLOCK_N_WARPS": 1, "BLOCK_K_WARPS": 2, "bias": True}),
        ("f16", 5, 128, 256, {"TILE_M": 64, "BLOCK_K_WARPS": 2}),
        ("bf16", 5, 64, 512, RING | SMALL | {"SPLIT_K": 2, "BLOCK_N_WARPS": 1, "BLOCK_K_WARPS": 2}),
        ("f16", 70, 128, 384, {"TILE_M": 64, "XCD_SWIZZLE": 2}),
        ("f16", 33, 192, 384, {"TILE_M": 32, "TILE_N": 192, "BLOCK_M_WARPS": 1, "BLOCK_N_WARPS": 4, "SPLIT_K": 3}),
        ("f16", 20, 64, 256, {"TILE_M": 16, "TILE_N": 64, "TILE_K": 128, "BLOCK_M_WARPS": 1, "BLOCK_N_WARPS": 4}),
        ("f16", 40, 128, 320, {"TILE_M": 32, "STAGES": 1, "SPLIT_K": 5, "bias": True}),
        ("f16", 33, 128, 896, RING | SMALL | {"TILE_M": 32, "BLOCK_N_WARPS": 1, "BLOCK_K_WARPS": 4, "bias": True}),
        ("f16", 33, 64, 576, RING | {"TILE_M": 64, "TILE_N": 64, "STAGES": 4, "BLOCK_M_WARPS": 1}),
    ],
    ids=str,
)
@pytest.mark.diagonal(3)
def test_equals_torch(dtype: str, m: int, n: int, k: int, options: dict[str, Any]) -> None:
    product(dtype, m, n, k, **options)


@pytest.mark.parametrize(
    "options",
    [RING | {"SPLIT_K": 2}, {}, RING | {"BLOCK_K_WARPS": 2}, {"TILE_K": 128, "STAGES": 1}],
    ids=str,
)
@pytest.mark.diagonal(2)
def test_on_cdna4(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    product("bf16", 33, 128, 256, TILE_M=64, **options)


def test_sums_of_waves_along_k_take_turns_where_operands_were() -> None:
    """128 x 256 sums of two waves would be 256 KiB."""
    of_tiles = kernel.half_plan("bf16", 256, 512, (128, 256, 64), (2, 4, 2), stages=3)
    assert of_tiles.lds_bytes == 3 * (128 + 256) * 64 * 2


def test_what_lies_behind_c_is_left_alone() -> None:
    memory = torch.full((1000,), torch.nan, dtype=torch.float16)
    a, b = whole_numbers(5, 512).half(), whole_numbers(64, 512).half()
    kernel.hgemm_splitk_(memory[:320].view(5, 64), a, b)
    assert torch.equal(memory[:320].view(5, 64).float(), kernel.reference(a, b))
    assert memory[320:].isnan().all()


def test_signals_of_a_launch_that_ends_early_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*given: Any) -> None:
        given[6].fill_(1)
        raise KeyboardInterrupt

    a, b, c = torch.zeros(5, 512).half(), torch.zeros(64, 512).half(), torch.zeros(5, 64).half()
    monkeypatch.setattr(kernel, "compile_hgemm_kernel", lambda *_, **__: interrupted)
    with pytest.raises(KeyboardInterrupt):
        kernel.hgemm_splitk_(c, a, b)
    assert not kernel.words_of(c, 1, None).any()


@pytest.mark.slow
@pytest.mark.parametrize("shape", kernel.SHAPES, ids=str)
@pytest.mark.diagonal(4)
def test_sizes_without_a_tile(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b, bias = (whole_numbers(*size).to(torch.bfloat16) for size in ((m, k), (n, k), (n,)))
    c = kernel.hgemm_splitk_(torch.full((m, n), torch.nan, dtype=torch.bfloat16), a, b, bias)
    torch.testing.assert_close(c.float(), kernel.reference(a, b, bias), rtol=2**-6, atol=4)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"n": 100}, "n=100"),
        ({"k": 100}, "k=100"),
        ({"SPLIT_K": 3}, "k=256"),
        ({"ADD_VEC": 3}, "ADD_VEC=3"),
        ({"STAGES": 1, "B_TO_LDS": True}, "STAGES=1"),
        ({"STAGES": 3}, "STAGES=3"),
        ({"B_TO_LDS": True, "STAGES": 5}, "4 tiles along K"),
        ({"TILE_M": 24}, "TILE_M=24"),
        ({"BLOCK_N_WARPS": 16, "TILE_N": 256}, "2 x 16 waves"),
        ({"BLOCK_K_WARPS": 8}, "2 x 2 x 8 waves"),
        ({"BLOCK_K_WARPS": 4, "TILE_K": 64}, "TILE_K=64"),
        ({"BLOCK_K_WARPS": 0}, "2 x 2 waves|2 x 2 x 0 waves"),
        ({"dtype": "f32"}, "dtype='f32'"),
    ],
)
def test_sizes_that_do_not_fit(changed: dict[str, Any], said: str) -> None:
    sizes: dict[str, Any] = {"dtype": "f16", "n": 128, "k": 256}
    with pytest.raises(ArgumentError, match=said):
        kernel.compile_hgemm_kernel(**(sizes | changed))


def test_waves_side_by_side() -> None:
    """What `splitk_hgemm` is besides: at most four waves."""
    a, b = whole_numbers(33, 512).half(), whole_numbers(64, 512).half()
    c = torch.full((33, 64), torch.nan, dtype=torch.float16)
    words = torch.zeros(2, dtype=torch.int32)
    launch = splitk_hgemm.compile_hgemm_kernel("f16", 64, 512, TILE_M=32, TILE_N=64, TILE_K=128, SPLIT_K=2)
    launch(c.view(-1), a.view(-1), b.view(-1), a, 33, words, words)
    assert torch.equal(c.float(), splitk_hgemm.reference(a, b))
    with pytest.raises(ArgumentError, match="2 x 4 waves"):
        splitk_hgemm.compile_hgemm_kernel("f16", 128, 256, BLOCK_M_WARPS=2)


def test_tensors_of_another_type() -> None:
    a, b, c = torch.zeros(4, 256), torch.zeros(128, 256).half(), torch.zeros(4, 128).half()
    launch = kernel.compile_hgemm_kernel("f16", 128, 256)
    with pytest.raises(ArgumentError, match="A of Float32"):
        launch(c, a, b, c, 4, c, c)


def test_operands_that_do_not_fit() -> None:
    a, b, c = torch.zeros(4, 256).half(), torch.zeros(64, 256).half(), torch.zeros(4, 64).half()
    with pytest.raises(ArgumentError, match=r"of torch\.float32"):
        kernel.hgemm_splitk_(c, a, b.float())
    with pytest.raises(ArgumentError, match=r"C of torch\.\w+ \(3, 64\)"):
        kernel.hgemm_splitk_(c[:3], a, b)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950", "gfx90a"])
def test_the_default_tile_fits(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd sizes, and some much smaller and larger than those of the table."""
    monkeypatch.setenv("ARCH", arch)
    room = get_arch(arch).lds_bytes_per_workgroup
    for m, n, k in pairs_of((1, 17, 200, 5000, 70000), (64, 192, 832, 5184, 7168), (128, 384, 1664, 2880, 18432)):
        options = kernel.default_tile(m, n, k)
        kernel.compile_hgemm_kernel("f16", n, k, **options)
        assert kernel.tile_of(m, n, k, arch).narrowed(n, k, room).options() == options


@pytest.mark.parametrize("arch", modelled("hgemm"))
def test_the_default_tile_is_the_tables_where_the_size_is(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", arch)
    for row in modelled("hgemm")[arch]["bf16"]:
        chosen, found = kernel.default_tile(row["M"], row["N"], row["K"]), row["options"]
        assert [chosen[f"TILE_{x}"] for x in "MNK"] == found["tile"]
        assert [chosen[name] for name in ("SPLIT_K", "STAGES", "B_TO_LDS")] == [
            found[name] for name in ("split", "stages", "b_to_lds")
        ]


@pytest.mark.parametrize("size", [(1, 64, 512), (35, 192, 768)], ids=str)
def test_a_product_without_a_tile(size: tuple[int, int, int]) -> None:
    m, n, k = size
    a, b = (whole_numbers(rows, k).half() for rows in (m, n))
    c = torch.full((m, n), torch.nan, dtype=torch.float16)
    for _ in range(2):  # the first launch leaves the words to the second
        kernel.hgemm(c.view(-1), a.view(-1), b.view(-1), m, n, k, "f16")
        assert torch.equal(c.float(), kernel.reference(a, b))
        c.fill_(torch.nan)


def test_a_product_without_a_tile_splits_k_where_that_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few columns and a long K leave most compute units idle otherwise."""
    monkeypatch.setenv("ARCH", "gfx950")
    assert kernel.default_tile(16, 512, 7168)["SPLIT_K"] > 1
    assert kernel.default_tile(4096, 6144, 6144)["SPLIT_K"] == 1


def test_a_size_without_a_default_tile() -> None:
    with pytest.raises(ArgumentError, match="a product of 1 x 100 x 128"):
        kernel.default_tile(1, 100, 128)
