"""Blocks, loops, liveness and waits."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from flydsl.hsaco.listing import read_listing
from kernels.vector_add import vector_add
from tests.kernels.examples import tiledCopy
from workbench.machine_code import blocks, pressures, read_function
from workbench.machine_code.analysis import analyse, analyses

STEPS = st.one_of(
    st.tuples(st.just("v_add_f32"), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)),
    st.tuples(st.just("s_cbranch_scc1"), st.integers(0, 8)),
    st.tuples(st.just("s_branch"), st.integers(0, 8)),
    st.tuples(st.just("s_endpgm")),
)
programs = st.lists(STEPS, min_size=1, max_size=9)


def function(text: str):
    return read_function(read_listing(f"\t.text\nf:\n{text}\n.Lfunc_end0:\n"), "f")


def assembled(program) -> str:
    """Every instruction with a label of its own, so that branches may go anywhere."""
    lines = []
    for i, (name, *numbers) in enumerate(program):
        lines.append(f".LBB0_{i}:")
        if name.startswith("v_"):
            lines.append(f"\t{name} " + ", ".join(f"v{n}" for n in numbers))
        else:
            lines.append("\t" + " ".join([name, *(f".LBB0_{n % len(program)}" for n in numbers)]))
    return "\n".join(lines)


def is_live(program, register: int, start: int) -> bool:
    """True if a path from before instruction `start` reads the register before anything writes it, by search."""
    seen, waiting = set(), [start]
    while waiting:
        i = waiting.pop()
        if i in seen or i >= len(program):
            continue
        seen.add(i)
        name, *numbers = program[i]
        if name == "v_add_f32":
            if register in numbers[1:]:
                return True
            if register == numbers[0]:
                continue
            waiting.append(i + 1)
        elif name == "s_cbranch_scc1":
            waiting += [i + 1, numbers[0] % len(program)]
        elif name == "s_branch":
            waiting.append(numbers[0] % len(program))
    return False


@settings(max_examples=200)
@given(programs)
def test_liveness_is_what_a_search_over_all_paths_finds(program):
    instructions = function(assembled(program))
    found = pressures(instructions, blocks(instructions))
    for i, pressure in enumerate(found):
        assert pressure.before.names() == [f"v{r}" for r in range(4) if is_live(program, r, i)]


@pytest.mark.parametrize(
    "text",
    [
        "s_and_saveexec_b64 s[2:3], vcc\n\tv_mov_b32_e32 v0, 1\n\ts_or_b64 exec, exec, s[2:3]",
        "s_and_saveexec_b32 s2, vcc_lo\n\tv_mov_b32_e32 v0, 1\n\ts_or_b32 exec_lo, exec_lo, s2",
        "s_and_saveexec_b64 s[2:3], vcc\n\ts_and_saveexec_b64 s[4:5], s[0:1]\n\tv_mov_b32_e32 v0, 1\n"
        "\ts_or_b64 exec, exec, s[4:5]\n\ts_or_b64 exec, exec, s[2:3]",
        "s_and_saveexec_b64 s[2:3], vcc\n\ts_xor_b64 s[2:3], exec, s[2:3]\n\tv_mov_b32_e32 v0, 1\n"
        "\ts_andn2_saveexec_b64 s[2:3], s[2:3]\n\tv_mov_b32_e32 v2, 1\n\ts_or_b64 exec, exec, s[2:3]",
    ],
    ids=["wave64", "wave32", "nested", "then and else"],
)
def test_lanes_that_a_mask_turns_off_keep_their_value(text):
    """v0 is written before for all lanes, and within for some of them."""
    instructions = function(f"\tv_mov_b32_e32 v0, 2\n\t{text}\n\tglobal_store_dword v1, v0, s[6:7]\n\ts_endpgm")
    found = pressures(instructions, blocks(instructions))
    assert "v0" in found[1].before.names()


@given(programs)
def test_blocks_partition_the_instructions(program):
    graph = blocks(function(assembled(program)))
    assert [i for block in graph for i in range(block.start, block.end)] == list(range(len(program)))
    for number, block in enumerate(graph):
        assert all(number in graph[successor].predecessors for successor in block.successors)
        assert all(number in graph[predecessor].successors for predecessor in block.predecessors)


def test_nested_loops():
    graph = blocks(
        function(
            "\ts_nop 0\n.LBB0_1:\n\ts_nop 1\n.LBB0_2:\n\ts_nop 2\n\ts_cbranch_scc1 .LBB0_2\n"
            "\ts_cbranch_scc0 .LBB0_1\n\ts_endpgm"
        )
    )
    assert [(block.label, len(block.loops)) for block in graph] == [
        ("", 0),
        (".LBB0_1", 1),
        (".LBB0_2", 2),
        ("", 1),
        ("", 0),
    ]
    assert [graph[head].label for head in graph[2].loops] == [".LBB0_1", ".LBB0_2"]


def test_what_comes_after_the_end_is_not_reached():
    graph = blocks(function("\ts_endpgm\n\ts_nop 0\n.LBB0_1:\n\ts_branch .LBB0_1"))
    assert graph[0].successors == ()
    assert [block.loops for block in graph[:2]] == [(), ()]


KERNELS = [(vector_add, [torch.ones(4096) for _ in range(3)]), (tiledCopy, [torch.zeros(40, 72), torch.zeros(40, 72)])]


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize(("launcher", "arguments"), KERNELS, ids=lambda value: getattr(value, "name", ""))
@pytest.mark.diagonal(2)
def test_no_more_registers_are_live_than_the_compiler_allocated(launcher, arguments, arch):
    (analysis,) = analyses(launcher.lower(*arguments, arch=arch).artifact.code)
    resources = analysis.kernel.resources
    assert 0 < analysis.peak <= analysis.kernel.occupancy.vgprs_allocated
    assert max(p.count("v") for p in analysis.pressures) <= resources.vgprs
    assert max(p.count("s") for p in analysis.pressures) <= resources.sgprs
    # What a kernel starts with is the kernel argument pointer, workgroup ids, and the thread's id in v0.
    assert {"v0"} <= set(analysis.pressures[0].before.names())


@pytest.mark.parametrize("arch", ["gfx1201", "gfx1250"])
def test_wave32_architectures(arch):
    (analysis,) = analyses(vector_add.lower(*KERNELS[0][1], arch=arch).artifact.code)
    assert 0 < analysis.peak <= analysis.kernel.resources.vgprs
    assert max(analysis.loop_depths) == 1
    waits = analysis.outstanding.waits
    assert {wait.counter for wait in waits} <= {"loadcnt", "storecnt", "dscnt", "kmcnt"}
    assert waits


def test_the_loops_of_vector_add():
    code = vector_add.lower(*KERNELS[0][1]).artifact.code
    analysis = analyse(code, code.kernels[0].name)
    heads = {head for block in analysis.blocks for head in block.loops}
    assert len(heads) == 2  # vectors, then what is left of them
    inside = [i.text for i in analysis.instructions if analysis.loop_depths[i.index]]
    assert sum("global_store" in text for text in inside) == 2
    everything = sum(count for count, _ in analysis.mix().values())
    assert everything == len(analysis.instructions)
    assert analysis.mix()["VMEM"] == (6, 6)
