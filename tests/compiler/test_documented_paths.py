"""Names that FlyDSL's documents and programs import, where they say that they are."""

from __future__ import annotations

import importlib
import logging
from typing import Any, ClassVar

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.backends.rocm import RocmBackend
from flydsl.errors import ArgumentError

PATHS = {
    "flydsl.compiler": "BaseBackend CompiledFunction GPUTarget JitArgumentRegistry compile_backend_name from_c_void_p "
    "from_dlpack get_backend jit kernel",
    "flydsl.compiler.ast_rewriter": "ASTRewriter",
    "flydsl.compiler.backends.rocm": "RocmBackend",
    "flydsl.compiler.jit_argument": "JitArgumentRegistry PointerJitArg TensorAdaptor TensorArgument from_dlpack",
    "flydsl.compiler.jit_executor": "CompiledArtifact JITCFunction JitCompiledFunction",
    "flydsl.compiler.jit_function": "JitFunction MlirCompiler jit",
    "flydsl.compiler.kernel_function": "CompilationContext KernelFunction KernelLauncher kernel",
    "flydsl.compiler.protocol": "DslType JitArgument construct_from_ir_values extract_to_ir_values get_ir_types",
    "flydsl.expr.arith": "andi constant select",
    "flydsl.expr.derived": "CopyAtom MmaAtom TiledCopy",
    "flydsl.expr.gpu": "Int32 barrier block_id get_dyn_shared lane_id thread_id",
    "flydsl.expr.mem_ops": "buffer_load create_buffer_resource",
    "flydsl.expr.meta": "dsl_loc_tracing traced_op",
    "flydsl.expr.numeric": "Float32 Int32",
    "flydsl.expr.primitive": "copy crd2idx gemm make_layout make_shape to_llvm_ptr",
    "flydsl.expr.typing": "ArithValue Basis Constexpr Stream T Tensor Types Vector as_numeric make_layout",
    "flydsl.expr.vector": "extractelement from_elements insertelement store",
    "flydsl.compiler.backends": "current_target get_backend",
    "flydsl.expr.enum": "AtomicOp AtomicOrdering SyncScope",
    "flydsl.expr.llvm": "Float32 Pointer to_llvm_ptr",
    "flydsl.expr.rocdl.enum": "AddressSpace SyncScope TargetAddressSpace",
    "flydsl.expr.rocdl.tdm_ops": "as_ir_value memref_dialect",
    "flydsl.expr.rocdl.universal": "asyncmark get_scalar wait_asyncmark",
    "flydsl.expr.utils.arith": "ArithValue _to_raw arith_const constant is_narrow_float_type recast_type",
    "flydsl.expr.buffer_ops": "_create_i32_constant _get_buffer_flags _unwrap_value buffer_load buffer_store",
    "flydsl.expr.rocdl": "BufferCopy128b MFMA ReadfirstlaneOp _to_ir buffer_load_to_lds cvt_off_f32_i4 "
    "cvt_pk_bf16_f32 mask_dsrd mask_dswr mask_mfma mask_vmem_rd mfma_f32_16x16x16_f16 mfma_f32_16x16x32_fp8 "
    "mfma_i32_16x16x32i8 raw_buffer_atomic_fadd",
    "flydsl.runtime.device": "bf16_global_atomics_arch_description get_gcn_arch get_rocm_arch get_warp_size "
    "is_gfx120x is_gfx120x_arch is_rdna_arch require_gfx120x supports_bf16_global_atomics",
    "flydsl.utils": "env log",
    "flydsl.utils.env": "EnvManager compile debug runtime",
    "flydsl.utils.logger": "log",
    "flydsl.utils.smem_allocator": "SMEM_CAPACITY_MAP SmemAllocator SmemPtr",
}


@pytest.mark.parametrize("path", PATHS)
def test_names_are_where_programs_import_them(path: str) -> None:
    module = importlib.import_module(path)
    assert [name for name in PATHS[path].split() if not hasattr(module, name)] == []


def test_the_backend_lists_the_stages_that_a_launch_runs() -> None:
    @flyc.kernel
    def kernel(A: fx.Tensor):
        A[fx.thread_idx.x] = 1.0

    @flyc.jit
    def launch(A: fx.Tensor):
        kernel(A).launch(grid=1, block=64)

    stages = [stage.name for stage in launch.lower(torch.zeros(64), arch="gfx942")]
    backend = flyc.get_backend(arch="gfx942")
    lowering, binary = backend._pipeline_parts(compile_hints={})
    assert backend.pipeline_fragments(compile_hints={}) == stages == [*lowering, binary]
    assert backend.target == flyc.GPUTarget("rocm", "gfx942", 64)
    assert backend.gpu_module_targets() == ['#rocdl.target<chip = "gfx942">']
    assert flyc.get_backend(arch="gfx1201").target.warp_size == 32
    with pytest.raises(ArgumentError, match="no backend"):
        flyc.get_backend("cuda")


