"""`%%flykernel`: what a cell shows, and what happens when something is wrong with it."""

from __future__ import annotations

import re

import pytest
from IPython.utils.capture import capture_output

from flydsl.arch import ARCHS
from flydsl.compiler import capture_launches
from flydsl.simulator.estimates import LEGEND
from tests.stages import STAGE_COUNT

RUN = "launch(A, B, C, 128)"


def test_a_launch_shows_stages_resources_and_isa(notebook, read):
    outcome = notebook.run(f"%%flykernel\n{RUN}\nresult = torch.equal(C, A + B)")
    assert outcome.error is None
    assert notebook.shell.user_ns["result"] is True
    (shown,) = outcome.shown
    for text in (read(shown["text/html"]).text, shown["text/plain"]):
        assert "launch(A=float32[128], B=float32[128], C=float32[128], n=128)" in text
        for expected in ("fly-layout-lowering", "gpu-module-to-binary", "VGPR", "8 of 8", "s_endpgm", "cell:8"):
            assert expected in text


def test_what_the_cell_prints_and_its_last_value_are_shown_too(notebook):
    outcome = notebook.run(f"%%flykernel\n{RUN}\nprint('printed')\n40 + 2")
    assert "printed" in outcome.text
    assert "42" in outcome.text


def test_launches_of_one_compilation_are_shown_once(notebook):
    outcome = notebook.run(f"%%flykernel\nfor _ in range(100):\n    {RUN}")
    (shown,) = outcome.shown
    assert "100 calls" in shown["text/html"]
    assert "100 calls" in shown["text/plain"]


def test_each_compilation_is_shown_in_order(notebook):
    outcome = notebook.run("%%flykernel\nfor scale in (3, 2, 3):\n    launch(A, B, C, 128, scale)")
    first, second = (shown["text/plain"] for shown in outcome.shown)
    assert "scale=3)" in first
    assert "2 calls" in first
    assert "scale=2)" in second
    assert "1 call)" in second


def test_launches_inside_functions_are_captured(notebook):
    notebook.run(f"def work():\n    {RUN}")
    assert len(notebook.run("%%flykernel\nwork()").shown) == 1


def test_launches_outside_of_the_cell_are_not(notebook):
    notebook.run(RUN)
    outcome = notebook.run("%%flykernel\nx = 1")
    assert outcome.error is None
    assert not outcome.shown
    assert "launched nothing" in outcome.text


@pytest.mark.parametrize("cell", ["launcher = launch", "# only a comment", "", "%time 1"])
def test_the_magic_never_shows_nothing(notebook, cell):
    outcome = notebook.run(f"%%flykernel\n{cell}")
    assert "%%flykernel" in outcome.text


def test_help_without_a_cell(notebook):
    assert "--arch" in notebook.run("%flykernel --help").text


def test_a_line_is_no_cell(notebook):
    assert "begin the cell with %%flykernel" in str(notebook.run(f"%flykernel {RUN}").error)


def test_help_runs_nothing(notebook):
    outcome = notebook.run(f"%%flykernel --help\n{RUN}\nran = True")
    assert outcome.error is None
    assert "--arch" in outcome.text
    assert "ran" not in notebook.shell.user_ns
    assert notebook.shell.find_cell_magic("flykernel").__doc__.strip() == outcome.text.strip()


def test_values_that_the_cell_passes_are_shown_as_text(notebook, read):
    notebook.run(
        "@flyc.jit\ndef named(A: fx.Tensor, label: fx.Constexpr[str], T: fx.Constexpr[type]):\n"
        "    add(A, A, A, 1).launch(grid=1, block=64)"
    )
    (shown,) = notebook.run("%%flykernel\nnamed(A, '<script>1</script>', fx.Float32)").shown
    for text in (read(shown["text/html"]).text, shown["text/plain"]):
        assert "named(A=float32[128], label='<script>1</script>', T=Float32)" in text
    assert "<script" not in shown["text/html"]


