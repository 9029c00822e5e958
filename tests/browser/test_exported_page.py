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
    page.get_by_role("listbox", name="Stages").get_by_role("option", name="3 fly-layout-lowering").click()
    expect(page.get_by_role("region", name="What the stage changed")).to_contain_text("fly.")
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


def width(pane) -> float:
    return pane.bounding_box()["width"]


def test_room_for_the_lines(page, address):
    """Numbers, folded types, wrapped lines, panes to drag; two panes where there is little room."""
    from playwright.sync_api import expect

    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(address)
    levels = page.locator("[data-linked]").first
    source, left, right = (levels.get_by_role("listbox", name=f"{name} lines") for name in ("Source", "Left", "Right"))
    expect(right).to_contain_text("s_endpgm")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    first = source.evaluate("list => Number(list.style.counterReset.split(' ')[1])") + 1
    lines = source.get_by_role("option").all_inner_texts()
    path = Path(vector_add.__wrapped__.__code__.co_filename)
    assert path.read_text().splitlines()[first - 1 : first - 1 + len(lines)] == [line.rstrip() for line in lines]

    levels.get_by_label("Left level").select_option("1 fly-rewrite-func-signature")
    type_ = left.locator(".fold").first
    assert "packed" not in type_.inner_text()
    type_.click()
    assert "packed" in type_.inner_text()

    assert left.evaluate("list => list.scrollWidth > list.clientWidth")
    levels.get_by_role("button", name="Wrap").click()
    assert left.evaluate("list => list.scrollWidth <= list.clientWidth")

    before = width(source)
    splitter = levels.get_by_role("separator", name="Width of Left")
    box = splitter.bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 105, box["y"] + 50)
    page.mouse.up()
    assert abs(width(source) - before - 100) < 4
    splitter.press("ArrowLeft")
    assert width(source) < before + 90

    page.set_viewport_size({"width": 960, "height": 800})
    expect(left).to_be_hidden()
    expect(source).to_be_visible()
    levels.get_by_role("button", name="Left").click()
    expect(left).to_be_visible()
    expect(right).to_be_hidden()
    page.set_viewport_size({"width": 1500, "height": 1000})


def test_a_line_of_the_source_has_its_colour_at_every_level(page, address):
    page.goto(address)
    levels = page.locator("[data-linked]").first
    store = levels.get_by_role("listbox", name="Right lines").get_by_text("global_store_dwordx4")
    color = "line => getComputedStyle(line.closest('[role=option]')).borderLeftColor"
    shown = store.evaluate(color)
    of_source = levels.get_by_role("listbox", name="Source lines").get_by_role("option").all()
    alike = [line.inner_text() for line in of_source if line.evaluate(color) == shown]
    assert any("fx.copy_atom_call(atom, c," in line for line in alike)
    assert len(alike) < len(of_source) / 4


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
