"""Values used as what they are not: iterated, indexed, compared, called, partitioned, multiplied, launched."""

# Wrong on purpose, in all the ways in which linters and type checkers would say so, too.
# mypy: ignore-errors
# ruff: noqa

from __future__ import annotations

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from tests.kernels.wrong import Programs, atom, check, mma, tile_of

programs = Programs()


# --- iterated --------------------------------------------------------------------------------------------------------


@programs.kernel("iteration over a pointer")
def pointer_listed(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    list(fx.get_iter(A))  # here


@programs.kernel("iteration over a pointer")
def pointer_searched(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    1.0 in fx.get_iter(A)  # here


@programs.kernel("iteration over a pointer")
def pointer_unpacked(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    a, b = fx.get_iter(A)  # here


@programs.kernel("iteration over a coordinate tensor")
def coordinates_listed(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    list(fx.make_identity_tensor((4, 4)))  # here


@programs.kernel("iteration over a tensor")
def tensor_zipped(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    dict(zip(A, C))  # here


@programs.kernel("iteration over a tensor")
def registers_summed(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    sum(fx.make_rmem_tensor(4, fx.Float32))  # here


@programs.kernel("not iterable")
def number_enumerated(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    enumerate(n)  # here


@programs.kernel("[0] is not a number")
def list_of_runtime_length(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    [0] * n  # here


@programs.kernel("is the index into [1.0, 2.0], which Python looks up while tracing")
def list_at_runtime_index(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = [1.0, 2.0][n]  # here


@programs.kernel("as a key of a dict cannot be traced")
def table_at_runtime_key(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0] = {0: 1.0}[n]  # here


# --- of an abstract or another type ----------------------------------------------------------------------------------


@programs.kernel("is not a scalar type")
def abstract_float(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.Float(1.0)  # here


@programs.kernel("is not a scalar type")
def abstract_number(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.Numeric(1)  # here


@programs.kernel("is not a scalar type")
def converted_to_torch_dtype(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    A[0, 0].to(torch.float16)  # here


@programs.kernel("is not a scalar type")
def registers_of_torch_dtype(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_rmem_tensor(4, torch.float32)  # here


@programs.kernel("is not a scalar type")
def registers_of_text(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_rmem_tensor(4, "f32")  # here


@programs.kernel("filled_like takes a Vector")
def filled_like_a_list(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.Vector.filled_like([1, 2], 0)  # here


@programs.kernel("the position of insert must be an integer, or a list of one, got [1, 2]")
def two_positions(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.vector.insert(1.0, fx.Vector.filled(4, 0.0, fx.Float32), [1, 2])  # here


@programs.kernel("the position of insert must be an integer, or a list of one, got []")
def no_position(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.vector.insert(1.0, fx.Vector.filled(4, 0.0, fx.Float32))  # here


@programs.kernel("it takes a tensor or pointer in global memory")
def base_index_of_a_list(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.buffer_ops.extract_base_index([])  # here


@programs.kernel("make_ptr: the type must be a pointer type")
def pointer_of_a_tensor(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_ptr(A)  # here


@programs.kernel("the number of a mode must be a Python int")
def layout_mode_of_runtime(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_layout((4, 4))[A]  # here


@programs.kernel("is not an integer")
def immediate_of_a_fraction(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.s_nop(0.5)  # here


@programs.kernel("must be known at compile time")
def immediate_of_a_type(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.rocdl.s_nop(fx.Int32)  # here


@programs.kernel("32 is not a valid CmpIPredicate")
def unknown_predicate(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.arith.CmpIPredicate(32)  # here


# --- partitioned and multiplied --------------------------------------------------------------------------------------


@programs.kernel("takes the number of a thread")
def slice_of_a_float(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    mma().get_slice(0.5)  # here


@programs.kernel("Tuple3D is not a number")
def slice_of_three(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    mma().get_slice(fx.thread_idx)  # here


@programs.kernel("takes a tensor, not")
def partition_of_a_layout(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    mma().get_slice(0).partition_A(fx.make_layout((16, 4)))  # here


@programs.kernel("takes a tensor, not")
def fragment_of_a_number(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    mma().get_slice(0).make_fragment_C(n)  # here


@programs.kernel("make_fragment")
def fragment_of_a_runtime_shape(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    mma().get_slice(0).make_fragment_A(A)  # here


@programs.kernel("!fly.memref<i32")
def product_of_integers(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    part = mma().get_slice(0)
    a, c = part.make_fragment_A(tile_of(A, 16, 4)), part.make_fragment_C(tile_of(C, 16, 16))
    b = fx.make_rmem_tensor(a.shape, fx.Int32)
    fx.gemm(mma(), c, a, b, c)  # here


@programs.kernel("gemm")
def product_of_other_tiles(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    part = mma().get_slice(0)
    a, b = part.make_fragment_A(tile_of(A, 16, 8)), part.make_fragment_B(tile_of(A, 16, 4))
    c = part.make_fragment_C(tile_of(C, 16, 16))
    fx.gemm(mma(), c, a, b, c)  # here


@programs.kernel("gemm")
def product_of_tensors_in_memory(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.gemm(mma(), tile_of(C, 16, 16), tile_of(A, 16, 4), tile_of(A, 16, 4), tile_of(C, 16, 16))  # here


@programs.kernel("atom must be a copy atom")
def copy_by_a_tiled_product(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.copy(mma(), tile_of(A, 4), tile_of(C, 4))  # here


@programs.kernel("copy")
def copy_into_a_coordinate_tensor(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.copy(atom(), tile_of(A, 4), fx.make_identity_tensor((4,)))  # here


@programs.kernel("takes a tiled copy first")
def retile_by_an_atom(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.tiled_copy_retile(atom(), tile_of(A, 4))  # here


@programs.kernel("make_tiled_copy")
def tiled_copy_of_a_tuple(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_tiled_copy(atom(), (64, 1), (8, 8))  # here


@programs.kernel("make_tiled_copy")
def tiled_copy_of_runtime(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.make_tiled_copy(atom(), fx.make_layout((n, 1)), (8, 8))  # here


@programs.kernel("local_tile")
def name_of_another_world(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    fx.local_tile(A, (8, 8), (0, 0))  # here


# --- in divergent code, in too much memory ----------------------------------------------------------------------------


@programs.kernel("barrier")
def barrier_of_one_wave_of_two(A: fx.Tensor, C: fx.Tensor, I: fx.Tensor, n: fx.Int32):
    if fx.thread_idx.x < 0:
        fx.barrier(1, 2, 3)  # here


@programs.program("reads 4 bytes outside of A (float32[64], 256 bytes): element 64")
def read_past_the_end() -> None:
    def body(A: fx.Tensor):
        A[0] = A[fx.thread_idx.x + 64]  # here

    launch_one(body)


@programs.program("160000 bytes of LDS: 94464 bytes more")
def lds_of_three_compute_units() -> None:
    def body(A: fx.Tensor):
        shared = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 40_000]).peek()
        shared.ptr[fx.thread_idx.x] = 1.0
        A[0] = shared.ptr[0]

    launch_one(body)


# --- launched --------------------------------------------------------------------------------------------------------


def launch_one(body, block=64, tensor=None, **options) -> None:
    kernel = flyc.kernel(body)

    @flyc.jit
    def launch(A: fx.Tensor):
        kernel(A).launch(grid=1, block=block, **options)  # here

    launch(torch.zeros(64) if tensor is None else tensor)  # here


def writes(A: fx.Tensor):
    A[0] = 1.0


def launched(says, *parts, **options):
    def run() -> None:
        launch_one(writes, **options)

    programs.table[f"launch_{len(programs.table)}"] = run, says


launched("1025", block=1025)
launched("0", block=0)
launched("block", block=-64)
launched("block", block=(64, 64))
launched("block", block="64")
launched("block", block=64.0)
launched("block", block=(1, 1, 1, 1))
launched("smem", smem=-1)
launched("smem", smem=1 << 20)
launched("smem", smem="4k")
launched("stream", stream="x")
launched("A", tensor=torch.zeros(64).to_sparse())
launched("complex", tensor=torch.zeros(64, dtype=torch.complex64))
launched("meta", tensor=torch.zeros(64, device="meta"))
launched("without dimensions", tensor=torch.tensor(1.0))
launched("takes a tensor", tensor=[1.0])
launched("takes a tensor", tensor=3)
launched("takes a tensor", tensor="A")


@pytest.mark.parametrize("name", programs.table)
def test_one_error_at_the_line_that_is_wrong(name: str) -> None:
    check(*programs.table[name], __file__)
