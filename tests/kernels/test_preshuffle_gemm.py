from __future__ import annotations

from functools import partial
from itertools import product as pairs_of
from typing import Any

import pytest
import torch

from flydsl.arch import get_arch
from flydsl.errors import ArgumentError
from kernels import preshuffle_gemm as kernel
from kernels.tuned import modelled
from tests.kernels.checks import checking
from tests.kernels.gemm import factors, micro_scaled, nans, plain, torch_type

NONE = torch.zeros(1)
SCALED = ("fp8", "int8", "int4")


def product(
    m: int, n: int, k: int, dtype: str, tile: tuple[int, int, int], arch: str = "gfx942", **options: Any
) -> tuple[Any, Any]:
    """C by the kernel and by torch, with every check on."""
    a, b, flat_a, shuffled_b = plain(dtype, m, n, k, arch)
    scales = (factors(m), factors(n)) if dtype in SCALED else (NONE, NONE)
    bias = factors(n).to(torch.bfloat16) - 1
    epilogue = options.get("epilogue", "none")
    c = nans(m, n)
    launch = kernel.compile_preshuffle_gemm_a8(
        K=k, tile_m=tile[0], tile_n=tile[1], tile_k=tile[2], in_dtype=dtype, out_dtype="bf16", **options
    )
    words = torch.zeros(16, dtype=torch.int32)
    signal = [words] if options.get("split_k", 1) > 1 else []
    with checking():
        launch(c, flat_a, shuffled_b, *scales, bias, *signal, m, n)
    assert not words.any(), "the next launch finds them as this one did"
    expected = kernel.reference(a, b, *(scales if dtype in SCALED else ()), bias=bias, epilogue=epilogue)
    return c.view(m, n).float(), expected


def assert_close(result: Any, expected: Any) -> None:
    """They differ by bf16's rounding."""
    torch.testing.assert_close(result, expected, rtol=2**-8, atol=1e-2)


def in_bytes(dtype: str, size: int) -> int:
    return size // (2 if dtype in ("fp16", "bf16") else 1)


@pytest.mark.checked
@pytest.mark.parametrize("dtype", ["fp8", "int8", "int4", "fp16", "bf16"])
@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.diagonal(3)
def test_equals_torch(dtype: str, stages: int) -> None:
    k, tile_k = in_bytes(dtype, 768), in_bytes(dtype, 256)
    assert_close(*product(33, 128, k, dtype, (16, 64, tile_k), lds_stage=stages))


@pytest.mark.parametrize(
    ("m", "n", "k", "tile", "options"),
    [
        (1, 64, 128, (32, 64, 128), {}),
        (9, 64, 256, (16, 64, 128), {}),
        (20, 64, 192, (16, 64, 64), {"use_async_copy": True}),
        (33, 64, 256, (32, 64, 128), {}),
        (40, 256, 384, (32, 256, 128), {"xcd_swizzle": 2}),
        (33, 128, 512, (32, 128, 128), {"use_async_copy": True}),
        (20, 64, 192, (16, 64, 64), {"use_async_copy": True, "lds_stage": 1}),
        (70, 64, 384, (64, 64, 128), {"use_cshuffle_epilog": True}),
        (70, 128, 512, (64, 128, 128), {"use_cshuffle_epilog": True, "use_async_copy": True, "waves_per_eu": 2}),
        (17, 64, 576, (64, 64, 192), {}),
    ],
    ids=str,
)
@pytest.mark.diagonal(3)
def test_sizes_and_options(m: int, n: int, k: int, tile: tuple[int, int, int], options: dict[str, Any]) -> None:
    assert_close(*product(m, n, k, "fp8", tile, **options))


@pytest.mark.checked
@pytest.mark.parametrize(
    ("dtype", "m", "n", "k", "tile", "split"),
    [
        ("fp8", 33, 128, 512, (16, 64, 128), 4),
        ("int4", 5, 128, 768, (32, 64, 128), 3),
        ("bf16", 40, 64, 256, (32, 64, 64), 2),
    ],
    ids=str,
)
@pytest.mark.diagonal(2)
def test_parts_of_k(dtype: str, m: int, n: int, k: int, tile: tuple[int, int, int], split: int) -> None:
    """Parts are rounded to bf16 before they are added."""
    found, expected = product(m, n, k, dtype, tile, split_k=split)
    torch.testing.assert_close(found, expected, rtol=split * 2**-8, atol=split)


