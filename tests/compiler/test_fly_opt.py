"""The command line tool."""

from __future__ import annotations

import copyreg
import io
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

import flydsl
from flydsl.arch import get_arch
from flydsl.compiler import fly_opt
from flydsl.compiler.fly_opt import main, run
from flydsl.errors import CompileError
from flydsl.passes import PASSES
from tests.kernels import examples

MODULE = """\
func.func @f(%m: i32) -> i32 {
  %s = fly.make_int_tuple(%m) : (i32) -> !fly.int_tuple<(?,4)>
  %z = fly.size(%s) : (!fly.int_tuple<(?,4)>) -> !fly.int_tuple<? {div=4}>
  %r = fly.get_scalar(%z) : (!fly.int_tuple<? {div=4}>) -> i32
  return %r : i32
}
""".replace("? {", "?{")


# A result that no LLVM type stands for.
LEFT_OVER = """\
func.func @f(%l: !fly.layout<32:1>) -> !fly.int_tuple<32> {
  %z = fly.size(%l) : (!fly.layout<32:1>) -> !fly.int_tuple<32>
  return %z : !fly.int_tuple<32>
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "input.mlir"
    path.write_text(MODULE)
    return path


def test_passes_run_in_the_order_given(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--fly-canonicalize", "--fly-layout-lowering", str(source)]) == 0
    lowered = capsys.readouterr().out
    assert "arith.muli" in lowered
    assert "fly." not in lowered
    assert main([str(source)]) == 0
    assert "fly.size" in capsys.readouterr().out


def test_pipelines_stdin_and_output_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(MODULE))
    output = tmp_path / "output.mlir"
    pipeline = "--pass-pipeline=builtin.module(fly-layout-lowering,func.func(canonicalize,cse))"
    assert main([pipeline, "--mlir-print-debuginfo", "-", "-o", str(output)]) == 0
    assert "arith.muli" in output.read_text()
    assert "loc(" in output.read_text()


def test_help_lists_the_passes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    for name in PASSES:
        assert f"--{name}" in text


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (["--fly-canonicalise"], MODULE, "'fly-canonicalise' is not a pass"),
        (["--arch=gfx1"], MODULE, "unknown architecture 'gfx1'"),
        ([], "func.func @f() { fly.nothing() }", "fly.nothing is not an operation"),
        (["--convert-fly-to-rocdl"], LEFT_OVER, "!fly.int_tuple<32> has no form that func.return could use"),
        (["--pass-pipeline=gpu.module("], MODULE, "is not a pass"),
    ],
)
def test_errors_go_to_stderr(
    arguments: list[str], text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "input.mlir"
    path.write_text(text)
    assert main([*arguments, str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "soon"])
def test_a_time_limit_is_a_time(limit: str, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([f"--time-limit={limit}", str(source)])
    assert f"'{limit}'" in capsys.readouterr().err


def test_a_missing_file_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["/nowhere/at/all.mlir"]) == 1
    assert "/nowhere/at/all.mlir" in capsys.readouterr().err


# The canonicalizer of MLIR 22 takes the poison for a constant of elements, and ends the process.
POISONED = """\
func.func @f() -> vector<4xf32> {
  %part = llvm.mlir.constant(dense<0.0> : vector<1xf32>) : vector<1xf32>
  %whole = llvm.mlir.poison : vector<4xf32>
  %r = vector.insert_strided_slice %part, %whole {offsets = [0], strides = [1]} : vector<1xf32> into vector<4xf32>
  return %r : vector<4xf32>
}
"""


def test_an_assertion_of_a_pass_is_an_error() -> None:
    with pytest.raises(CompileError, match=r"canonicalize: MLIR ended its process: .*incompatible type"):
        run(POISONED, ["canonicalize"])
    assert "llvm.mlir.poison" in run(POISONED, ["cse"])


def test_where_reading_ends_the_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLIR's assertions differ from release to release: here reading aborts at an operation that says so."""
    read = fly_opt.parse_module

    def abort(text: str) -> Any:
        if "abort" in text:
            os.write(2, b"python: Types.cpp:1: Type get(): Assertion `size > 0' failed.\n")
            os.abort()
        return read(text)

    monkeypatch.setattr(fly_opt, "parse_module", abort)
    with pytest.raises(CompileError) as caught:
        run(MODULE.replace("fly.size", "fly.abort"), [], name="made.mlir")
    assert caught.value.message == "reading the text: MLIR ended its process: size > 0"
    assert "made.mlir:3\n    %z = fly.abort" in str(caught.value)


