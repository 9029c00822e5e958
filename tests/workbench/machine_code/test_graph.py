"""The graph of blocks, and what the view with a cursor is made of."""

from __future__ import annotations

import xml.etree.ElementTree as xml

import pytest
import torch

from flydsl.hsaco.listing import read_listing
from flydsl.hsaco.register_uses import registers_of
from kernels.vector_add import vector_add
from workbench.machine_code import blocks, read_function
from workbench.machine_code.analysis import analyse
from workbench.machine_code.content import compact, content
from workbench.machine_code.graph import arcs, graph_svg, graph_text

NESTED = """\
\t.text
f:
\ts_nop 0
.LBB0_1:
\ts_nop 1
.LBB0_2:
\ts_cbranch_scc1 .LBB0_2
\ts_cbranch_scc0 .LBB0_1
\ts_cbranch_vccz .LBB0_4
\ts_nop 2
.LBB0_4:
\ts_endpgm
.Lfunc_end0:
"""


@pytest.fixture(scope="module")
def code():
    return vector_add.lower(*(torch.ones(4096) for _ in range(3))).artifact.code


def test_branches_that_pass_the_same_blocks_are_beside_each_other() -> None:
    graph = blocks(read_function(read_listing(NESTED), "f"))
    found = {(arc.source, arc.target): (arc.is_back, arc.lane) for arc in arcs(graph)}
    assert found == {(2, 2): (True, 0), (3, 1): (True, 1), (4, 6): (False, 0)}


@pytest.mark.parametrize("on_paper", [False, True])
def test_every_block_and_every_edge_is_drawn(code, on_paper) -> None:
    analysis = analyse(code, code.kernels[0].name)
    root = xml.fromstring(graph_svg(analysis, on_paper=on_paper))
    namespace = "{http://www.w3.org/2000/svg}"
    drawn = root.findall(f"{namespace}g")
    assert [int(block.get("data-block")) for block in drawn] == list(range(len(analysis.blocks)))
    edges = sum(len(block.successors) for block in analysis.blocks)
    assert len(root.findall(f"{namespace}path")) == edges
    width, height = int(root.get("width")), int(root.get("height"))
    for rect in root.iter(f"{namespace}rect"):
        x, y = int(rect.get("x", 0)), int(rect.get("y", 0))
        assert 0 <= x <= x + int(rect.get("width")) <= width
        assert 0 <= y <= y + int(rect.get("height")) <= height
    for block in drawn:
        room = int(block.find(f"{namespace}rect").get("width")) - 8
        assert all(6.7 * len(text.text) <= room for text in block.iter(f"{namespace}text"))
    assert "goes on with" in graph_text(analysis)


def test_content_has_a_line_for_each_instruction_and_block(code) -> None:
    name = code.kernels[0].name
    analysis, made = analyse(code, name), content(code, name)
    instructions = [line for line in made["lines"] if "instruction" in line]
    assert [line["instruction"] for line in instructions] == list(range(len(analysis.instructions)))
    assert [line["block"] for line in made["lines"] if "block" in line] == list(range(len(analysis.blocks)))
    for line, instruction in zip(instructions, analysis.instructions, strict=True):
        assert registers_of(line["writes"]) == instruction.uses.writes
        assert registers_of(line["reads"]) == instruction.uses.reads
        assert instruction.mnemonic in made["helps"][line["help"]]
        assert len(line["encoding"]) in (8, 17)


def test_ranges_are_where_a_register_is_live(code) -> None:
    name = code.kernels[0].name
    analysis, ranges = analyse(code, name), content(code, name)["ranges"]
    for register, runs in ranges.items():
        found = {index for first, last in runs for index in range(first, last + 1)}
        bit = registers_of(register)
        assert found == {i for i, p in enumerate(analysis.pressures) if (p.before | p.after) & bit}, register


@pytest.mark.parametrize("text", ["", "v0", "v[0:255]", "s7 vcc a[3:4] v1", "vcc_lo", "vcc_hi"])
def test_registers_are_written_as_in_assembly(text) -> None:
    assert registers_of(compact(registers_of(text))) == registers_of(text)
    assert len(compact(registers_of(text))) <= len(text)
