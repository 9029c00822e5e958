"""Shifts, differences, run boundaries, histograms, run lengths and segmented reductions, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flydsl.expr as fx
from flydsl.errors import ArgumentError
from flydsl.expr.threads.guarded import only_where
from tests.expr.coop.conftest import Run, items_at, memory, put
from tests.messages import raises_saying

pytestmark = pytest.mark.slow

coop = fx.coop
THREADS, ITEMS = 128, 2
COUNT = THREADS * ITEMS
SEQUENCE = np.random.default_rng(2).integers(-50, 50, COUNT).astype(np.int32)
RUNS = np.repeat(np.arange(COUNT, dtype=np.int32), 3)[:COUNT] // 2


def places_of(thread: Any) -> list[Any]:
    return [thread * ITEMS + i for i in range(ITEMS)]


def test_a_block_moves_values(target: str, run: Run) -> None:
    def body(thread: Any, given: Any, made: Any) -> None:
        shuffle = coop.BlockShuffle[fx.Int32, THREADS]
        own, items = given[0][thread], items_at(given[0], places_of(thread))
        made[0][thread] = shuffle.offset(own, 5, storage=memory(shuffle), fill=-1)
        made[1][thread] = shuffle.offset(own, -3, storage=memory(shuffle))
        made[2][thread] = shuffle.rotate(own, -131, storage=memory(shuffle))
        up, last = shuffle.up(items, storage=memory(shuffle), predecessor=-9, return_suffix=True)
        down, first = shuffle.down(items, storage=memory(shuffle), return_prefix=True)
        put(made[3], places_of(thread), up)
        put(made[4], places_of(thread), down)
        made[5][thread], made[6][thread] = last, first

    short = SEQUENCE[:THREADS]
    got = run(body, [SEQUENCE], [short] * 3 + [SEQUENCE] * 2 + [short] * 2, THREADS)
    assert (got[0] == np.append(short[5:], [-1] * 5)).all()
    assert (got[1] == np.append(short[:3], short[:-3])).all()
    assert (got[2] == np.roll(short, 131)).all()
    assert (got[3] == np.append(-9, SEQUENCE[:-1])).all()
    assert (got[4] == np.append(SEQUENCE[1:], SEQUENCE[-1])).all()
    assert (got[5] == SEQUENCE[-1]).all()
    assert (got[6] == SEQUENCE[0]).all()


def test_differences_and_boundaries(target: str, run: Run) -> None:
    valid = 201

    def body(thread: Any, given: Any, made: Any) -> None:
        places, out = places_of(thread), iter(made)
        items, runs = items_at(given[0], places), items_at(given[1], places)
        difference = coop.BlockAdjacentDifference[fx.Int32, THREADS]
        put(next(out), places, difference.subtract_left(items, storage=memory(difference)))
        put(next(out), places, difference.subtract_right(items, storage=memory(difference), successor=7))
        put(
            next(out),
            places,
            difference.subtract_left_partial_tile(
                items, valid, lambda a, b: a * 2 - b, storage=memory(difference), predecessor=1, output_dtype=fx.Float32
            ),
        )
        put(
            next(out),
            places,
            difference.subtract_right(
                items, "add", storage=memory(difference), valid_items=fx.Int32(valid), successor=5
            ),
        )
        edges = coop.BlockDiscontinuity[fx.Int32, THREADS]
        put(next(out), places, edges.flag_heads(runs, storage=memory(edges)))
        put(next(out), places, edges.flag_tails(runs, storage=memory(edges), successor=int(RUNS[-1])))
        heads, tails, before = edges.flag_heads_and_tails(
            runs, lambda a, b, place: (a != b) & (place % 2 == 0), storage=memory(edges), return_predecessors=True
        )
        for result in (heads, tails, before):
            put(next(out), places, result)

    made = [SEQUENCE, SEQUENCE, SEQUENCE.astype(np.float32), *[SEQUENCE] * 6]
    got = run(body, [SEQUENCE, RUNS], made, THREADS)
    left, right = np.append(1, SEQUENCE[:-1]), np.append(SEQUENCE[1:], 7)
    inside = np.arange(COUNT) < valid
    assert (got[0] == np.append(SEQUENCE[0], np.diff(SEQUENCE))).all()
    assert (got[1] == SEQUENCE - right).all()
    assert (got[2] == np.where(inside, SEQUENCE * 2 - left, SEQUENCE)).all()
    right[valid - 1] = 5
    assert (got[3] == np.where(inside, SEQUENCE + right, SEQUENCE)).all()
    changes = np.diff(RUNS) != 0
    even = np.arange(1, COUNT + 1) % 2 == 0
    assert (got[4] == np.append(True, changes)).all()
    assert (got[5] == np.append(changes, False)).all()
    assert (got[6] == np.append(True, changes & even[:-1])).all()
    assert (got[7] == np.append(changes & even[:-1], True)).all()
    assert (got[8] == np.roll(RUNS, 1)).all()


@pytest.mark.parametrize("policy", list(coop.BlockHistogramAlgorithm))
@pytest.mark.diagonal(2)
def test_histograms(policy: Any, target: str, run: Run) -> None:
    def body(thread: Any, given: Any, made: Any) -> None:
        histogram = coop.BlockHistogram[(fx.Int32, fx.Uint32), THREADS, 150, policy]
        scratch, items = memory(histogram), items_at(given[0], places_of(thread))
        counts = histogram(items, storage=scratch)
        histogram.composite(items[0], storage=scratch)
        for i in range(2):
            with only_where(thread + i * THREADS < 150):
                made[0][thread + i * THREADS] = fx.Int32(counts[thread + i * THREADS])

    keys = SEQUENCE * 2
    (counts,) = run(body, [keys], [keys[:150]], THREADS)
    both = np.concatenate([keys, keys[::ITEMS]])
    assert (counts == np.bincount(both[(both >= 0) & (both < 150)], minlength=150)).all()


def test_run_lengths(target: str, run: Run) -> None:
    rng = np.random.default_rng(4)
    lengths, values = rng.integers(0, 4, 64).astype(np.int32), rng.random(64).astype(np.float32)
    window, offset = 3, 10

    def body(thread: Any, given: Any, made: Any) -> None:
        decode = coop.BlockRunLengthDecode[fx.Float32, 64, 1]
        places = [thread * window + i for i in range(window)]
        items, relative, total = decode(
            given[0][thread], given[1][thread], storage=memory(decode), decoded_items_per_thread=window, offset=offset,
            default=-1.0,
        )  # fmt: skip
        put(made[0], places, items)
        put(made[1], places, relative)
        made[2][thread] = total
        decoder = decode.init_with_run_offsets(given[0][thread], given[2][thread], storage=memory(decode))
        put(made[3], [thread], decoder.decode(offset=2)[0])

    starts = (lengths.cumsum() - lengths).astype(np.int32)
    every = np.zeros(64 * window, np.float32)
    got = run(body, [values, lengths, starts], [every, every.astype(np.int32), lengths, values])
    decoded, inside = np.repeat(values, lengths), np.concatenate([np.arange(n) for n in lengths])
    expected = np.append(decoded[offset:], [-1.0] * every.size)[: every.size]
    assert (got[0] == expected.astype(np.float32)).all()
    assert (got[1] == np.append(inside[offset:], [-1] * every.size)[: every.size]).all()
    assert (got[2] == lengths.sum()).all()
    assert (got[3] == np.append(decoded, [values[-1]] * 64)[2:66]).all()


def last_odd(a: Any, b: Any) -> Any:
    """Associative, but the order matters."""
    return (b % 2 != 0).select(b, a)


def test_segments_and_batches_of_lanes(target: str, run: Run) -> None:
    width = 16
    flags = (np.random.default_rng(6).random(64) < 0.3).astype(np.int32)
    values = np.arange(1, 65, dtype=np.int32)

    def body(thread: Any, given: Any, made: Any) -> None:
        value, flag = given[0][thread], given[1][thread]
        reduce = coop.WarpReduce[fx.Int32, width]
        made[0][thread] = reduce.head_segmented_reduce(value, flag, "add")
        made[1][thread] = coop.warp_tail_segmented_reduce(value, flag, last_odd, width=width)
        batches, three = [value + i for i in range(5)], [thread * 3 + i for i in range(3)]
        made[2][thread] = coop.warp_reduce_batched(batches, "add", width=width)
        put(made[3], three, coop.warp_reduce_batched_to_blocked(batches, "add", width=2))
        put(made[4], three, coop.WarpReduceBatched[fx.Int32, 2, 5].reduce_to_striped(batches, "add"))
        made[5][thread] = reduce.reduce(value, "max", valid_items=7)
        made[6][thread] = coop.warp_reduce(value, last_odd, width=width)
        put(made[7], [thread * 2, thread * 2 + 1], coop.WarpScan[fx.Int32, width].inclusive_scan([value, 2], "add"))

    wide = np.zeros(192, np.int32)
    got = run(body, [values, flags], [values, values, values, wide, wide, values, values, np.zeros(128, np.int32)])

    def segments(ends: np.ndarray, combine: Any) -> dict[int, int]:
        found, first, total = {}, 0, None
        for lane in range(64):
            total = values[lane] if total is None else combine(total, values[lane])
            if ends[lane]:
                found[first], first, total = int(total), lane + 1, None
        return found

    group_ends = np.arange(64) % width == width - 1
    heads = segments(group_ends | (np.append(flags[1:], 1) != 0), lambda a, b: a + b)
    tails = segments(group_ends | (flags != 0), lambda a, b: b if b % 2 else a)
    assert {lane: int(got[0][lane]) for lane in heads} == heads
    assert {lane: int(got[1][lane]) for lane in tails} == tails
    sums = values.reshape(-1, width).sum(1)
    assert (got[2].reshape(-1, width)[:, :5] == sums[:, None] + width * np.arange(5)).all()
    pairs = (values.reshape(-1, 2).sum(1)[:, None] + 2 * np.arange(5)).astype(np.int32)
    assert (got[3].reshape(32, 6)[:, :5] == pairs).all()
    assert (got[4].reshape(32, 2, 3).transpose(0, 2, 1).reshape(32, 6)[:, :5] == pairs).all()
    assert (got[5] == values.reshape(-1, width)[:, 6].repeat(width)).all()
    ordered = segments(group_ends, lambda a, b: b if b % 2 else a)
    assert (got[6] == np.array(list(ordered.values())).repeat(width)).all()
    both = np.stack([values, np.full(64, 2)], 1).reshape(-1, 2 * width).cumsum(1)
    assert (got[7] == both.ravel()).all()


@pytest.mark.parametrize("policy", list(coop.BlockReduceAlgorithm))
@pytest.mark.diagonal(2)
def test_policies_of_reductions(policy: Any, target: str, run: Run) -> None:
    values = np.random.default_rng(8).integers(0, 9, 256).astype(np.int32)

    def body(thread: Any, given: Any, made: Any) -> None:
        total = coop.BlockReduce[fx.Int32, 256, policy]
        value = given[0][thread]
        made[0][thread] = total(value, "add", storage=memory(total))
        made[1][thread] = total(value, "add", storage=memory(total), valid_items=fx.Int32(100))
        if policy.name == "RAKING" or policy.name == "WARP_REDUCTIONS":
            made[2][thread] = total(value, last_odd, storage=memory(total))

    got = run(body, [values], [values] * 3, 256)
    assert (got[0] == values.sum()).all()
    assert (got[1] == values[:100].sum()).all()
    if policy.name in ("RAKING", "WARP_REDUCTIONS"):
        assert (got[2] == values[values % 2 != 0][-1]).all()


@pytest.mark.parametrize("policy", list(coop.BlockScanAlgorithm))
@pytest.mark.diagonal(2)
def test_policies_of_scans(policy: Any, target: str, run: Run) -> None:
    def body(thread: Any, given: Any, made: Any) -> None:
        scan = coop.BlockScan[fx.Int32, THREADS, policy]
        items = items_at(given[0], places_of(thread))
        after, total = scan.inclusive_with_aggregate(items, "add", memory(scan), init=5)
        put(made[0], places_of(thread), after)
        made[1][thread] = total
        made[2][thread] = scan.exclusive(items[0], "add", memory(scan), valid_items=30)
        before, _ = scan.exclusive_with_aggregate(
            items, "add", storage=memory(scan), prefix_callback=lambda total: total * 2
        )
        put(made[3], places_of(thread), before)

    got = run(body, [SEQUENCE], [SEQUENCE, SEQUENCE[:THREADS], SEQUENCE[:THREADS], SEQUENCE], THREADS)
    assert (got[0] == 5 + SEQUENCE.cumsum()).all()
    assert (got[1] == SEQUENCE.sum()).all()
    firsts = SEQUENCE[::ITEMS]
    part = np.where(np.arange(THREADS) < 30, firsts, 0)
    assert (got[2] == part.cumsum() - part).all()
    assert (got[3] == 2 * SEQUENCE.sum() + SEQUENCE.cumsum() - SEQUENCE).all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: coop.warp_reduce_batched(x, "add"), "a vector or list of items"),
        (lambda x: coop.warp_reduce_batched([x] * 3, "add", width=2), "3 items by 2 lanes"),
        (
            lambda x: coop.BlockRunLengthDecode[(fx.Int32, fx.Float32), 64, 1].SharedStorage,
            "offsets of .* must be .*, got Float32",
        ),
        (lambda x: coop.BlockReduce[fx.Int32, 64](x, lambda a, b: a, None, valid_items=3), "identity="),
    ],
)
def test_errors(call: Any, said: str, trace: Any) -> None:
    with raises_saying(ArgumentError, said):
        trace(lambda A, Out: call(fx.Int32(1)))