@pytest.mark.parametrize(
    ("broken", "line", "caret", "why"),
    [
        (MODULE.replace("return %r", "return %q"), "return %q : i32", "%q", "undeclared"),
        (MODULE.replace("fly.size(%s", "fly.size(%t"), "%z = fly.size(%t)", "%t", "undeclared"),
        (MODULE.replace("fly.size", "fly.sise"), "%z = fly.sise(%s)", "fly.sise", "not an operation"),
        (MODULE.replace("div=4", "div=8"), "%z = fly.size(%s)", "fly.size", "not !fly.int_tuple"),
        (MODULE.replace("(?,4)>\n", "(?,4)\n"), "%s = fly.make_int_tuple", "(?,4)", "no closing"),
    ],
)
def test_the_place_in_the_text_is_shown(broken: str, line: str, caret: str, why: str) -> None:
    with pytest.raises(CompileError, match=why) as caught:
        run(broken, [], name="made.mlir")
    lines = str(caught.value).splitlines()
    shown = next(i for i, text in enumerate(lines) if text.strip().startswith(line))
    assert lines[shown][lines[shown + 1].index("^") :].startswith(caret)


def test_passes_tell_the_place_in_the_text() -> None:
    with pytest.raises(CompileError, match=r"has no form") as caught:
        run(LEFT_OVER, ["convert-fly-to-rocdl"], name="made.mlir")
    assert caught.value.at.file == "made.mlir"


@pytest.mark.parametrize(
    # On a loaded machine reading, which comes before a pass, takes longer than the shortest limit.
    ("step", "said", "limit_s"),
    [([], "reading the text", 0.05), pytest.param(["fly-canonicalize"], "fly-canonicalize", 3, marks=pytest.mark.slow)],
)
def test_a_step_that_does_not_end_is_ended(
    step: list[str], said: str, limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*_: Any) -> Any:
        while True:
            pass

    monkeypatch.setattr(*((fly_opt, "run_pass") if step else (fly_opt, "parse_module")), endless)
    with pytest.raises(CompileError, match=f"^{said}: it did not end within {limit_s} s"):
        run(MODULE, step, time_limit_s=limit_s)


def test_what_ends_in_time_is_not_disturbed_by_a_limit() -> None:
    assert run(MODULE, ["fly-layout-lowering"], time_limit_s=60) == run(MODULE, ["fly-layout-lowering"])


