"""What the errors of memory say: where, which elements, and what was not written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl import simulator
from flydsl.errors import LaunchError, SimulatorError
from flydsl.simulator import ListingError, MemoryFault, UninitializedLds, checking
from flydsl.simulator.counters import counting
from flydsl.simulator.memory.buffers import Memory
from tests.launchers import launcher_of

WIDE = """
define amdgpu_kernel void @wide(ptr addrspace(1) %out, i32 %lds, i32 %element) {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %s = getelementptr i8, ptr addrspace(3) @shared, i32 %lds
  store volatile i32 1, ptr addrspace(3) %s
  %v = load volatile <2 x i32>, ptr addrspace(3) @shared, align 8
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %element
  store <2 x i32> %v, ptr addrspace(1) %p, align 8
  ret void
}
@shared = internal addrspace(3) global [64 x i8] poison, align 16
declare i32 @llvm.amdgcn.workitem.id.x()
"""


@pytest.fixture
def wide(compile_ir):
    return simulator.load(*compile_ir(WIDE)).kernel("wide")


def launch(kernel, *args):
    kernel.launch(grid=(1, 1, 1), block=(64, 1, 1), args=args)


def test_lds_faults_name_the_address(wide) -> None:
    with pytest.raises(MemoryFault, match=r"outside of LDS \(64 bytes per workgroup\): address 0x40\n"):
        launch(wide, np.zeros(8, np.int32), 64, 0)
    with pytest.raises(MemoryFault, match=r"address 0xfffffffc \(4 bytes before the start\)"):
        launch(wide, np.zeros(8, np.int32), -4, 0)


def test_an_access_that_straddles_the_end_names_all_its_elements(wide) -> None:
    out = np.full(7, 5, np.int32)
    with pytest.raises(MemoryFault, match=r"outside of .* \(int32\[7\], 28 bytes\): elements 6 to 7, address 0x"):
        launch(wide, out, 0, 6)
    assert (out == 5).all()


def test_a_read_of_lds_names_the_first_byte_that_nobody_wrote(wide) -> None:
    with checking("uninitialized"), pytest.raises(UninitializedLds, match="at LDS address 0x0, of them 0x4, which no"):
        launch(wide, np.zeros(8, np.int32), 0, 0)


def test_a_write_to_what_is_read_only_names_the_address(wide) -> None:
    out = np.zeros(8, np.int32)
    out.flags.writeable = False
    with pytest.raises(MemoryFault, match="which is read-only: elements 2 to 3, address 0x"):
        launch(wide, out, 0, 2)


@pytest.mark.parametrize("array", [np.zeros(4, object), np.zeros(4, np.dtype("f4").newbyteorder())])
def test_arrays_that_no_kernel_could_read(array: np.ndarray) -> None:
    with pytest.raises(SimulatorError, match="A of dtype"):
        Memory().map_array(array, name="A")


@pytest.mark.parametrize(
    ("grid", "block", "smem"), [(1, (64, 1, 1), 0), ((1, 1), (64, 1, 1), 0), ((1, 1, 1), (64, 1, 1), -4)]
)
def test_launch_configurations_that_make_no_sense(wide, grid, block, smem) -> None:
    with pytest.raises(LaunchError):
        wide.launch(grid, block, [np.zeros(8, np.int32), 0, 0], smem)


def test_a_listing_that_is_no_text(compile_ir, tmp_path: Path) -> None:
    hsaco, _ = compile_ir(WIDE)
    (tmp_path / "wide.s").write_bytes(hsaco)
    with pytest.raises(ListingError, match=r"wide\.s is not text"):
        simulator.load(hsaco, tmp_path / "wide.s")


def test_a_simulation_is_not_counted_and_says_so(wide) -> None:
    with counting(), pytest.raises(LaunchError, match="a simulation cannot be counted"):
        wide.simulate((1, 1, 1), (64, 1, 1), [np.zeros(8, np.int32), 0, 0])


@flyc.kernel
def guarded_kernel(out: fx.Tensor, n: fx.Int32):
    i = fx.thread_idx.x
    if i <= n:
        out[i] = 1.0


@pytest.mark.parametrize(
    ("n", "hint"),
    [
        (70, "7 of the wave's 32 lanes are active here, and 1 of them outside: is a condition too wide"),
        (1000, "do the grid and the block cover more elements than the tensor has"),
    ],
)
def test_a_fault_under_a_condition_says_how_many_lanes_it_lets_through(n: int, hint: str) -> None:
    with pytest.raises(MemoryFault, match=hint):
        launcher_of(guarded_kernel, grid=1, block=96)(torch.zeros(70), n)