# --- another target --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", [arch.name for arch in ARCHS])
@pytest.mark.diagonal(3)
def test_compiling_for_another_target(notebook, arch, read):
    outcome = notebook.run(f"%%flykernel --arch {arch}\n{RUN}\nresult = torch.equal(C, A + B)")
    assert outcome.error is None, outcome.text
    assert notebook.shell.user_ns["result"] is True
    (shown,) = outcome.shown
    page = read(shown["text/html"]).text
    assert f'.amdgcn_target "amdgcn-amd-amdhsa--{arch}"' in page
    assert f"Pipeline launch for {arch}" in shown["text/plain"]


def test_the_target_may_come_from_a_variable(notebook):
    notebook.run("target = 'gfx950'")
    (shown,) = notebook.run(f"%%flykernel --arch {{target}}\n{RUN}").shown
    assert "for gfx950, compiled only; the cell launched it for gfx942" in shown["text/plain"]


def test_a_target_that_the_launch_does_not_fit(notebook, monkeypatch):
    monkeypatch.setenv("ARCH", "gfx950")
    monkeypatch.setenv("COMPILE_ONLY", "1")
    notebook.run(
        "@flyc.jit\ndef big(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):\n"
        "    add(A, B, C, 1).launch(grid=1, block=64, smem=100 * 1024)"
    )
    assert notebook.run("%%flykernel\nbig(A, B, C)").error is None
    outcome = notebook.run("%%flykernel --arch gfx942\nbig(A, B, C)")
    (shown,) = outcome.shown
    assert type(outcome.error).__name__ == "LaunchError"
    for text in (shown["text/html"], shown["text/plain"], outcome.text):
        assert "36864 bytes more than the 65536" in text


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--arch gfx1", "unknown architecture 'gfx1'"),
        ("--arch ''", "a target is missing"),
        ("--arch gfx924", "did you mean gfx942?"),
        ("--lve", "did you mean --live?"),
        ("--show ISA", "did you mean isa?"),
        ("--stage canonicalise", "did you mean canonicalize?"),
        ("--stage canonicalize", "take its number: 5 or 9"),
        ("--step 99", "the stages are 1 to 19"),
        ("--name class", "class: not a name"),
        ("--arch", "expected one argument"),
        ("--ar gfx950", "unrecognized arguments"),
        ("gfx950", "unrecognized arguments: gfx950"),
        ("--arch 'gfx950", "No closing quotation"),
        ("--arch gfx942,gfx950,gfx942", "a target twice"),
        ("--arch gfx942,", "a target is missing"),
        ("--show pipeline,everything", "no section 'everything'"),
        ("--show timeline", "did you mean trace?"),
        ("--name 1x", "1x: not a name"),
    ],
)
def test_bad_options_are_told_before_the_cell_runs(notebook, options, message):
    outcome = notebook.run(f"%%flykernel {options}\nran = True")
    assert type(outcome.error).__name__ in {"ArchError", "ArgumentError"}
    assert message in outcome.text
    assert "hint:" in outcome.text
    assert f"  at cell:1\n    %%flykernel {options}\n    ^^^^" in outcome.text
    assert "Traceback" not in outcome.text
    assert "ran" not in notebook.shell.user_ns


def test_an_exception_after_a_launch(notebook):
    outcome = notebook.run(f"%%flykernel\n{RUN}\nx = 5\nx / 0\nafter = True")
    assert len(outcome.shown) == 1
    assert type(outcome.error).__name__ == "ZeroDivisionError"
    assert "----> 4 x / 0" in outcome.text
    assert outcome.text.count("division by zero") == 1
    assert "workbench" not in outcome.text
    assert "after" not in notebook.shell.user_ns


def test_an_exception_in_a_function_of_the_cell(notebook):
    outcome = notebook.run(f"%%flykernel\ndef f():\n    {RUN}\n    raise KeyError('k')\nf()")
    assert len(outcome.shown) == 1
    assert "----> 4     raise KeyError('k')" in outcome.text
    assert "----> 5 f()" in outcome.text


@pytest.mark.parametrize("bad", ["x = = 5", "if True:", "  indented = 1", "f("])
def test_a_syntax_error_is_shown_at_its_line(notebook, bad):
    plain = notebook.run(f"x = 1\n{RUN}\n{bad}")
    outcome = notebook.run(f"%%flykernel\n{RUN}\n{bad}")
    assert type(outcome.error).__name__ == type(plain.error).__name__
    assert re.findall(r"line \d+", outcome.text) == re.findall(r"line \d+", plain.text) != []
    assert not outcome.shown


