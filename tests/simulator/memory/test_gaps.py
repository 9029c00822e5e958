"""Views with gaps: what lies between their elements is not theirs."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl import env
from flydsl.simulator import Memory, MemoryFault, Program, launch
from flydsl.simulator.memory.gaps import rows_of, touches_gap
from tests.launchers import launcher_of


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((4, 32), (64, 1)),
        ((4, 32), (32, 1)),
        ((3, 4, 5), (40, 7, 1)),
        ((3, 4, 5), (1, 3, 20)),
        ((4, 4), (8, 2)),
        ((4, 4), (7, 2)),
        ((5, 3), (1, 0)),
        ((1, 6), (99, 3)),
        ((), ()),
    ],
)
def test_the_bytes_in_gaps_are_those_of_no_element(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    starts = [sum(map(int.__mul__, index, strides)) for index in itertools.product(*map(range, shape))]
    own = {4 * start + byte for start in starts for byte in range(4)}
    offsets = np.arange(max(own) + 1)
    gaps = touches_gap(offsets, 1, rows_of(shape, strides, 4))
    assert set(offsets[~gaps]) == own


def test_where_elements_overlap_there_is_no_gap_to_be_sure_of() -> None:
    assert rows_of((10, 4), (2, 3), 4) == ()


@flyc.kernel
def shifted_copy_kernel(A: fx.Tensor, B: fx.Tensor, read: fx.Int32, write: fx.Int32) -> None:
    row, column = fx.block_idx.x, fx.thread_idx.x
    B[row, column + write] = A[row, column + read]


shifted_copy = launcher_of(shifted_copy_kernel, grid=4, block=32)


@pytest.mark.parametrize("backend", ["native", "lockstep"])
def test_one_element_past_the_row_of_a_view_is_found(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_SIMULATOR_BACKEND", backend)
    assert env.simulator_backend() == backend
    A, B = torch.rand(4, 64), torch.full((4, 64), 7.0)
    left, right = B[:, :32], B[:, 32:]
    shifted_copy(A[:, :32], left, 0, 0)
    assert torch.equal(left, A[:, :32])
    for read, write, name in ((1, 0, "A"), (0, 1, "B")):
        with pytest.raises(
            MemoryFault, match=rf"outside of {name} .*, in a gap between its elements: element 32,"
        ) as e:
            shifted_copy(A[:, :32], left, read, write)
        assert e.value.access.lane == 31
        assert e.value.access.workgroup == (0, 0, 0)
    assert (right == 7).all()


GATHER = """
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %offsets, ptr addrspace(1) %y) #0 {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %po = getelementptr i64, ptr addrspace(1) %offsets, i32 %t
  %o = load i64, ptr addrspace(1) %po
  %p = getelementptr i8, ptr addrspace(1) %x, i64 %o
  %v = load i16, ptr addrspace(1) %p
  %q = getelementptr i16, ptr addrspace(1) %y, i32 %t
  store i16 %v, ptr addrspace(1) %q
  ret void
}
attributes #0 = { "amdgpu-flat-work-group-size"="1,64" }
"""


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((1000, 32), (64, 1)),
        ((999, 31), (37, 1)),
        ((100, 7, 3), (1000, 101, 33)),
        ((2, 5, 4), (2_000_003, 77, 5)),
        ((3, 3), (3_333_333, 1_111_111)),
    ],
)
def test_native_code_looks_at_every_lane(compile_ir, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """It does so for all lanes at once, with reciprocals; here is what each element's offset should say."""
    random = np.random.default_rng(0)
    elements = 2 * (1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True)))
    x = random.integers(0, 256, elements, np.uint8)
    offsets, y = np.zeros(64, np.int64), np.zeros(64, np.uint16)
    memory, program = Memory(), Program.load(*compile_ir(GATHER))
    rows = rows_of(shape, strides, 2)
    base = memory.map(x.ctypes.data, x.size, name="x", element_bytes=2, label="a view", rows=rows)
    others = [memory.map_array(array, name=name) for array, name in ((offsets, "offsets"), (y, "y"))]
    options = {"grid": (1, 1, 1), "block": (64, 1, 1), "memory": memory, "kernarg": struct.pack("<3Q", base, *others)}
    for _ in range(40):
        offsets[:] = 2 * sum(random.integers(0, n, 64) * stride for n, stride in zip(shape, strides, strict=True))
        launch(program, "k", **options)
        np.testing.assert_array_equal(y, x[offsets] | x[offsets + 1].astype(np.uint16) << 8)
        lane, wrong = int(random.integers(64)), 2 * int(random.integers(elements // 2))
        offsets[lane] = wrong
        if touches_gap(np.array([wrong]), 2, rows)[0]:
            with pytest.raises(MemoryFault, match="in a gap between its elements") as caught:
                launch(program, "k", **options)
            assert caught.value.access.lane == lane
        else:
            launch(program, "k", **options)
