"""Kernels for gfx1250 with tiles that the hardware moves, and clusters of workgroups: results, checks, errors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import LaunchError
from flydsl.expr import rocdl, tdm_ops
from flydsl.expr.rocdl import cluster
from flydsl.expr.rocdl.lds_address import lds_address
from flydsl.simulator import checking, counting
from flydsl.simulator.errors import (
    BarrierDeadlock,
    BarrierMisuse,
    DescriptorError,
    GlobalRace,
    InstructionLimit,
    LdsRace,
    MemoryFault,
    UninitializedLds,
)
from tests.launchers import launcher_of

pytestmark = pytest.mark.slow

BACKENDS = ("native", "lockstep", "checked")


@pytest.fixture(autouse=True)
def _on_gfx1250(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx1250")


@pytest.fixture(params=BACKENDS)
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`run(launch, *arguments)`: natively, in lock-step, or with every check on."""
    if request.param == "checked":

        def checked(launch: Any, *arguments: Any) -> None:
            with checking() as found:
                launch(*arguments)
            assert not str(found)

        return checked
    monkeypatch.setenv("FLYDSL_SIMULATOR_BACKEND", request.param)
    return lambda launch, *arguments: launch(*arguments)


def shared(element: Any, count: int) -> Any:
    return fx.SharedAllocator().allocate(fx.Array[element, count, 128]).peek()


# --- tiles with tails, padding, two waves, and back

ROWS, COLUMNS, PAD = 16, 64, 8


@flyc.kernel
def double_kernel(x: fx.Tensor, y: fx.Tensor, m: fx.Int32, n: fx.Int32, waits: fx.Constexpr[str]):
    lds = shared(fx.Float16, ROWS * (COLUMNS + PAD))
    row, column = fx.block_idx.y * ROWS, fx.block_idx.x * COLUMNS
    options = {
        "lds_memref": lds, "global_offset": (row, column), "tensor_shape": (m - row, n - column), "strides": (n, 1),
        "tile_shape": (ROWS, COLUMNS), "elem_bytes": 2, "pad_interval": COLUMNS, "pad_amount": PAD, "num_warps": 2,
    }  # fmt: skip
    tdm_ops.tensor_load_2d(tdm_ops.make_tensor_descriptor_2d(global_ptr=x, **options))
    if fx.const_expr(waits != "not for the load"):
        tdm_ops.tensor_wait(0)
    fx.barrier()
    tile = lds.view(fx.make_layout((ROWS, COLUMNS), (COLUMNS + PAD, 1)))
    for i in fx.range_constexpr(ROWS):
        tile[i, fx.thread_idx.x] = tile[i, fx.thread_idx.x] * fx.Float16(2.0)
    fx.barrier()
    tdm_ops.tensor_store_2d(tdm_ops.make_tensor_descriptor_2d(global_ptr=y, for_store=True, **options))
    if fx.const_expr(waits == "for all"):
        tdm_ops.tensor_wait(0)
    if fx.const_expr(waits == "not before the next write"):
        fx.barrier()
        tile[0, fx.thread_idx.x] = fx.Float16(0.0)


