"""buffer_ops on the simulator: offsets, masks, bounds, element types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError, SimulatorError
from flydsl.expr import buffer_ops, rocdl
from flydsl.expr.typing import T
from tests.launchers import launcher_of

LANES = 64
DTYPES = {
    torch.float32: fx.Float32,
    torch.float16: fx.Float16,
    torch.bfloat16: fx.BFloat16,
    torch.float8_e4m3fnuz: fx.Float8E4M3FNUZ,
    torch.int8: fx.Int8,
    torch.float64: fx.Float64,
    torch.int32: T.i32,
}


def run(body: Callable[..., None], a: torch.Tensor, out: torch.Tensor, n: int = 0) -> torch.Tensor:
    """Run `body(A, Out, lane, n)` in one wave; n is a runtime integer."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor, n: fx.Int32):
        body(A, Out, fx.thread_idx.x, n)

    launch = launcher_of(kernel, grid=1, block=LANES)
    launch(a, out, n)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies_of_elements(dtype: torch.dtype) -> None:
    """Offsets count elements, of any width."""
    widths = [w for w in (1, 2, 4, 8, 16) if w * dtype.itemsize <= 16]

    def body(A: Any, Out: Any, lane: Any, n: Any) -> None:
        source, target = (buffer_ops.create_buffer_resource(X, max_size=False) for X in (A, Out))
        for j, width in enumerate(widths):
            offset = j * 16 * LANES + lane * width
            data = buffer_ops.buffer_load(source, offset, vec_width=width, dtype=DTYPES[dtype])
            buffer_ops.buffer_store(data, target, offset)

    count = len(widths) * 16 * LANES
    a = torch.randint(-9, 9, (count,), generator=torch.Generator().manual_seed(0)).to(dtype)
    out = run(body, a, torch.zeros(count, dtype=dtype))
    for j, width in enumerate(widths):
        copied = slice(j * 16 * LANES, j * 16 * LANES + LANES * width)
        assert torch.equal(out[copied].float(), a[copied].float())


@pytest.mark.slow
@pytest.mark.parametrize("max_size", [True, False])
@pytest.mark.parametrize("width", [1, 4, 7, 16])
def test_masked_lanes_access_nothing(width: int, max_size: bool) -> None:
    """The tensors end where the mask does: any other access would be an error of the simulator."""
    active = 10

    def body(A: Any, Out: Any, lane: Any, n: Any) -> None:
        source, target = (buffer_ops.create_buffer_resource(X, max_size=max_size) for X in (A, Out))
        data = buffer_ops.buffer_load(source, lane * width, vec_width=width, mask=lane < n)
        buffer_ops.buffer_store(data + 1.0, target, lane * width, lane < n)
        buffer_ops.buffer_store(data, target, fx.Index(lane) * width, mask=fx.Boolean(False))

    a = torch.arange(active * width, dtype=torch.float32)
    assert torch.equal(run(body, a, torch.zeros_like(a), active), a + 1)


def test_masked_lanes_load_zero() -> None:
    def body(A: Any, Out: Any, lane: Any, n: Any) -> None:
        Out[lane] = buffer_ops.buffer_load(buffer_ops.create_buffer_resource(A), lane, 1, mask=lane % 2 == 0)

    a = torch.ones(LANES)
    assert torch.equal(run(body, a, torch.full_like(a, 5)), (torch.arange(LANES) % 2 == 0).float())


@pytest.mark.parametrize("size", ["tensor", "constant", "runtime", "negative"])
def test_past_a_resource_reads_are_zero_and_writes_are_dropped(size: str) -> None:
    """What lies beyond the resource reads as 0 and is not written; here a slice of a larger tensor."""
    held = {"tensor": 40, "constant": 20, "runtime": 13, "negative": 0}[size]

    def body(A: Any, Out: Any, lane: Any, n: Any) -> None:
        given = {"tensor": None, "constant": 80, "runtime": n * 4, "negative": n * -4}[size]
        source = buffer_ops.create_buffer_resource(A, max_size=False, num_records_bytes=given)
        target = buffer_ops.create_buffer_resource(Out)
        buffer_ops.buffer_store(buffer_ops.buffer_load(source, lane, vec_width=1), target, lane)
        buffer_ops.buffer_store(fx.Float32(7.0), source, lane + 30)

    base = torch.arange(1.0, 101.0)
    out = run(body, base[:40], torch.full((LANES,), -1.0), 13)
    assert torch.equal(out, torch.where(torch.arange(LANES) < held, torch.arange(1.0, 65.0), 0))
    assert (base[30:held] == 7).all()
    assert torch.equal(base[max(held, 30) :], torch.arange(1.0, 101.0)[max(held, 30) :])


def test_without_bounds_an_access_beyond_the_tensor_is_found() -> None:
    def body(A: Any, Out: Any, lane: Any, n: Any) -> None:
        Out[lane] = buffer_ops.buffer_load(buffer_ops.create_buffer_resource(A), lane, 1)

    with pytest.raises(SimulatorError):
        run(body, torch.ones(LANES - 1), torch.zeros(LANES))


