from __future__ import annotations

from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import pa_decode_fp8 as kernel
from kernels.fused_rope_cache_kernel import build_fused_rope_cache_module
from kernels.mla_reduce import mla_reduce
from kernels.pa_metadata import get_pa_metadata
from kernels.paged_attention import SCALES
from tests.kernels.checks import checking
from tests.kernels.paged import FP8, Requests, assert_close, requests

BF16 = torch.bfloat16


def checked(given: Requests, **options: Any) -> torch.Tensor:
    """The result with every check on, by few workgroups."""
    heads = given.keys.shape[1]
    if given.keys.shape[2] > kernel.SMALL_BLOCK and "metadata" not in options:
        queries = len(given.query) // len(given.contexts)
        bins = heads * 2
        options["metadata"] = get_pa_metadata(given.contexts, given.query.shape[1], heads, queries, num_cu=bins)
    with checking():
        return given.result(max_context_partition_num=2, **options)


@pytest.mark.checked
@pytest.mark.slow
@pytest.mark.parametrize(("number", "shape"), [*enumerate(kernel.SHAPES)], ids=str)
@pytest.mark.diagonal(4)
def test_equals_torch(number: int, shape: tuple[Any, ...]) -> None:
    """A cache of one type each, in turn; each with both in sweep_paged."""
    equals_torch(number, shape, (FP8, BF16)[number % 2])


def equals_torch(number: int, shape: tuple[Any, ...], dtype: torch.dtype) -> None:
    given = requests(*shape, scales=SCALES[number % 3], packed=number % 2 == 0, dtype=dtype)
    assert_close(checked(given), given.expected(), exact=dtype == BF16)


@pytest.mark.slow
@pytest.mark.parametrize("parts", [16, 33])
@pytest.mark.diagonal(2)
def test_more_parts_than_there_are_keys_for(parts: int) -> None:
    """The reduction reads 16 together, and 33 one after the other."""
    given = requests((600, 0), 1, 8, 1, 64, 16)
    with checking():
        found = given.result(max_context_partition_num=parts)
    assert_close(found, given.expected())


@pytest.mark.slow
def test_shares_of_divided_requests_are_merged() -> None:
    """Bins have several requests, requests several bins."""
    given = requests((900, 0, 300, 40), 2, 4, 2, 64, 256, scales="token")
    metadata = get_pa_metadata(given.contexts, 8, 2, 2, num_cu=10)
    assert (metadata["work_info"][:, 1] > 0).any()
    assert_close(checked(given, metadata=metadata), given.expected())


def test_queries_before_the_first_key_are_zero() -> None:
    """Two keys for four queries: the first two of these see none."""
    given = requests((2, 0), 1, 4, 4, 64, 16)
    found = checked(given)
    assert not found[:2].any()
    assert not found[4:].any()
    assert_close(found, given.expected())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of", "scale"),
    [("key_scale", 0.0), ("key_scale", torch.nan), *(("value_scale", scale) for scale in (0.0, torch.nan, torch.inf))],
)  # fmt: skip
@pytest.mark.diagonal(2)
def test_scales_that_are_no_ordinary_numbers(of: str, scale: float) -> None:
    """One token's: what f32 makes of it is finite, or not, in the same places. With infinity it may be NaN instead."""
    given = requests((40, 300), 1, 8, 2, 64, 16, scales="token")
    page = given.pages[given.starts[1] + 3]
    getattr(given, of)[page, 0, 5] = scale
    found, expected = checked(given), given.expected()
    finite = expected.isfinite()
    assert finite[:2].all()
    assert finite.all() == (scale == 0)
    assert not found[~finite].isfinite().any()
    assert_close(found[finite], expected[finite])


@pytest.mark.slow
def test_an_infinite_scale_of_a_key() -> None:
    """Its logit is infinite: minus infinity hides the key, plus infinity leaves no number."""
    given = requests((40, 300), 1, 8, 2, 64, 16, scales="token")
    scale = given.key_scale[given.pages[given.starts[1] + 3], 0]
    scale[5] = torch.inf
    found = checked(given)
    scale[5] = 1e30
    expected, rows = given.expected(), found.isfinite().all(-1)
    assert rows[:2].all()
    assert 0 < rows[2:].sum() < rows[2:].numel()
    assert found[~rows].isnan().all()
    assert_close(found[rows], expected[rows])


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.0, torch.nan])
def test_a_scale_for_all(scale: float) -> None:
    given = requests((40, 300), 1, 8, 1, 64, 16)
    given.value_scale[:] = scale
    assert_close(checked(given), given.expected())


def test_queries_of_zeros_and_nan() -> None:
    given = requests((40, 300), 1, 4, 1, 64, 16, query_dtype=torch.float16)
    given.query[0, 1], given.query[1, 2, 7] = 0, torch.nan
    found = checked(given)
    assert found[1, 2].isnan().all()
    assert_close(found, given.expected())


