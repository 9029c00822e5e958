"""The resources and occupancy views."""

from __future__ import annotations

import base64
import dataclasses
import re
from html import unescape
from xml.etree import ElementTree

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.arch import ARCHS, Arch, Usage, get_arch
from flydsl.arch.occupancy import RESOURCES
from flydsl.codegen import compile_llvm_ir
from kernels.vector_add import vector_add
from workbench.display import VIEWS
from workbench.resources.limits import curve, next_steps
from workbench.resources.occupancy import next_wave, occupancy_html, usage_html
from workbench.resources.occupancy_curves import occupancy_figure, occupancy_image

ARCH_NAMES = [arch.name for arch in ARCHS]


def shown(value: object) -> tuple[str, str]:
    as_html, as_text = VIEWS[type(value)]
    return as_html(value), as_text(value)


@st.composite
def usages(draw) -> Usage:
    arch: Arch = draw(st.sampled_from(ARCHS))
    return Usage(
        arch,
        vgprs=draw(st.integers(1, arch.addressable_vgprs)),
        agprs=draw(st.integers(0, arch.addressable_vgprs)) if arch.unified_agprs else 0,
        sgprs=draw(st.integers(0, 108)),
        lds_bytes=draw(st.integers(0, arch.lds_bytes_per_workgroup)),
        workgroup_size=draw(st.integers(1, 1024)),
        wave_size=draw(st.sampled_from(sorted(arch.vgpr_files))),
    )


@given(usages())
@example(Usage(get_arch("gfx1201"), vgprs=253, agprs=0, sgprs=0, lds_bytes=0, workgroup_size=1, wave_size=64))
@example(Usage(get_arch("gfx1201"), vgprs=1, agprs=0, sgprs=0, lds_bytes=18725, workgroup_size=353, wave_size=32))
def test_the_next_step_gives_more_waves(usage):
    steps = next_steps(usage)
    waves = usage.occupancy.waves_per_simd
    changed = usage
    for step in steps:
        changed = changed.with_amount(step.resource, step.amount)
    if steps:
        assert changed.occupancy.waves_per_simd > waves
    elif waves < usage.occupancy.max_waves_per_simd:
        assert best_alone(usage) == waves


def best_alone(usage: Usage) -> int:
    """The most waves that a change of one of the limiting resources at a time could allow for some one of them."""
    limiting = [r for r in RESOURCES if usage.occupancy.limits[r] == usage.occupancy.waves_per_simd]
    others = [r for r in RESOURCES if r not in limiting]
    most = []
    for resource in limiting:
        amounts = (
            range(usage.wave_size, 1025, usage.wave_size)
            if resource == "workgroup"
            else [1 if resource != "LDS" else 0]
        )
        limits = [usage.with_amount(resource, amount).occupancy.limits for amount in amounts]
        most.append(max(min(limit[r] for r in (resource, *others)) for limit in limits))
    return min(most)


@given(usages())
def test_the_next_step_asks_for_no_less_than_needed(usage):
    waves = usage.occupancy.waves_per_simd
    for step in next_steps(usage):
        if step.resource != "workgroup":
            assert usage.with_amount(step.resource, step.amount + 1).occupancy.limits[step.resource] <= waves


@given(usages(), st.data())
def test_a_curve_is_the_rule_at_every_amount(usage, data):
    resource = data.draw(st.sampled_from(RESOURCES))
    amount = data.draw(st.integers(0 if resource == "LDS" else 1, usage.largest(resource)))
    waves = next(waves for start, waves in reversed(curve(usage, resource)) if start <= amount)
    assert waves == usage.with_amount(resource, amount).occupancy.limits[resource]


@pytest.fixture(scope="module")
def kernel():
    return vector_add.lower(*(torch.ones(4096) for _ in range(3))).artifact.kernels[0]


def with_registers(kernel, arch: str, vgprs: int, agprs: int = 0):
    info = kernel.info._replace(vgprs=vgprs, agprs=agprs)
    return dataclasses.replace(kernel, arch=get_arch(arch), info=info)


@pytest.mark.parametrize("arch", ARCH_NAMES)
@pytest.mark.diagonal(3)
def test_the_view_says_what_llvm_says(arch, read):
    """The `; Occupancy:` line of LLVM's assembly."""
    artifact = vector_add.lower(*(torch.ones(4096) for _ in range(3)), arch=arch).artifact
    says = int(re.search(r"; Occupancy: (\d+)", artifact.code.listing)[1])
    (found,) = artifact.kernels
    assert f"{says} of {found.arch.max_waves_per_simd} waves per SIMD" in read(shown(found)[0]).text
    assert f"{says} of {found.arch.max_waves_per_simd} waves per SIMD" in occupancy_figure(found).layout.title.text


def test_what_limits_it_is_marked(kernel, read):
    found = with_registers(kernel, "gfx942", 200)
    page = read(occupancy_html(found.occupancy)).text
    assert "2 of 8 waves per SIMD, limited by VGPR" in page
    assert "VGPR■■□□□□□□ 2 of 8◀ limits" in page
    assert "SGPR■■■■■■■■ 8 of 8" in page
    assert "3 waves per SIMD fit with at most 168 vector registers; 200 are allocated" in shown(found)[1]


