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
    expect(page.get_by_role("listbox", name="Machine code of")).to_contain_text("global_load_dwordx4")


def test_choosing_a_line_lights_its_origin(page, address):
    from playwright.sync_api import expect

    page.goto(address)
    levels = page.locator("[data-linked]").first
    line = levels.get_by_role("listbox", name="Right lines").get_by_text("global_store_dwordx4")
    line.click()
    expect(levels.get_by_role("listbox", name="Source lines").locator(".lit")).to_contain_text("copy_atom_call")


_IN_SIGHT = """(line) => {
  const list = line.parentElement.getBoundingClientRect();
  const at = line.getBoundingClientRect();
  return at.top >= list.top && at.bottom <= list.bottom;
}"""


def lines(levels, pane: str, kind: str):
    """The lines of a pane that are `lit` or `found`."""
    return levels.get_by_role("listbox", name=f"{pane} lines").locator(f".{kind}")


def test_what_a_line_lights_is_in_sight(page, address):
    from playwright.sync_api import expect

    page.goto(address)
    levels = page.locator("[data-linked]").first
    source = levels.get_by_role("listbox", name="Source lines")
    origins = source.locator(".has")
    expect(origins.first).to_be_attached()
    lit = lines(levels, "Right", "lit")
    seen = 0
    for index in [*range(origins.count()), 0]:
        origins.nth(index).click()
        assert origins.nth(index).evaluate(_IN_SIGHT)
        if lit.count():
            assert lit.first.evaluate(_IN_SIGHT)
            seen += 1
    assert seen > 2


def test_an_operation_is_marked_and_in_sight(page, address):
    from playwright.sync_api import expect

    page.goto(address)
    levels = page.locator("[data-linked]").first
    field = levels.get_by_label("Find operation")
    found = lines(levels, "Right", "found")
    for name in ("s_endpgm", "s_load"):
        field.fill(name)
        expect(found.first).to_contain_text(name)
        assert found.first.evaluate(_IN_SIGHT)
        assert not [text for text in found.all_inner_texts() if name not in text]
    field.fill("fly.copy_atom_call")
    expect(found).to_have_count(0)
    levels.get_by_role("button", name="traced: appears").click()
    expect(found.first).to_contain_text("fly.copy_atom_call")
    assert found.first.evaluate(_IN_SIGHT)
    field.fill("")
    expect(found).to_have_count(0)


def test_a_block_leads_to_its_code(page, address):
    from playwright.sync_api import expect

    page.goto(address)
    code = page.get_by_role("listbox", name="Machine code of")
    loop = page.get_by_role("button", name=".LBB0_5, 15 instructions")
    loop.focus()
    page.keyboard.press("Enter")
    first = code.locator(".lit")
    expect(first).to_have_count(1)
    assert first.evaluate(_IN_SIGHT)
    assert code.locator(".lit").evaluate("line => line.previousSibling.innerText").startswith(".LBB0_5:")


def test_the_contents_lead_to_their_sections(page, address):
    page.goto(address)
    page.get_by_role("navigation", name="Contents").get_by_role("link", name="Occupancy").click()
    assert page.get_by_role("heading", name="Occupancy", exact=True).bounding_box()["y"] < 1000


def test_without_scripts_it_says_so_and_shows_the_rest(browser, address):
    from playwright.sync_api import expect

    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    expect(page.get_by_text("This page needs JavaScript")).to_be_visible()
    expect(page.get_by_role("cell", name="fly-layout-lowering")).to_be_visible()
    expect(page.get_by_text("8 of 8 waves per SIMD, the maximum")).to_be_visible()
    context.close()
