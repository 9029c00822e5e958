"""Reductions and scans by waves and blocks, on the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError, LaunchError
from flydsl.extension import coop
from flydsl.simulator import checking
from tests.launchers import launcher_of
from tests.messages import raises_saying

pytestmark = pytest.mark.slow

LANES = 64
OPERATIONS = {
    "add": torch.Tensor.sum,
    "mul": torch.Tensor.prod,
    "max": lambda t, dim: t.amax(dim),
    "min": lambda t, dim: t.amin(dim),
}


def numbers(count: int = LANES) -> torch.Tensor:
    return torch.randint(-4, 5, (count,), generator=torch.Generator().manual_seed(count)).float()


@pytest.mark.parametrize("op", OPERATIONS)
def test_reduction_of_groups(op: str, elementwise: Callable[..., torch.Tensor]) -> None:
    widths = [64, 32, 16, 8, 2, 1]
    a = 2 ** numbers().sign() if op == "mul" else numbers()
    got = elementwise(lambda a, b: [fx.coop.warp_reduce(a, op, width=width) for width in widths], a, a, torch.float32)
    for row, width in zip(got, widths, strict=True):
        expected = OPERATIONS[op](a.view(-1, width), dim=1)
        assert torch.equal(row.view(-1, width), expected[:, None].expand(-1, width)), width


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, torch.bfloat16, torch.float64], ids=str)
def test_reduction_of_types(dtype: torch.dtype, elementwise: Callable[..., torch.Tensor]) -> None:
    a = numbers().abs().to(dtype)

    def reduced(a: Any, b: Any) -> list[Any]:
        return [fx.warp_reduce(a, fx.ReductionOp.MAX), fx.warp_reduce(a, lambda x, y: x + y, width=4)]

    largest, sums = elementwise(reduced, a, a, torch.float32)
    assert torch.equal(largest, a.float().max().expand(LANES))
    assert torch.equal(sums.view(-1, 4)[:, 0], a.float().view(-1, 4).sum(1))


@pytest.mark.parametrize("width", [64, 16, 1])
def test_scans(width: int, elementwise: Callable[..., torch.Tensor]) -> None:
    def scans(a: Any, b: Any) -> list[Any]:
        inclusive, exclusive, total = coop.warp_scan_with_aggregate(a, "add", width=width, init=3)
        others = coop.WarpScan[fx.Float32, width]
        return [inclusive, exclusive, total, others.inclusive(a, "max"), others.exclusive(a, "add")]

    a = numbers()
    inclusive, exclusive, total, largest, plain = elementwise(scans, a, a, torch.float32)
    groups = a.view(-1, width)
    assert torch.equal(inclusive.view(-1, width), 3 + groups.cumsum(1))
    assert torch.equal(exclusive.view(-1, width), 3 + groups.cumsum(1) - groups)
    assert torch.equal(total.view(-1, width), groups.sum(1, keepdim=True).expand_as(groups))
    assert torch.equal(largest.view(-1, width), groups.cummax(1).values)
    assert torch.equal(plain, exclusive - 3)


def test_broadcast_and_reduction_as_classes(elementwise: Callable[..., torch.Tensor]) -> None:
    a = numbers()
    got = elementwise(
        lambda a, b: [coop.warp_broadcast(a, 5, width=16), coop.WarpReduce[fx.Float32].reduce(a, "add")], a, a,
        torch.float32,
    )  # fmt: skip
    assert torch.equal(got[0].view(-1, 16), a.view(-1, 16)[:, 5:6].expand(-1, 16))
    assert torch.equal(got[1], a.sum().expand(LANES))


def block(threads: int, values: Callable[[Any], list[Any]], a: torch.Tensor) -> torch.Tensor:
    """What `values(a[thread])` gives in each thread of a block."""
    out = torch.zeros(3, threads)

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        for row, value in enumerate(values(A[fx.thread_idx.x])):
            Out[row, fx.thread_idx.x] = value

    launch = launcher_of(kernel, grid=1, block=threads)
    with checking():
        launch(a, out)
    return out


@pytest.mark.parametrize("threads", [1024, 256, 192, 64, 16])
@pytest.mark.diagonal(2)
def test_a_block_reduces_and_scans(threads: int) -> None:
    def storage(kind: Any) -> Any:
        return fx.SharedAllocator().allocate(kind.SharedStorage).peek()

    def values(x: Any) -> list[Any]:
        add, scan = fx.coop.BlockReduce[fx.Float32, threads], fx.coop.BlockScan[fx.Float32, threads]
        return [
            add.reduce(x, fx.ReductionOp.ADD, storage(add)),
            scan.inclusive(x, "add", storage(scan)),
            scan.exclusive(x, "add", storage(scan), init=1),
        ]

    a = numbers(threads)
    total, inclusive, exclusive = block(threads, values, a)
    assert torch.equal(total, a.sum().expand(threads))
    assert torch.equal(inclusive, a.cumsum(0))
    assert torch.equal(exclusive, 1 + a.cumsum(0) - a)


def test_several_values_of_each_thread() -> None:
    """And a block size as `known_block_size` has it, which the launch tells."""

    @flyc.kernel
    def items_kernel(A: fx.Pointer, total: fx.Tensor, out: fx.Tensor):
        block = fx.known_block_size()
        add, scan = fx.coop.BlockReduce[fx.Int32, block], fx.coop.BlockScan[fx.Int32, block]
        items = (A + fx.thread_idx.x * 4).load(fx.Int32x4)
        total[fx.thread_idx.x] = add.reduce(items, "add", fx.SharedAllocator().allocate(add.SharedStorage))
        memory = fx.SharedAllocator().allocate(scan.SharedStorage)
        after, before = scan.inclusive(items, "add", memory), scan.exclusive(items, "add", memory, init=1)
        for i in fx.range_constexpr(4):
            out[fx.thread_idx.x * 4 + i, 0] = after[i]
            out[fx.thread_idx.x * 4 + i, 1] = before[i]

    items = launcher_of(items_kernel, grid=1, block=(128, 1, 1))
    a = torch.randint(-8, 8, (512,), dtype=torch.int32, generator=torch.Generator().manual_seed(0))
    total, out = torch.zeros(128, dtype=torch.int32), torch.zeros(512, 2, dtype=torch.int32)
    items(a, total, out)
    assert torch.equal(total, a.sum().int().expand(128))
    assert torch.equal(out, torch.stack([a.cumsum(0), 1 + a.cumsum(0) - a], 1).int())


@pytest.mark.parametrize(
    ("op", "dtype", "start", "expected"),
    [
        ("mul", fx.Float32, 1, lambda a: a.cumprod(0)),
        ("max", fx.Float32, -torch.inf, lambda a: a.cummax(0).values),
        ("min", fx.Int16, 32767, lambda a: a.cummin(0).values),
        ("and", fx.Uint8, 255, lambda a: 256 + a.cummin(0).values),
    ],
)
def test_a_scan_without_init_begins_with_what_changes_nothing(
    op: str, dtype: Any, start: float, expected: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    a = -1 - (torch.arange(128) % 50 == 49).float()

    def values(x: Any) -> list[Any]:
        scan, value = fx.coop.BlockScan[dtype, 128], x.to(fx.Int32).to(dtype)
        storage = [fx.SharedAllocator().allocate(scan.SharedStorage) for _ in range(2)]
        inclusive, total = scan.inclusive_with_aggregate(value, op, storage=storage[0])
        exclusive, _ = scan.exclusive_with_aggregate(value, op, storage=storage[1])
        return [part.to(fx.Float32) for part in (inclusive, exclusive, total)]

    inclusive, exclusive, total = block(128, values, a)
    assert torch.equal(inclusive, expected(a))
    assert exclusive.tolist() == [start, *expected(a)[:-1].tolist()]
    assert torch.equal(total, expected(a)[-1].expand(128))


@pytest.mark.parametrize(("arch", "lanes"), [("gfx942", 64), ("gfx1201", 32)])
def test_the_waves_of_a_block_are_those_of_the_target(
    arch: str, lanes: int, trace: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCH", arch)

    def function(A: Any, Out: Any) -> None:
        for threads, waves in ((16, 1), (lanes, 1), (256, 256 // lanes)):
            kind = fx.coop.BlockScan[fx.Float32, threads]
            assert (kind.num_warps, kind.warp_threads) == (waves, min(threads, lanes))
        assert fx.coop.WarpReduce[fx.Float32, 8].warp_threads == 8
        assert not hasattr(fx.coop.WarpReduce[fx.Float32, 8], "num_warps")

    trace(function)


def test_shared_memory_need_not_be_peeked() -> None:
    kind = fx.BlockReduce[fx.Float32, 128]
    a = numbers(128)
    total, *_ = block(128, lambda x: [kind(x, "add", storage=fx.SharedAllocator().allocate(kind.SharedStorage))], a)
    assert torch.equal(total, a.sum().expand(128))


@pytest.mark.parametrize("launched", [128, 512, (64, 4)])
def test_a_block_of_other_threads_is_an_error(launched: Any) -> None:
    """It would leave numbers out, or write behind the end of its shared memory."""

    @flyc.kernel
    def kernel(A: fx.Tensor):
        kind = fx.BlockReduce[fx.Float32, 256]
        A[0] = kind.reduce(A[0], "add", fx.SharedAllocator().allocate(kind.SharedStorage))

    launch = launcher_of(kernel, grid=1, block=launched)
    with pytest.raises(LaunchError, match=r"BlockReduce\[Float32, 256\] in it is for 256 threads"):
        launch(torch.zeros(1))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda a: fx.BlockScan[fx.Float32, 256].inclusive(a, "add", a), "must be shared memory of its SharedStorage"),
        (lambda a: fx.coop.warp_reduce(a, "sum"), "must be a function or a name, got 'sum'\nthe names are add, "),
        (lambda a: fx.coop.warp_reduce(a, "add", width=48), "groups must have a power of two of lanes, got 48"),
        (lambda a: fx.coop.warp_inclusive_scan(a, "add", width=128), "128"),
        (lambda a: fx.coop.BlockReduce[fx.Float32, 100].reduce(a, "add", None), "100"),
        (lambda a: fx.coop.BlockReduce[fx.Float32], r"BlockReduce\[fx.Float32, 256\]"),
        (lambda a: fx.coop.warp_exclusive_scan(a, lambda x, y: x + y), "a scan by a function, without init"),
    ],
)
def test_wrong_reductions_are_refused_with_the_reason(
    call: Callable[[Any], Any], said: str, trace: Callable[..., Any]
) -> None:
    with raises_saying(ArgumentError, said):
        trace(lambda A, Out: call(A[0, 0]))


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda a: fx.BlockReduce[fx.Float32, 256].reduce(a, "add"), r"allocate\(Sum.SharedStorage\)"),
        (lambda a: fx.BlockReduce(fx.Float32, 256), r"fx\.coop\.BlockReduce\[fx.Float32, 256\]"),
    ],
)
def test_a_call_that_python_refuses_says_how_it_is_called(
    call: Callable[[Any], Any], hint: str, trace: Callable[..., Any]
) -> None:
    with pytest.raises(TypeError, match=hint):
        trace(lambda A, Out: call(A[0, 0]))