def test_queries_that_are_fp8() -> None:
    given = requests((300,), 1, 8, 1, 64, 16)
    given.query = given.query.to(FP8)
    output = torch.full(given.query.shape, torch.nan, dtype=BF16)
    with checking():
        kernel.pa_decode_ps_launch(
            output, given.query, *given.caches, given.contexts, given.pages, given.starts, given.scale,
            given.key_scale, given.value_scale, max_context_partition_num=1,
        )  # fmt: skip
    keys, values = given.keys.float() * given.key_scale, given.values.float() * given.value_scale
    expected = kernel.reference(given.query, keys, values, given.contexts, given.pages, given.starts, given.scale)
    assert_close(output.float(), expected)


def test_block_tables() -> None:
    """Rows of pages, filled up with -1, which is all that a request without keys has."""
    given = requests((40, 300, 0), 1, 8, 1, 64, 16)
    tables = torch.full((3, 20), -1, dtype=torch.int32)
    for request in range(3):
        own = given.pages[given.starts[request] : given.starts[request + 1]]
        tables[request, : len(own)] = own
    expected = given.expected()
    given.pages = given.starts = torch.zeros(0, dtype=torch.int32)
    assert_close(checked(given, block_tables=tables), expected)


@pytest.mark.slow
def test_a_cache_that_the_rope_kernel_wrote() -> None:
    """Keys and values of 40 tokens in shuffled pages, as they are after the rotation."""
    tokens, heads, dim, block = 40, 2, 64, 16
    random = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(tokens, count, dim, generator=random).to(BF16) for count in (8, heads, heads))
    angles = torch.randn(tokens, dim // 2, generator=random)
    pages = torch.tensor([3, 0, 2], dtype=torch.int32)
    slots = pages[torch.arange(tokens) // block] * block + torch.arange(tokens).int() % block
    key_cache, value_cache = (
        torch.zeros(4, heads, dim // 16, block, 16).to(BF16),
        torch.zeros(4, heads, dim, block).to(BF16),
    )
    q_out, k_out = torch.zeros_like(q), torch.zeros_like(k)
    rope = build_fused_rope_cache_module(dim, -1, 8, heads, block, flash_layout=False)
    rope(q, k, v, torch.arange(tokens).int(), angles.cos().to(BF16), angles.sin().to(BF16), slots.int(), key_cache,
         value_cache, q_out, k_out, tokens, torch.ones(1), torch.ones(1))  # fmt: skip
    found, query = torch.full((1, 8, dim), torch.nan, dtype=BF16), q_out[-1:].contiguous()
    contexts, starts, one = torch.tensor([tokens]).int(), torch.tensor([0, 3]).int(), torch.ones(1)
    kernel.pa_decode_ps_launch(
        found, query, key_cache, value_cache, contexts, pages, starts, None, one, one, max_context_partition_num=1
    )
    cached = [torch.zeros(4 * block, heads, dim) for _ in range(2)]
    for cache, values in zip(cached, (k_out, v), strict=True):
        cache[slots.long()] = values.float()
    keys, values = (cache.view(4, block, heads, dim).transpose(1, 2) for cache in cached)
    expected = kernel.reference(query, keys, values, contexts, pages, starts, dim**-0.5)
    assert_close(found.float(), expected, exact=True)


@pytest.mark.slow
def test_whole_partitions_need_no_mask() -> None:
    given = requests((512, 256), 1, 8, 1, 64, 256)
    metadata = get_pa_metadata(given.contexts, 8, 1, 1, num_cu=3)
    compiled = kernel.compile_pa_decode_metadata(
        given.scale, True, False, 8, query_input_dtype="bf16", head_dim=64, block_size=256
    )
    output = torch.full(given.query.shape, torch.nan, dtype=BF16)
    rows = metadata["reduce_partial_map"].numel()
    shares, lse = torch.full((rows, 8, 64), torch.nan), torch.full((rows, 8), torch.nan)
    caches = [cache.view(torch.uint8).view(-1) for cache in given.caches]
    work = [metadata[name].view(-1) for name in ("work_indptr", "work_info", "partition_indptr")]
    maps = [metadata[name] for name in ("reduce_indptr", "reduce_final_map", "reduce_partial_map")]
    inputs = (
        given.query.view(-1),
        *caches,
        given.contexts,
        given.pages,
        given.starts,
        given.key_scale,
        given.value_scale,
    )
    with checking():
        compiled["launch"](output.view(-1), shares.view(-1), lse.view(-1), *inputs, *work, 3, 1)
        mla_reduce(output, shares, lse, *maps)
    assert_close(output.float(), given.expected())


@pytest.mark.sweep
def test_a_number_of_parts_that_is_measured() -> None:
    given = requests((70, 600), 1, 8, 1, 64, 16)
    output = torch.full(given.query.shape, torch.nan, dtype=BF16)
    tensors = (given.query, *given.caches, given.contexts, given.pages, given.starts)
    kernel.pa_decode_ps(output, *tensors, given.scale, given.key_scale, given.value_scale)
    assert_close(output.float(), given.expected())
    assert not any(kernel.pa_decode_ps.failures.values())


def test_the_reference_itself() -> None:
    """One key has all of the weight; two equal keys halve it; a window of 0 leaves a query its own key."""
    keys = torch.tensor([[1.0], [1.0], [50.0]]).view(3, 1, 1, 1)
    values = torch.tensor([[2.0], [4.0], [9.0]]).view(3, 1, 1, 1)
    query, pages = torch.ones(3, 1, 1), torch.tensor([0, 1, 2])
    arguments = (query, keys, values, torch.tensor([3]), pages, torch.tensor([0, 3]), 1.0)
    torch.testing.assert_close(kernel.reference(*arguments).view(-1), torch.tensor([2.0, 3.0, 9.0]))
    torch.testing.assert_close(kernel.reference(*arguments, window=0).view(-1), torch.tensor([2.0, 4.0, 9.0]))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("key_scale", torch.ones(7), "7 scales of keys"),
        ("key_scale", torch.ones(1).double(), "key_scale of Float64"),
        ("contexts", torch.tensor([40]), "context_lengths of Int64"),
        ("contexts", torch.tensor([40, 1, 1]).int(), "query of"),
        ("query", torch.zeros(2, 7, 64).bfloat16().transpose(0, 1), "query"),
        ("query", torch.zeros(2, 8, 32).bfloat16(), "query of"),
        ("query", torch.zeros(2, 8, 64), "query_input_dtype='f32'"),
        ("pages", torch.zeros(4), "kv_page_indices of Float32"),
        ("starts", torch.zeros(1).int(), "kv_indptr of"),
        ("values", torch.zeros(4, 1, 16, 32).to(FP8), "value_cache of"),
        ("keys", torch.zeros(0, 1, 16, 64).to(FP8), "key_cache of"),
    ],
)
def test_wrong_arguments(name: str, value: torch.Tensor, said: str) -> None:
    given = requests((40, 3), 1, 8, 1, 64, 16)
    setattr(given, name, value)
    with pytest.raises(ArgumentError, match=said):
        given.result()


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "temporary_output of"), (2, "max_logits of"), (3, "query of"), (5, "value_cache of"),
     (6, "context_lengths of"), (10, "value_scale of")],
)  # fmt: skip
def test_launchers_refuse_tensors_of_other_sizes(number: int, said: str) -> None:
    """Where the wrapper, which knows the shapes, is not what calls them."""
    given = requests((40, 3), 1, 8, 1, 64, 16, scales="token")
    compiled = kernel.compile_pa_decode_ps(
        block_size=16, max_context_partition_num=1, query_group_size=8, per_token_kv=True, head_dim=64
    )
    partials = torch.zeros(2 * 8 * 64, dtype=BF16), torch.zeros(16), torch.zeros(16)
    inputs = (given.query, *given.caches, given.contexts, given.pages, given.starts, given.key_scale, given.value_scale)
    tensors = [t.view(torch.uint8) if t.dtype == FP8 else t for t in (*partials, *inputs)]
    tensors = [t.view(-1)[: -1 if i == number else None] for i, t in enumerate(tensors)]
    with pytest.raises(ArgumentError, match=said) as raised:
        compiled["launch"](*tensors, 2, 1)
    assert raised.value.at is not None
    assert raised.value.at.file == __file__


@pytest.mark.parametrize(
    ("options", "said"),
    [({"head_dim": 96}, "head_dim=96"), ({"block_size": 24}, "block_size=24"), ({"query_length": 9}, "9 queries of 16"),
     ({"query_input_dtype": "f32"}, "query_input_dtype='f32'"), ({"output_dtype_str": "i8"}, "output_dtype_str='i8'"),
     ({"cache_dtype": "bf16", "query_input_dtype": "f16"}, "a cache of bf16"), ({"cache_dtype": "int4"}, "'int4'"),
     ({"per_token_kv": True, "per_block_kv": True}, "per_token_kv and per_block_kv")],
)  # fmt: skip
def test_wrong_configurations(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        kernel.compile_pa_decode_metadata(**options)
    if "query_input_dtype" not in options:
        with pytest.raises(ArgumentError, match=said):
            kernel.compile_pa_decode_ps(**{"block_size": 16, "max_context_partition_num": 4, **options})
