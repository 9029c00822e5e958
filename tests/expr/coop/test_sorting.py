"""Sorts, ranks and selections, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flydsl.expr as fx
from flydsl.errors import ArgumentError
from tests.expr.coop.conftest import Run, items_at, memory, put

pytestmark = pytest.mark.slow

coop = fx.coop
THREADS, ITEMS = 128, 3
COUNT = THREADS * ITEMS
VALUES = np.arange(COUNT, dtype=np.int32)


def keys_of(dtype: Any, count: int = COUNT) -> np.ndarray:
    """Keys of which many are equal; of floats with both zeros and infinities."""
    rng = np.random.default_rng(3)
    if np.issubdtype(dtype, np.floating):
        keys = rng.integers(-20, 20, count).astype(dtype) / 4
        keys[:4] = 0.0, -0.0, np.inf, -np.inf
        return keys
    info = np.iinfo(dtype)
    keys = rng.integers(-20, 20, count).astype(dtype)
    keys[:3] = info.min, info.max, 0
    return keys


def places_of(thread: Any) -> list[Any]:
    return [thread * ITEMS + i for i in range(ITEMS)]


@pytest.mark.parametrize("descending", [False, pytest.param(True, marks=pytest.mark.sweep)])
@pytest.mark.diagonal(2)
def test_a_block_merges(descending: bool, target: str, run: Run) -> None:
    keys, valid = keys_of(np.float32), 301

    def body(thread: Any, given: Any, made: Any) -> None:
        places = places_of(thread)
        sort = coop.BlockMergeSort[(fx.Float32, fx.Int32), THREADS, ITEMS]
        items, values = items_at(given[0], places), items_at(given[1], places)
        by_key, with_them = sort(items, values, storage=memory(sort), descending=descending)
        put(made[0], places, by_key)
        put(made[1], places, with_them)
        only = coop.BlockMergeSort[fx.Float32, THREADS, ITEMS]
        part = only.stable_sort(items, storage=memory(only), descending=descending, valid_items=fx.Int32(valid))
        put(made[2], places, part)
        filled = only.sort(items, storage=memory(only), descending=descending, valid_items=valid, oob_default=99.0)
        put(made[3], places, filled)

    got = run(body, [keys, VALUES], [keys, VALUES, keys, keys], THREADS)
    order = np.argsort(-keys if descending else keys, kind="stable")
    assert (got[0] == keys[order]).all()
    assert (got[1] == order).all()
    first = keys[:valid][np.argsort(-keys[:valid] if descending else keys[:valid], kind="stable")]
    assert (got[2][:valid] == first).all()
    assert sorted(got[2][valid:]) == sorted(keys[valid:])
    assert (got[3] == np.append(first, [99.0] * (COUNT - valid))).all()


def test_a_block_merges_by_a_function(target: str, run: Run) -> None:
    keys = np.random.default_rng(5).permutation(192).astype(np.int32)

    def body(thread: Any, given: Any, made: Any) -> None:
        sort = coop.BlockMergeSort[fx.Int32, 192, 1]
        made[0][thread] = sort(given[0][thread], storage=memory(sort), compare_op=lambda a, b: a % 10 < b % 10)

    (got,) = run(body, [keys], [keys], 192)
    assert (got == keys[np.argsort(keys % 10, kind="stable")]).all()


@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(np.int32, marks=pytest.mark.sweep),
        np.uint8,
        np.float16,
        *(pytest.param(dtype, marks=pytest.mark.sweep) for dtype in (np.int64, np.float32, np.int16)),
    ],
)
@pytest.mark.diagonal(2)
def test_a_block_sorts_by_digits(dtype: Any, target: str, run: Run) -> None:
    keys = keys_of(dtype) if dtype is not np.uint8 else np.random.default_rng(0).integers(0, 256, COUNT).astype(dtype)
    kind: Any = {
        np.int32: fx.Int32, np.float32: fx.Float32, np.int64: fx.Int64, np.uint8: fx.Uint8, np.float16: fx.Float16,
        np.int16: fx.Int16,
    }[dtype]  # fmt: skip
    policy = coop.BlockRadixSortAlgorithm.RADIX_DIGIT

    def body(thread: Any, given: Any, made: Any) -> None:
        places = places_of(thread)
        sort = coop.BlockRadixSort[(kind, fx.Int32), THREADS, ITEMS, policy]
        scratch = memory(sort)
        items, values = items_at(given[0], places), items_at(given[1], places)
        by_key, with_them = sort(items, values, storage=scratch)
        put(made[0], places, by_key)
        put(made[1], places, with_them)
        down, _ = sort.sort_blocked_to_striped(items, values, storage=scratch, descending=True)
        put(made[2], [thread + i * THREADS for i in range(ITEMS)], down)

    got = run(body, [keys, VALUES], [keys, VALUES, keys], THREADS)
    order = np.argsort(keys, kind="stable")
    assert (got[0] == keys[order]).all()
    assert (got[1] == order).all()
    assert (got[2] == keys[order][::-1]).all()


def test_bits_and_fields_of_keys(target: str, run: Run) -> None:
    keys = keys_of(np.int32)

    def body(thread: Any, given: Any, made: Any) -> None:
        places = places_of(thread)
        sort = coop.BlockRadixSort[fx.Int32, THREADS, ITEMS]
        scratch, items = memory(sort), items_at(given[0], places)
        put(made[0], places, sort(items, storage=scratch, begin_bit=1, end_bit=4, radix_bits=2))

        def parts(key: Any) -> Any:
            return fx.Uint8(key & 3), fx.Uint8((key >> 2) & 1)

        put(made[1], places, sort(items, storage=scratch, decomposer=parts, end_bit=10))

    bits, fields = run(body, [keys], [keys, keys], THREADS)
    assert (bits == keys[np.argsort(keys >> 1 & 7, kind="stable")]).all()
    assert (fields == keys[np.lexsort([keys >> 2 & 1, keys & 3])]).all()


_RANKS = coop.BlockRadixRankAlgorithm
_OTHERS = [pytest.param(policy, marks=pytest.mark.sweep) for policy in _RANKS if policy.name not in ("BASIC", "MATCH")]


@pytest.mark.parametrize("policy", [_RANKS.BASIC, _RANKS.MATCH, *_OTHERS])
@pytest.mark.diagonal(2)
def test_ranks(policy: Any, target: str, run: Run) -> None:
    lanes = 32 if target in ("gfx1100", "gfx1201", "gfx1250") else 64
    keys = np.random.default_rng(7).integers(0, 64, COUNT).astype(np.int32)
    matches = "match" in policy.value

    def body(thread: Any, given: Any, made: Any) -> None:
        places = places_of(thread)
        rank = coop.BlockRadixRank.with_radix_bits(6)[fx.Int32, THREADS, ITEMS, policy]
        scratch, items = memory(rank), items_at(given[0], places)
        counted: list[Any] = []
        callback = {"count_callback": counted.append} if matches else {}
        ranks, starts = rank(items, storage=scratch, end_bit=6, with_prefix=True, **callback)
        put(made[0], places, ranks)
        made[1][thread] = starts[0]
        if matches:
            made[2][thread] = counted[0][0]
        put(
            made[3],
            places,
            rank(items, storage=scratch, digit_extractor=lambda k: k // 8, radix_bits=3, descending=True),
        )

    ranks, starts, counts, down = run(body, [keys], [keys, VALUES[:THREADS], VALUES[:THREADS], keys], THREADS)
    sequence = np.arange(COUNT)
    if matches:  # the place in the order that is kept, of each thread's items
        sequence = np.arange(COUNT).reshape(-1, ITEMS, lanes).transpose(0, 2, 1).ravel()

    def expected(digits: np.ndarray) -> np.ndarray:
        found = np.empty(COUNT, np.int64)
        found[np.lexsort([sequence, digits])] = np.arange(COUNT)
        return found

    assert (ranks == expected(keys)).all()
    assert (down == expected(-(keys // 8))).all()
    bins = np.bincount(keys, minlength=64)
    assert (starts[:64] == bins.cumsum() - bins).all()
    if matches:
        assert (counts[:64] == bins).all()


@pytest.mark.parametrize(
    "policy",
    [  # by digits is what sorts a block, too
        pytest.param(coop.BlockTopKAlgorithm.AIR, marks=pytest.mark.sweep),
        coop.BlockTopKAlgorithm.MERGE,
    ],
)
@pytest.mark.parametrize("largest", [True, pytest.param(False, marks=pytest.mark.sweep)])
@pytest.mark.diagonal(2)
def test_the_largest_and_the_smallest(largest: bool, policy: Any, target: str, run: Run) -> None:
    keys, k, valid = keys_of(np.float32), 40, 350

    def body(thread: Any, given: Any, made: Any) -> None:
        places = places_of(thread)
        select = coop.BlockTopK[(fx.Float32, fx.Int32), THREADS, ITEMS, policy]
        scratch = memory(select)
        items, values = items_at(given[0], places), items_at(given[1], places)
        found, with_them, taken = select(items, k, values, storage=scratch, largest=largest, num_valid=fx.Int32(valid))
        put(made[0], places, found)
        put(made[1], places, with_them)
        put(made[2], places, [flag.select(1, 0) for flag in taken])
        fx.barrier()
        only = coop.BlockTopK[fx.Float32, THREADS, ITEMS, policy]
        put(made[3], places, only.min_keys(items, k, storage=memory(only))[0])

    got = run(body, [keys, VALUES], [keys, VALUES, VALUES, keys], THREADS)
    order = np.argsort(-keys[:valid] if largest else keys[:valid], kind="stable")[:k]
    order = np.sort(order) if policy is coop.BlockTopKAlgorithm.AIR else order
    assert (got[0][:k] == keys[order]).all()
    assert (got[1][:k] == order).all()
    assert got[2].tolist() == [1] * k + [0] * (COUNT - k)
    assert sorted(got[3][:k]) == sorted(keys)[:k]


@pytest.mark.parametrize(
    ("width", "count"), [(8, 3), (32, 1), *(pytest.param(*wide, marks=pytest.mark.sweep) for wide in [(8, 1), (32, 3)])]
)
@pytest.mark.diagonal(2)
def test_groups_of_lanes_sort(width: int, count: int, target: str, run: Run) -> None:
    keys, groups = keys_of(np.int32, 64 * count), 64 // width
    values, valid = np.arange(64 * count, dtype=np.int32), width * count - 5

    def body(thread: Any, given: Any, made: Any) -> None:
        blocked = [thread * count + i for i in range(count)]
        striped = [thread // width * (width * count) + thread % width + i * width for i in range(count)]
        stable = coop.WarpMergeSort[(fx.Int32, fx.Int32), width, count]
        by_key, with_them = stable.sort(
            items_at(given[0], blocked), items_at(given[1], blocked), compare_op=lambda a, b: a < b
        )
        put(made[0], blocked, by_key)
        put(made[1], blocked, with_them)
        found = coop.warp_bitonic_sort(items_at(given[0], striped), width=width, compare_op=lambda a, b: a > b)
        put(made[2], striped, found)
        part = coop.warp_merge_sort(
            items_at(given[0], blocked), width=width, compare_op=lambda a, b: a < b, valid_items=valid
        )
        put(made[3], blocked, part)

    tiles = keys.reshape(groups, -1)
    got = [m.reshape(groups, -1) for m in run(body, [keys, values], [keys, values, keys, keys])]
    order = np.argsort(tiles, 1, kind="stable")
    assert (got[0] == np.take_along_axis(tiles, order, 1)).all()
    assert (got[1] == np.take_along_axis(values.reshape(groups, -1), order, 1)).all()
    assert (got[2] == np.sort(tiles, 1)[:, ::-1]).all()
    assert (got[3][:, :valid] == np.sort(tiles[:, :valid], 1)).all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: coop.BlockMergeSort[(fx.Int32, fx.Int32), 64, 1](x, storage=None), "without values"),
        (lambda x: coop.BlockRadixSort[fx.Int32, 64, 1](x, x, storage=None), "with values"),
        (lambda x: coop.warp_merge_sort(x, compare_op=lambda a, b: a < b), "a lane's items"),
    ],
)
def test_errors(call: Any, said: str, trace: Any) -> None:
    with pytest.raises(ArgumentError, match=said):
        trace(lambda A, Out: call(fx.Int32(1)))
