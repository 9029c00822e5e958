"""The command line tool."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from flydsl.compiler.fly_opt import main
from flydsl.passes import PASSES

MODULE = """\
func.func @f(%m: i32) -> i32 {
  %s = fly.make_int_tuple(%m) : (i32) -> !fly.int_tuple<(?,4)>
  %z = fly.size(%s) : (!fly.int_tuple<(?,4)>) -> !fly.int_tuple<? {div=4}>
  %r = fly.get_scalar(%z) : (!fly.int_tuple<? {div=4}>) -> i32
  return %r : i32
}
""".replace("? {", "?{")


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
        (["--convert-fly-to-rocdl"], MODULE, "fly.size is left over"),
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


def test_a_missing_file_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["/nowhere/at/all.mlir"]) == 1
    assert "/nowhere/at/all.mlir" in capsys.readouterr().err
