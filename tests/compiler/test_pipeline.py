"""The pipeline as a record: stepping, looking, failing, dumping."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.codegen import isolate
from flydsl.compiler import pipeline as pipeline_module
from flydsl.compiler import stages
from flydsl.errors import ArgumentError, CompileError
from flydsl.passes import fly_layout_lowering
from tests.launchers import launcher_of
from tests.stages import STAGE_COUNT

# The architecture guide, section 7.
DUMP_FILES = [
    "00_origin.mlir",
    "01_fly_rewrite_func_signature.mlir",
    "02_fly_canonicalize.mlir",
    "03_fly_layout_lowering.mlir",
    "04_fly_int_swizzle_simplify.mlir",
    "05_canonicalize.mlir",
    "06_fly_convert_atom_call_to_ssa_form.mlir",
    "07_fly_promote_regmem_to_vectorssa.mlir",
    "08_convert_fly_to_rocdl.mlir",
    "09_canonicalize.mlir",
    "10_convert_scf_to_cf_cse_convert_gpu_to_rocdl.mlir",
    "11_rocdl_attach_target.mlir",
    "12_convert_scf_to_cf.mlir",
    "13_convert_cf_to_llvm.mlir",
    "14_gpu_to_llvm.mlir",
    "15_convert_vector_to_llvm.mlir",
    "16_convert_arith_to_llvm.mlir",
    "17_convert_func_to_llvm.mlir",
    "18_reconcile_unrealized_casts.mlir",
    "19_gpu_module_to_binary.mlir",
    "20_llvm_ir.ll",
    "21_final_isa.s",
]
LLVM_IR, ISA = DUMP_FILES[-2:]


@flyc.kernel
def double_kernel(A: fx.Tensor):
    A[fx.thread_idx.x] = A[fx.thread_idx.x] * 2


@flyc.jit
def double(A: fx.Tensor, n: fx.Constexpr[int] = 1):
    double_kernel(A).launch(grid=1, block=64)


def lowered() -> flyc.Pipeline:
    return double.lower(torch.ones(64))


def numbers_of(p: flyc.Pipeline, name: str) -> list[int]:
    """The numbers of the stages of that name."""
    return [stage.index for stage in p if stage.name == name]


def test_lower_runs_nothing() -> None:
    A = torch.ones(64)
    p = double.lower(A)
    assert p.position == 0
    assert {stage.state for stage in p} == {"pending"}
    assert "fly.memref.load" in p.origin
    assert (A == 1).all()


def test_step_and_run() -> None:
    p = lowered()
    assert p.step() is p[1]
    first, second = numbers_of(p, "canonicalize")
    assert p.run(until="fly-layout-lowering").position == 3
    assert p.run(until=4).position == 4
    assert p.run(until="canonicalize").position == first
    assert p.run(until="canonicalize").position == second, "the next one of that name"
    assert p.run(until="fly-layout-lowering").position == second, "it has run already"
    assert p.run(until=p["convert-cf-to-llvm"].file_name).position == p["convert-cf-to-llvm"].index
    assert p.run().finished
    with pytest.raises(CompileError, match="every stage has run"):
        p.step()


def test_stages_by_number_name_and_file() -> None:
    p = lowered()
    assert p["fly-canonicalize"] is p[2] is p["02_fly_canonicalize.mlir"]
    assert p["cse"] is p["fly-rocdl-cluster-attr"]
    assert [stage.index for stage in p] == list(range(1, len(p) + 1))
    with pytest.raises(ArgumentError, match=r"names 2 stages") as ambiguous:
        p["canonicalize"]
    assert " or ".join(map(str, numbers_of(p, "canonicalize"))) in str(ambiguous.value)
    with pytest.raises(ArgumentError, match="no stage is called 'inline'") as unknown:
        p.run(until="inline")
    assert "fly-layout-lowering" in str(unknown.value)
    with pytest.raises(ArgumentError, match="did you mean fly-layout-lowering"):
        p["layout-lowering"]
    with pytest.raises(ArgumentError, match=f"1 to {STAGE_COUNT}"):
        p[STAGE_COUNT + 1]


def test_what_a_stage_shows() -> None:
    p = lowered().run(until="fly-layout-lowering")
    stage = p["fly-layout-lowering"]
    assert stage.before == p["fly-canonicalize"].after
    assert stage.changed
    assert any(line.startswith("-") and "fly.memref.load" in line for line in stage.diff.splitlines())
    assert not p["fly-canonicalize"].changed or p["fly-canonicalize"].diff
    assert stage.ops_before == p["fly-canonicalize"].ops_after > 0
    with pytest.raises(CompileError, match="has not run yet"):
        p["convert-fly-to-rocdl"].after  # noqa: B018
    lines = repr(p).splitlines()
    assert f"3 of {STAGE_COUNT} stages done" in lines[0]
    assert f"{stage.ops_before} -> {stage.ops_after}" in lines[4]
    assert "pending" in lines[5]


def launched() -> flyc.Pipeline:
    """The pipeline behind a launch that nobody watched, so that it kept no copies of the module on the way."""

    unwatched = launcher_of(double_kernel, grid=1, block=64)
    A = torch.ones(64)
    unwatched(A)
    with flyc.capture_launches() as launches:
        unwatched(A)
    return launches[0].pipeline


@pytest.mark.parametrize("finished", [lambda: lowered().run(), launched], ids=["copies kept", "run again"])
def test_what_is_shown_is_what_ran(
    finished: Callable[[], flyc.Pipeline], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLYDSL_DEBUG_PRINT_AFTER_ALL", "1")
    p = finished()
    printed = capsys.readouterr().out.split("// -----// after ")[1:]
    assert len(printed) == len(p)
    for stage, text in zip(p, printed, strict=True):
        assert text.split(" //----- //\n", 1)[1].strip() == stage.after.strip()


def test_recording_makes_no_text_until_someone_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> str:
        raise AssertionError("text was made")

    monkeypatch.setattr(pipeline_module, "to_text", refuse)
    replays = []
    monkeypatch.setattr(pipeline_module.Pipeline, "_module_after", lambda *_: replays.append(1))
    A = torch.ones(64)
    double.lower(A).artifact(A)
    assert (A == 2).all()
    assert not replays


@pytest.mark.parametrize("error", [CompileError("this went wrong"), ZeroDivisionError()])
def test_a_launch_that_fails_to_compile_is_captured(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: Any) -> None:
        raise error

    launcher = launcher_of(double_kernel, grid=1, block=64)
    monkeypatch.setattr(fly_layout_lowering, "apply", fail)
    A = torch.ones(64)
    with flyc.capture_launches() as launches, pytest.raises(type(error)):
        launcher(A)
    (launch,) = launches
    assert launch.pipeline.position == 2
    assert launch.pipeline[3].state == "failed"
    assert launch.pipeline[3].before
    with pytest.raises(CompileError):
        launch.artifact  # noqa: B018


def test_launches_may_be_stopped_before_the_first_stage() -> None:
    A = torch.ones(64)
    with flyc.capture_launches(trace_only=True) as launches:
        double(A)
        double(A)
    assert [launch.pipeline.position for launch in launches] == [0, 0]
    assert (A == 1).all()
    launches[0].artifact(A)
    assert (A == 2).all()


def test_a_failing_stage_keeps_its_input_and_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise CompileError("no such lowering")

    p = lowered()
    monkeypatch.setattr(fly_layout_lowering, "apply", fail)
    with pytest.raises(CompileError, match="stage 3 fly-layout-lowering: no such lowering"):
        p.run()
    stage = p["fly-layout-lowering"]
    assert stage.state == "failed"
    assert stage.error is not None
    assert "fly.memref.load" in stage.before
    with pytest.raises(CompileError, match="has failed"):
        stage.after  # noqa: B018
    with pytest.raises(CompileError, match="no such lowering"):
        p.step()
    assert "failed" in repr(p)


def test_a_stage_that_is_interrupted_does_not_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    p = lowered()
    with monkeypatch.context() as patch:
        patch.setattr(fly_layout_lowering, "apply", interrupt)
        with pytest.raises(KeyboardInterrupt):
            p.run()
    with pytest.raises(CompileError, match="did not come to its end"):
        p.run()


def test_mlir_diagnostics_name_the_users_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verifier refuses what a pass left behind: a device function without its end."""

    def spoil(module: Any, arch: Any) -> None:
        gpu_module = next(op for op in module.regions[0].blocks[0].operations if op.operation.name == "gpu.module")
        function = gpu_module.regions[0].blocks[0].operations[0]
        body = function.regions[0].blocks[0].operations
        body[len(body) - 1].operation.erase()

    p = lowered()
    monkeypatch.setattr(fly_layout_lowering, "apply", spoil)
    with pytest.raises(CompileError, match="stage 3 fly-layout-lowering failed") as caught:
        p.run()
    assert caught.value.at.file == __file__


