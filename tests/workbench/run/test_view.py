"""The run view: what was counted is what is shown, beside the right lines; the roofline; and the stepper behind it."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
import workbench
from flydsl.arch import get_arch
from flydsl.compiler.arguments.copies import on_cpu
from flydsl.errors import ArchError, ArgumentError
from flydsl.simulator import checking, counting, tracing
from flydsl.simulator.counters.roofline import NO_ESTIMATE
from kernels.preshuffle_gemm_v2 import preshuffle_gemm, shuffle
from tests.launchers import launcher_of
from tests.workbench.test_page import Reader
from tests.workbench.widgets import control, text
from workbench.display import VIEWS
from workbench.run import counted_lines, roofline
from workbench.run.counted_lines import hottest, isa_lines, linked_levels, source_lines
from workbench.run.counters import counters_html, counters_text
from workbench.run.measures import INSTRUCTIONS, LDS_CONFLICTS, MEASURES, limiting, nonzero_measures
from workbench.run.stepper_widget import Stepper
from workbench.run.view import run_html, run_text
from workbench.stages.linked_widget import LinkedCode

RUN = "launch(A, B, C, 128)"
STRIDE = 32  # of the columns in LDS: all lanes of a row are in one bank


@flyc.kernel
def columns_kernel(A: fx.Tensor, Out: fx.Tensor):
    tile = fx.make_view(fx.get_dyn_shared(fx.Float32), fx.make_layout(64 * STRIDE, 1))
    t = fx.thread_idx.x
    tile[t * STRIDE] = A[t]  # <img src=x>: sixty-four lanes in one bank
    fx.gpu.barrier()
    Out[t] = tile[(63 - t) * STRIDE]


columns = launcher_of(columns_kernel, grid=1, block=64, smem=4 * 64 * STRIDE)


@flyc.kernel
def half_kernel(A: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if fx.thread_idx.x < 16:
        A[i] = i * n


@flyc.jit
def half(A: fx.Tensor, n: fx.Int32):
    half_kernel(A, n).launch(grid=2, block=64)
    half_kernel(A, n).launch(grid=1, block=64)


def line_of(part: str) -> int:
    """The line of this file that has a text."""
    with open(__file__) as file:
        return next(number for number, line in enumerate(file, start=1) if part in line)


@pytest.fixture
def launch():
    return workbench.profile(columns, torch.arange(64.0), torch.zeros(64))


@pytest.fixture(scope="module")
def gemm():
    torch.manual_seed(0)
    A, B, C = torch.randn(256, 256).half(), torch.randn(256, 256).half(), torch.empty(256, 256, dtype=torch.float16)
    with counting() as counters, tracing(execute=True):
        preshuffle_gemm(A, shuffle(B), C)
    return counters.launches[0]


# --- which launches are counted --------------------------------------------------------------------------------------


def test_a_profiled_launch_has_run_and_is_counted(launch):
    assert torch.equal(launch.arguments[1], torch.arange(64.0).flip(0))
    (counters,) = launch.counters
    assert counters.kernel.startswith("columns_kernel")
    with counting() as session:
        columns(*launch.arguments)
    assert session.launches[0].totals == counters.totals


def test_the_first_launch_of_each_compilation_is_counted():
    A = torch.zeros(128, dtype=torch.int32)
    with flyc.capture_launches(counted=True) as launches:
        half(A, 1)
        half(A, 2)
    assert [len(launch.counters) for launch in launches] == [2, 0]
    assert [counters.grid for counters in launches[0].counters] == [(2, 1, 1), (1, 1, 1)]
    with flyc.capture_launches() as launches:
        half(A, 1)
    assert not launches[0].counters
    assert "was not" in run_text(launches[0])


def test_whoever_counts_around_it_gets_the_same():
    A = torch.zeros(128, dtype=torch.int32)
    with counting() as session:
        launch = workbench.profile(half, A, 1)
        half(A, 1)
    assert session.launches[:2] == launch.counters
    assert len(session.launches) == 4


def test_nothing_is_counted_under_checks():
    with checking():
        launch = workbench.profile(half, torch.zeros(128, dtype=torch.int32), 1)
    assert not launch.counters
    assert "under checking()" in run_html(launch)


def test_a_launch_on_a_gpu_says_that_it_is_not_counted(launch, read):
    on_gpu = SimpleNamespace(device=torch.device("cuda", 0), dtype=torch.float32, shape=(64,), untyped_storage=None)
    elsewhere = replace(launch, arguments=(on_gpu, launch.arguments[1]), counters=[])
    for shown in (read(run_html(elsewhere)).text, run_text(elsewhere)):
        assert "float32[64]" in shown
        assert "Not counted: it ran on cuda:0" in shown


def test_what_cannot_be_profiled():
    with pytest.raises(ArgumentError, match="a int cannot be launched"):
        workbench.profile(3)


# --- what is shown ---------------------------------------------------------------------------------------------------


def test_the_cell_shows_its_counters(notebook, read):
    (shown,) = notebook.run(f"%%flykernel --show run\n{RUN}").shown
    page = read(shown["text/html"]).text
    for text_ in (page, shown["text/plain"]):
        for expected in ("first elements now", "add_0") if text_ is page else ("C = float32[128]", "add_0"):
            assert expected in text_
        assert "us, bound by " in text_
        assert "1536 bytes in 24 lines of 64 bytes" in text_
    assert '# <script>alert("comment")</script>' in page


def test_a_launch_that_fails_is_not_counted(notebook, read):
    outcome = notebook.run("%%flykernel --show run\nlaunch(A[:100], B, C, 128)")
    assert outcome.error is not None
    (shown,) = outcome.shown
    assert "Not counted: the launch came to no end" in read(shown["text/html"]).text


def test_a_cell_sees_what_is_profiled_in_it(notebook, read):
    notebook.run("import workbench")
    (shown,) = notebook.run("%%flykernel --show run\n_ = workbench.profile(launch, A, B, C, 128)").shown
    assert "us, bound by " in read(shown["text/html"]).text


def test_they_draw_themselves(notebook, read):
    outcome = notebook.run(
        "from flydsl.simulator import counting\nimport workbench\n"
        f"with counting() as counters:\n    {RUN}\n"
        "display(counters, counters.launches[0], workbench.profile(launch, A, B, C, 128), counters.explore())"
    )
    assert outcome.error is None, outcome.text
    assert len(outcome.shown) == 4
    for shown in outcome.shown:
        assert "No caches, no latencies and no launch, so no estimate of the time" in read(shown["text/html"]).text
        assert shown["text/plain"]


def test_counts_stand_beside_their_line(launch, read):
    (counters,) = launch.counters
    page = read(counters_html(counters)).text
    written, read_ = line_of("tile[t * STRIDE] = A[t]"), line_of("Out[t] = tile[(63 - t) * STRIDE]")
    (row,) = re.findall(rf"^(.*) +{read_}  (.*)$", page, re.MULTILINE)
    assert row[0].split()[-1] == "100.0%"  # of the passes
    assert {"64", "62"} <= set(row[0].split())  # two phases of 32 lanes, and each lane waits for all before it
    assert row[1] == "    Out[t] = tile[(63 - t) * STRIDE]"
    (row,) = re.findall(rf"^(.*) +{written}  (.*)$", page, re.MULTILINE)
    assert row[0].split().count("?") == 2  # nobody has published how the LDS takes these
    assert row[1] == "    tile[t * STRIDE] = A[t]  # <img src=x>: sixty-four lanes in one bank"
    assert "62 of them (96.9%) for bank conflicts, at most 32 ways; of some accesses not known" in page
    assert "1 LDS accesses are left out of passes and conflicts" in page


def test_no_folder_is_named(launch):
    for value in (launch, launch.counters[0]):
        as_html, as_text = VIEWS[type(value)]
        for shown in (as_html(value), as_text(value)):
            assert "test_view.py" in shown
            assert "tests/workbench" not in shown


def test_every_count_of_the_launch_is_in_some_line(launch, gemm):
    for counters in (*launch.counters, gemm):
        lines = [line.counts for line in isa_lines(counters) if line.counts is not None]
        for measure in MEASURES:
            assert sum(map(measure.amount, lines)) == measure.amount(counters.totals)
        placed = [line for lines in source_lines(counters).values() for line in lines if line.counts is not None]
        assert len(placed) == len(counters.by_source_line)


def test_kernels_of_one_module_are_kept_apart():
    A = torch.zeros(128, dtype=torch.int32)
    for counters in workbench.profile(half, A, 3).counters:
        lines = isa_lines(counters)
        assert lines[-1].text in ("s_endpgm", "s_code_end", "s_nop 0")
        assert sum(line.text == "s_endpgm" for line in lines) == 1
        assert sum(line.counts.executions for line in lines if line.counts) == counters.totals.executions


def test_what_is_not_known_is_said(read):
    (counters, _) = workbench.profile(half, torch.zeros(128, dtype=torch.int32), 3).counters
    assert counters.totals.valu_unknown
    page = read(counters_html(counters)).text
    assert "Not known: " in page
    assert re.search(r"v_mul_lo_u32", page)
    (row,) = [line for line in page.splitlines() if "v_mul_lo_u32" in line and "isa:" in line][:1]
    assert "?" in row.split()
    unknown_arch = replace(counters, program=replace(counters.program, arch=get_arch("gfx1250")))
    page = read(counters_html(unknown_arch)).text
    assert "No roofline: the peak figures of gfx1250 are not known" in page
    assert limiting(unknown_arch) is INSTRUCTIONS


def test_lanes_that_do_nothing_are_seen(read):
    (counters, _) = workbench.profile(half, torch.zeros(128, dtype=torch.int32), 3).counters
    stores = [line for line in isa_lines(counters) if "global_store" in line.text]
    assert stores
    page = read(counters_html(counters)).text
    assert all("16.0" in row.split() for row in page.splitlines() if "global_store" in row)


def test_a_gemm_is_shown_quickly_and_small(gemm, read):
    times = []
    for _ in range(3):
        start = time.process_time()  # a loaded machine makes no difference
        shown = counters_html(gemm)
        times.append(time.process_time() - start)
    assert min(times) < 0.5
    assert len(shown) < 400_000
    page = read(shown).text
    share = gemm.totals.by_class["MFMA"] / gemm.totals.executions
    assert f"matrix instructions{share:.1%} of the instructions" in page
    assert "more; the exported page and .explore() show all" in page


def test_colours_are_read_by_everyone():
    def luminance(color: str) -> float:
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one: str, other: str) -> float:
        low, high = sorted((luminance(one), luminance(other)))
        return (high + 0.05) / (low + 0.05)

    assert contrast(roofline.TEXT, roofline.PAPER) > 4.5
    assert all(contrast(color, roofline.PAPER) > 4.5 for color in (roofline.LINE, roofline.POINT))
    assert all(contrast(counted_lines.BAR, page) > 3 for page in ("#ffffff", "#111111"))  # what is not text


# --- the roofline ----------------------------------------------------------------------------------------------------


def texts(svg: str) -> dict[str, tuple[float, float, float]]:
    """The texts of a picture: where each begins and ends, as wide as its letters are at the most, and its base line."""
    found = {}
    for label in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        says = label.text or ""
        x, y, width = float(label.get("x")), float(label.get("y")), 6.5 * len(says)
        left = x - {"end": width, "middle": width / 2}.get(label.get("text-anchor"), 0)
        found[says] = left, left + width, y
    return found


@pytest.mark.parametrize("rates", [[1.0e14, 1.01e14, 1.02e14, 9.9e13], [8e13, 1.3e15, 1.307e15], [5e15, 1e6, 2e6]])
def test_no_label_of_the_roofline_is_on_another(rates):
    roofs = tuple(roofline.Roof(f"v_mfma_{i} and 3 more: {rate:g}", rate) for i, rate in enumerate(rates))
    drawn = roofline.RooflinePicture("title", 5.3e12, "memory 5.3 TB/s", roofs, None, "It has no point here.")
    svg = roofline.roofline_svg(drawn)
    found = texts(svg)
    assert {roof.label for roof in roofs} | {"It has no point here."} <= set(found)
    for (left, right, y), (other_left, other_right, other_y) in combinations(found.values(), 2):
        assert abs(y - other_y) > 11 or left >= other_right or other_left >= right
    assert min(svg.index(roof.label) for roof in roofs) > svg.rindex('fill="none"')  # no line is drawn over them


def test_the_estimated_time_has_an_error_and_the_roofline_says_that_it_is_none(gemm, read):
    for shown in (read(counters_html(gemm)).text, counters_text(gemm)):
        assert f"stimated time: {gemm.estimate} (9 of 10 launches of its kind" in shown
        assert f" ± {gemm.trace.error_percent:.0f} %" in shown
        assert NO_ESTIMATE[1:] in shown
    untimed = replace(gemm, trace=None, untimed="it waits")
    assert "No estimate of the time: it waits." in read(counters_html(untimed)).text


def test_the_roofline_of_a_gemm(gemm):
    bounds, estimate = gemm.roofline(), gemm.estimate
    figure = workbench.roofline_figure(gemm)
    names = " ".join(trace.name for trace in figure.data)
    assert "v_mfma_f32_16x16x16_f16: 1307 TFLOP/s" in names  # the data sheet's figure for f16
    assert "v_fma_f32: 81.72 TFLOP/s" in names
    point = figure.data[-1]
    assert point.x[0] == pytest.approx(bounds.arithmetic_intensity)
    assert point.y[0] == pytest.approx(2 * 256**3 / (estimate.time_us * 1e-6))
    assert f"this launch, an estimate: {point.x[0]:.3g} operations per byte" in point.name
    assert estimate.error in point.name
    slowest, fastest = point.y[0] - point.error_y.arrayminus[0], point.y[0] + point.error_y.array[0]
    part = estimate.error_percent / 100
    assert (point.y[0] / slowest, point.y[0] / fastest) == pytest.approx((1 + part, 1 - part))
    drawn = replace(gemm, trace=None)
    assert "this launch at peak rates" in workbench.roofline_figure(drawn).data[-1].name
    assert point.y[0] < 2 * 256**3 / (bounds.time_us * 1e-6)
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")
    roofs = [trace for trace in figure.data if trace.mode == "lines"]
    assert all(trace.y[0] / trace.x[0] == pytest.approx(bounds.peaks.memory_bytes_per_second) for trace in roofs)
    (part,) = [trace for trace in roofs if trace.line.dash == "dash"]
    assert point.y[0] <= part.y[-1] * 1.0001  # four workgroups cannot use more


def test_vector_operations_are_the_point_where_there_is_no_matrix(launcher, tensors):
    (counters,) = workbench.profile(launcher, *tensors, 128).counters
    drawn = roofline.picture(counters)
    assert counters.totals.valu_operations in (128, 256)  # an addition, and a multiplication unless it is by 1
    assert drawn.point is not None
    assert drawn.point[0] == counters.totals.valu_operations / (64 * counters.totals.global_lines)


def test_a_launch_without_arithmetic_has_no_point(launch, read):
    (counters,) = launch.counters
    assert roofline.picture(counters).point is None
    assert "no floating-point" in workbench.roofline_figure(counters).layout.title.subtitle.text
    assert "no floating-point" in "".join(texts(roofline.roofline_svg(roofline.picture(counters))))


def test_unknown_peaks_have_no_figure(gemm):
    with pytest.raises(ArchError, match="the peak figures of gfx1250 are not known"):
        workbench.roofline_figure(replace(gemm, program=replace(gemm.program, arch=get_arch("gfx1250"))))


# --- live ------------------------------------------------------------------------------------------------------------


def linked(widget) -> LinkedCode:
    """The linked lines somewhere inside."""
    if isinstance(widget, LinkedCode):
        return widget
    found = (linked(child) for child in getattr(widget, "children", ()))
    return next((child for child in found if child is not None), None)


def stepper(widget) -> Stepper:
    if isinstance(widget, Stepper):
        return widget
    found = (stepper(child) for child in getattr(widget, "children", ()))
    return next((child for child in found if child is not None), None)


def test_the_hottest_come_first(gemm):
    isa = isa_lines(gemm)
    for measure in nonzero_measures(gemm):
        amounts = [measure.amount(line.counts) for line in hottest(isa, measure)]
        assert amounts
        assert amounts == sorted(amounts, reverse=True)
        source, ordered, first = linked_levels(gemm, measure)
        assert len(ordered.lines) == len(isa) + 1  # and the heads of the columns
        assert len(first.lines) == len(amounts) + 1
        assert source.language == "python"


def test_choosing_what_to_sort_by(launch, read):
    view = workbench.explore(launch.counters[0])
    before = linked(view)
    assert before.meta["levels"][-1]["name"] == f"ISA, most {limiting(launch.counters[0]).name} first"
    control(view, "Sort and compare by").value = LDS_CONFLICTS.name
    assert linked(view).meta["levels"][-1] == {"name": "ISA, most LDS conflicts first", "language": "isa", "size": 3}
    assert "all LDS conflicts" in text(view, read)


def test_the_measure_that_is_shown_is_the_one_that_is_chosen(launch, read):
    """A page shows the option that `index` names."""
    view = workbench.explore(launch.counters[0])
    measure = control(view, "Sort and compare by")
    assert measure.options[measure.index] == measure.label == "LDS passes"
    assert linked(view).meta["levels"][-1]["name"] == "ISA, most LDS passes first"
    measure.index = measure.options.index("instructions")  # as a page does
    assert linked(view).meta["levels"][-1]["name"] == "ISA, most instructions first"


def test_choosing_a_kernel_chooses_its_measure(read):
    view = workbench.explore(workbench.profile(half, torch.zeros(128, dtype=torch.int32), 3))
    for kernel in (1, 0):
        control(view, "Kernel").value = kernel
        measure = control(view, "Sort and compare by")
        assert measure.options[measure.index] == measure.value
        assert linked(view).meta["levels"][-1]["name"] == f"ISA, most {measure.value} first"


def test_choosing_a_kernel(read):
    view = workbench.explore(workbench.profile(half, torch.zeros(128, dtype=torch.int32), 3))
    assert "grid (2, 1, 1)" in text(view, read)
    control(view, "Kernel").value = 1
    assert "grid (2, 1, 1)" not in text(view, read)
    assert "grid (1, 1, 1)" in text(view, read)


def test_stepping_through_on_copies(launch, read):
    view = workbench.explore(launch)
    place = f"test_view.py:{line_of('tile[t * STRIDE] = A[t]')}"
    linked(view)._answer(None, {"chosen": linked(view).meta["origins"].index(place)}, [])
    launch.arguments[1].fill_(-1)
    control(view, "Step through it").click()
    steps = stepper(view)
    assert steps.line.value == place
    control(view, "Run to line").click()
    assert steps.simulation.instruction.location.line == line_of("tile[t * STRIDE] = A[t]")
    control(view, "Continue").click()
    assert steps.simulation.done
    assert launch.arguments[1].eq(-1).all()
    assert "everything has run" in text(view, read)


@pytest.mark.parametrize(
    ("workgroup", "message"),
    [("1, x", "is not a workgroup: write three numbers"), ("7,0,0", "no grid of this launch has")],
)
def test_a_workgroup_that_there_is_not(launch, read, workgroup, message):
    view = workbench.explore(launch)
    control(view, "Workgroup").value = workgroup
    control(view, "Step through it").click()
    assert message in text(view, read)
    assert stepper(view) is None


def test_copies_share_what_the_originals_share():
    base = torch.arange(24.0).reshape(4, 6)
    first, second, marked, number = on_cpu([base, base[1:, ::2], flyc.from_dlpack(base), 3])
    assert torch.equal(second, base[1:, ::2])
    assert second.stride() == base[1:, ::2].stride()
    assert number == 3
    first[1, 0] = -1
    assert second[0, 0] == -1
    assert marked.tensor[1, 0] == -1
    assert base[1, 0] == 6


# --- the page --------------------------------------------------------------------------------------------------------


def test_the_page_of_a_launch(launch, tmp_path):
    written = workbench.export(launch, tmp_path / "out.html").read_text("utf-8")
    found = Reader(written)
    assert "no estimate of the time" in found.text
    assert json.loads(found.parts["run-0-0"])["levels"][0]["name"] == "test_view.py"
    assert "&lt;img src=x&gt;" in "".join(json.loads(found.parts["run-0-0-0"])["lines"])
    assert "<img src=x>" not in written
