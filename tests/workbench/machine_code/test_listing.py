"""The ISA view."""

from __future__ import annotations

import dataclasses
import re

import pytest
import torch

import workbench
from flydsl.errors import ArgumentError
from kernels.vector_add import vector_add
from workbench.machine_code.analysis import Analysis, analyses
from workbench.machine_code.help import glossary_html
from workbench.machine_code.listing import encodings_of, isa_html, isa_text, kernel_isa_html, notes_of


@pytest.fixture(scope="module")
def artifact():
    return vector_add.lower(*(torch.ones(4096) for _ in range(3))).artifact


def test_every_instruction_is_there_with_its_line(artifact, read):
    page, text = read(isa_html(artifact)).text, isa_text(artifact)
    (analysis,) = analyses(artifact.code)
    assert f"{len(analysis.instructions)} instructions" in page
    for instruction in analysis.instructions:
        assert instruction.text in page
        assert instruction.text in text
    assert "global_load_dwordx4" in page
    assert "vector_add.py:" in page


def test_a_long_line_goes_on_below_its_instruction(artifact, read):
    (analysis,) = analyses(artifact.code)
    page = kernel_isa_html(analysis)
    long = [line for line in read(page).text.splitlines() if len(line) > 96 and "waits for" in line]
    assert len(long) == page.count("display:block;padding-left:") > 0


def test_registers_one_names_are_marked(artifact, read):
    (analysis,) = analyses(artifact.code)
    # Behind two numbers of four columns and a bar of six stands what each line does with the register.
    lines = read(isa_html(artifact, registers="v0")).text.splitlines()
    marked = [line for line in lines if line[16:18].strip() in ("r", "w", "rw")]
    users = [i for i in analysis.instructions if "v0" in {*i.uses.reads.names(), *i.uses.writes.names()}]
    shown = [line for line in marked if any(i.text in line for i in users)]
    assert len(shown) == len(users)
    assert "background-color" not in isa_html(artifact)


def test_a_register_in_use_is_drawn(artifact, read):
    (analysis,) = analyses(artifact.code)
    lines = read(isa_html(artifact, registers="v0")).text.splitlines()
    in_use = [line for line in lines if line[16:17] == "│"]
    live = [p for p in analysis.pressures if "v0" in {*p.before.names(), *p.after.names()}]
    users = [i for i in analysis.instructions if "v0" in {*i.uses.reads.names(), *i.uses.writes.names()}]
    assert len(in_use) == len(live) - len(users) > 0


def test_a_tooltip_says_what_an_instruction_does(artifact):
    page = isa_html(artifact)
    assert 'title="Goes on at the label if no lane is active. 32 cycles where it is taken."' in page
    assert "Both parts of D = those of S0 + S1, in f32." in page


def test_the_table_under_the_code_has_every_instruction_once(artifact, read):
    (analysis,) = analyses(artifact.code)
    text = read(glossary_html(analysis)).text
    for mnemonic in {instruction.mnemonic for instruction in analysis.instructions}:
        assert mnemonic in text
    assert "not known here" not in text


def test_blocks_lead_to_their_code(artifact):
    (analysis,) = analyses(artifact.code)
    page = isa_html(artifact)
    for number in range(len(analysis.blocks)):
        assert page.count(f'id="vector_add_kernel_0-block-{number}"') == 1
        assert f'href="#vector_add_kernel_0-block-{number}"' in page


def test_encodings_are_the_machine_code(artifact):
    (analysis,) = analyses(artifact.code)
    found = encodings_of(artifact.code, analysis.kernel.name)
    assert len(found) == len(analysis.instructions)
    start, stop = analysis.kernel.info.code_range
    assert b"".join(found) in artifact.code.hsaco
    assert len(b"".join(found)) == stop - start
    text = repr(workbench.listing(artifact, encodings=True))
    assert re.search(r"bf810000 +s_endpgm", text)


def test_loops_are_drawn_and_named(artifact, read):
    page = read(isa_html(artifact)).text
    (analysis,) = analyses(artifact.code)
    assert page.count("│") == sum(analysis.loop_depths)
    assert "Loops: .LBB0_" in page


