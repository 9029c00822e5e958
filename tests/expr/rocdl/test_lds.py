"""Loads from global memory straight into LDS, and transposing reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from mlir import ir

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.kernel_function import CompilationContext
from flydsl.errors import ArchError, ArgumentError
from flydsl.expr import rocdl
from flydsl.expr.typing import T
from flydsl.utils.smem_allocator import SmemAllocator
from tests.launchers import launcher_of

LANES = 64


def part(elements: int = 4 * LANES) -> Any:
    """LDS of the kernel that is being traced."""
    allocator = SmemAllocator(None)
    array = allocator.allocate_array(T.f32, elements, alignment=16)
    with ir.InsertionPoint(CompilationContext.get_current().gpu_module_body):
        allocator.finalize()
    return array(allocator.get_base())


def test_global_to_lds() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        lane, lds = fx.thread_idx.x, part()
        rocdl.global_load_lds(fx.slice(A, (None, lane)), lds, 4)
        rocdl.load_to_lds(fx.slice(A, (None, lane)), lds, 4, 256)
        rocdl.s_waitcnt(0)
        fx.barrier()
        Out[0, lane] = lds.load([63 - lane])
        Out[1, lane] = lds.load([64 + lane])

    launch = launcher_of(kernel, grid=1, block=LANES)
    a, out = torch.arange(2.0 * LANES).reshape(2, LANES), torch.zeros(2, LANES)
    launch(a, out)
    assert torch.equal(out, torch.stack([a[0].flip(0), a[1]]))


def test_sizes_of_each_target(compiled: Callable[..., str]) -> None:
    def body(A: Any) -> None:
        rocdl.global_load_lds(A, part(), 16)

    assert "global_load_lds_dwordx4" in compiled(body, "gfx950")
    with pytest.raises(ArgumentError, match="global_load_lds of 16 bytes: gfx942 has 1, 2, 4"):
        compiled(body)
    with pytest.raises(ArchError, match="gfx1201 does not have it"):
        compiled(body, "gfx1201")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "mnemonic"),
    [
        ("ds_read_tr16_b64", "vector<4xf16>", "ds_read_b64_tr_b16"),
        ("ds_read_tr8_b64", "vector<8xi8>", "ds_read_b64_tr_b8"),
        ("ds_read_tr6_b96", "vector<3xi32>", "ds_read_b96_tr_b6"),
        ("ds_read_tr4_b64", "i64", "ds_read_b64_tr_b4"),
    ],
)
def test_transposing_reads(name: str, kind: str, mnemonic: str, compiled: Callable[..., str]) -> None:
    def body(A: Any) -> None:
        lds = part()
        lds.store(A[fx.thread_idx.x], [fx.thread_idx.x])
        fx.barrier()
        read = getattr(rocdl, name)(ir.Type.parse(kind), lds)
        A[fx.thread_idx.x] = (read[0] if isinstance(read, fx.Vector) else read).to(fx.Float32)

    assert mnemonic in compiled(body, "gfx950")
    with pytest.raises(ArchError, match=f"{name}: gfx942 does not have it"):
        compiled(body)
    with pytest.raises(ArgumentError, match=r"f64 has 64|f32 has 32"):
        compiled(lambda A: getattr(rocdl, name)(T.f64 if "96" in name else T.f32, part()), "gfx950")


def test_accesses_have_the_alias_scopes_that_are_stated(compiled: Callable[..., str]) -> None:
    """A program that waits for its copies into LDS says so; results are as without."""
    text = "#llvm.alias_scope<id = distinct[0]<>, domain = #llvm.alias_scope_domain<id = distinct[1]<>>>"
    found: list[str] = []

    def body(A: Any) -> None:
        scope = ir.Attribute.parse(text)
        allocator = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64]).peek()
        place, source = fx.to_llvm_ptr(allocator.ptr), fx.to_llvm_ptr(fx.get_iter(A) + fx.thread_idx.x)
        rocdl.global_load_lds(source, place, 4, 0, aux=None, alias_scopes=ir.ArrayAttr.get([scope]))
        resource = fx.buffer_ops.create_buffer_resource(A)
        value = rocdl.raw_ptr_buffer_load(fx.T.f32, resource, 0, noalias_scopes=[scope])
        rocdl.raw_ptr_buffer_store(value, resource, 4, alias_scopes=[scope], noalias_scopes=[scope])
        operations = ir.InsertionPoint.current.block.operations
        found.extend(" ".join(sorted(dict(op.attributes))) for op in operations if "scopes" in str(op))
        with pytest.raises(ArgumentError, match="a list of MLIR's alias scopes"):
            rocdl.raw_ptr_buffer_load(fx.T.f32, resource, 0, alias_scopes="scope")

    assert "lds" in compiled(body)
    assert ["noalias" in names for names in found] == [False, True, True]
    assert len(found) == 3
