"""FlyDSL's types by name: `get` makes them, and instructions are instances of theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl._mlir import ir
from flydsl._mlir.dialects import fly, fly_rocdl
from flydsl.errors import FlyError
from tests.launchers import launcher_of

LAYOUT = fly.LayoutType.get((4, 8), (8, 1))


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (fly.IntTupleType.get((2, (3, None))), "!fly.int_tuple<(2,(3,*))>"),
        (fly.TileType.get([32, LAYOUT, [4, None]]), "!fly.tile<[32|(4,8):(8,1)|[4|*]]>"),
        (fly.ComposedLayoutType.get(fly.SwizzleType.get(2, 0, 3), 0, LAYOUT), "S<2,0,3> o 0 o (4,8):(8,1)"),
        (fly.CopyAtomType.get(fly.CopyOpUniversalCopyType.get(128), 32), "!fly.universal_copy<128>, 32>"),
        (fly.MmaAtomType.get(fly.MmaOpUniversalFMAType.get(fx.Float32)), "!fly.universal_fma<f32>"),
        (fly.MemRefType.get(fx.Float16, LAYOUT, fx.AddressSpace.Shared), "f16, shared, (4,8):(8,1)"),
        (fly.CopyOpUniversalAtomicType.get(1, fx.Int32), "!fly.universal_atomic<32, smax, i32>"),
        (fly_rocdl.CopyOpCDNA3BufferCopyType.get(64), "buffer_copy<64>"),
        (fly_rocdl.CopyOpCDNA3BufferAtomicType.get(fx.AtomicOp.Add, fx.Float32), "add"),
        (fly_rocdl.CopyOpCDNA4LdsReadTransposeType.get(16, 64), "64"),
        (fly_rocdl.MmaOpCDNA3_MFMAType.get(16, 16, 16, fx.Float16, fx.Float16, fx.Float32), "mfma<16x16x16"),
        (fly_rocdl.MmaOpGFX1250_WMMAType.get(16, 16, 32, fx.Float16, fx.Float16, fx.Float32), "16x16x32"),
        (fly_rocdl.MmaOpGFX11_WMMAType.get(16, 16, 16, fx.Int8, fx.Int8, fx.Int32, sign_a=True), "signA = true"),
    ],
)
def test_types_are_made_by_name(made: Any, text: str) -> None:
    assert text in str(made)


def test_instructions_are_instances_of_their_types() -> None:
    assert isinstance(fx.UniversalCopy128b(), fx.CopyOpUniversalCopyType)
    assert isinstance(fx.rocdl.MFMA(16, 16, 16, fx.Float16), fx.rocdl.MmaOpCDNA3_MFMAType)
    assert not isinstance(fx.UniversalCopy128b(), fx.rocdl.CopyOpCDNA3BufferCopyType)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: fly.CopyAtomType.get(fx.UniversalCopy(128), 24),
        lambda: fly.TileType.get(["32"]),
        lambda: fly_rocdl.MmaOpCDNA3_MFMAType.get(16, 16, 17, fx.Float16, fx.Float16, fx.Float32),
        lambda: fly.CopyOpUniversalCopyType.get(48),
    ],
)
def test_what_no_type_can_be_is_an_error(wrong: Callable[[], Any]) -> None:
    with pytest.raises(FlyError):
        wrong()


def test_atoms_of_types_made_by_name_copy_and_multiply() -> None:
    @flyc.kernel
    def kernel(a: fx.Tensor, out: fx.Tensor):
        copy = fx.make_copy_atom(fly.CopyOpUniversalCopyType.get(32), fx.Float32)
        fma = fx.make_mma_atom(fly.MmaOpUniversalFMAType.get(fx.Float32))
        i = fx.thread_idx.x
        x, y = (fx.make_rmem_tensor(1, fx.Float32) for _ in range(2))
        fx.copy_atom_call(copy, fx.slice(fx.logical_divide(a, fx.make_layout(1, 1)), (None, i)), x)
        y.fill(1)
        fx.mma_atom_call(fma, y, x, x, y)
        out[i] = y.load()[0]

    launch = launcher_of(kernel, grid=1, block=64)
    a, out = torch.arange(64.0), torch.zeros(64)
    launch(a, out)
    assert torch.equal(out, a * a + 1)


def test_operation_classes_of_rocdl_by_any_name() -> None:
    @flyc.kernel
    def kernel(out: fx.Tensor):
        fx.rocdl.SchedBarrier(ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0))
        out[fx.thread_idx.x] = fx.Float32(fx.rocdl.ROCDLExp2(fx.T.f32, fx.Float32(3.0)).result)

    launch = launcher_of(kernel, grid=1, block=64)
    out = torch.zeros(64)
    launch(out)
    assert torch.equal(out, torch.full((64,), 8.0))


def test_operations_by_name_build_a_module_that_the_passes_run_on() -> None:
    from flydsl._mlir.dialects import arith, func
    from flydsl._mlir.passmanager import PassManager

    def layout(shape: Any, stride: Any) -> Any:
        return fly.make_layout(*(fly.static(fly.IntTupleType.get(part)) for part in (shape, stride)))

    with ir.Context(), ir.Location.unknown():
        module, index = ir.Module.create(), ir.IndexType.get()
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("numbers", ir.FunctionType.get([], [index] * 3))
            with ir.InsertionPoint(function.add_entry_block()):
                made = fly.composition(layout((10, 2), (16, 4)), layout((5, 4), (1, 5)))
                strides = fly.select(fly.get_stride(layout((4, 6), (6, 1))), indices=[0])
                numbers = [fly.size(made), strides, fly.static(fly.IntTupleType.get(7))]
                func.ReturnOp([arith.IndexCastOp(index, fly.get_scalar(number)).result for number in numbers])
        passes = "fly-canonicalize,fly-layout-lowering,fly-canonicalize,convert-fly-to-rocdl,canonicalize,cse"
        PassManager.parse(f"builtin.module({passes})").run(module.operation)
        results = list(function.entry_block.operations)[-1].operands
        assert [int(result.owner.attributes["value"]) for result in results] == [20, 6, 7]


def test_functions_of_a_module_by_hand_have_pointers_of_the_dsl() -> None:
    """`ir.FunctionType` takes FlyDSL's types, and functions of `fx` the raw arguments that come of them."""
    from flydsl._mlir.dialects import func

    with ir.Context(), ir.Location.unknown():
        vector = ir.VectorType.get([4], fx.Float16)
        assert ir.VectorType(fx.Float16x4.ir_type) == vector
        assert isinstance(vector, ir.VectorType)
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            pointer = fx.PointerType.get(fx.Int32.ir_type, fx.AddressSpace.Global, 16)
            function = func.FuncOp("move", ir.FunctionType.get([pointer, pointer], []))
            with ir.InsertionPoint(function.add_entry_block()):
                source, target = function.entry_block.arguments
                fx.generic_store(target, fx.generic_load(source, count=4), volatile=True)
                fx.atomic_add(target, fx.Int32(1))
                func.ReturnOp([])
        assert module.operation.verify()
        assert "vector<4xi32>" in str(module)