def test_a_long_kernel_is_cut_off_and_says_how_to_go_on(artifact, read):
    (analysis,) = analyses(artifact.code)
    page = read(kernel_isa_html(analysis, max_lines=10)).text
    total = len(analysis.instructions) + len(analysis.blocks)
    assert f"Lines 1 to 10 of {total}; from 11 on: workbench.listing(p, '{analysis.kernel.name}', first=11)" in page


def test_parts_of_the_listing_make_up_the_whole(artifact):
    def instructions(**lines) -> list[str]:
        return [line for line in repr(workbench.listing(artifact, **lines)).splitlines() if line.startswith("  ")]

    (analysis,) = analyses(artifact.code)
    total = len(analysis.instructions) + len(analysis.blocks)
    parts = [line for first in range(1, total + 1, 7) for line in instructions(first=first, count=7)]
    assert parts == instructions(count=total)
    assert len(parts) == len(analysis.instructions)


def test_a_part_marks_registers(artifact, read):
    shown = workbench.listing(artifact.pipeline, registers="v0")._repr_html_()
    assert "background-color" in shown
    assert (
        read(shown).text
        == read(workbench.listing(artifact, artifact.kernels[0].name, registers="v0")._repr_html_()).text
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"kernel": "vector_add_kernel"}, "did you mean vector_add_kernel_0"),
        ({"first": 0}, "positive integers"),
        ({"count": "all"}, "positive integers"),
    ],
)
def test_parts_that_there_are_not(artifact, asked, message):
    with pytest.raises(ArgumentError, match=message):
        workbench.listing(artifact, **asked)
    with pytest.raises(ArgumentError, match="has no machine code"):
        workbench.listing(3)
    assert "There are" in repr(workbench.listing(artifact, first=10_000))


def squeezed(analysis: Analysis, vgprs: int) -> Analysis:
    """The same code, as if the compiler had allocated other registers."""
    kernel = analysis.kernel
    return Analysis(dataclasses.replace(kernel, info=kernel.info._replace(vgprs=vgprs, agprs=0)), analysis.instructions)


def test_fewer_registers_where_too_many_are_live():
    """A kernel that keeps 80 values at a time: 8 fewer give a seventh wave, and the lines at fault are marked."""
    instructions = read_many_live(80)
    analysis = Analysis(dataclasses.replace(kernel_with(80)), instructions)
    assert (analysis.kernel.occupancy.waves_per_simd, analysis.target) == (6, 72)
    assert analysis.peak == 80
    over = analysis.over_target
    # Registers are filled one by one and added up one by one: more than 72 of them live in the middle.
    assert [i.text for i in over] == [
        i.text for i in instructions if i.index in range(over[0].index, over[-1].index + 1)
    ]
    assert all(analysis.vector_registers[i.index] > 72 for i in over)
    assert "8 fewer would give 7 waves per SIMD" in " ".join(notes_of(analysis))
    html = kernel_isa_html(analysis)
    assert html.count("fewer") == len(over) + 1


def test_an_allocation_larger_than_what_is_live_is_said(artifact):
    (analysis,) = analyses(artifact.code)
    note = notes_of(squeezed(analysis, 100))[0]
    assert "5 waves per SIMD need an allocation of at most 96: what is in use would fit" in note
    assert squeezed(analysis, 100).over_target == []


def kernel_with(vgprs: int):
    code = vector_add.lower(*(torch.ones(4096) for _ in range(3))).artifact.code
    (analysis,) = analyses(code)
    return squeezed(analysis, vgprs).kernel


def read_many_live(count: int):
    from flydsl.hsaco.listing import read_listing
    from workbench.machine_code import read_function

    lines = [f"\tv_mov_b32_e32 v{i}, 0" for i in range(count)]
    lines += [f"\tv_add_f32_e32 v0, v0, v{i}" for i in range(1, count)]
    return read_function(read_listing("\t.text\nf:\n" + "\n".join([*lines, "\ts_endpgm"]) + "\n.Lfunc_end0:\n"), "f")