def test_every_way_to_address_a_buffer_reaches_its_element() -> None:
    """Offsets in bytes, a scalar offset, a moved base, a raw address, and a resource from a descriptor."""

    def body(A: Any, Out: Any, lane: Any, n: Any) -> None:
        rsrc = buffer_ops.create_buffer_resource(A)
        address = buffer_ops.extract_base_index(A)
        Out[0, lane] = buffer_ops.buffer_load(rsrc, lane * 4, 1, offset_is_bytes=True)
        Out[1, lane] = buffer_ops.buffer_load(rsrc, lane, 1, soffset_bytes=8)
        Out[2, lane] = buffer_ops.buffer_load(rsrc, lane, 1, soffset_bytes=n * 4, cache_modifier=1)
        Out[3, lane] = buffer_ops.buffer_load(buffer_ops.create_buffer_resource(A, base_byte_offset=n * 4), lane, 1)
        raw = buffer_ops.create_buffer_resource_from_addr(address + 4, num_records_bytes=4 * 100)
        Out[4, lane] = buffer_ops.buffer_load(raw, lane, 1)
        Out[5, lane] = buffer_ops.buffer_load(buffer_ops.BufferResourceDescriptor.from_memref(A).rsrc, lane, 1)
        buffer_ops.buffer_store(fx.Float32(2.0), buffer_ops.create_buffer_resource(Out), (6 * LANES + lane) * 4,
                                offset_is_bytes=True)  # fmt: skip

    a = torch.arange(128.0)
    out = run(body, a, torch.zeros(7, LANES), 3)
    starts = [0, 2, 3, 3, 1, 0]
    assert torch.equal(out[:6], torch.stack([a[s : s + LANES] for s in starts]))
    assert (out[6] == 2).all()


def test_resources_of_parts_and_of_buffer_tensors() -> None:
    def part_of_buffer_tensor(A: Any, Out: Any, lane: Any, n: Any) -> None:
        whole = rocdl.make_buffer_tensor(A)
        buffer_ops.buffer_load(fx.slice(whole, (n, None)), lane, 1)

    a = torch.arange(3.0 * LANES).reshape(3, LANES)
    with pytest.raises(ArgumentError, match="a part of a buffer tensor has no resource of its own"):
        run(part_of_buffer_tensor, a, torch.zeros(2, LANES), 1)

    def without_part(A: Any, Out: Any, lane: Any, n: Any) -> None:
        row = buffer_ops.create_buffer_resource(fx.slice(A, (n, None)), max_size=False)
        Out[0, lane] = buffer_ops.buffer_load(row, lane + 1, 1)
        Out[1, lane] = buffer_ops.buffer_load(rocdl.make_buffer_tensor(A), lane, 1)

    out = run(without_part, a, torch.zeros(2, LANES), 1)
    assert torch.equal(out[0], torch.cat([a[1, 1:], torch.zeros(1)]))
    assert torch.equal(out[1], a[0])


def test_scalar_loads() -> None:
    """Words read once for the wave, at an offset in words that it computes."""

    def body(A: Any, Out: Any, lane: Any, n: Any) -> None:
        source = buffer_ops.create_buffer_resource(A)
        one = buffer_ops.buffer_load(source, n + 1, vec_width=1, is_scalar=True)
        four = fx.Vector(buffer_ops.buffer_load(source, n * 2, vec_width=4, is_scalar=True))
        Out[lane] = one * 1000 + four[lane % 1 + 2]

    out = run(body, torch.arange(20, dtype=torch.int32), torch.zeros(LANES, dtype=torch.int32), 3)
    assert torch.equal(out, torch.full((LANES,), 4008, dtype=torch.int32))


def test_one_instruction_each() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        lane = fx.thread_idx.x
        source, target = (buffer_ops.create_buffer_resource(X) for X in (A, Out))
        buffer_ops.buffer_store(buffer_ops.buffer_load(source, lane * 4, mask=lane < 9), target, lane * 4)

    launch = launcher_of(kernel, grid=1, block=LANES)
    isa = launch.lower(torch.zeros(256), torch.zeros(256)).artifact.isa
    assert isa.count("buffer_load_dwordx4") == isa.count("buffer_store_dwordx4") == 1
    assert "s_cbranch" not in isa


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda A: buffer_ops.create_buffer_resource(3), "takes a tensor in global memory, not 3"),
        (lambda A: buffer_ops.create_buffer_resource(A, 16), "unsupported stride=16"),
        (
            lambda A: buffer_ops.create_buffer_resource(A, num_records_bytes=1.5),
            "num_records_bytes must be an integer, in bytes, got 1.5",
        ),
        (lambda A: buffer_ops.buffer_load(A, 0), "the resource of raw_ptr_buffer_load"),
        (lambda A: buffer_ops.buffer_load(rsrc(A), 0.5), "the offset of buffer_load must be an integer"),
        (lambda A: buffer_ops.buffer_load(rsrc(A), 0, vec_width=3, dtype=T.f16), "48 bits"),
        (lambda A: buffer_ops.buffer_load(rsrc(A), 0, mask=A[0]), "the mask of buffer_load: it takes i1, not f32"),
        (lambda A: buffer_ops.buffer_load(rsrc(A), 0, dtype="f32"), "'f32' is not a type"),
        (lambda A: buffer_ops.buffer_load(rsrc(A), 0, is_scalar=True, mask=True), "is_scalar=True: mask"),
        (lambda A: buffer_ops.buffer_load(rsrc(A), 0, 2, is_scalar=True), "s_buffer_load reads 1 or 4 words, not 2"),
        (lambda A: buffer_ops.buffer_store(A, rsrc(A), 0), "is not a value of the program"),
    ],
)
def test_wrong_calls_are_refused_at_the_users_line(
    call: Callable[[Any], Any], says: str, trace: Callable[..., Any]
) -> None:
    with pytest.raises(ArgumentError, match=says) as info:
        trace(lambda A, Out: call(fx.slice(A, (0, None))))
    assert info.value.at.file == __file__


def rsrc(A: Any) -> Any:
    return buffer_ops.create_buffer_resource(A)
