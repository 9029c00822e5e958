from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch

from flydsl.errors import ArgumentError
from kernels import pa_metadata as kernel
from tests.kernels.checks import checking


@pytest.mark.checked
@pytest.mark.parametrize("shape", kernel.SHAPES, ids=lambda shape: str(shape)[:40])
@pytest.mark.diagonal(2)
def test_equals_reference(shape: tuple[Any, ...]) -> None:
    contexts, num_cu, heads, group, queries = shape
    lengths = torch.tensor(contexts, dtype=torch.int32)
    with checking():
        found = kernel.get_pa_metadata(lengths, heads * group, heads, queries, num_cu=num_cu)
    for name, values in kernel.reference(contexts, num_cu, heads, group, queries).items():
        assert found[name][: len(values)].tolist() == values, name


def test_pieces_of_one_key() -> None:
    contexts = (5, 0, 9)
    found = kernel.get_pa_metadata(torch.tensor(contexts).int(), 128, 1, num_cu=4, kv_granularity=1)
    expected = kernel.reference(contexts, 4, 1, 128, 1, kv_granularity=1)
    assert found["work_info"][: len(expected["work_info"])].tolist() == expected["work_info"]


def test_every_bin_has_its_share_of_every_request() -> None:
    """What the division is for: all pieces once, in order, and no bin has more than one above another."""
    contexts, bins = (1300, 1, 0, 5000, 256, 257), 7
    tables = kernel.reference(contexts, bins, 1, 8, 1)
    done = 0
    for request, _, _, _, first, last, _, _ in tables["work_info"]:
        assert first == done
        assert tables["partition_indptr"][request] <= first <= last <= tables["partition_indptr"][request + 1]
        done = last
    assert done == sum(-(-context // 256) for context in contexts)
    ends = tables["work_indptr"]
    sizes = [sum(item[5] - item[4] for item in tables["work_info"][a:b]) for a, b in pairwise(ends)]
    assert max(sizes) - min(sizes) <= 1


def test_the_reference_itself() -> None:
    """Five pieces and one, on two bins: the first request is divided 3 + 2, the second one is whole."""
    tables = kernel.reference((1025, 10), 2, 1, 8, 1)
    assert tables["work_info"] == [
        [0, 0, 0, 1, 0, 3, 0, 8 << 16], [0, 1, 0, 1, 3, 5, 0, 8 << 16], [1, -1, 1, 2, 5, 6, 0, 8 << 16]
    ]  # fmt: skip
    assert tables["work_indptr"] == [0, 1, 3]
    assert (tables["reduce_indptr"], tables["reduce_partial_map"]) == ([0, 2, 2], [0, 1])
    assert tables["reduce_final_map"] == [[0, 1]]


@pytest.mark.parametrize(
    ("options", "said"),
    [({"num_cu": 5, "num_heads_k": 2}, "num_cu=5"), ({"num_heads_k": 65, "num_cu": 65}, "num_heads_k=65"),
     ({"warp_size": 32}, "warp_size=32"), ({"query_length": 0}, "query_length=0")],
)  # fmt: skip
def test_wrong_configurations(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        kernel.compile_pa_metadata_v1(**options)


def test_wrong_tensors() -> None:
    tables = {n: torch.zeros(s, dtype=torch.int32) for n, s in kernel.get_pa_metadata_info_v1(2, 4).items()}
    lengths = torch.tensor([1, 2], dtype=torch.int32)
    heads = {"num_heads_q": 8, "num_heads_k": 1}
    with pytest.raises(ArgumentError, match="context_lengths of"):
        kernel.get_pa_metadata_v1(lengths.long(), **tables, **heads)
    with pytest.raises(ArgumentError, match="7 query heads"):
        kernel.get_pa_metadata_v1(lengths, **tables, num_heads_q=7, num_heads_k=2)
    with pytest.raises(ArgumentError, match="work_info"):
        kernel.get_pa_metadata_v1(lengths, **{**tables, "work_info": tables["work_info"][:2]}, **heads)