def test_ctrl_c_ends_the_command(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(fly_opt, "run_isolated", interrupted)
    assert main([str(source)]) == 130


@cache
def dumps() -> dict[str, str]:
    """The text of every stage of a tiled copy and of a product of tiles."""
    tiles = torch.zeros(64, 8), torch.zeros(64, 8), torch.zeros(64, 64)
    launches = examples.tiledCopy.lower(*torch.zeros(2, 24, 120)), examples.tiledMma.lower(*tiles)
    pipelines = [launch.artifact.pipeline for launch in launches]
    names = {stage.after: f"{p.name} {stage.name}" for p in pipelines for stage in p}  # each text once
    return {name: text for text, name in names.items()}


@pytest.mark.slow
def test_dumps_are_read_and_written_back() -> None:
    for name, text in dumps().items():
        assert run(text, []) == text.rstrip(), name
        run(text, ["cse", "canonicalize", "fly-canonicalize", "fly-promote-regmem-to-vectorssa"])


def test_a_file_in_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "parts.mlir"
    text = "func.func @f() { return }\n// -----\nfunc.func @f() {\n  %0 = fly.static : !fly.layout<4:1>\n  return }\n"
    file.write_text(text)
    assert main(["--fly-canonicalize", "--split-input-file", str(file)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("func.func @f()") == 2
    assert "\n// -----\n" in printed
    file.write_text(text.replace("fly.static ", "fly.statics "))
    assert main(["--split-input-file", str(file)]) == 1
    assert "parts.mlir:4" in capsys.readouterr().err


def test_operands_of_a_matrix_instruction_in_bytes() -> None:
    """FlyDSL's text has operands of 8-bit floats as vectors of i8."""
    atom = "!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x32, (f8E4M3FNUZ, f8E4M3FNUZ) -> f32>>"
    text = f"""
        func.func @f(%a: vector<8xi8>, %b: vector<8xi8>, %c: vector<4xf32>) -> vector<4xf32> {{
          %atom = fly.make_mma_atom : {atom}
          %d = fly.mma_atom_call_ssa(%atom, %a, %b, %c)
              : ({atom}, vector<8xi8>, vector<8xi8>, vector<4xf32>) -> vector<4xf32>
          return %d : vector<4xf32>
        }}"""
    lowered = run(text, ["convert-fly-to-rocdl"])
    assert lowered.count("llvm.bitcast") == 2
    assert "rocdl.mfma.f32.16x16x32.fp8.fp8" in lowered


def test_errors_come_back_where_errors_take_along_what_they_came_from() -> None:
    """As tblib has them, which Dask loads."""
    support = pytest.importorskip("tblib.pickling_support")
    before = dict(copyreg.dispatch_table)
    support.install()
    try:
        with pytest.raises(CompileError, match="undeclared"):
            run(MODULE.replace("return %r", "return %q"), [])
    finally:
        copyreg.dispatch_table.clear()
        copyreg.dispatch_table.update(before)


_MMA = "!fly_rocdl.{}<16x16x16, (bf16, bf16) -> f32{}>"
_SIGNS = ", signA = false, signB = false, clamp = false"


@pytest.mark.parametrize(
    ("instruction", "elements", "lowered"),
    [
        (_MMA.format("gfx120x.wmma", _SIGNS), 8, "rocdl.wmma.f32.16x16x16.bf16"),
        (_MMA.format("cdna3.mfma", ""), 4, "rocdl.mfma.f32.16x16x16bf16.1k"),
    ],
)
def test_the_architecture_is_one_that_has_the_instructions(instruction: str, elements: int, lowered: str) -> None:
    ab, c = f"vector<{elements}xbf16>", f"vector<{elements}xf32>"
    atom = f"!fly.mma_atom<{instruction}>"
    text = f"""
        func.func @multiply(%a: {ab}, %b: {ab}, %c: {c}) -> {c} {{
          %atom = fly.make_mma_atom : {atom}
          %d = fly.mma_atom_call_ssa(%atom, %a, %b, %c) : ({atom}, {ab}, {ab}, {c}) -> {c}
          return %d : {c}
        }}"""
    assert lowered in run(text, ["convert-fly-to-rocdl"])
    with pytest.raises(CompileError, match="gfx1100 has no"):
        run(text, ["convert-fly-to-rocdl"], get_arch("gfx1100"))


def test_the_target_of_a_module_is_its_architecture() -> None:
    ab, c, atom = "vector<4xbf16>", "vector<4xf32>", f"!fly.mma_atom<{_MMA.format('cdna3.mfma', '')}>"
    text = f"""
        gpu.module @kernels [#rocdl.target<chip = "gfx1100">] {{
          gpu.func @f(%a: {ab}, %c: {c}) kernel {{
            %atom = fly.make_mma_atom : {atom}
            %d = fly.mma_atom_call_ssa(%atom, %a, %a, %c) : ({atom}, {ab}, {ab}, {c}) -> {c}
            gpu.return
          }}
        }}"""
    with pytest.raises(CompileError, match="gfx1100 has no"):
        run(text, ["convert-fly-to-rocdl"])


def test_integers_below_a_byte_are_operands_of_a_matrix_instruction() -> None:
    atom = f"!fly.mma_atom<!fly_rocdl.gfx120x.wmma<16x16x32, (i4, i4) -> i32{_SIGNS}>>"
    text = run(f"""
func.func @f(%a: vector<16xi4>, %b: vector<16xi4>, %c: vector<8xi32>) -> vector<8xi32> {{
  %atom = fly.make_mma_atom : {atom}
  %d = fly.mma_atom_call_ssa(%atom, %a, %b, %c) : ({atom}, vector<16xi4>, vector<16xi4>, vector<8xi32>) -> vector<8xi32>
  return %d : vector<8xi32>
}}""", ["convert-fly-to-rocdl"])  # fmt: skip
    assert "llvm.bitcast %arg0 : vector<16xi4> to vector<2xi32>" in text
    assert "rocdl.wmma.i32.16x16x32.iu4" in text


def test_warnings_of_passes_name_their_place_in_the_text() -> None:
    text = """
        gpu.module @kernels {
          gpu.func @f(%out: !fly.ptr<f32, global>) kernel {
            %register = fly.make_ptr() {dictAttrs = {allocSize = 1 : i64}} : () -> !fly.ptr<f32, register>
            %value = fly.ptr.load(%register) : (!fly.ptr<f32, register>) -> f32
            fly.ptr.store(%value, %out) : (f32, !fly.ptr<f32, global>) -> ()
            gpu.return
          }
        }"""
    with flydsl.language("0.2.2"), pytest.warns(UserWarning, match="before anything wrote") as told:
        run(text, ["fly-promote-regmem-to-vectorssa"], name="mine.mlir")
    assert [(warning.filename, warning.lineno) for warning in told] == [("mine.mlir", 5)]


def test_coordinate_swizzles_are_read_as_they_are_written() -> None:
    text = """
func.func @f() -> !fly.composed_layout<(4,8):(8,1) o (0,0) o [CS<2,0,[0],1,[1]> o (0,0) o (4,8):(1E0,1E1)]> {
  %cs = fly.static : !fly.coord_swizzle<CS<2,0,[0],1,[1]>>
  %zero = fly.static : !fly.int_tuple<(0, 0)>
  %all = fly.static : !fly.layout<(4,8):(1E0,1E1)>
  %coordinates = fly.make_composed_layout(%cs, %zero, %all) : (!fly.coord_swizzle<CS<2,0,[0],1,[1]>>,
    !fly.int_tuple<(0,0)>, !fly.layout<(4,8):(1E0,1E1)>)
    -> !fly.composed_layout<CS<2,0,[0],1,[1]> o (0,0) o (4,8):(1E0,1E1)>
  %storage = fly.static : !fly.layout<(4,8):(8,1)>
  %whole = fly.make_composed_layout(%storage, %zero, %coordinates) : (!fly.layout<(4,8):(8,1)>, !fly.int_tuple<(0,0)>,
    !fly.composed_layout<CS<2,0,[0],1,[1]> o (0,0) o (4,8):(1E0,1E1)>)
    -> !fly.composed_layout<(4,8):(8,1) o (0,0) o [CS<2,0,[0],1,[1]> o (0,0) o (4,8):(1E0,1E1)]>
  return %whole : !fly.composed_layout<(4,8):(8,1) o (0,0) o [CS<2,0,[0],1,[1]> o (0,0) o (4,8):(1E0,1E1)]>
}"""
    again = run(text, [])
    assert "fly.static : !fly.coord_swizzle<CS<2,0,[0],1,[1]>>" in again
    assert run(again, []) == again
    assert "(4,8):(8,1) o (0,0) o [CS<2,0,[0],1,[1]> o (0,0) o (4,8):(1E0,1E1)]" in run(text, ["fly-canonicalize"])