# --- the artifact ----------------------------------------------------------------------------------------------------


def test_the_artifact() -> None:
    p = lowered()
    k = p.artifact
    assert p.finished
    assert k is p.artifact
    assert "s_endpgm" in k.isa
    assert k.hsaco[:4] == b"\x7fELF"
    (kernel,) = k.kernels
    assert kernel.name == "double_kernel_0"
    assert kernel.resources.vgprs > 0
    assert kernel.resources.scratch_bytes == kernel.resources.vgpr_spills == 0
    assert kernel.occupancy.waves_per_simd > 0
    assert "double_kernel_0" in repr(k)
    A = torch.full((64,), 3.0)
    k(A)
    k(A=A)
    assert (A == 12).all()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((torch.ones(64, dtype=torch.float16),), ["A:", "f32", "f16"]),
        ((torch.ones(128)[::2],), ["A:", "(?):(1)", "?{i64}"]),
        ((torch.ones(64), 2), ["n:", "1", "2"]),
        ((), ["misses A"]),
        ((torch.ones(64), 1, 2), ["takes 2 arguments, got 3"]),
    ],
)
def test_the_artifact_says_what_differs(arguments: tuple[Any, ...], says: list[str]) -> None:
    with pytest.raises(ArgumentError) as caught:
        lowered().artifact(*arguments)
    assert all(part in str(caught.value) for part in says)