@pytest.mark.parametrize("size", [(1, 64, 512), (33, 192, 384)], ids=str)
def test_the_default_tile_of_a_small_size(size: tuple[int, int, int]) -> None:
    options = kernel.default_tile(*size)
    tile = options.pop("tile_m"), options.pop("tile_n"), options.pop("tile_k")
    assert_close(*product(*size, "fp8", tile, **options))


TYPES_OF = [*pairs_of(["gfx942", "gfx950"], ["fp8", "int4", "bf16"]), ("gfx950", "fp4"), ("gfx90a", "bf16")]


@pytest.mark.parametrize(("arch", "dtype"), TYPES_OF)
def test_the_default_tile_fits(arch: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd sizes, and some much smaller and larger than those of the table."""
    monkeypatch.setenv("ARCH", arch)
    room = get_arch(arch).lds_bytes_per_workgroup
    for m, n, k in pairs_of((1, 17, 200, 5000, 70000), (64, 192, 832, 5184, 7168), (128, 384, 1664, 2944, 18432)):
        options = kernel.default_tile(m, n, k, in_dtype=dtype)
        kernel.compile_preshuffle_gemm_a8(K=k, N=n, in_dtype=dtype, **options)
        assert kernel.tile_of(m, n, k, dtype, arch).narrowed(n, k, dtype, room).options(dtype) == options


@pytest.mark.parametrize("dtype", ["fp8", "bf16"])
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_the_default_tile_is_the_tables_where_the_size_is(
    arch: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCH", arch)
    for row in modelled("preshuffle_gemm")[arch][dtype]:
        chosen = kernel.default_tile(row["M"], row["N"], row["K"], in_dtype=dtype)
        assert chosen == kernel.Tile(**row["options"]).options(dtype)


def test_a_size_without_a_default_tile() -> None:
    with pytest.raises(ArgumentError, match="a product of 1 x 100 x 128"):
        kernel.default_tile(1, 100, 128)


@pytest.mark.parametrize("epilogue", ["bias", "bias_relu", "bias_silu", "bias_gelu"])
@pytest.mark.diagonal(2)
def test_epilogues(epilogue: str) -> None:
    assert_close(*product(33, 64, 256, "bf16", (16, 64, 128), epilogue=epilogue))


@pytest.mark.parametrize("dtype", ["fp8", "int4", "bf16"])
@pytest.mark.diagonal(2)
def test_on_cdna4(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    assert_close(*product(33, 64, in_bytes(dtype, 512), dtype, (32, 64, in_bytes(dtype, 128)), "gfx950"))


def test_a_tile_that_is_half_of_a_scaled_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    assert_close(*product(5, 64, 192, "fp8", (16, 64, 64), "gfx950"))


@pytest.mark.checked
@pytest.mark.parametrize("dtype", ["fp4", "fp6", "fp8", "mxfp8"])
@pytest.mark.parametrize(("k", "tile_k", "stages"), [(512, 128, 2), (768, 256, 2), (512, 128, 1)])
@pytest.mark.diagonal(3)
def test_micro_scales(dtype: str, k: int, tile_k: int, stages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCH", "gfx950")
    m, n = 33, 128
    a, b, *operands = micro_scaled(dtype, m, n, k)
    compiled: Any = kernel.compile_preshuffle_gemm_a6w4
    if dtype == "mxfp8":
        compiled = partial(kernel.compile_preshuffle_gemm_a8, in_dtype=dtype)
    elif dtype != "fp6":
        compiled = partial(kernel.compile_preshuffle_gemm_w4, a_dtype=dtype)
    launch = compiled(K=k, tile_m=64, tile_n=n, tile_k=tile_k, out_dtype="bf16", lds_stage=stages)
    c = nans(m, n)
    with checking():
        launch(c, *operands, NONE, m, n)
    assert_close(c.view(m, n).float(), kernel.reference(a, b))


def test_rows_of_nan_and_inf_stay_their_own() -> None:
    a, b, _, shuffled_b = plain("fp16", 17, 64, 128)
    a[3, 5], a[7, 9], a[8] = torch.nan, torch.inf, 6e-8
    c = nans(17, 64, torch.float16)
    launch = kernel.compile_preshuffle_gemm_a8(K=128, tile_m=32, tile_n=64, tile_k=64, in_dtype="fp16")
    launch(c, a.half().view(-1), shuffled_b, NONE, NONE, NONE, 17, 64)
    torch.testing.assert_close(c.view(17, 64).float(), kernel.reference(a.half(), b), equal_nan=True, rtol=1e-3, atol=0)


def test_what_lies_behind_c_is_left_alone() -> None:
    _, _, a, b = plain("bf16", 5, 64, 128)
    c = nans(40, 64)
    kernel.compile_preshuffle_gemm_a8(K=128, tile_m=32, tile_n=64, tile_k=64, in_dtype="bf16", out_dtype="bf16")(
        c, a, b, NONE, NONE, NONE, 5, 64
    )
    assert not c[: 5 * 64].isnan().any()
    assert c[5 * 64 :].isnan().all()


def test_a_product_without_a_tile() -> None:
    a, b, flat_a, shuffled_b = plain("bf16", 20, 64, 256)
    c = nans(20, 64)
    kernel.preshuffle_gemm(c, flat_a, shuffled_b, NONE, NONE, NONE, 20, 64, 256, "bf16", "bf16")
    assert_close(c.view(20, 64).float(), kernel.reference(a, b))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"in_dtype": "fp7"}, "in_dtype='fp7'"),
        ({"K": 100}, "K=100"),
        ({"tile_m": 24}, "tile_m=24"),
        ({"tile_n": 96}, "tile_n=96"),
        ({"tile_k": 32}, "tile_k=32"),
        ({"tile_m": 48}, "a tile of A of 48 x 128 bytes"),
        ({"lds_stage": 3}, "lds_stage=3"),
        ({"in_dtype": "int4_bf16"}, "in_dtype='int4_bf16'"),
        ({"out_dtype": "f64"}, "out_dtype='f64'"),
        ({"epilogue": "tanh"}, "epilogue='tanh'"),
        ({"epilogue": "bias", "use_cshuffle_epilog": True}, "use_cshuffle_epilog"),
        ({"tile_n": 256, "use_cshuffle_epilog": True}, "C takes 16384"),
        ({"tile_n": 256, "split_k": 2}, "C takes 16384"),
        ({"split_k": 3}, "split_k=3"),
        ({"split_k": 2, "epilogue": "bias"}, "with an epilogue"),
    ],
)
def test_sizes_that_do_not_fit(changed: dict[str, Any], said: str) -> None:
    sizes: dict[str, Any] = {"K": 256, "tile_m": 32, "tile_n": 64, "tile_k": 128}
    with pytest.raises(ArgumentError, match=said):
        kernel.compile_preshuffle_gemm_a8(**(sizes | changed))


def test_launches_that_do_not_fit() -> None:
    launch = kernel.compile_preshuffle_gemm_a8(N=128, K=256, tile_m=32, tile_n=64, tile_k=128)
    c, a, b = nans(32, 128, torch.float16), *(torch.zeros(32 * 256, dtype=torch_type("fp8")) for _ in range(2))
    with pytest.raises(ArgumentError, match="N=96"):
        launch(c, a, b, NONE, NONE, NONE, 32, 96)
    with pytest.raises(ArgumentError, match="compiled for N=128"):
        launch(c, a, b, NONE, NONE, NONE, 32, 64)
    with pytest.raises(ArgumentError, match="A of Float32"):
        launch(c, torch.zeros(8192), b, NONE, NONE, NONE, 32, 128)
    four = kernel.compile_preshuffle_gemm_w4(K=256, tile_m=64, tile_n=128, tile_k=128)
    scale = torch.zeros(1024, dtype=torch.uint8)
    with pytest.raises(ArgumentError, match="needs the instructions of CDNA 4"):
        four(c, a.view(torch.uint8), b.view(torch.uint8), scale, scale, NONE, 32, 128)
