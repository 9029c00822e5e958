"""Loads, stores and exchanges of tiles, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flydsl.expr as fx
from flydsl.errors import ArgumentError
from tests.expr.coop.conftest import LANES, Run, items_at, memory, put
from tests.messages import raises_saying

pytestmark = pytest.mark.slow

coop = fx.coop
THREADS, ITEMS = 128, 3
TILE = np.arange(100, 100 + THREADS * ITEMS, dtype=np.int32)
BLOCKED = TILE.reshape(THREADS, ITEMS)
STRIPED = TILE.reshape(ITEMS, THREADS).T


def of_threads(thread: Any) -> list[Any]:
    return [thread * ITEMS + i for i in range(ITEMS)]


def warp_striped(lanes: int) -> np.ndarray:
    return TILE.reshape(-1, ITEMS, lanes).transpose(0, 2, 1).reshape(THREADS, ITEMS)


@pytest.mark.parametrize("policy", list(coop.BlockLoadAlgorithm))
@pytest.mark.diagonal(2)
def test_a_block_loads_and_stores_a_tile(policy: Any, target: str, run: Run) -> None:
    store = coop.BlockStoreAlgorithm[policy.name]

    def body(thread: Any, given: Any, made: Any) -> None:
        load = coop.BlockLoad[fx.Int32, THREADS, ITEMS, policy]
        items = load(given[0], storage=memory(load), offset=2)
        put(made[0], of_threads(thread), items)
        guarded = load(given[0], storage=memory(load), offset=2, valid_items=200, default=-1)
        put(made[1], of_threads(thread), guarded)
        write = coop.BlockStore[fx.Int32, THREADS, ITEMS, store]
        write(made[2], items, storage=memory(write))
        write(made[3], items, storage=memory(write), valid_items=200, offset=1)

    source = np.concatenate([[-7, -7], TILE]).astype(np.int32)
    items, guarded, stored, part = run(body, [source], [TILE, TILE, TILE, np.append(TILE, 0).astype(np.int32)], THREADS)
    ownership = STRIPED if policy is coop.BlockLoadAlgorithm.STRIPED else BLOCKED
    assert (items.reshape(THREADS, ITEMS) == ownership).all()
    assert (guarded.reshape(THREADS, ITEMS) == np.where(ownership < 300, ownership, -1)).all()
    assert (stored == TILE).all()
    assert part.tolist() == [77, *TILE[:200], *[77] * (TILE.size - 200)]


@pytest.mark.parametrize("policy", list(coop.BlockExchangeAlgorithm))
@pytest.mark.diagonal(2)
def test_a_block_exchanges_items(policy: Any, target: str, run: Run) -> None:
    lanes = LANES.get(target, 64)
    rng = np.random.default_rng(0)
    ranks = rng.permutation(TILE.size).astype(np.int32)
    some = np.where(rng.random(TILE.size) < 0.3, rng.choice([-1, TILE.size + 5], TILE.size), ranks).astype(np.int32)

    def body(thread: Any, given: Any, made: Any) -> None:
        exchange = coop.BlockExchange[fx.Int32, THREADS, ITEMS, policy]
        places = of_threads(thread)
        items, ranked, guarded = (items_at(tensor, places) for tensor in given)
        results = [
            exchange.blocked_to_striped(items, storage=memory(exchange)),
            exchange.striped_to_blocked(items, storage=memory(exchange)),
            exchange.blocked_to_warp_striped(items, storage=memory(exchange)),
            exchange.warp_striped_to_blocked(items, storage=memory(exchange)),
            exchange.scatter_to_blocked(items, ranked, storage=memory(exchange)),
            exchange.scatter_to_striped(items, ranked, storage=memory(exchange)),
            exchange.scatter_to_striped_guarded(items, guarded, storage=memory(exchange), default=-5),
            exchange.scatter_to_striped_flagged(items, ranked, guarded >= 0, storage=memory(exchange)),
        ]
        for tensor, result in zip(made, results, strict=True):
            put(tensor, places, result)

    results = [r.reshape(THREADS, ITEMS) for r in run(body, [TILE, ranks, some], [TILE] * 8, THREADS)]
    assert (results[0] == STRIPED).all()
    # What lies striped, blocked: item p of the tile is thread p % threads' item number p // threads.
    back = BLOCKED.T.ravel()
    assert (results[1].ravel() == back).all()
    assert (results[2] == warp_striped(lanes)).all()
    waves = BLOCKED.reshape(-1, lanes, ITEMS).transpose(0, 2, 1).ravel()
    assert (results[3].ravel() == waves).all()
    scattered = np.empty_like(TILE)
    scattered[ranks] = TILE
    assert (results[4].ravel() == scattered).all()
    assert (results[5] == scattered.reshape(ITEMS, THREADS).T).all()
    inside = (some >= 0) & (some < TILE.size)
    for result, keep, default in ((results[6], inside, -5), (results[7], some >= 0, 0)):
        expected = np.full_like(TILE, default)
        expected[ranks[keep]] = TILE[keep]
        assert (result == expected.reshape(ITEMS, THREADS).T).all()


def test_values_of_a_block_of_three_dimensions_and_of_eight_bytes(target: str, run: Run) -> None:
    block = (8, 4, 2)
    values = np.random.default_rng(1).standard_normal(64 * 2)

    def body(thread: Any, given: Any, made: Any) -> None:
        exchange = coop.BlockExchange[fx.Float64, block, 2]
        places = [thread * 2, thread * 2 + 1]
        put(made[0], places, exchange.blocked_to_striped(items_at(given[0], places), storage=memory(exchange)))

    (striped,) = run(body, [values], [values], block)
    assert (striped.reshape(64, 2) == values.reshape(2, 64).T).all()


@pytest.mark.parametrize("width", [8, 32])
@pytest.mark.diagonal(2)
def test_groups_of_lanes_load_store_and_exchange(width: int, target: str, run: Run) -> None:
    groups = THREADS // width
    tiles = TILE.reshape(groups, width * ITEMS)
    loads = list(coop.WarpLoadAlgorithm)
    exchanges = list(coop.WarpExchangeAlgorithm)
    ranks = np.stack([np.random.default_rng(g).permutation(width * ITEMS) for g in range(groups)]).astype(np.int32)

    def body(thread: Any, given: Any, made: Any) -> None:
        group = thread // width
        start, places = group * (width * ITEMS), of_threads(thread)
        out = iter(made)
        for policy in loads:
            load = coop.WarpLoad[fx.Int32, width, ITEMS, policy]
            put(next(out), places, load.load(given[0], offset=start, valid_items=20, default=-1))
            store = coop.WarpStore[fx.Int32, width, ITEMS, coop.WarpStoreAlgorithm[policy.name]]
            store.store(next(out), load.load(given[0], offset=start), offset=start)
        for policy in exchanges:
            exchange = coop.WarpExchange[fx.Int32, width, ITEMS, policy]
            scratch = fx.SharedAllocator().allocate(fx.Array[exchange.SharedStorage, groups]).peek()[group]
            items = items_at(given[0], places)
            put(next(out), places, exchange.blocked_to_striped(items, storage=scratch))
            put(next(out), places, exchange.striped_to_blocked(items, storage=scratch))
        exchange = coop.WarpExchange[fx.Int32, width, ITEMS]
        scratch = fx.SharedAllocator().allocate(fx.Array[exchange.SharedStorage, groups]).peek()[group]
        ranked = items_at(given[1], places)
        put(next(out), places, exchange.scatter_to_striped(items_at(given[0], places), ranked, storage=scratch))

    results = iter(run(body, [TILE, ranks.ravel()], [TILE] * 13, THREADS))
    blocked = tiles.reshape(groups, width, ITEMS)
    striped = tiles.reshape(groups, ITEMS, width).transpose(0, 2, 1)
    for policy in loads:
        owned = striped if policy is coop.WarpLoadAlgorithm.STRIPED else blocked
        first = tiles[:, :1, None] + 20
        assert (next(results).reshape(owned.shape) == np.where(owned < first, owned, -1)).all()
        assert (next(results) == TILE).all()
    for _ in exchanges:
        assert (next(results).reshape(striped.shape) == striped).all()
        assert (next(results).reshape(groups, -1) == blocked.transpose(0, 2, 1).reshape(groups, -1)).all()
    scattered = np.empty_like(tiles)
    np.put_along_axis(scattered, ranks.astype(np.int64), tiles, 1)
    assert (next(results).reshape(striped.shape) == scattered.reshape(groups, ITEMS, width).transpose(0, 2, 1)).all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: coop.BlockLoad[fx.Int32, 64], "fx.coop.BlockLoad|positive Python int"),
        (lambda x: coop.BlockLoad[fx.Int32, 64, 0], "must be a positive Python int, got 0"),
        (lambda x: coop.BlockLoad[fx.Int32, 2048, 4], "must be 1 to 1024, .*, got 2048"),
        (
            lambda x: coop.BlockLoad[fx.Int32, 64, 4, "direct"],
            "the algorithm of BlockLoad.* must be a member of .*, got 'direct'",
        ),
        (lambda x: coop.BlockLoad[fx.Int32, 48, 4](x), "of 48 threads"),
        (lambda x: coop.BlockLoad(x), "without its type"),
        (
            lambda x: coop.BlockExchange[fx.Int32, 64, 4].blocked_to_striped([1, 2], storage=None),
            "takes 4 items per thread, got 2",
        ),
        (
            lambda x: coop.BlockExchange[fx.Int32, 64, 2].blocked_to_striped([1, 2], storage=None),
            "must be shared memory of",
        ),
        (lambda x: coop.WarpLoad[fx.Int32, 24, 2].load(x), "power of two of lanes, got 24"),
        (lambda x: type("Mine", (coop.BlockRadixSort,), {"scan_type": coop.BlockScan}), "unsupported: Mine.scan_type"),
    ],
)
def test_errors(call: Any, said: str, trace: Any) -> None:
    with raises_saying(ArgumentError, said):
        trace(lambda A, Out: call(A))


def test_a_group_of_lanes_has_no_block() -> None:
    with pytest.raises(AttributeError, match="it is of a group of lanes, and warp_threads is how many they are"):
        _ = coop.WarpLoad[fx.Int32, 16, 2].block_threads