def test_a_backend_of_a_programs_own_says_what_launches_run(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    class Twice(RocmBackend):
        @staticmethod
        def supports_target(target: flyc.GPUTarget) -> bool:
            return True

        def pipeline_fragments(self, *, compile_hints: Any = None) -> list[str]:
            seen.append(dict(compile_hints))
            first, *rest = super().pipeline_fragments(compile_hints=compile_hints)
            return [first, "gpu.module(cse)", "fly-canonicalize", *rest]

    monkeypatch.setattr("flydsl.compiler.backends._BACKENDS", {"rocm": RocmBackend})
    flyc.register_backend("Twice", Twice)
    assert flyc.compile_backend_name() == "rocm"
    monkeypatch.setenv("FLYDSL_COMPILE_BACKEND", "twice")

    @flyc.kernel
    def kernel(A: fx.Tensor):
        A[fx.thread_idx.x] = 1.0

    @flyc.jit
    def launch(A: fx.Tensor):
        kernel(A).launch(grid=1, block=64)

    a = torch.zeros(64)
    artifact = flyc.compile[{"waves_per_eu": 2}](launch, a)
    assert torch.equal(a, torch.ones(64))
    assert [stage.name for stage in artifact.pipeline][1:3] == ["gpu.module(cse)", "fly-canonicalize"]
    assert seen == [{"waves_per_eu": 2}]
    with pytest.raises(ArgumentError, match="there is already a backend 'twice'"):
        flyc.register_backend("twice", Twice)
    with pytest.raises(ArgumentError, match="must be given a class"):
        flyc.register_backend("other", int)


def test_a_function_rewritten_by_hand() -> None:
    from flydsl.compiler.ast_rewriter import ASTRewriter

    def clamp(x):
        if x > 10:
            x = x * 0 + 10
        return x

    class WithoutWhile(ASTRewriter):
        transformers: ClassVar[Any] = [t for t in ASTRewriter.transformers if t.__name__ != "CanonicalizeWhile"]
        rewrite_globals: ClassVar[Any] = {
            name: value for name, value in ASTRewriter.rewrite_globals.items() if "while" not in name
        }

    assert len(WithoutWhile.transformers) == len(ASTRewriter.transformers) - 1
    traced = WithoutWhile.transform(clamp)

    @flyc.kernel
    def kernel(A: fx.Tensor):
        A[fx.thread_idx.x] = traced(fx.Int32(fx.thread_idx.x))

    @flyc.jit
    def launch(A: fx.Tensor):
        kernel(A).launch(grid=1, block=64)

    out = torch.zeros(64, dtype=torch.int32)
    launch(out)
    assert torch.equal(out, torch.arange(64, dtype=torch.int32).clamp(max=10))


def test_settings_are_read_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from flydsl.utils import env

    monkeypatch.setenv("ARCH", "gfx950")
    monkeypatch.setenv("FLYDSL_DUMP_IR", "1")
    assert (env.compile.arch, env.debug.dump_ir) == ("gfx950", True)
    monkeypatch.delenv("ARCH")
    assert env.compile.arch == ""
    with pytest.raises(AttributeError, match="no setting"):
        env.runtime.nothing  # noqa: B018


def test_the_log_has_a_level(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = importlib.import_module("flydsl.utils.logger")
    monkeypatch.setenv("FLYDSL_DEBUG_LOG_LEVEL", "debug")
    try:
        assert importlib.reload(logger).log.level == logging.DEBUG
        monkeypatch.setenv("FLYDSL_DEBUG_LOG_LEVEL", "loud")
        with pytest.raises(ArgumentError, match="must be a level"):
            importlib.reload(logger)
    finally:
        monkeypatch.delenv("FLYDSL_DEBUG_LOG_LEVEL")
        importlib.reload(logger)


def test_capacities() -> None:
    from flydsl.runtime.device import get_warp_size, supports_bf16_global_atomics
    from flydsl.utils.smem_allocator import SMEM_CAPACITY_MAP

    known = {"gfx942": 65536, "gfx950": 163840, "gfx1201": 65536, "gfx1250": 327680}
    assert {arch: SMEM_CAPACITY_MAP[arch] for arch in known} == known
    assert [get_warp_size(arch) for arch in known] == [64, 64, 32, 32]
    assert supports_bf16_global_atomics("gfx942")
    assert not supports_bf16_global_atomics("gfx90a")