def test_an_error_of_the_compiler_is_shown_at_its_line(notebook):
    outcome = notebook.run(f"%%flykernel\n{RUN}\nlaunch(A)")
    assert len(outcome.shown) == 1
    assert "ArgumentError: launch misses B, C, n" in outcome.text
    assert "at cell:3\n    launch(A)\n" in outcome.text
    assert "Traceback" not in outcome.text


def test_an_error_of_the_simulator_is_shown_after_its_launch(notebook):
    outcome = notebook.run("%%flykernel\nlaunch(A[:100], B, C, 128)")
    assert len(outcome.shown) == 1
    assert "outside of A (float32[100], 400 bytes)" in outcome.text
    assert "at cell:8" in outcome.text


def test_a_kernel_defined_in_the_cell_counts_its_lines_with_the_magic(notebook):
    outcome = notebook.run(
        "%%flykernel\n\n@flyc.kernel\ndef k(A: fx.Tensor):\n    A[fx.thread_idx.x + 100] = fx.Float32(1)\n\n"
        "@flyc.jit\ndef go(A: fx.Tensor):\n    k(A).launch(grid=1, block=64)\n\ngo(A)"
    )
    assert "at cell:5\n    A[fx.thread_idx.x + 100]" in outcome.text


@pytest.mark.parametrize("stored", [True, False], ids=["in the history", "not in the history"])
def test_a_traceback_names_its_cell(notebook, stored):
    shell = notebook.shell
    count = shell.execution_count
    for cell, place in [("%%flykernel\ndef f():\n    1 / 0\nf()", "line 4"), ("f()", "line 1")]:
        with capture_output() as captured:
            shell.run_cell(cell, store_history=stored)
        assert f"Cell In[{count}], {place}" in re.sub(r"\x1b\[[0-9;]*m", "", captured.stdout)
        count += stored
        assert shell.execution_count == count


def test_await_is_refused(notebook):
    outcome = notebook.run("%%flykernel\nimport asyncio\nawait asyncio.sleep(0)")
    assert "await" in outcome.text
    assert type(outcome.error).__name__ == "ArgumentError"


def test_an_unknown_magic_in_the_cell(notebook):
    outcome = notebook.run(f"%%flykernel\n{RUN}\n%nosuchmagic")
    assert len(outcome.shown) == 1
    assert "nosuchmagic" in outcome.text
    assert outcome.error is not None


def test_errors_of_other_cells_are_shown_as_ever(notebook):
    notebook.run("%%flykernel\n1 / 0")
    assert "----> 1 undefined" in notebook.run("undefined").text


def test_the_debugger_finds_the_frame_that_failed(notebook):
    outcome = notebook.run("%%flykernel\ndef f(inside):\n    return 1 / inside\nf(0)")
    traceback = outcome.error.__traceback__
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    assert traceback.tb_frame.f_locals == {"inside": 0}


# --- what to show ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["", " --live"])
@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ("pipeline", "fly-layout-lowering"),
        ("isa", "global_store_dword"),
        ("occupancy", "steps (amount up to: waves)"),
        ("layout", "Layouts"),
        ("run", "first elements now"),
    ],
)
def test_sections_are_shown_as_asked_for(notebook, read, sections, expected, form):
    others = {
        "pipeline": "structured control flow",
        "isa": "registers in use",
        "occupancy": "vector registers per lane",
    }
    (shown,) = notebook.run(f"%%flykernel --show {sections}{form}\n{RUN}").shown
    page = read(shown["text/html"]).text
    assert expected in page
    assert [text for name, text in others.items() if name != sections and text in page] == []


@pytest.mark.parametrize("magic", [f"%%flykernel{{}}\n{RUN}", "%flydiff p q{}"])
def test_widgets_are_asked_for(notebook, read, magic):
    widget = "application/vnd.jupyter.widget-view+json"
    notebook.run("p, q = (launch.lower(A, B, C, 128, scale).run() for scale in (2, 3))")
    assert widget in notebook.run(magic.format(" --live")).shown[0]
    for form in ("", " --static"):
        (shown,) = notebook.run(magic.format(form)).shown
        assert widget not in shown
        hint = read(shown["text/html"]).text[-60:]
        assert "--live" in hint
    assert "not allowed with" in notebook.run(magic.format(" --live --static")).text


