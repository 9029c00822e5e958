from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import pytest
import torch

import flydsl.runtime.simulated
from flydsl import simulator
from flydsl.errors import ArgumentError
from kernels import moe_gemm_2stage as kernel
from kernels import moe_sorting_kernel as sorting
from kernels.shuffles import pack_int4, shuffle_weight
from kernels.tuned import modelled
from tests.kernels.checks import checking
from tests.kernels.gemm import factors, torch_type, whole_numbers
from tests.kernels.moe import OUT, TOLERANCES, Layer


def operands(dtype: str, rows: int, experts: int, n: int, k: int) -> tuple[Any, ...]:
    """(activations and weights as numbers, the same in memory, their scales)."""
    if dtype == kernel.W4A16:
        return operands_in_bf16_and_int4(rows, experts, n, k)
    scaled = dtype in kernel.SCALED
    a, w = (whole_numbers(count, k, seed=count).to(torch_type(dtype)) for count in (rows, experts * n))
    of_a, of_w = (factors(count) if scaled else torch.ones(count) for count in (rows, experts * n))
    numbers = a.float() * of_a[:, None], (w.float() * of_w[:, None]).view(experts, n, k)
    return *numbers, a.view(-1), pack_int4(w) if dtype == "int4" else shuffle_weight(w), of_a, of_w


