"""Programs that cannot work: each gives one error, at the user's line, with what disagrees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.errors import ArgumentError, CompileError, FlyError, LaunchError, LayoutError, SimulatorError

THREADS = 256
LDS_BYTES = 65_536

CASES: dict[str, tuple[Callable[..., Any], type[FlyError], str, tuple[str, ...]]] = {}


def wrong(error: type[FlyError], line: str, *parts: str) -> Callable[[Any], Any]:
    """A kernel body that is wrong: with which error, in which of its lines, and what the message names."""

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        CASES[body.__name__] = (body, error, line, parts)
        return body

    return register


def launch(body: Callable[..., Any], smem: int = 0, dtype: torch.dtype = torch.float32) -> None:
    """Run a body on A (64, 8) and C (64, 64). Nothing is printed, and nothing else than an error comes of it."""

    @flyc.kernel
    def kernel(A: fx.Tensor, C: fx.Tensor):
        body(A, C)

    @flyc.jit
    def run(A: fx.Tensor, C: fx.Tensor):
        kernel(A, C).launch(grid=1, block=THREADS, smem=smem)

    run(torch.zeros(64, 8, dtype=dtype), torch.zeros(64, 64))


def tile_of(tensor: Any, *shape: int) -> Any:
    """The first elements of a tensor as a row-major tile of a static shape."""
    return fx.make_view(fx.get_iter(tensor), fx.make_ordered_layout(shape, tuple(reversed(range(len(shape))))))


def registers(*shape: int, dtype: Any = fx.Float32) -> Any:
    return fx.make_rmem_tensor(shape, dtype)


def f32(bits: int = 32) -> Any:
    return fx.make_copy_atom(fx.UniversalCopy(bits), fx.Float32)


def tiled_mma() -> Any:
    return fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32)), fx.make_layout((2, 2, 1)))


# --- tiles -----------------------------------------------------------------------------------------------------------


@wrong(LayoutError, "partition_A(tile", "(48,8):(8,1)", "(32,4)", "operand A")
def mma_tile_that_does_not_divide_the_tensor(A, C):
    tile = tile_of(A, 48, 8)
    tiled_mma().get_slice(fx.thread_idx.x).partition_A(tile)


@wrong(LayoutError, "make_fragment_C(tile", "(16,64):(64,1)", "(32,32)", "operand C")
def mma_tile_larger_than_the_tensor(A, C):
    tile = tile_of(C, 16, 64)
    tiled_mma().get_slice(fx.thread_idx.x).make_fragment_C(tile)


@wrong(LayoutError, "fx.make_tiled_copy(", "(4,8):(1,4)", "[4|4]", "element 31")
def thread_value_layout_larger_than_its_tile(A, C):
    fx.make_tiled_copy(f32(), fx.make_layout((4, 8)), (4, 4))


@wrong(LayoutError, "fx.make_tiled_mma(", "(2,2,1)", "[16|*|*]", "32", "16")
def permutation_smaller_than_the_waves(A, C):
    atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32))
    fx.make_tiled_mma(atom, (2, 2, 1), fx.make_tile(16, None, None))


# --- atoms -----------------------------------------------------------------------------------------------------------


@wrong(ArgumentError, "fx.UniversalCopy(48)", "48 bits", "8, 16, 32, 64, 128")
def copy_of_a_width_that_does_not_exist(A, C):
    fx.make_copy_atom(fx.UniversalCopy(48), fx.Float32)


@wrong(ArgumentError, "fx.make_copy_atom(", "16 bits", "32-bit elements")
def copy_atom_narrower_than_its_elements(A, C):
    fx.make_copy_atom(fx.UniversalCopy16b(), fx.Float32)


@wrong(LayoutError, "fx.make_tiled_copy_A(f32(128)", "128 bits", "1 values", "((16,4,2,2),(1,(1,1)))")
def wide_copy_of_an_operand_with_one_value(A, C):
    fx.make_tiled_copy_A(f32(128), tiled_mma())


@wrong(LayoutError, "fx.copy(half", "memref<f32", "16-bit values", "the source has f32")
def copy_with_the_width_of_another_type(A, C):
    half = fx.make_copy_atom(fx.UniversalCopy16b(), fx.Float16)
    mine = fx.make_tiled_copy_A(half, tiled_mma()).get_slice(fx.thread_idx.x).partition_S(tile_of(A, 64, 8))
    fx.copy(half, mine, fx.make_fragment_like(mine))


@wrong(ArgumentError, "fx.rocdl.MFMA(16, 16, 5", "16x16x5", "16x16x4")
def mfma_of_a_shape_that_does_not_exist(A, C):
    fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 5, fx.Float32))


@wrong(ArgumentError, "fx.rocdl.MFMA(16, 16, 16, fx.Int32", "of i32 and i32", "(i8, i8) -> i32")
def mfma_of_a_type_that_does_not_exist(A, C):
    fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Int32))


@wrong(CompileError, "fx.gemm(mma", "gfx942 has no", "16x16x32, (f16, f16) -> f32", "gfx950")
def mfma_of_another_architecture(A, C):
    mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 32, fx.Float16)), (2, 2, 1))
    tA, tC, thr_mma = tile_of(A, 32, 32), tile_of(C, 32, 32), mma.get_slice(fx.thread_idx.x)
    fA, fB, fC = thr_mma.make_fragment_A(tA), thr_mma.make_fragment_B(tA), thr_mma.make_fragment_C(tC)
    for fragment in (fA, fB, fC):
        fragment.fill(0)
    fx.gemm(mma, fC, fA, fB, fC)
    fx.copy(f32(), fC, thr_mma.partition_C(tC))


# --- copies ----------------------------------------------------------------------------------------------------------


@wrong(LayoutError, "fx.copy(", "(4,4):(4,1)", "(4,5):(1,4)", "the source has 16 elements, the destination 20")
def copy_between_unequal_sizes(A, C):
    fx.copy(f32(), tile_of(A, 4, 4), registers(4, 5))


@wrong(LayoutError, "fx.copy(f32(), A, C)", "(?,?)", "global")
def copy_of_what_is_not_partitioned(A, C):
    fx.copy(f32(), A, C)


@wrong(LayoutError, "fx.copy(f32(128)", "(3,3):(3,1)", "(3,3):(1,3)", "not divide")
def copy_that_is_no_whole_number_of_calls(A, C):
    fx.copy(f32(128), tile_of(A, 3, 3), registers(3, 3))


@wrong(LayoutError, "fx.copy(f32(128)", "(4,4):(1,8)", "(4,4):(4,1)", "side by side")
def wide_copy_of_values_that_do_not_lie_side_by_side(A, C):
    column_major = fx.make_view(fx.get_iter(A), fx.make_layout((4, 4), (1, 8)))
    fx.copy(f32(128), column_major, tile_of(C, 4, 4))


@wrong(LayoutError, "fx.copy(f32()", "memref<f32", "memref<f16", "element types differ|32-bit values")
def copy_that_would_have_to_convert(A, C):
    fx.copy(f32(), tile_of(A, 4, 4), registers(4, 4, dtype=fx.Float16))


@wrong(LayoutError, "fx.copy(atom", "global", "register", "make_buffer_tensor")
def buffer_copy_of_a_plain_tensor(A, C):
    atom = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32)
    fx.copy(atom, tile_of(A, 4, 4), registers(4, 4))


@wrong(LayoutError, "fx.copy(f32(), tile", "buffer_desc", "register", "rocdl.BufferCopy")
def plain_copy_of_a_buffer_tensor(A, C):
    tile = fx.zipped_divide(fx.rocdl.make_buffer_tensor(A), fx.make_tile(8, 8))[None, 0]
    fx.copy(f32(), tile, registers(8, 8))


@wrong(LayoutError, "fx.copy(atom, tile", "buffer_desc", "shared", "registers")
def buffer_copy_to_shared_memory(A, C):
    tile = fx.zipped_divide(fx.rocdl.make_buffer_tensor(A), fx.make_tile(8, 8))[None, 0]
    atom = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32)
    fx.copy(atom, tile, fx.make_view(fx.get_dyn_shared(fx.Float32), fx.make_layout((8, 8))))


@wrong(LayoutError, "fx.copy(f32(64)", "memref<i1, register, (3):(1)>", "(4,4):(4,1)", "which takes")
def predicates_of_the_wrong_number(A, C):
    fx.copy(f32(64), tile_of(A, 4, 4), registers(4, 4), pred=registers(3, dtype=fx.Boolean))


@wrong(LayoutError, "fx.copy(f32()", "memref<i32, register, (16):(1)>", "fx.Boolean")
def predicates_that_are_numbers(A, C):
    fx.copy(f32(), tile_of(A, 4, 4), registers(4, 4), pred=registers(16, dtype=fx.Int32))


# --- fragments -------------------------------------------------------------------------------------------------------


@wrong(LayoutError, "fx.gemm(mma", "(1,2,2)", "(1,2,4)", "gemm: A has 2 instructions along K, B has 4\n")
def fragments_that_disagree_about_k(A, C):
    mma, thr_mma = tiled_mma(), tiled_mma().get_slice(fx.thread_idx.x)
    fA, fB = thr_mma.make_fragment_A(tile_of(A, 64, 8)), thr_mma.make_fragment_B(tile_of(C, 64, 16))
    fC = thr_mma.make_fragment_C(tile_of(C, 64, 64))
    fx.gemm(mma, fC, fA, fB, fC)


@wrong(LayoutError, "fx.gemm(mma", "(4,2,3)", "(1,2,2)", "gemm: B has 2 instructions along N, C has 3\n")
def fragments_that_disagree_about_n(A, C):
    mma, c = tiled_mma(), registers(4, 2, 3)
    fx.gemm(mma, c, registers(1, 2, 2), registers(1, 2, 2), c)


@wrong(LayoutError, "fx.gemm(mma", "operand A", "((4,1),2,2):((1,0),8,4)", "((16,4),1)", "1 values", "has 4")
def fragment_of_another_operand(A, C):
    mma, thr_mma = tiled_mma(), tiled_mma().get_slice(fx.thread_idx.x)
    fB, fC = thr_mma.make_fragment_B(tile_of(A, 64, 8)), thr_mma.make_fragment_C(tile_of(C, 64, 64))
    fx.gemm(mma, fC, fC, fB, fC)


@wrong(LayoutError, "fx.mma_atom_call(", "operand A", "is f32, not f16", "register, (1):(1)")
def fragment_of_another_type(A, C):
    c = registers(4)
    fx.mma_atom_call(tiled_mma().atom, c, registers(1, dtype=fx.Float16), registers(1), c)


@wrong(LayoutError, "fx.gemm(mma", "operand A", "global", "registers")
def gemm_of_what_lies_in_memory(A, C):
    mma, c = tiled_mma(), registers(4, 2, 2)
    fx.gemm(mma, c, tile_of(A, 1, 2, 2), registers(1, 2, 2), c)


@wrong(LayoutError, "fx.gemm(mma, C, A, A, C)", "(?,?)", "known at compile time")
def gemm_of_what_is_not_partitioned(A, C):
    mma = tiled_mma()
    fx.gemm(mma, C, A, A, C)


@wrong(LayoutError, "make_fragment_A(A)", "(1,?,?)", "known at compile time")
def fragment_of_what_has_no_static_shape(A, C):
    tiled_mma().get_slice(fx.thread_idx.x).make_fragment_A(A)


@wrong(LayoutError, "thr_copy.retile(fragment)", "((16,4,2,2),(1,(1,1)))", "((4,1),2,2):((1,0),8,4)")
def retile_of_another_operand(A, C):
    fragment = tiled_mma().get_slice(fx.thread_idx.x).make_fragment_C(tile_of(C, 64, 64))
    thr_copy = fx.make_tiled_copy_A(f32(), tiled_mma()).get_slice(fx.thread_idx.x)
    thr_copy.retile(fragment)


@wrong(LayoutError, "thr_copy.retile(", "(1,2,2)", "((16,4,2,2),(1,(1,1)))", "32-bit values", "f16")
def retile_of_another_type(A, C):
    thr_copy = fx.make_tiled_copy_A(f32(), tiled_mma()).get_slice(fx.thread_idx.x)
    thr_copy.retile(registers(1, 2, 2, dtype=fx.Float16))


@wrong(LayoutError, "fragment.store(", "vector<3xf32>", "vector<4xf32>")
def fragment_filled_with_too_few_values(A, C):
    fragment = registers(4)
    fragment.store(registers(3).load())


@wrong(LayoutError, "tile.fill(0)", "(8,8):(?{i64},1)", "known at compile time")
def fill_of_what_is_no_fragment(A, C):
    tile = fx.zipped_divide(C, fx.make_tile(8, 8))[None, 0]
    tile.fill(0)


@wrong(LayoutError, "fragment[5, 0]", "index 5", "(4,4):(1,4)")
def index_behind_the_end_of_a_fragment(A, C):
    fragment = registers(4, 4)
    fragment[5, 0] = 1.0


@wrong(ArgumentError, "tile[1, 2, 3]", "3 indices", "2 modes", "(4,4):(4,1)")
def more_indices_than_modes(A, C):
    tile = tile_of(A, 4, 4)
    tile[0, 0] = tile[1, 2, 3]


# --- what they all promise -------------------------------------------------------------------------------------------


def only_error(run: Callable[[], None]) -> FlyError:
    with pytest.raises(FlyError) as caught:
        run()
    assert caught.value.__cause__ is None
    return caught.value


def line_of(error: FlyError) -> str:
    assert error.at is not None
    assert error.at.file == __file__
    assert error.at.source_line is not None
    return error.at.source_line


@pytest.mark.parametrize("name", CASES)
def test_one_error_at_the_line_that_is_wrong(name: str) -> None:
    body, kind, line, parts = CASES[name]
    error = only_error(lambda: launch(body))
    assert type(error) is kind
    assert line in line_of(error)
    for part in parts:
        assert any(alternative in str(error) for alternative in part.split("|")), (part, str(error))


@pytest.mark.parametrize("name", CASES)
def test_the_process_goes_on(name: str) -> None:
    """The same program fails in the same way again, and a correct one still runs."""
    assert str(only_error(lambda: launch(CASES[name][0]))) == str(only_error(lambda: launch(CASES[name][0])))


def test_a_correct_program_of_the_same_kind_runs_after_all_of_them() -> None:
    for body, *_ in CASES.values():
        only_error(lambda body=body: launch(body))

    def right(A: Any, C: Any) -> None:
        fragment = registers(4, 4)
        fx.copy(f32(), tile_of(A, 4, 4), fragment)
        fx.copy(f32(), fragment, tile_of(C, 4, 4))

    launch(right)


# --- what is only known at run time ----------------------------------------------------------------------------------


def test_tile_larger_than_a_tensor_of_dynamic_size() -> None:
    """No error when compiling, as the size may be any; the access itself is one."""

    def body(A: Any, C: Any) -> None:
        tile = fx.zipped_divide(A, fx.make_tile(128, 8))[None, 0]
        C[0, fx.thread_idx.x % 64] = tile[fx.thread_idx.x % 128, 0]

    error = only_error(lambda: launch(body))
    assert isinstance(error, SimulatorError)
    assert "C[0, fx.thread_idx.x % 64] = tile[fx.thread_idx.x % 128, 0]" in line_of(error)


# --- shared memory ---------------------------------------------------------------------------------------------------


def shared(elements: int) -> Callable[[Any, Any], None]:
    """A body that uses this much static memory."""

    def body(A: Any, C: Any) -> None:
        tile = fx.SharedAllocator().allocate(fx.Array[fx.Float32, elements, 16]).peek().view(fx.make_layout(elements))
        tile[fx.thread_idx.x] = A[0, 0]
        C[0, 0] = tile[0]

    return body


@pytest.mark.parametrize(
    ("static", "dynamic", "said"),
    [
        (LDS_BYTES + 4, 0, "4 bytes"),
        (0, LDS_BYTES + 4464, "4464 bytes"),
        (40_000, 30_000, "4464 bytes"),
    ],
    ids=["static", "dynamic", "both"],
)
def test_more_shared_memory_than_there_is(static: int, dynamic: int, said: str) -> None:
    body = shared(static // 4) if static else (lambda A, C: None)
    error = only_error(lambda: launch(body, smem=dynamic))
    assert type(error) is LaunchError
    assert ".launch(" in line_of(error)
    assert said in str(error)
    assert "65536" in str(error)
    assert "gfx942" in str(error)


def test_all_of_the_shared_memory_may_be_used() -> None:
    launch(shared(LDS_BYTES // 4))
    launch(shared(LDS_BYTES // 8), smem=LDS_BYTES // 2)