def test_a_live_comparison_begins_with_the_stage_of_ones_choice(notebook):
    notebook.run("p, q = (launch.lower(A, B, C, 128).run(until=5) for _ in range(2))")
    (shown,) = notebook.run("%flydiff p q --stage fly-layout-lowering --live").shown
    assert "application/vnd.jupyter.widget-view+json" in shown
    outcome = notebook.run(
        "import workbench\nw = workbench.explore(workbench.compare(p, q), stage='fly-layout-lowering')"
    )
    assert notebook.shell.user_ns["w"]._stage.value == "3 fly-layout-lowering", outcome.text
    assert "stage 8 convert-fly-to-rocdl has not run in both" in notebook.run("%flydiff p q --stage 8 --live").text


def test_texts_have_no_live_comparison(notebook):
    outcome = notebook.run("%flydiff 'str(1)' 'str(2)' --live")
    assert "a TextComparison has no live view" in outcome.text
    assert not outcome.shown


def test_a_run_shows_the_results(notebook, read):
    (shown,) = notebook.run(f"%%flykernel --show run\nA[:], B[:] = 1, 2\n{RUN}").shown
    assert "Cfloat32[128]3, 3, 3, 3, 3, 3, 3, 3, …" in read(shown["text/html"]).text


@pytest.mark.parametrize("stage", ["fly-layout-lowering", "3", "03_fly_layout_lowering"])
def test_one_stage_on_its_own(notebook, read, stage):
    (shown,) = notebook.run(f"%%flykernel --stage {stage} --show run\n{RUN}").shown
    assert "3 fly-layout-lowering: layout algebra to integer arithmetic" in read(shown["text/html"]).text


def test_layouts_of_the_kernel_are_drawn(notebook, read):
    notebook.run(
        "@flyc.kernel\ndef tiles(A: fx.Tensor):\n"
        "    t = fx.logical_divide(A, fx.make_layout((4, 2), (2, 1)))\n    fx.slice(t, (None, fx.thread_idx.x))\n"
        "@flyc.jit\ndef run_tiles(A: fx.Tensor):\n    tiles(A).launch(grid=1, block=1)"
    )
    (shown,) = notebook.run("%%flykernel --show layout\nrun_tiles(A)").shown
    assert "(4,2):(2,1) cell:3" in read(shown["text/html"]).text


# --- two targets -----------------------------------------------------------------------------------------------------


def test_two_targets_are_compared(notebook, read):
    outcome = notebook.run(f"%%flykernel --arch gfx942,gfx90a\n{RUN}")
    assert outcome.error is None, outcome.text
    comparison, one, other = (read(shown["text/html"]).text for shown in outcome.shown)
    assert "launch for gfx942 → launch for gfx90a" in comparison
    assert "for gfx942 (1 call)" in one
    assert "for gfx90a, compiled only" in other


@pytest.mark.slow
def test_several_targets_are_run_and_shown_side_by_side(notebook, read):
    outcome = notebook.run(f"%%flykernel --arch gfx942,gfx950,gfx1201,gfx1250,gfx1100 --show run\n{RUN}")
    assert outcome.error is None, outcome.text
    table, *reports = (read(shown["text/html"]).text for shown in outcome.shown)
    text = outcome.shown[0]["text/plain"]
    rows = [line.split() for line in text.splitlines() if line.startswith("gfx")]
    assert [row[0] for row in rows[:5]] == ["gfx942", "gfx950", "gfx1201", "gfx1250", "gfx1100"]
    assert [row[2] for row in rows[:5]] == ["64", "64", "32", "32", "32"]
    assert all(" us ± " in line for line in text.splitlines() if line.startswith(("gfx9", "gfx1201")))
    assert LEGEND in text
    assert "Radeon RX 9070 XT" in reports[2]
    assert "run on copies of the arguments" in reports[2]
    assert "the peak figures of gfx1250 are not known" in reports[3]
    assert "Radeon RX 7900 XTX" in reports[4]
    assert "waves per SIMD" in table


