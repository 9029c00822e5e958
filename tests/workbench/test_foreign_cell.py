"""Cells in other languages, and code objects of other compilers, shown like our own."""

from __future__ import annotations

import pytest

HIP = """\
__global__ void scale(const float *x, float *y, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factor;
}
"""
OPENCL = """\
kernel void scale(global const float *x, global float *y, float factor, int n) {
  size_t i = get_global_id(0);
  if (i < n) y[i] = x[i] * factor;
}
"""
CALL = '--call "scaled.scale(A, C, 2, 128, grid=2, block=64)"'


@pytest.mark.parametrize(("language", "source"), [("hip", HIP), ("opencl", OPENCL)])
def test_a_cell_in_another_language_is_compiled_launched_and_counted(notebook, read, language, source) -> None:
    outcome = notebook.run(f"%%flykernel --language {language} --name scaled --show isa,occupancy,run {CALL}\n{source}")
    assert outcome.error is None
    (shown,) = outcome.shown
    for text in (read(shown["text/html"]).text, shown["text/plain"]):
        for expected in (
            "scale(x=float32[128], y=float32[128], factor=2, n=128), grid=2, block=64",
            "VGPR",
            "global_load_dword",
        ):
            assert expected in text
    assert "if (i < n) y[i] = x[i] * factor;" in read(shown["text/html"]).text
    assert notebook.run("assert torch.equal(C, 2 * A)").error is None


def test_a_launch_in_another_cell_is_shown(notebook) -> None:
    assert notebook.run(f"%%flykernel --language hip\n{HIP}").error is None
    outcome = notebook.run("%%flykernel --show run\nlast = module.scale(A, C, 2, 128, grid=2, block=64)")
    (shown,) = outcome.shown
    assert "instructions" in shown["text/plain"]
    assert "x = float32[128]" in shown["text/plain"]


def test_an_error_of_the_other_compiler_is_at_the_line_of_the_cell(notebook) -> None:
    outcome = notebook.run("%%flykernel --language hip\n__global__ void f(int *p) {\n  p[0] = nothing;\n}")
    assert "use of undeclared identifier 'nothing'" in outcome.text
    assert "cell" in outcome.text
    assert ":3\n" in outcome.text  # the magic is the first line
    assert "p[0] = nothing;" in outcome.text


def test_two_targets_of_a_source(notebook) -> None:
    outcome = notebook.run(f"%%flykernel --language hip --arch gfx942,gfx1201\n{HIP}")
    assert [("gfx942" in s["text/plain"], "gfx1201" in s["text/plain"]) for s in outcome.shown] == [
        (True, False),
        (False, True),
    ]


def test_a_code_object_is_opened_shown_launched_and_stepped_through(notebook, read, tmp_path) -> None:
    made = f"{HIP!r}, arch='gfx942'"
    assert notebook.run(f"from flydsl.binary import compile_hip; made = compile_hip({made})").error is None
    file = tmp_path / "scale.hsaco"
    notebook.shell.user_ns["file"] = file
    assert (
        notebook.run("file.write_bytes(made.hsaco); file.with_suffix('.s').write_text(made.code.listing)").error is None
    )
    outcome = notebook.run(
        f"%%flykernel --hsaco {file} --name opened --show isa,run\nopened.scale(A, C, 3.0, 128, grid=2, block=64)"
    )
    assert outcome.error is None
    assert "s_endpgm" in read(outcome.shown[-1]["text/html"]).text
    assert notebook.run("assert torch.equal(C, 3 * A)").error is None
    for cell in ("import workbench; display(workbench.open(file))", f"%flykernel --hsaco {file}"):
        assert "s_endpgm" in read(notebook.run(cell).shown[-1]["text/html"]).text
    stepping = "sim = opened.scale.simulate(A, C, 3.0, 128, grid=2, block=64); sim.step(); sim.run()"
    assert notebook.run(stepping).error is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--hsaco nowhere.hsaco", "No such file"),
        ("--language cuda", "invalid choice"),
        ("--call x", "without --language"),
        ("--hsaco x --language hip", "one of them"),
        ("--language hip --options '\"'", "quotes come in pairs"),
        ("--language hip --step", "launches of @flyc.jit functions"),
    ],
)
def test_wrong_options(notebook, line: str, says: str) -> None:
    assert says in notebook.run(f"%%flykernel {line}\n{HIP}").text


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("module.scael(A)", "there is no kernel 'scael' in this module"),
        ("module.scale(A, C, 2, 128, grid=2)", "the launch has no block="),
        ("module.scale(A, C, 2, 128, grid=2, blok=64)", "blok"),
        ("modul.scale(A)", "name 'modul' is not defined"),
    ],
)
def test_a_wrong_call_is_one_message(notebook, call: str, says: str) -> None:
    outcome = notebook.run(f'%%flykernel --language hip --show isa --call "{call}"\n{HIP}')
    assert says in outcome.text
    assert "Traceback" not in outcome.text