@flyc.jit
def double(x: fx.Tensor, y: fx.Tensor, m: fx.Int32, n: fx.Int32, waits: fx.Constexpr[str]):
    grid = ((n + COLUMNS - 1) // COLUMNS, (m + ROWS - 1) // ROWS)
    double_kernel(x, y, m, n, waits).launch(grid=grid, block=(64,))


def matrices(m: int, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.arange(m * n).view(m, n).remainder(1000).half(), torch.full((m, n), torch.nan).half()


@pytest.mark.parametrize(("m", "n"), [(40, 150), (16, 64), (3, 5)])
def test_tiles_of_any_matrix(run: Any, m: int, n: int) -> None:
    x, y = matrices(m, n)
    run(double, x, y, m, n, "for all")
    assert torch.equal(y, 2 * x)


@pytest.mark.parametrize("waits", ["for all", "not for the load"])
def test_tiles_that_come_as_late_as_they_may(waits: str) -> None:
    """A tile that nothing waits for is not there when it is doubled."""
    x, y = matrices(16, 64)
    with checking("late"):
        double(x, y, 16, 64, waits)
    assert torch.equal(y, 2 * x) == (waits == "for all")


def test_what_a_tile_moves_is_counted() -> None:
    x, y = matrices(40, 150)
    with counting() as counters:
        double(x, y, 40, 150, "for all")
    launch = counters.launches[0]
    loads = launch.counts[["tensor_load" in line.listed.text for line in launch.program.instructions]]
    stores = launch.counts[["tensor_store" in line.listed.text for line in launch.program.instructions]]
    assert loads["global_bytes"].sum() == stores["global_bytes"].sum() == 40 * 150 * 2
    assert loads["lds_bytes"].sum() == 3 * 3 * ROWS * COLUMNS * 2
    assert stores["lds_bytes"].sum() == 40 * 150 * 2
    assert loads["executions"].sum() == 18
    assert "VMEM load" in launch.totals.by_class


@pytest.mark.parametrize(
    ("waits", "error", "accessed", "instruction"),
    [
        ("not for the load", LdsRace, "writes", "tensor_load_to_lds"),
        ("not before the next write", LdsRace, "reads", "tensor_store_from_lds"),
    ],
)
def test_an_access_before_the_wait_is_a_race(
    waits: str, error: type[Exception], accessed: str, instruction: str
) -> None:
    x, y = matrices(16, 64)
    message = f"which a copy of wave 0 {accessed} that has not been waited for"
    with pytest.raises(error, match=message) as caught, checking("races"):
        double(x, y, 16, 64, waits)
    assert instruction in str(caught.value)
    assert "tensor_wait(0)" in caught.value.hint
    assert caught.value.at.file == __file__


# --- several tiles under way


@flyc.kernel
def sum_kernel(x: fx.Tensor, y: fx.Tensor, n: fx.Constexpr[int], outstanding: fx.Constexpr[int]):
    lds = shared(fx.Float32, 2 * 256)
    tiles = lds.view(fx.make_layout((2, 8, 32), (256, 32, 1)))
    descriptors = [
        tdm_ops.make_tensor_descriptor_2d(
            global_ptr=x, lds_memref=lds, global_offset=(0, 32 * i), tensor_shape=(8, 32), strides=(n, 1),
            tile_shape=(8, 32), elem_bytes=4, lds_byte_offset=i % 2 * 1024)
        for i in range(n // 32)
    ]  # fmt: skip
    tdm_ops.tensor_load_2d(descriptors[0])
    total = fx.Float32(0.0)
    for i in fx.range_constexpr(n // 32):
        if fx.const_expr(i + 1 < n // 32):
            tdm_ops.tensor_load_2d(descriptors[i + 1])
        tdm_ops.tensor_wait(outstanding if i + 1 < n // 32 else 0)
        for row in fx.range_constexpr(8):
            total = total + tiles[i % 2, row, fx.thread_idx.x]
    y[fx.thread_idx.x] = total


sum_of_columns = launcher_of(sum_kernel, grid=1, block=(32,))


def test_the_next_tile_comes_while_one_is_used(run: Any) -> None:
    x, y = torch.randint(-9, 9, (8, 128)).float(), torch.zeros(32)
    run(sum_of_columns, x, y, 128, 1)
    assert torch.equal(y, x.view(8, 4, 32).sum(dim=(0, 1)))


def test_waiting_for_too_few_is_a_race() -> None:
    with pytest.raises(LdsRace, match="has not been waited for"), checking("races"):
        sum_of_columns(torch.zeros(8, 128), torch.zeros(32), 128, 2)


# --- a barrier in LDS, at which a tile arrives


@flyc.kernel
def arrival_kernel(x: fx.Tensor, y: fx.Tensor, arrives: fx.Constexpr[bool], loads: fx.Constexpr[bool]):
    """Wave 0 asks for a tile, wave 1 uses it once the barrier is in its next phase."""
    barrier = shared(fx.Int64, 16).view(fx.make_layout(16, 1))
    lds = shared(fx.Float32, 256)
    tile = lds.view(fx.make_layout((8, 32), (32, 1)))
    if fx.thread_idx.x == 0:
        barrier[0] = fx.Int64(0)  # one arrival is awaited
    fx.barrier()
    if rocdl.wave_id() == 0:
        desc = tdm_ops.make_tensor_descriptor_2d(
            global_ptr=x, lds_memref=lds, global_offset=(0, 0), tensor_shape=(8, 32), strides=(32, 1),
            tile_shape=(8, 32), elem_bytes=4, atomic_barrier_enable=arrives)  # fmt: skip
        words = [desc.dgroup1[i] for i in range(8)]
        words[1] = words[1] | (lds_address("the barrier", barrier, 0) >> 3)
        tdm_ops.tensor_load_2d(tdm_ops.TDMDescriptor2D(desc.dgroup0, fx.Vector.from_elements(words, fx.Int32)))
    else:
        if fx.const_expr(arrives):
            state = fx.Int64(0)
            while (state >> 29) & 1 == 0:
                rocdl.s_sleep(1)
                if fx.const_expr(loads):
                    state = fx.generic_load(fx.get_iter(barrier), memory_order="acquire", syncscope="workgroup")
                else:
                    state = rocdl.ds_atomic_barrier_arrive_rtn_b64(fx.get_iter(barrier), 0)
        for row in fx.range_constexpr(8):
            y[row, fx.thread_idx.x - 32] = tile[row, fx.thread_idx.x - 32]


arrival = launcher_of(arrival_kernel, grid=2, block=(64,))


@pytest.mark.parametrize("loads", [False, True])
@pytest.mark.diagonal(2)
def test_a_tile_arrives_at_a_barrier(run: Any, loads: bool) -> None:
    x, y = torch.randn(8, 32), torch.zeros(8, 32)
    run(arrival, x, y, True, loads)
    assert torch.equal(y, x)


def test_a_tile_that_nobody_waits_for_is_a_race() -> None:
    with pytest.raises(LdsRace), checking("races"):
        arrival(torch.randn(8, 32), torch.zeros(8, 32), False, False)


# --- rows by number


@flyc.kernel
def gather_kernel(x: fx.Tensor, y: fx.Tensor, which: fx.Tensor, bits: fx.Constexpr[int], count: fx.Constexpr[int]):
    lds = shared(fx.Float32, count * 36)
    rows = [rocdl.readfirstlane(which[i]) for i in range(count)]
    place = {"lds_memref": lds, "row_width": 32, "tensor_dim0": 32, "stride": 32, "elem_bytes": 4, "index_size": bits}
    tdm_ops.tensor_load_gather(
        tdm_ops.make_tensor_gather_descriptor(
            global_ptr=x, row_indices=rows, tensor_dim1=20, pad_interval=32, pad_amount=4, **place
        )
    )
    tdm_ops.tensor_wait(0)
    tile = lds.view(fx.make_layout((count, 32), (36, 1)))
    values = [tile[i, fx.thread_idx.x] for i in range(count)]
    packed = lds.view(fx.make_layout((count, 32), (32, 1)))
    for i in fx.range_constexpr(count):
        packed[i, fx.thread_idx.x] = values[i] + 1.0
    rocdl.s_wait_dscnt(0)
    tdm_ops.tensor_store_gather(
        tdm_ops.make_tensor_gather_descriptor(global_ptr=y, row_indices=rows, tensor_dim1=18, **place)
    )
    tdm_ops.tensor_wait(0)


gather = launcher_of(gather_kernel, grid=1, block=(32,))


@pytest.mark.parametrize(("bits", "rows"), [(32, (0, 3, 3, 17, 18, 19, 25)), (16, (1, 2, 5, 7, 11, 13, 17, 19, 400))])
@pytest.mark.diagonal(2)
def test_rows_by_number(run: Any, bits: int, rows: tuple[int, ...]) -> None:
    x, y = torch.randint(-9, 9, (20, 32)).float(), torch.zeros(20, 32)
    expected = y.clone()
    for row in rows:
        if row < 18:
            expected[row] = x[row] + 1
    run(gather, x, y, torch.tensor(rows, dtype=torch.int32), bits, len(rows))
    assert torch.equal(y, expected)


def test_rows_that_no_document_allows_are_refused() -> None:
    rows = torch.tensor([3, 40, 5], dtype=torch.int32)
    with pytest.raises(DescriptorError, match=r"tensor_dim1 is 0x14: of the rows \[3, 40, 5\]") as caught:
        gather(torch.zeros(20, 32), torch.zeros(20, 32), rows, 32, 3)
    assert caught.value.at.file == __file__


# --- copies of each lane


@flyc.kernel
def async_kernel(x: fx.Tensor, y: fx.Tensor, waits: fx.Constexpr[bool]):
    lds = shared(fx.Float32, 512).view(fx.make_layout(512, 1))
    source, place = fx.get_iter(x) + 4 * fx.thread_idx.x, fx.get_iter(lds) + 4 * fx.thread_idx.x
    rocdl.global_load_async_to_lds_b128(source, place)
    rocdl.global_load_async_to_lds_b32(fx.get_iter(x) + fx.thread_idx.x, fx.get_iter(lds) + 256 + fx.thread_idx.x, 0)
    rocdl.cluster_load_async_to_lds(
        fx.get_iter(x) + 2 * fx.thread_idx.x, fx.get_iter(lds) + 322 + 2 * fx.thread_idx.x, 8, 8
    )
    if fx.const_expr(waits):
        rocdl.s_wait_asynccnt(0)
    fx.barrier()
    y[fx.thread_idx.x] = lds[255 - fx.thread_idx.x]
    y[64 + fx.thread_idx.x] = lds[319 - fx.thread_idx.x]


copies = launcher_of(async_kernel, grid=1, block=(64,))


def test_copies_of_lanes(run: Any) -> None:
    x, y = torch.arange(256.0), torch.zeros(128)
    run(copies, x, y, True)
    assert torch.equal(y, torch.cat([x.flip(0)[:64], x[:64].flip(0)]))


@flyc.kernel
def async_store_kernel(x: fx.Tensor, y: fx.Tensor, waits: fx.Constexpr[bool]):
    lds = shared(fx.Float32, 64).view(fx.make_layout(64, 1))
    lds[fx.thread_idx.x] = x[fx.thread_idx.x]
    rocdl.s_wait_dscnt(0)
    place = fx.get_iter(lds) + fx.thread_idx.x
    rocdl.global_store_async_from_lds_b32(fx.get_iter(y) + (63 - fx.thread_idx.x), place)
    if fx.const_expr(waits):
        rocdl.s_wait_asynccnt(0)
    lds[fx.thread_idx.x] = fx.Float32(0.0)


stores = launcher_of(async_store_kernel, grid=1, block=(64,))


def test_copies_from_lds(run: Any) -> None:
    x, y = torch.arange(64.0), torch.zeros(64)
    run(stores, x, y, True)
    assert torch.equal(y, x.flip(0))


def test_lds_that_is_still_copied_is_not_to_be_written() -> None:
    with pytest.raises(LdsRace, match="a copy of wave 0 reads that has not been waited for"), checking("races"):
        stores(torch.ones(64), torch.zeros(64), False)


def test_lds_before_the_wait_for_copies_is_a_race() -> None:
    with pytest.raises(LdsRace, match="global_load_async_to_lds_b128") as caught, checking("races"):
        copies(torch.zeros(256), torch.zeros(128), False)
    assert "s_wait_asynccnt(0)" in (caught.value.hint or "")


# --- clusters


@flyc.kernel
def place_kernel(places: fx.Tensor, n: fx.Int32):
    x, y, z = (getattr(rocdl, f"cluster_workgroup_id_{axis}")() for axis in "xyz")
    own = rocdl.cluster_id_x() * 1000 + rocdl.cluster_id_y() * 100 + rocdl.cluster_id_z() * 10000
    workgroup = fx.block_idx.x + fx.grid_dim.x * (fx.block_idx.y + fx.grid_dim.y * fx.block_idx.z)
    if fx.thread_idx.x == 0:
        places[workgroup] = own + x * 10 + y + z * 100000


@pytest.mark.parametrize("size", [(2, 1, 1), (1, 2, 2), (2, 3, 1)], ids=str)
@pytest.mark.diagonal(3)
def test_where_a_workgroup_is(run: Any, size: tuple[int, int, int]) -> None:
    grid = tuple(2 * extent for extent in size)

    launch = launcher_of(place_kernel, grid=grid, block=(64,), cluster=size)
    places = torch.full((grid[0] * grid[1] * grid[2],), -1, dtype=torch.int32)
    run(launch, places, 1)
    weights = ((1000, 10), (100, 1), (10000, 100000))
    expected = [
        sum(
            i // extent * cluster_weight + i % extent * own_weight
            for i, extent, (cluster_weight, own_weight) in zip((x, y, z), size, weights, strict=True)
        )
        for z in range(grid[2])
        for y in range(grid[1])
        for x in range(grid[0])
    ]
    assert places.tolist() == expected


SIDE = 16


@flyc.kernel
def outer_kernel(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor, n: fx.Constexpr[int], size: fx.Constexpr[Any]):
    """c = a + b, of tiles of a that a column of workgroups shares and tiles of b that a row does."""
    lds = shared(fx.Float32, 2 * SIDE * 32)
    x, y = cluster.compute_cluster_position()
    of_a, of_b = cluster.compute_mcast_masks(x, y, *size[:2])
    options = {"lds_memref": lds, "tensor_shape": (SIDE, 32), "strides": (32, 1), "tile_shape": (SIDE, 32),
               "elem_bytes": 4}  # fmt: skip
    tdm_ops.tensor_load_2d(
        tdm_ops.make_tensor_descriptor_2d(
            global_ptr=a, global_offset=(fx.block_idx.x * SIDE, 0), workgroup_mask=of_a, early_timeout=True, **options
        )
    )
    tdm_ops.tensor_load_2d(
        tdm_ops.make_tensor_descriptor_2d(
            global_ptr=b, global_offset=(fx.block_idx.y * SIDE, 0), workgroup_mask=of_b,
            lds_byte_offset=SIDE * 32 * 4, **options)
    )  # fmt: skip
    tdm_ops.tensor_wait(0)
    cluster.cluster_barrier()
    tiles = lds.view(fx.make_layout((2, SIDE, 32), (SIDE * 32, 32, 1)))
    first = (fx.block_idx.x + fx.grid_dim.x * fx.block_idx.y) * SIDE * 32
    for i in fx.range_constexpr(SIDE):
        c[first + i * 32 + fx.thread_idx.x] = tiles[0, i, fx.thread_idx.x] + tiles[1, i, fx.thread_idx.x]


@pytest.mark.parametrize("size", [(2, 1, 1), (2, 2, 1), (1, 4, 1)], ids=str)
@pytest.mark.diagonal(3)
def test_tiles_that_workgroups_share(run: Any, size: tuple[int, int, int]) -> None:
    width, height = 2 * size[0], size[1]

    @flyc.jit
    def launch(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor):
        outer_kernel(a, b, c, width, size).launch(grid=(width, height), block=(32,), cluster=size)

    a, b = torch.randint(0, 9, (width, SIDE, 32)).float(), torch.randint(0, 9, (height, SIDE, 32)).float()
    c = torch.zeros(width * height * SIDE * 32)
    run(launch, a.view(-1, 32), b.view(-1, 32), c)
    assert torch.equal(c.view(height, width, SIDE, 32), a[None] + b[:, None])


@flyc.kernel
def exchange_kernel(x: fx.Tensor, y: fx.Tensor, mistake: fx.Constexpr[str]):
    """Each workgroup leaves a row in x, and reads the row of its neighbour in the cluster."""
    own = fx.block_idx.x
    x[own, fx.thread_idx.x] = fx.Float32(own * 64 + fx.thread_idx.x)
    if fx.const_expr(mistake == "one ends"):
        if own % 2 == 1:
            return
        cluster.cluster_barrier()
    elif fx.const_expr(mistake == "every wave signals"):
        fx.barrier()
        rocdl.s_barrier_signal(cluster.CLUSTER_BARRIER_ID)
        cluster.cluster_wait()
    elif fx.const_expr(mistake == "nobody signals"):
        cluster.cluster_wait()
    elif fx.const_expr(mistake != "no barrier"):
        if fx.const_expr(mistake in ("late", "never")):
            count = own % 2 * 1500
            while count > 0:  # of one workgroup, for which the other one waits
                rocdl.s_nop(0)
                count = count - (1 if mistake == "late" else 0)
        cluster.cluster_barrier()
    y[own, fx.thread_idx.x] = x[own ^ 1, fx.thread_idx.x]


def exchange(mistake: str = "", workgroups: int = 4, size: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    @flyc.jit
    def launch(x: fx.Tensor, y: fx.Tensor, n: fx.Int32):
        exchange_kernel(x, y, mistake).launch(grid=(n,), block=(64,), cluster=(size, 1, 1))

    x, y = torch.zeros(workgroups, 64), torch.zeros(workgroups, 64)
    launch(x, y, workgroups)
    return x, y


def test_workgroups_of_a_cluster_wait_for_each_other(run: Any) -> None:
    def call() -> None:
        x, y = exchange()
        assert torch.equal(y, x[[1, 0, 3, 2]])
        assert torch.equal(x, torch.arange(4.0)[:, None] * 64 + torch.arange(64.0))

    run(call)


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [
        (
            "one ends",
            BarrierDeadlock,
            r"barrier of its cluster of 2, which 1 have signalled: .* \(1, 0, 0\) ended with",
        ),
        ("nobody signals", BarrierDeadlock, r"which 0 have signalled: workgroup \(0, 0, 0\) has not signalled"),
        ("every wave signals", BarrierMisuse, r"workgroup \(0, 0, 0\) signals its cluster's barrier twice"),
    ],
)
def test_a_barrier_that_not_all_reach_is_an_error(run: Any, mistake: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        run(lambda: exchange(mistake))
    assert caught.value.at.file.endswith((".py",))


@pytest.mark.parametrize("workgroup", [(0, 0, 0), (3, 0, 0)])
def test_single_steps_of_a_workgroup_in_a_cluster(workgroup: tuple[int, int, int]) -> None:
    @flyc.jit
    def launch(x: fx.Tensor, y: fx.Tensor):
        exchange_kernel(x, y, "").launch(grid=(4,), block=(64,), cluster=(2, 1, 1))

    x, y = torch.zeros(4, 64), torch.zeros(4, 64)
    sim = launch.simulate(x, y, workgroup=workgroup)
    assert not x[workgroup[0] // 2 * 2 :].any()
    sim.run("barrier")
    assert "barrier" in sim.where()
    sim.run("barrier")  # the first one was the workgroup's, this is the cluster's
    assert all(wave.at_barrier for wave in sim.waves)
    assert x[workgroup[0] ^ 1].any() == (workgroup[0] != 1)
    while not sim.done:
        sim.step()
    assert torch.equal(y, x[[1, 0, 3, 2]])
    assert x[3, 63] == 255


def test_single_steps_show_what_a_tile_touches() -> None:
    x, y = matrices(16, 64)
    sim = double.simulate(x, y, 16, 64, "for all")
    while "tensor_load" not in sim.instruction.listed.text:
        sim.step()
    assert not sim.lds.any()
    sim.step()
    assert sim.last_touched[1].sum() == 16 * 64 * 2
    sim.run()
    assert torch.equal(y, 2 * x)


def test_a_workgroup_that_comes_late_to_the_barrier(run: Any) -> None:
    def call() -> None:
        x, y = exchange("late")
        assert torch.equal(y, x[[1, 0, 3, 2]])

    run(call)


def test_a_workgroup_that_never_comes_to_the_barrier(run: Any) -> None:
    with pytest.raises(InstructionLimit, match=r"workgroup \(1, 0, 0\)"):
        run(lambda: exchange("never"))


def test_workgroups_without_the_barrier_race() -> None:
    with pytest.raises(GlobalRace, match="nothing that orders"), checking("races"):
        exchange("no barrier")


def test_a_grid_must_be_of_whole_clusters() -> None:
    with pytest.raises(LaunchError, match="got 5 workgroups in clusters of 2 along x") as caught:
        exchange(workgroups=5)
    assert caught.value.at.file == __file__


def test_outside_of_a_cluster_the_barrier_does_nothing(run: Any) -> None:
    @flyc.jit
    def launch(x: fx.Tensor, y: fx.Tensor):
        exchange_kernel(x, y, "").launch(grid=(1,), block=(64,))

    x, y = torch.zeros(2, 64), torch.zeros(2, 64)
    run(launch, x, y)
    assert torch.equal(x[0], torch.arange(64.0))


# --- what is wrong with a tile


@flyc.kernel
def wrong_kernel(x: fx.Tensor, n: fx.Int32, what: fx.Constexpr[str]):
    lds = shared(fx.Float32, 1056)
    given = {"tensor_shape": (32, 32), "strides": (32, 1), "tile_shape": (32, 32), "global_offset": (0, 0)}
    changed = {
        "beyond the tensor": {"tensor_shape": (33, 32), "tile_shape": (33, 32)},
        "beyond LDS": {"lds_byte_offset": n * 192},
    }
    desc = tdm_ops.make_tensor_descriptor_2d(x, lds, elem_bytes=4, **(given | changed.get(what, {})))
    if fx.const_expr(what == "type"):
        desc = tdm_ops.update_tensor_descriptor_2d_addr_lo_hi(desc, n, n)
    if fx.const_expr(what == "stored before written"):
        tdm_ops.tensor_store_2d(desc)
    else:
        tdm_ops.tensor_load_2d(desc)
    tdm_ops.tensor_wait(0)


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        ("beyond the tensor", MemoryFault, r"reads 128 bytes outside of x \(float32\[32, 32\], 4096 bytes\)"),
        ("beyond LDS", DescriptorError, "lds_addr is 0xc0: 32 rows of 32 elements of 4 bytes end at 0x10c0"),
        ("type", DescriptorError, "type is 0: the upper two bits of group 0 are 2"),
    ],
)
def test_a_wrong_tile_is_an_error_at_the_line(run: Any, what: str, error: type[Exception], message: str) -> None:
    @flyc.jit
    def launch(x: fx.Tensor, n: fx.Int32):
        wrong_kernel(x, n, what).launch(grid=1, block=(32,))

    with pytest.raises(error, match=message) as caught:
        run(launch, torch.zeros(32, 32), 1)
    assert caught.value.at.file == __file__
    assert "tensor_load_2d(desc)" in str(caught.value)


def test_a_tile_of_lds_that_nothing_wrote_is_found() -> None:
    @flyc.jit
    def launch(x: fx.Tensor, n: fx.Int32):
        wrong_kernel(x, n, "stored before written").launch(grid=1, block=(32,))

    with pytest.raises(UninitializedLds, match="tensor_store_from_lds reads 4 bytes at LDS address 0x0"), checking():
        launch(torch.zeros(32, 32), 1)