@pytest.mark.parametrize(("arch", "is_counted"), [("gfx950", False), ("gfx942,gfx950", True)])
def test_the_launch_of_the_cell_is_counted_if_it_is_shown(notebook, arch, is_counted):
    with capture_launches() as launches:
        outcome = notebook.run(f"%%flykernel --arch {arch} --show run\n{RUN}")
    assert outcome.error is None, outcome.text
    assert bool(launches[0].counters) is is_counted
    assert "gfx950, run on copies of the arguments" in outcome.shown[-1]["text/plain"]
    assert "wave-instructions" in outcome.shown[-1]["text/html"]


def test_another_target_is_timed(notebook):
    (shown,) = notebook.run(f"%%flykernel --arch gfx950 --show trace\n{RUN}").shown
    assert "add_0 on gfx950: " in shown["text/plain"]
    assert "on gfx942: " not in shown["text/plain"]


# --- stopping before a stage, and names ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "done"),
    [("--step", 0), ("--step fly-layout-lowering", 2), ("--stage 5 --step", 4), ("--step 1", 0), ("--step=5", 4)],
)
def test_stopping_before_a_stage(notebook, options, done):
    outcome = notebook.run(f"%%flykernel {options} --name p\n{RUN}")
    assert outcome.error is None, outcome.text
    assert notebook.shell.user_ns["p"].position == done
    assert f"{done} of {STAGE_COUNT} stages done" in outcome.shown[0]["text/plain"]
    assert not notebook.shell.user_ns["C"].any()  # nothing ran
    notebook.run("p.step(); k = p.artifact; k(A, B, C, 128)")
    assert notebook.shell.user_ns["p"].finished
    assert notebook.shell.user_ns["C"].any()


@pytest.mark.parametrize(("options", "done"), [("--step", 0), ("--step 5", 4)])
def test_stopping_before_a_stage_for_another_target(notebook, options, done):
    outcome = notebook.run(f"%%flykernel {options} --arch gfx950 --name p\n{RUN}")
    assert outcome.error is None, outcome.text
    pipeline = notebook.shell.user_ns["p"]
    assert (pipeline.arch.name, pipeline.position) == ("gfx950", done)


def test_the_pipeline_gets_a_name(notebook):
    notebook.run(f"%%flykernel --name mine\n{RUN}")
    assert notebook.shell.user_ns["mine"].finished
    notebook.run(f"%%flykernel --name both --arch gfx942,gfx950\n{RUN}")
    assert [p.arch.name for p in notebook.shell.user_ns["both"]] == ["gfx942", "gfx950"]


# --- a compilation that fails ----------------------------------------------------------------------------------------


@pytest.fixture
def broken(monkeypatch):
    """A stage that fails."""
    from flydsl.errors import CompileError
    from flydsl.passes import fly_layout_lowering

    def fail(module, arch):
        raise CompileError("this went wrong", hint="mend it")

    monkeypatch.setattr(fly_layout_lowering, "apply", fail)


@pytest.mark.parametrize("options", ["", "--live", "--arch gfx950", "--show isa --live", "--step convert-fly-to-rocdl"])
def test_a_failed_compilation_shows_how_far_it_came(notebook, read, broken, options):
    outcome = notebook.run(f"%%flykernel {options}\n{RUN}\nafter = True")
    assert type(outcome.error).__name__ == "CompileError"
    (shown,) = outcome.shown
    page = read(shown["text/html"]).text
    for text in (page, shown["text/plain"]):
        assert f"2 of {STAGE_COUNT} stages done" in text
        assert "stage 3 fly-layout-lowering: this went wrong" in text
    assert "The input of 3 fly-layout-lowering" in page
    assert "fly.get_layout" in page or "fly.make_view" in page
    assert "this went wrong" in outcome.text