def test_every_resource_that_limits_is_named(read):
    usage = Usage(get_arch("gfx1201"), 100, 0, 50, 20000, 256, 32)
    page = read(usage_html(usage)).text
    assert "limited by VGPR and LDS" in page
    assert "at most 96 vector registers; 120 are allocated and at most 18724 B of LDS; it takes 20000 B" in page


def test_at_the_maximum_there_is_no_advice(kernel):
    assert next_wave(with_registers(kernel, "gfx942", 10)) == ""


def test_resources_name_every_amount(kernel):
    resources = dataclasses.replace(
        kernel.resources, vgprs=11, agprs=12, sgprs=13, lds_bytes=14, scratch_bytes=15, vgpr_spills=16
    )
    for text in shown(resources):
        plain = unescape(text)
        assert [amount for amount in ("11", "12", "13", "14 B", "15 B", "16") if amount not in plain] == []


@pytest.mark.parametrize("arch", ARCH_NAMES)
@pytest.mark.diagonal(2)
def test_the_kernel_is_a_point_on_each_curve(arch):
    usage = Usage(get_arch(arch), 100, 0, 50, 20000, 256, get_arch(arch).wave_size)
    figure = occupancy_figure(usage)
    lines, points = figure.data[::2], figure.data[1::2]
    for resource, line, point in zip(RESOURCES, lines, points, strict=True):
        assert (point.x[0], point.y[0]) == (usage.amount(resource), usage.occupancy.limits[resource])
        at = max(i for i, x in enumerate(line.x) if x <= point.x[0])
        assert line.y[at] == point.y[0]
        assert max(line.y) <= figure.layout.yaxis.range[1]


def test_the_image_is_svg_with_a_text_for_those_who_do_not_see_it():
    usage = Usage(get_arch("gfx950"), 100, 0, 50, 20000, 256, 64)
    image = occupancy_image(usage)
    assert "VGPR: 104 vector registers per lane allow 4 waves per SIMD" in image
    svg = ElementTree.fromstring(base64.b64decode(re.search('base64,([^"]*)', image)[1]))
    assert len(svg.findall(".//{*}polyline")) == len(RESOURCES)
    assert occupancy_image(usage) == image


@flyc.kernel
def staged(A: fx.Tensor):
    shared = fx.make_view(fx.get_dyn_shared(fx.Float32), fx.make_layout(256))
    i = fx.thread_idx.x
    shared[i] = A[i]
    fx.barrier()
    A[i] = shared[255 - i]


@flyc.jit
def stage(A: fx.Tensor, smem: fx.Constexpr[int]):
    staged(A).launch(grid=1, block=256, smem=smem)


def test_the_lds_that_a_launch_asks_for_counts(read):
    (kernel,) = stage.lower(torch.zeros(256), 32 * 1024).artifact.kernels
    assert kernel.occupancy.waves_per_simd == 8  # LLVM's, which knows no launch
    assert kernel.usage.occupancy.waves_per_simd == 2
    for text in (read(shown(kernel)[0]).text, shown(kernel)[1]):
        assert "2 of 8 waves per SIMD, limited by LDS" in text
        assert "Its launch adds 32768 B of LDS" in text
        assert "LDS 0 B" not in text
        assert "LLVM, which cannot know, says 8 waves" in text


def test_more_waves_fit_with_less_dynamic_lds():
    (kernel,) = stage.lower(torch.zeros(256), 20 * 1024).artifact.kernels
    (step,) = next_steps(kernel.usage)
    (smaller,) = stage.lower(torch.zeros(256), step.amount).artifact.kernels
    assert smaller.usage.occupancy.waves_per_simd == kernel.usage.occupancy.waves_per_simd + 1


@flyc.jit
def stage_any(A: fx.Tensor, smem: fx.Int32):
    staged(A).launch(grid=1, block=256, smem=smem)


def test_lds_of_a_size_known_at_run_time_is_said_not_to_count(read):
    (kernel,) = stage_any.lower(torch.zeros(256), 1024).artifact.kernels
    assert kernel.usage.occupancy == kernel.occupancy
    for text in (read(shown(kernel)[0]).text, shown(kernel)[1]):
        assert "LDS of a size that is known at run time only" in text


def compiled(attributes: str):
    return compile_llvm_ir(f"define amdgpu_kernel void @k() {attributes} {{ ret void }}", get_arch("gfx942")).kernels[0]


def test_a_range_of_workgroup_sizes_is_explained(read):
    kernel = compiled('"amdgpu-flat-work-group-size"="1,768"')
    for text in (read(shown(kernel)[0]).text, shown(kernel)[1]):
        assert "8 of 8 waves per SIMD" in text
        assert "1 to 768 threads; this is for 64, as in LLVM; with 768 it is 6" in text


def test_a_limit_that_the_kernel_asks_for_is_named(read):
    kernel = compiled('"amdgpu-flat-work-group-size"="64,64" "amdgpu-waves-per-eu"="2,2"')
    for text in (read(shown(kernel)[0]).text, shown(kernel)[1]):
        assert "2 of 8 waves per SIMD, limited by waves_per_eu" in text
        assert "It asks for at most 2 waves per SIMD itself (amdgpu-waves-per-eu)." in text
