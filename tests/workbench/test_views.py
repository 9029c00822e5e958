"""The views: complete, reproducible, safe to put on a page."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from html import unescape
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flydsl.arch import get_arch, occupancy
from flydsl.compiler import Stage
from flydsl.compiler.stages import StageSpec
from flydsl.errors import CompileError
from workbench import html
from workbench.display import VIEWS
from workbench.ir import Diff
from workbench.isa import Listing, isa_html
from workbench.occupancy import kernels_html, next_wave, occupancy_html
from workbench.pipeline import pipeline_html, stage_html

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>&amp;\"'"
texts = st.text(st.sampled_from("<>&\"'/ab\n ;:@+-\t"), max_size=60)


def shown(value: object) -> tuple[str, str]:
    as_html, as_text = VIEWS[type(value)]
    return as_html(value), as_text(value)


def everything(pipeline) -> list[object]:
    kernel = pipeline.artifact.kernels[0]
    return [
        pipeline,
        *pipeline,
        pipeline.artifact,
        pipeline.artifact.code,
        kernel,
        kernel.resources,
        kernel.occupancy,
    ]


def test_every_view_survives_the_sanitizer_and_escapes_the_source(pipeline, read):
    assert {type(value) for value in everything(pipeline)} == set(VIEWS)
    for value in everything(pipeline):
        as_html, as_text = shown(value)
        assert read(as_html).text.strip()
        assert as_text.strip()


def test_the_source_file_is_named_as_text_without_its_folder(pipeline, read):
    page = read(shown(pipeline.artifact)[0])
    # The file's name, of which the path keeps what follows the last slash.
    assert "; <script>alert(1)<&script>.py:8" in page.text
    for value in everything(pipeline):
        assert not [text for text in shown(value) if "/kernels0/" in text or "/tmp" in text]


def test_views_are_the_same_each_time(launcher, tensors):
    one, other = launcher.lower(*tensors, 128), launcher.lower(*tensors, 128)
    assert shown(one) == shown(other)
    for a, b in zip(everything(one)[1:], everything(other)[1:], strict=True):
        assert shown(a) == shown(b)


def test_an_extension_shows_values_but_leaves_containers_alone(notebook):
    notebook.run("p = launch.lower(A, B, C, 128); k = p.artifact.kernels[0]")
    kernel = notebook.shell.user_ns["k"]
    formats, _ = notebook.shell.display_formatter.format(kernel)
    assert formats["text/html"] == shown(kernel)[0]
    assert formats["text/plain"] == shown(kernel)[1]
    formats, _ = notebook.shell.display_formatter.format([kernel.occupancy])
    assert formats["text/plain"] == repr([kernel.occupancy])


# --- escaping --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [html.code, html.message, lambda text: Diff.between("", text).html()])
@given(text=texts)
def test_parts_show_any_text_as_it_is(part: Callable[[str], str], text: str, read):
    lines = read(part(text)).text
    assert [line for line in text.splitlines() if line not in lines] == []


@given(isa=texts)
def test_any_listing_is_shown_as_it_is(isa: str, read):
    page = read(isa_html(SimpleNamespace(isa=isa))).text
    assert [line for line in isa.splitlines() if line not in page] == []


def test_names_and_messages_are_escaped_everywhere(pipeline, read):
    kernel = pipeline.artifact.kernels[0]
    kernel = dataclasses.replace(kernel, info=kernel.info._replace(name=EVIL))
    assert EVIL in read(kernels_html([kernel])).text
    assert EVIL in read(shown(kernel)[0]).text
    failed = failing(pipeline, CompileError(EVIL, hint=EVIL))
    failed.name = EVIL
    assert read(pipeline_html(failed)).text.count(EVIL) >= 4  # pipeline, stage, message, hint
    assert read(stage_html(failed[2])).text.count(EVIL) >= 4
    assert EVIL not in pipeline_html(failed)


def failing(pipeline, error: CompileError):
    """The pipeline with a second stage that fails."""
    pipeline = type(pipeline)(pipeline.name, pipeline.traced, pipeline.arch, pipeline.keys, pipeline.signature)

    def fail(compilation) -> None:
        raise error

    pipeline.stages[1] = Stage(pipeline, 2, StageSpec(EVIL, "A", EVIL, (fail,)))
    with pytest.raises(CompileError):
        pipeline.run()
    return pipeline


# --- pipeline and IR -------------------------------------------------------------------------------------------------


def test_a_pipeline_shows_how_far_it_is(pipeline, read):
    assert "0 of 19 stages done" in read(pipeline_html(pipeline)).text
    pipeline.run(until="fly-layout-lowering")
    page = read(pipeline_html(pipeline))
    assert "3 of 19 stages done" in page.text
    stage = pipeline["fly-layout-lowering"]
    assert f"{stage.ops_before} → {stage.ops_after}" in page.text
    assert "What changed: 3 of 3 stages" in page.text


def test_looking_runs_nothing(pipeline):
    pipeline.step()
    for value in (pipeline, *pipeline):
        shown(value)
    assert pipeline.position == 1


def test_stages_that_changed_nothing_stand_back(pipeline):
    pipeline.run()
    unchanged = [stage for stage in pipeline if not stage.changed]
    table = pipeline_html(pipeline).split("</table>")[0]
    assert 0 < len(unchanged) < len(pipeline)
    assert table.count(f'<tr style="{html.FAINT}">') == len(unchanged) == table.count("no change")


def test_a_failed_stage_shows_its_message(pipeline, read):
    failed = failing(pipeline, CompileError("this went wrong"))
    for text in (read(pipeline_html(failed)).text, read(stage_html(failed[2])).text, VIEWS[Stage][1](failed[2])):
        assert "this went wrong" in text
    assert "<strong>failed</strong>" in pipeline_html(failed)


def test_a_stage_shows_what_its_diff_says(pipeline, read):
    pipeline.run()
    for stage in pipeline:
        changes = stage.diff.splitlines()[2:]
        page = read(stage_html(stage)).text
        short = [line for line in changes if len(line) < 1000]
        assert [line for line in short if line not in page] == []
        assert ("no change" in page) == (not changes)


@given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcd")))
def test_a_diff_counts_lines(before: list[str], after: list[str]):
    diff = Diff.between("\n".join(before), "\n".join(after))
    if before == after:
        assert diff.summary == "no change"
    else:
        added, removed = diff.summary.split()
        assert int(added) + int(removed) == len(after) - len(before)


def test_a_long_diff_is_cut_off_and_says_so(read):
    diff = Diff.between("", "\n".join(map(str, range(100))))
    assert "91 more lines" in read(diff.html(max_lines=10)).text
    assert "more lines" not in diff.html()


# --- ISA -------------------------------------------------------------------------------------------------------------


def test_a_listing_is_taken_apart_without_loss(pipeline):
    isa = pipeline.artifact.isa
    parts = Listing.of(isa)
    (kernel,) = pipeline.artifact.kernels
    assert list(parts.functions) == [kernel.name]
    assert sorted([*parts.functions[kernel.name], *parts.rest]) == sorted(isa.splitlines())
    assert parts.functions[kernel.name][0].startswith(f"{kernel.name}:")
    assert "\ts_endpgm" in parts.functions[kernel.name]
    assert not [line for line in parts.rest if "global_load" in line]


def test_a_listing_of_two_kernels(read):
    isa = "".join(
        f"\t.text\n\t.type\t{name},@function\n{name}:\n\ts_nop {i}\n\ts_endpgm\n\t.section\t.rodata\n\t.p2align\t6\n"
        for i, name in enumerate(("one", '"<b> two"'))
    )
    parts = Listing.of(isa)
    assert {name: lines[1] for name, lines in parts.functions.items()} == {"one": "\ts_nop 0", '"<b> two"': "\ts_nop 1"}
    assert 'ISA of "<b> two", 2 instructions' in read(isa_html(SimpleNamespace(isa=isa))).text


# --- resources and occupancy -----------------------------------------------------------------------------------------


def with_registers(kernel, arch: str, vgprs: int, agprs: int = 0):
    info = kernel.info._replace(vgprs=vgprs, agprs=agprs)
    return dataclasses.replace(kernel, arch=get_arch(arch), info=info)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@given(vgprs=st.integers(1, 256), agprs=st.integers(0, 256))
def test_the_advice_gives_one_more_wave_and_asks_for_no_less(launcher_kernel, arch, vgprs, agprs):
    kernel = with_registers(launcher_kernel, arch, vgprs, agprs)
    advice = next_wave(kernel)
    assert bool(advice) == (kernel.occupancy.limiter == "VGPR")
    if advice:
        waves, most = int(advice.split()[0]), int(advice.split("at most ")[1].split()[0])
        assert waves == kernel.occupancy.waves_per_simd + 1

        def waves_with(registers: int) -> int:
            used = {"vgprs": min(registers, 256) // 4 * 4, "agprs": max(registers - 256, 0) + min(registers, 256) % 4}
            return occupancy(kernel.arch, **used, workgroup_size=64).waves_per_simd

        assert waves_with(most) >= waves > waves_with(most + 1)


@pytest.fixture(scope="module")
def launcher_kernel(launcher):
    import torch

    return launcher.lower(torch.ones(128), torch.ones(128), torch.zeros(128), 128).artifact.kernels[0]


def test_what_limits_the_occupancy_is_marked(launcher_kernel, read):
    kernel = with_registers(launcher_kernel, "gfx942", 200)
    page = read(occupancy_html(kernel.occupancy)).text
    assert "2 of 8 waves per SIMD, limited by VGPR" in page
    assert "VGPR■■□□□□□□ 2 of 8◀ limits" in page
    assert "SGPR■■■■■■■■ 8 of 8" in page
    assert "3 waves per SIMD fit with at most 168 vector registers; 200 are allocated" in shown(kernel)[1]


def test_resources_name_every_amount(launcher_kernel):
    resources = dataclasses.replace(
        launcher_kernel.resources, vgprs=11, agprs=12, sgprs=13, lds_bytes=14, scratch_bytes=15, vgpr_spills=16
    )
    for text in shown(resources):
        plain = unescape(text)
        assert [amount for amount in ("11", "12", "13", "14 B", "15 B", "16") if amount not in plain] == []