def operands_in_bf16_and_int4(rows: int, experts: int, n: int, k: int, scales: str = "rows") -> tuple[Any, ...]:
    """The same. scales: of the weights' rows, or the type of those of groups of 32 along K."""
    a, w = (whole_numbers(count, k, seed=count) for count in (rows, experts * n))
    if scales == "rows":
        of_w = in_memory = factors(experts * n)
        numbers = w.float() * of_w[:, None]
    else:
        # Powers of two, so that no product is rounded.
        of_w = 2.0 ** torch.randint(-4, 3, (experts, k // 32, n), generator=torch.Generator().manual_seed(n))
        numbers = w.float() * of_w.transpose(1, 2).repeat_interleave(32, 2).reshape(experts * n, k)
        in_memory = of_w
        if scales == "bf16":
            in_memory = of_w.view(experts, k // 64, 2, n).transpose(2, 3).bfloat16()
    numbers = a.float(), numbers.view(experts, n, k)
    return *numbers, a.bfloat16().view(-1), pack_int4(w.to(torch.int8)), torch.ones(rows), in_memory.reshape(-1)


def stage1(layer: Layer, dtype: str, *, weighted: bool = False, tile_k: int = 128, **options: Any) -> None:
    """Run it checked and compare."""
    x, w, *memory = operands(dtype, layer.tokens, layer.experts, 2 * layer.i, layer.d)
    out_dtype = OUT[options.get("out_dtype", "f16")]
    # Numbers that f16 can hold, so that an element that is not written is one.
    memory[2], x = memory[2] / 64, x / 64 if dtype in kernel.SCALED else x
    out = layer.result(layer.i, out_dtype)
    launch = kernel.compile_moe_gemm1(**layer.sizes(64, tile_k), doweight_stage1=weighted, in_dtype=dtype, **options)
    tables = layer.tables()
    with checking():
        launch(out, *memory, *tables, layer.tokens, layer.i, layer.d, len(tables[1]))
    expected = kernel.reference1(x, w, layer.topk_ids, layer.weights if weighted else None)
    tolerance = 1e-2 if out_dtype == torch.bfloat16 else 2e-3
    torch.testing.assert_close(out.float().view(expected.shape), expected, rtol=tolerance, atol=tolerance)


def stage2(
    layer: Layer, dtype: str, *, weighted: bool = True, tile_n: int = 64, tile_k: int = 128, **options: Any
) -> None:
    """Run it checked and compare."""
    rows, out_dtype = layer.tokens * layer.topk, OUT[options.get("out_dtype", "f16")]
    h, w, *memory = operands(dtype, rows, layer.experts, layer.d, layer.i)
    accumulate = options.get("accumulate", True)
    out = layer.result(layer.d, out_dtype, accumulate)
    launch = kernel.compile_moe_gemm2(
        **layer.sizes(tile_n, tile_k), doweight_stage2=weighted, in_dtype=dtype, **options
    )
    tables = layer.tables()
    with checking():
        launch(out, *memory, *tables, layer.tokens, layer.d, layer.i, len(tables[1]))
    expected = kernel.reference2(
        h.view(layer.tokens, layer.topk, -1), w, layer.topk_ids, layer.weights if weighted else None
    )
    expected = expected.sum(1) if accumulate else expected
    tolerance = TOLERANCES[out_dtype]
    got = out.float().view(expected.shape)
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance * expected.abs().max().item())


@pytest.mark.checked
@pytest.mark.parametrize(("number", "shape"), [*enumerate(kernel.SHAPES)], ids=str)
@pytest.mark.diagonal(2)
def test_stage1_equals_torch(number: int, shape: tuple[int, ...]) -> None:
    layer = Layer.of(shape)
    stage1(layer, ("bf16", "fp16")[number % 2], out_dtype=("f16", "bf16")[number // 2], weighted=number == 1)


@pytest.mark.checked("all")
@pytest.mark.parametrize(("number", "shape"), [*enumerate(kernel.SHAPES)], ids=str)
@pytest.mark.diagonal(2)
def test_stage2_equals_torch(number: int, shape: tuple[int, ...]) -> None:
    stage2(Layer.of(shape), ("fp16", "bf16")[number % 2], out_dtype=("f16", "bf16", "f32")[number])


@pytest.mark.parametrize("backend", ["native", "lockstep"])
def test_slots_are_added_in_any_order(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backends add the three slots of a token in different orders: each sum is, to the bit, that of one order."""
    monkeypatch.setattr(flydsl.runtime.simulated, "launch", partial(simulator.launch, backend=backend))
    layer = Layer.of((24, 256, 128, 5, 3, 16))
    h, w, *memory = operands("fp16", layer.rows, layer.experts, layer.d, layer.i)
    out, tables = layer.result(layer.d, torch.float32, accumulate=True), layer.tables()
    launch = kernel.compile_moe_gemm2(**layer.sizes(64, 128), doweight_stage2=True, in_dtype="fp16", out_dtype="f32")
    launch(out, *memory, *tables, layer.tokens, layer.d, layer.i, len(tables[1]))
    a, b, c = kernel.reference2(h.view(layer.tokens, 3, -1), w, layer.topk_ids, layer.weights).unbind(1)
    orders = torch.stack([(a + b) + c, (a + c) + b, (b + c) + a])
    assert len(orders.unique(dim=0)) > 1
    assert (out.view(layer.tokens, -1) == orders).any(0).all()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "dtype"), [*enumerate(kernel.SCALED)])
@pytest.mark.diagonal(2)
def test_scaled_types(number: int, dtype: str) -> None:
    layer = Layer.of((33, 256, 256, 3, 2, 32))
    stage1(layer, dtype, weighted=number == 0, use_cshuffle_epilog=number < 2)
    stage2(layer, dtype, tile_n=128, out_dtype=("f32", "bf16", "f16")[number])


@pytest.mark.parametrize("out_dtype", [*OUT])
@pytest.mark.diagonal(2)
def test_a_row_for_each_slot(out_dtype: str) -> None:
    """Rows of each slot, and their sum."""
    stage2(Layer.of((9, 256, 128, 4, 3, 16)), "bf16", accumulate=False, out_dtype=out_dtype, weighted=False)


def test_int8_activations_of_each_slot() -> None:
    """Row s T + t of x is that of slot s."""
    layer = Layer.of((19, 256, 128, 4, 2, 16))
    x, w, *memory = operands("int8", 2 * 19, 4, 2 * layer.i, layer.d)
    memory[2], tables = memory[2] / 64, layer.tables()
    out = torch.full((19 * 2 * layer.i,), torch.nan, dtype=torch.float16)
    launch = kernel.compile_moe_gemm1(**layer.sizes(64, 256), doweight_stage1=False, in_dtype="int8smooth")
    with checking():
        launch(out, *memory, *tables, 19, layer.i, layer.d, len(tables[1]))
    of_slots = [kernel.reference1(x[s * 19 :][:19] / 64, w, layer.topk_ids[:, s : s + 1]) for s in range(2)]
    expected = torch.cat(of_slots, 1)
    torch.testing.assert_close(out.float().view(expected.shape), expected, rtol=2e-3, atol=2e-3)


def test_through_shared_memory_or_straight() -> None:
    layer = Layer.of((20, 256, 128, 3, 2, 16))
    stage1(layer, "fp16", use_cshuffle_epilog=True)
    stage2(layer, "fp16", accumulate=False, use_cshuffle_epilog=False)


def test_all_tokens_choose_one_expert() -> None:
    layer = Layer.of((40, 256, 128, 5, 1, 16), torch.full((40, 1), 3, dtype=torch.int32))
    stage1(layer, "bf16")
    stage2(layer, "bf16", out_dtype="f32")


def test_rows_of_masked_experts_are_not_written() -> None:
    layer = Layer.of((12, 256, 128, 4, 2, 16))
    x, w, *memory = operands("fp16", 12, 4, 2 * layer.i, layer.d)
    mask = torch.tensor([1, 1, 0, 0])
    tables, out = layer.tables(mask), torch.full((12 * 2 * layer.i,), 77.0, dtype=torch.float16)
    launch = kernel.compile_moe_gemm1(**layer.sizes(64, 128), doweight_stage1=False, in_dtype="fp16")
    with checking():
        launch(out, *memory, *tables, 12, layer.i, layer.d, len(tables[1]))
    kept = mask.bool()[layer.topk_ids.long()][..., None]
    expected = kernel.reference1(x, w, layer.topk_ids).where(kept, 77.0)
    torch.testing.assert_close(out.float().view(expected.shape), expected, rtol=2e-3, atol=2e-3)


def test_nan_and_inf_stay_in_their_rows() -> None:
    """Row 0 is read in place of rows that do not exist, and scales may be 0, inf and NaN."""
    layer = Layer.of((5, 256, 128, 3, 1, 16))
    x, w, *memory = operands("int8", 5, 3, 2 * layer.i, layer.d)
    scales = torch.tensor([torch.nan, torch.inf, 0.0, 1 / 64, 1 / 64])
    out = torch.full((5 * layer.i,), 7.0, dtype=torch.float16)
    launch = kernel.compile_moe_gemm1(**layer.sizes(64, 256), doweight_stage1=False, in_dtype="int8")
    tables, numbers = layer.tables(), x / memory[2][:, None]
    memory[2] = scales
    with checking():
        launch(out, *memory, *tables, 5, layer.i, layer.d, len(tables[1]))
    expected = kernel.reference1(numbers[3:] / 64, w, layer.topk_ids[3:])
    out = out.float().view(5, 1, -1)
    assert out[0].isnan().all()
    assert not out[1].isfinite().any()
    assert not out[2].any()
    torch.testing.assert_close(out[3:], expected, rtol=2e-3, atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("accumulate", [True, pytest.param(False, marks=pytest.mark.sweep)])
def test_a_layer_from_routing_to_sum(accumulate: bool) -> None:
    """Sorting, both stages and the reduction, one kernel's results being the next one's operands."""
    layer = Layer.of((37, 256, 128, 6, 2, 16))
    x, w1, *memory1 = operands("bf16", layer.tokens, layer.experts, 2 * layer.i, layer.d)
    _, w2, _, shuffled2, *ones = operands("bf16", layer.tokens * 2, layer.experts, layer.d, layer.i)
    rows = sorting.sorted_size(layer.tokens, layer.experts, 2, 16)
    ids, experts, valid = (torch.full((n,), -7, dtype=torch.int32) for n in (rows, -(-rows // 16), 2))
    weights, y = torch.zeros(rows), torch.full((layer.tokens, layer.d), torch.nan, dtype=torch.bfloat16)
    h = torch.full((layer.tokens, 2, layer.i), torch.nan, dtype=torch.bfloat16)
    types = {"in_dtype": "bf16", "out_dtype": "bf16"}
    gemm1 = kernel.compile_moe_gemm1(**layer.sizes(64, 128), doweight_stage1=False, **types)
    gemm2 = kernel.compile_moe_gemm2(**layer.sizes(128, 128), doweight_stage2=True, accumulate=accumulate, **types)
    tables = (ids, experts, weights, valid)
    with checking():
        sorting.moe_sorting_flydsl(layer.topk_ids, layer.weights, ids, weights, experts, valid, y, layer.experts, 16)
        gemm1(h.view(-1), *memory1, *tables, layer.tokens, layer.i, layer.d, len(experts))
        of_slots = y if accumulate else torch.full((layer.tokens, 2, layer.d), torch.nan, dtype=torch.bfloat16)
        gemm2(of_slots.view(-1), h.view(-1), shuffled2, *ones, *tables, layer.tokens, layer.d, layer.i, len(experts))
        if not accumulate:
            kernel.compile_moe_reduction(topk=2, model_dim=layer.d, dtype_str="bf16")(of_slots, y, valid, layer.tokens)
    expected = kernel.reference1(x, w1, layer.topk_ids).bfloat16()
    expected = kernel.reference2(expected, w2, layer.topk_ids, layer.weights).sum(1)
    torch.testing.assert_close(y.float(), expected, rtol=2e-2, atol=2e-2 * expected.abs().max().item())


@pytest.mark.checked
@pytest.mark.parametrize("dtype", ["fp8", "bf16"])
def test_parts_of_k_are_added(dtype: str) -> None:
    """Gate and up side by side, before the activation."""
    layer = Layer.of((9, 1024, 128, 4, 2, 16))
    x, w, *memory = operands(dtype, 9, 4, 2 * layer.i, layer.d)
    launch = kernel.compile_moe_gemm1(**layer.sizes(64, 128), doweight_stage1=False, in_dtype=dtype, k_batch=2)
    out, tables = torch.zeros(9 * 2 * 2 * layer.i), layer.tables()
    with checking():
        launch(out, *memory, *tables, 9, layer.i, layer.d, len(tables[1]))
    expected = torch.einsum("td,tknd->tkn", x, w[layer.topk_ids.long()])
    torch.testing.assert_close(out.view(expected.shape), expected, rtol=1e-4, atol=1e-3 * expected.abs().max().item())


@pytest.mark.checked
@pytest.mark.parametrize("masked", [False, True])
def test_rows_summed_in_order(masked: bool) -> None:
    layer = Layer.of((6, 256, 128, 4, 2, 16))
    h, w, *memory = operands("bf16", layer.rows, 4, layer.d, layer.i)
    mask = torch.tensor([[1, 0], [1, 1], [0, 0], [0, 1], [1, 1], [1, 0]], dtype=torch.uint8)
    launch = kernel.compile_moe_gemm2_ex(
        mode=kernel.MoeGemm2Mode.REDUCE, valid_mask=mask if masked else None, doweight_stage2=True, in_dtype="bf16",
        out_dtype="bf16", **layer.sizes(64, 128),
    )  # fmt: skip
    out, tables = torch.full((6 * layer.d,), torch.nan, dtype=torch.bfloat16), layer.tables()
    with checking():
        launch(out, *memory, *tables, 6, layer.d, layer.i, len(tables[1]))
    rows = kernel.reference2(h.view(6, 2, -1), w, layer.topk_ids, layer.weights)
    expected = (rows * mask[..., None] if masked else rows).sum(1)
    torch.testing.assert_close(out.float().view(expected.shape), expected, rtol=2e-2, atol=1.0)


@pytest.mark.parametrize("measured", [False, pytest.param(True, marks=pytest.mark.sweep)])
def test_a_launch_without_a_tile(measured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_AUTOTUNE", str(int(measured)))
    layer = Layer.of((6, 256, 128, 4, 2, 16))
    x, w, *memory = operands("bf16", 6, 4, 2 * layer.i, layer.d)
    plan = kernel.plan_of(
        "bf16", layer.d, (16, 64, 128), columns=layer.i, experts=4, topk=2, out_dtype="f16", gated=True, weighted=False,
        cshuffle=False, accumulate=False,
    )  # fmt: skip
    out = layer.result(layer.i, torch.float16)
    kernel.moe_gemm(out, memory[0] / 64, *memory[1:], *(layer.tables()), 6, plan)
    expected = kernel.reference1(x / 64, w, layer.topk_ids)
    torch.testing.assert_close(out.float().view(expected.shape), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(("arch", "dtype"), [("gfx942", "fp8"), ("gfx942", "bf16"), ("gfx950", "int4")])
def test_default_tiles_of_both_stages(arch: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd sizes, and some much smaller and larger than those of the tables; the stages share the blocks of rows."""
    monkeypatch.setenv("ARCH", arch)
    for tokens, (d, i, experts, topk) in product(
        (1, 33, 700, 60000), ((2880, 192, 5, 4), (7168, 2048, 256, 8), (256, 64, 8, 2))
    ):
        sizes = {"model_dim": d, "inter_dim": i, "experts": experts, "topk": topk, "in_dtype": dtype}
        first = kernel.default_tile(kernel.compile_moe_gemm1, tokens, **sizes, doweight_stage1=False)
        kernel.compile_moe_gemm1(**sizes, **first, doweight_stage1=False)
        second = kernel.default_tile(kernel.compile_moe_gemm2, tokens, first["tile_m"], **sizes, doweight_stage2=True)
        kernel.compile_moe_gemm2(**sizes, **second, doweight_stage2=True)
        assert second["tile_m"] == first["tile_m"]


def test_the_default_tile_is_the_tables_where_the_size_is() -> None:
    for row in modelled("moe_gemm1")["gfx942"]["fp8"]:
        sizes = {"model_dim": row["K"], "inter_dim": row["N"], "experts": row["E"], "topk": 1}
        tokens = row["M"] * row["E"]
        tile = kernel.default_tile(kernel.compile_moe_gemm1, tokens, **sizes, doweight_stage1=False)
        options = row["options"]
        assert tile == {"tile_m": options["tile_m"], "tile_n": options["tile_n"], "tile_k": options["row_bytes"]}


def test_no_tile_fits_columns_that_are_none_of_64() -> None:
    sizes = {"model_dim": 128, "inter_dim": 100, "experts": 4, "topk": 2}
    with pytest.raises(ArgumentError, match="no default tile fits a product of 2 x 100 x 128 x 4"):
        kernel.default_tile(kernel.compile_moe_gemm1, 4, **sizes, doweight_stage1=False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"in_dtype": "fp4"}, "in_dtype='fp4'"),
        ({"tile_n": 96}, "128 columns"),
        ({"model_dim": 300}, "K=300"),
        ({"topk": 9}, "top 9 of 4"),
        ({"out_dtype": "f32"}, "f16 or bf16"),
        ({"k_batch": 2}, "k_batch=2 of 2 tiles"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], said: str) -> None:
    sizes = Layer.of((4, 256, 128, 4, 2, 16)).sizes(64, 128)
    with pytest.raises(ArgumentError, match=said):
        kernel.compile_moe_gemm1(**{**sizes, "doweight_stage1": False, "in_dtype": "bf16", **options})


def test_unsupported() -> None:
    sizes = Layer.of((4, 256, 128, 4, 2, 16)).sizes(64, 128)
    with pytest.raises(ArgumentError, match="group_size=32"):
        kernel.compile_moe_gemm1(**sizes, doweight_stage1=False, group_size=32)
    with pytest.raises(ArgumentError, match="group_size=64"):
        kernel.compile_moe_gemm1(**sizes, doweight_stage1=False, in_dtype=kernel.W4A16, group_size=64)
    with pytest.raises(ArgumentError, match="added without"):
        kernel.compile_moe_gemm2(**sizes, doweight_stage2=True, in_dtype="bf16", use_cshuffle_epilog=False)


@pytest.mark.slow
@pytest.mark.parametrize("scales", ["rows", pytest.param("f32", marks=pytest.mark.sweep), "bf16"])
@pytest.mark.diagonal(3)
def test_bf16_times_int4(scales: str) -> None:
    """Scales of rows, and of groups, which lie in the weights themselves."""
    layer = Layer.of((21, 256, 128, 3, 2, 16))
    tables, options = layer.tables(), {"in_dtype": kernel.W4A16, "out_dtype": "bf16"}
    if scales != "rows":
        options |= {"group_size": 32, "scale_is_bf16": scales == "bf16"}
    x, w, *memory = operands_in_bf16_and_int4(21, 3, 2 * layer.i, layer.d, scales)
    out = layer.result(layer.i, torch.bfloat16)
    memory[0], x = memory[0] / 64, x / 64
    launch = kernel.compile_moe_gemm1(**layer.sizes(64, 128), doweight_stage1=False, **options)
    with checking():
        launch(out, *memory, *tables, 21, layer.i, layer.d, len(tables[1]))
    expected = kernel.reference1(x, w, layer.topk_ids)
    torch.testing.assert_close(out.float().view(expected.shape), expected, rtol=1e-2, atol=1e-2)

    h, w, *memory = operands_in_bf16_and_int4(layer.rows, 3, layer.d, layer.i, scales)
    out = layer.result(layer.d, torch.bfloat16, accumulate=False)
    launch = kernel.compile_moe_gemm2(**layer.sizes(128, 64), doweight_stage2=True, accumulate=False, **options)
    with checking():
        launch(out, *memory, *tables, 21, layer.d, layer.i, len(tables[1]))
    expected = kernel.reference2(h.view(21, 2, -1), w, layer.topk_ids, layer.weights)
    torch.testing.assert_close(out.float().view(expected.shape), expected, rtol=1e-2, atol=1e-2)


def test_scales_of_groups_are_rounded_with_the_weights() -> None:
    """Any scale, also 0, inf and NaN: products are those of weights rounded to bf16."""
    layer = Layer.of((16, 64, 128, 1, 1, 16))
    x, _, *memory = operands_in_bf16_and_int4(16, 1, 2 * layer.i, layer.d, "f32")
    random = torch.Generator().manual_seed(5)
    q = torch.randint(-8, 8, (2 * layer.i, layer.d), generator=random)
    scales = torch.rand(1, 2, 2 * layer.i, generator=random) * 0.02
    scales[:, :, :3] = torch.tensor([0.0, torch.nan, torch.inf])
    memory[1], memory[3] = pack_int4(q.to(torch.int8)), scales.view(-1)
    w = (q * scales[0].T.repeat_interleave(32, 1)).bfloat16().float()
    out, tables = layer.result(layer.i, torch.bfloat16), layer.tables()
    launch = kernel.compile_moe_gemm1(
        **layer.sizes(64, 64), doweight_stage1=False, in_dtype=kernel.W4A16, out_dtype="bf16", group_size=32
    )
    with checking():
        launch(out, *memory, *tables, 16, layer.i, layer.d, len(tables[1]))
    expected = kernel.reference1(x, w[None], layer.topk_ids)
    torch.testing.assert_close(out.float().view(expected.shape), expected, rtol=1e-2, atol=1e-2, equal_nan=True)
    assert not out.view(16, -1)[:, 0].any()
    assert out.view(16, -1)[:, 1:3].isnan().all()