def test_print_ir(capsys: pytest.CaptureFixture[str]) -> None:
    k = lowered().artifact
    k.print_ir(compiled=False)
    assert "fly.memref.load" in capsys.readouterr().out
    k.print_ir()
    assert "gpu.binary" in capsys.readouterr().out


# --- environment -----------------------------------------------------------------------------------------------------


@pytest.fixture
def dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLYDSL_DUMP_DIR", str(tmp_path))
    return tmp_path / "double"


def test_dump_files(dumps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_DUMP_IR", "1")
    p = lowered().run()
    assert sorted(path.name for path in dumps.iterdir()) == DUMP_FILES
    for stage in p:
        assert (dumps / stage.file_name).read_text("utf-8") == stage.after
    assert (dumps / ISA).read_text("utf-8") == p.artifact.isa
    assert "define" in (dumps / LLVM_IR).read_text("utf-8")


def test_debug_info_adds_a_stage(dumps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_DUMP_IR", "true")
    monkeypatch.setenv("FLYDSL_DEBUG_ENABLE_DEBUG_INFO", "1")
    p = lowered().run()
    names = sorted(path.name for path in dumps.iterdir())
    scopes = f"{STAGE_COUNT:02d}_ensure_debug_info_scope_on_llvm_func.mlir"
    last = [
        f"{STAGE_COUNT + i}_{name}"
        for i, name in enumerate(["gpu_module_to_binary.mlir", "llvm_ir.ll", "final_isa.s"], 1)
    ]
    assert names[-4:] == [scopes, *last]
    assert b".debug_line" in p.artifact.hsaco


def test_a_failed_pipeline_dumps_what_there_is(dumps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise CompileError("no")

    monkeypatch.setenv("FLYDSL_DUMP_IR", "1")
    monkeypatch.setattr(fly_layout_lowering, "apply", fail)
    with pytest.raises(CompileError):
        lowered().run()
    assert sorted(path.name for path in dumps.iterdir()) == DUMP_FILES[:3]


def test_asm_dump(dumps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_DEBUG_DUMP_ASM", "1")
    lowered().run()
    assert [path.name for path in dumps.iterdir()] == [ISA]


def test_origin_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FLYDSL_DEBUG_PRINT_ORIGIN_IR", "1")
    p = lowered()
    assert capsys.readouterr().out.strip() == p.origin.strip()


def test_compile_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPILE_ONLY", "1")
    A = torch.ones(64)
    assert double(A) is None
    assert (A == 1).all()


def test_verifier_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_DEBUG_ENABLE_VERIFIER", "0")
    A = torch.ones(64)
    double.lower(A).artifact(A)
    assert (A == 2).all()


@pytest.mark.parametrize(
    ("name", "value"), [("FLYDSL_COMPILE_OPT_LEVEL", "4"), ("FLYDSL_DUMP_IR", "maybe"), ("COMPILE_ONLY", "2")]
)
def test_environment_with_nonsense(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    A = torch.ones(64)
    with pytest.raises(ArgumentError, match=name):
        double(A, 77)


# --- large modules ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_passes_of_a_large_module_run_in_a_child_and_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = lowered().run()
    parents: list[int] = []
    run = stages.PassManager.run

    def noted(manager: Any, module: Any) -> None:
        parents.append(os.getpid())
        run(manager, module)

    monkeypatch.setattr(pipeline_module, "LARGE_MODULE_OPS", 0)
    monkeypatch.setattr(stages.PassManager, "run", noted)
    found = lowered().run(until=18)
    assert parents == []
    found.run()
    assert [stage.after for stage in found] == [stage.after for stage in expected]
    A = torch.ones(64)
    double(A, 2)
    assert (A == 2).all()


def spoiled(passes: str) -> flyc.Pipeline:
    """A pipeline in front of a stage whose passes are replaced by others of MLIR's."""
    p = lowered()
    number = numbers_of(p, "canonicalize")[0]
    p.run(until=number - 1)
    p[number].spec = dataclasses.replace(p[number].spec, steps=(passes,))
    return p


def test_a_pass_that_fails_on_a_large_module_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says the same as on a small one: MLIR's diagnostic and the user's line."""
    failing = "gpu.module(convert-gpu-to-rocdl{chipset=gfx942})"  # which is too early for it
    errors = []
    for large in (10_000, 0):
        monkeypatch.setattr(pipeline_module, "LARGE_MODULE_OPS", large)
        with pytest.raises(CompileError, match=r"stage \d+ canonicalize failed: .*gpu\.func") as caught:
            spoiled(failing).step()
        errors.append(caught.value)
    small, large_one = errors
    assert small.at.file == __file__
    assert str(large_one) == str(small)


@pytest.mark.slow
@pytest.mark.parametrize("to_the_child_too", [False, True], ids=["as a notebook", "as a terminal"])
def test_an_interrupt_ends_a_long_pass(to_the_child_too: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """These passes take a minute. A notebook interrupts its kernel's process, a terminal those that it started too."""
    monkeypatch.setattr(pipeline_module, "LARGE_MODULE_OPS", 0)
    p = spoiled(",".join(["canonicalize"] * 100_000))
    status = isolate._status
    children: list[int] = []
    interrupted: list[float] = []

    def interrupt() -> None:
        interrupted.append(perf_counter())
        for pid in [*children, os.getpid()] if to_the_child_too else [os.getpid()]:
            os.kill(pid, signal.SIGINT)

    def status_interrupted(pid: int) -> int:
        children.append(pid)
        threading.Timer(0.3, interrupt).start()
        return status(pid)

    monkeypatch.setattr(isolate, "_status", status_interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"stage \d+ canonicalize"):
        p.step()
    assert perf_counter() - interrupted[0] < 10  # a few milliseconds where the machine is not loaded
    with pytest.raises(ChildProcessError):
        os.waitpid(children[0], os.WNOHANG)  # it has ended


def test_operations_by_name_with_their_types() -> None:
    pipeline = double.lower(torch.zeros(64))
    (load,) = pipeline.operations("memref.load")
    assert (load.name, load.result_types) == ("fly.memref.load", ("f32",))
    assert load.operand_types == ("!fly.memref<f32, global, (?):(1)>", "!fly.int_tuple<?>")
    assert load.text in [line.strip() for line in pipeline.origin.splitlines()]
    assert repr(load) == load.text
    assert pipeline.operations("no.such") == []


def test_operations_after_a_stage() -> None:
    pipeline = double.lower(torch.zeros(64))
    with pytest.raises(CompileError, match="has not run yet"):
        pipeline.operations("llvm.load", after="convert-fly-to-rocdl")
    pipeline.run(until="convert-fly-to-rocdl")
    assert not pipeline.operations("memref.load", after="convert-fly-to-rocdl")
    assert len(pipeline.operations("llvm.load", after="convert-fly-to-rocdl")) == 1
    with pytest.raises(ArgumentError, match="no stage"):
        pipeline.operations("llvm.load", after="no-such-stage")


def test_mnemonics_are_the_listings() -> None:
    artifact = double.lower(torch.zeros(64)).artifact
    assert artifact.mnemonics("global_") == ["global_load_dword", "global_store_dword"]
    assert artifact.mnemonics("global_store", "s_endpgm") == ["global_store_dword", "s_endpgm"]
    assert all(f"\t{name}" in artifact.isa for name in artifact.mnemonics())
    assert artifact.mnemonics("v_mfma") == []
