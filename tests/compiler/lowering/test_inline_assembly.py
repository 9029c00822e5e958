"""Kernels with inline assembly: what LLVM's constraints say holds, and the simulator runs what the text says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl._mlir import ir
from flydsl._mlir.dialects import fly, llvm
from flydsl.errors import CompileError
from flydsl.simulator import checking
from tests.launchers import launcher_of

pytestmark = pytest.mark.slow

LANES = 64


def launcher(body: Callable[[Any], Any]) -> Any:
    """`y[i] = body(x[i])` for one wave."""

    @flyc.kernel
    def one(x: fx.Tensor, y: fx.Tensor):
        i = fx.thread_idx.x
        y[i] = body(x[i])

    return launcher_of(one, grid=(1,), block=(LANES,))


def result(body: Callable[[Any], Any], x: torch.Tensor | None = None) -> torch.Tensor:
    x = torch.arange(LANES, dtype=torch.int32) if x is None else x
    y = torch.zeros_like(x)
    launcher(body)(x, y)
    return y


def asm(result: Any, operands: list[Any], text: str, constraints: str, side_effects: bool = False) -> Any:
    return llvm.inline_asm(result, operands, text, constraints, has_side_effects=side_effects)


X = torch.arange(LANES, dtype=torch.int32)


def test_a_vector_instruction_with_inputs_and_an_output() -> None:
    assert torch.equal(
        result(lambda x: asm(fx.T.i32, [x, fx.Int32(3)], "v_add_u32 $0, $1, $2", "=v,v,v") * 2), (X + 3) * 2
    )


def test_text_in_any_spelling_becomes_the_listing_s() -> None:
    launch = launcher(lambda x: asm(fx.T.i32, [x], "v_add_u32   $0,$1 ,  0x10", "=v,v"))
    artifact = launch.lower(X, torch.zeros_like(X)).artifact
    (line,) = [line for line in artifact.isa.splitlines() if "v_add_u32" in line]
    assert line.partition(";")[0].split() == ["v_add_u32_e64", line.split()[1], line.split()[2], "16"]
    y = torch.zeros_like(X)
    artifact(X, y)
    assert torch.equal(y, X + 16)


def test_a_scalar_instruction() -> None:
    body = lambda x: x + asm(fx.T.i32, [fx.Int32(5)], "s_lshl_b32 $0, $1, 3", "=s,s,~{scc}")  # noqa: E731
    assert torch.equal(result(body), X + 40)


def test_an_operand_tied_to_the_output() -> None:
    body = lambda x: asm(fx.T.i32, [fx.Int32(7), x], "v_add_u32 $0, $0, $2", "=v,0,v")  # noqa: E731
    assert torch.equal(result(body), X + 7)


def test_several_outputs_are_a_struct() -> None:
    def body(x: Any) -> Any:
        pair = asm(
            ir.Type.parse("!llvm.struct<(i32, i32)>"), [x], "v_add_u32 $0, 1, $2\nv_add_u32 $1, 2, $2", "=&v,=v,v"
        )
        first = llvm.extractvalue(fx.T.i32, pair, [0])
        return first * llvm.extractvalue(fx.T.i32, pair, [1])

    assert torch.equal(result(body), (X + 1) * (X + 2))


def test_vectors_and_a_matrix_instruction() -> None:
    def body(x: Any) -> Any:
        ones = fx.vector.full(2, 0x3C003C00, fx.Int32)  # four halves of 1.0
        zeros = fx.vector.full(4, 0.0, fx.Float32)
        text = "s_nop 1\nv_mfma_f32_16x16x16_f16 $0, $1, $2, $3\ns_nop 7\ns_nop 7"
        made = asm(fx.T.f32x4, [ones, ones, zeros], text, "=v,v,v,v")
        return fx.Vector(made)[0] + x

    x = torch.arange(LANES, dtype=torch.float32)
    assert torch.equal(result(body, x), x + 16)


def test_clobbered_registers_are_not_used_across_it() -> None:
    def body(x: Any) -> Any:
        asm(None, [], "v_mov_b32 v0, 0\nv_mov_b32 v1, 0\nv_mov_b32 v2, 0", "~{v0},~{v1},~{v2}", side_effects=True)
        return x + fx.thread_idx.x

    assert torch.equal(result(body), 2 * X)


def test_memory_and_waits() -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor, y: fx.Tensor):
        i = fx.thread_idx.x
        value = asm(
            fx.T.i32,
            [_address(x, i)],
            "global_load_dword $0, $1, off\ns_waitcnt vmcnt(0)",
            "=&v,v,~{memory}",
            side_effects=True,
        )
        asm(None, [_address(y, i), value], "global_store_dword $0, $1, off", "v,v,~{memory}", side_effects=True)
        asm(None, [], "s_waitcnt vmcnt(0) & lgkmcnt(0)", "", side_effects=True)

    launch = launcher_of(kernel, grid=(1,), block=(LANES,))
    x, y = X * 3, torch.zeros_like(X)
    with checking():
        launch(x, y)
    assert torch.equal(y, x)


def _address(tensor: Any, i: Any) -> Any:
    pointer = fly.extract_aligned_pointer_as_index(ir.Type.parse("!llvm.ptr<1>"), tensor)
    return llvm.ptrtoint(fx.T.i64, pointer) + fx.Int64(i) * 4


def test_numbered_labels_are_those_of_each_assembly() -> None:
    text = "s_mov_b32 $0, 3\n1:\ns_add_u32 $0, $0, $0\ns_cmp_lt_u32 $0, 20\ns_cbranch_scc1 1b"

    def body(x: Any) -> Any:
        first = asm(fx.T.i32, [], text, "=&s,~{scc}", side_effects=True)
        second = asm(fx.T.i32, [], text, "=&s,~{scc}", side_effects=True)
        return x + first + second

    assert torch.equal(result(body), X + 48)


def test_in_a_loop_and_a_branch() -> None:
    @flyc.jit
    def body(x: Any) -> Any:
        total = fx.Int32(0)
        for _ in range(x):
            if x > 10:
                total = total + fx.Int32(asm(fx.T.i32, [x], "v_mov_b32 $0, $1", "=v,v"))
        return total

    assert torch.equal(result(body), torch.where(X > 10, X * X, 0))


WRONG = {
    "no instruction": ("v_foo $0, $1", "=v,v", "invalid instruction.*v_foo"),
    "an operand too few": ("v_add_u32 $0, $1", "=v,v", "too few operands"),
    "another machine's": ("v_wmma_f32_16x16x16_f16 $0, $1, $1, $0", "=v,v", "v_wmma"),
    "no such constraint": ("v_mov_b32 $0, $1", "=q,v", "constraint 'q'"),
    "no such register": ("v_mov_b32 $0, $1", "={v999},v", "v999"),
    "no such clobber": ("v_mov_b32 $0, $1", "=v,v,~{v999}", "'v999', which is not a register"),
    "a constraint too many": ("v_mov_b32 $0, $1", "=v,v,v", "constraints"),
    "no result": ("v_mov_b32 $0, $1", "v", "constraints"),
    "no constraints at all": ("v_mov_b32 $0, $1", ",{=,", "constraints"),
    "an operand that does not exist": ("v_mov_b32 $0, $7", "=v,v", "Invalid . operand number"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_assembly_is_an_error_at_its_line(kind: str) -> None:
    text, constraints, message = WRONG[kind]

    def body(x: Any) -> Any:
        return asm_here(x, text, constraints)

    with pytest.raises(CompileError, match=message) as caught:
        result(body)
    assert caught.value.at.file == __file__
    assert "has_side_effects=True  # here" in (caught.value.at.source_line or "")


def asm_here(x: Any, text: str, constraints: str) -> Any:
    return llvm.inline_asm(fx.T.i32, [x], text, constraints, has_side_effects=True  # here
                           )  # fmt: skip