@pytest.mark.parametrize(
    "cell",
    [RUN, f"%%flykernel\n{RUN}", "%flydiff 'launch.lower(A, B, C, 128).run()' 1"],
    ids=["a call", "%%flykernel", "%flydiff"],
)
def test_an_interrupted_compilation_says_so_in_a_few_lines(notebook, monkeypatch, cell):
    from flydsl.passes import fly_layout_lowering

    def interrupt(module, arch):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fly_layout_lowering, "apply", interrupt)
        outcome = notebook.run(cell)
    assert type(outcome.error).__name__ == "KeyboardInterrupt"
    assert "launch: in stage 3 fly-layout-lowering" in outcome.text
    assert len(outcome.text.strip().splitlines()) < 25
    assert notebook.run(RUN).error is None


# --- %flydiff --------------------------------------------------------------------------------------------------------


def test_flydiff_of_pipelines_and_stages(notebook, read):
    notebook.run("p, q = (launch.lower(A, B, C, 128, scale).run() for scale in (2, 3))")
    (shown,) = notebook.run("%flydiff p q").shown
    assert "launch(scale=2) for gfx942 → launch(scale=3) for gfx942" in read(shown["text/html"]).text
    for line in ("%flydiff p q --stage 3", "%flydiff p[3] q[3]", "%flydiff 'p[\"fly-layout-lowering\"]' q[3]"):
        (shown,) = notebook.run(line).shown
        assert "after 3 fly-layout-lowering" in shown["text/plain"]
        assert "3.000000e+00 : f32" in shown["text/plain"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("p", "compares two things"),
        ("1 2", "cannot be compared"),
        ("p q r", "unrecognized arguments: r"),
        ("p q --stage nowhere", "no stage is called 'nowhere'"),
        ("'p q", "No closing quotation"),
        ("p nowhere", "NameError: name 'nowhere' is not defined"),
        ("p['cse'] q[3]", "in quotes if it has quotes"),
        ("p q --sage 3", "did you mean --stage?"),
    ],
)
def test_flydiff_of_nothing_that_can_be(notebook, line, message):
    notebook.run("p, q = launch.lower(A, B, C, 128), launch.lower(A, B, C, 128)")
    outcome = notebook.run(f"%flydiff {line}")
    assert message in outcome.text
    assert "Traceback" not in outcome.text


def test_flydiff_of_a_name_that_is_not_there(notebook):
    assert "nowhere" in notebook.run("%flydiff nowhere nowhere").text


def test_flydiff_has_help(notebook):
    assert "--stage" in notebook.run("%flydiff --help").text


def test_the_comparison_of_two_targets_is_live_too(notebook):
    shown = notebook.run("%%flykernel --arch gfx942,gfx950 --live\nlaunch(A, B, C, 128)").shown
    widgets = [formats for formats in shown if "application/vnd.jupyter.widget-view+json" in formats]
    assert len(widgets) == len(shown) == 3
    assert "gfx942" in shown[0]["text/html"]
    assert "gfx950" in shown[0]["text/html"]


ON_CUDA = "from kernels.vector_add import vector_add\nx = torch.ones(4096, device='cuda')\nvector_add(x, x, x.clone())"


def test_a_gpu_poses(notebook):
    run = "import torch\nx = torch.ones(3, device='cuda')\nprint(x.device, torch.cuda.get_device_name())"
    try:
        assert "AMD Instinct MI355X (gfx950), on the simulator" in notebook.run("%gpu mi355x").text
        assert "cuda:0 AMD Instinct MI355X" in notebook.run(run).text
        assert "cuda:0 AMD Radeon RX 9070 XT" in notebook.run(f"%gpu RX 9070 XT 2\n{run}").text
        assert "no GPU is called 'mi35'" in notebook.run("%gpu mi35").text
        notebook.run("%gpu mi355x")
        launched = notebook.run(f"%%flykernel --show isa,trace\n{ON_CUDA}")
        assert any("global_load" in str(shown) and "gfx950" in str(shown) for shown in launched.shown)
    finally:
        assert "no GPU is posed" in notebook.run("%gpu off").text


def test_a_cell_whose_launches_are_interpreted(notebook):
    outcome = notebook.run(f"%%flykernel --interpret\nC.zero_()\n{RUN}\nresult = torch.equal(C, A + B)")
    assert outcome.error is None
    assert notebook.shell.user_ns["result"] is True
    assert not outcome.shown
    assert "omit one of them" in notebook.run(f"%%flykernel --interpret --arch gfx950\n{RUN}").text
