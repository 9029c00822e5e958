"""The exported page, opened from disk."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import workbench
from kernels.vector_add import vector_add


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    A, B, C = torch.ones(4096), torch.ones(4096), torch.zeros(4096)
    pipeline = vector_add.lower(A, B, C).run()
    path: Path = tmp_path_factory.mktemp("page") / "out.html"
    return workbench.export(pipeline, path).as_uri()


def test_its_parts_are_unpacked_when_they_are_looked_at(page, address):
    from playwright.sync_api import expect

    page.goto(address)
    expect(page.get_by_text("This page needs JavaScript")).to_have_count(0)
    for levels in page.locator("[data-linked]").all():
        expect(levels.get_by_role("listbox", name="Right lines")).to_contain_text("s_endpgm")
        levels.get_by_label("Right level").select_option("traced")
        expect(levels.get_by_role("listbox", name="Right lines")).to_contain_text("fly.copy_atom_call")
    diff = page.locator("details", has=page.locator("summary", has_text="fly-layout-lowering")).first
    expect(diff.locator("pre")).to_have_count(0)
    diff.locator("summary").click()
    expect(diff.locator("pre")).to_contain_text("fly.")
    expect(page.get_by_text("global_load_dwordx4").first).to_be_attached()


def test_choosing_a_line_lights_its_origin(page, address):
    from playwright.sync_api import expect

    page.goto(address)
    levels = page.locator("[data-linked]").first
    line = levels.get_by_role("listbox", name="Right lines").get_by_text("global_store_dwordx4")
    line.click()
    expect(levels.get_by_role("listbox", name="Source lines").locator(".lit")).to_contain_text("copy_atom_call")


def test_without_scripts_it_says_so_and_shows_the_rest(browser, address):
    from playwright.sync_api import expect

    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    expect(page.get_by_text("This page needs JavaScript")).to_be_visible()
    expect(page.get_by_role("cell", name="fly-layout-lowering")).to_be_visible()
    expect(page.get_by_text("8 of 8 waves per SIMD, the maximum")).to_be_visible()
    context.close()
