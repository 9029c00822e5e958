"""The levels of a compilation, and the user's line of each of their lines."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch

from flydsl.compiler import JitFunction
from tests.kernels import examples
from workbench.stages.levels import levels, llvm_level, mlir_places, place_key
from workbench.stages.linked import Linked
from workbench.stages.search import find


def line_of(text: str) -> int:
    """The line of the example's source that has a text in it."""
    lines = Path(examples.__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


@pytest.fixture(scope="module")
def finished():
    return examples.tiledCopy.lower(torch.zeros(40, 72), torch.zeros(40, 72)).run()


def test_there_is_one_for_each_stage_that_changed_something(finished):
    names = [level.name for level in levels(finished)]
    changed = [stage for stage in finished if stage.changed and stage.phase != "C"]
    assert names[0] == "examples.py"
    assert names[1:] == [
        "traced",
        *(f"{stage.index} {', '.join(stage.passes)}" for stage in changed),
        "LLVM IR",
        "LLVM IR, optimized",
        "ISA",
    ]


def test_the_texts_are_the_stages_own(finished):
    for level in levels(finished):
        assert len(level.lines) == len(level.places)
        if level.name[0].isdigit():
            assert level.text() == "\n".join(finished[int(level.name.split()[0])].after.splitlines())


def test_places_are_those_of_the_operations(finished):
    """The line of `fx.copy(copy_atom, frag, dst)` is where the stores come from, at every level."""
    store = line_of("fx.copy(copy_atom, frag, dst)")
    found = {level.name: level for level in levels(finished)}
    for name, text in [
        ("LLVM IR", "raw.ptr.buffer.store"),
        ("LLVM IR, optimized", "raw.ptr.buffer.store"),
        ("ISA", "buffer_store_dwordx4"),
        ("8 convert-fly-to-rocdl", "rocdl.raw.ptr.buffer.store"),
    ]:
        level = found[name]
        places = [
            p for line, p in zip(level.lines, level.places, strict=True) if text in line and "declare" not in line
        ]
        assert places
        assert {place.line for place in places} == {store}


def test_a_region_begins_where_its_operation_is(finished):
    traced = levels(finished)[1]
    where = next(place for line, place in zip(traced.lines, traced.places, strict=True) if "gpu.func" in line)
    ends = [place for line, place in zip(traced.lines, traced.places, strict=True) if line == "    }"]
    assert where is not None
    assert where in ends


def test_locations_in_every_form():
    plain = "\n".join(["a.a", "a.b", "a.c {", "}", "a.d", 'a.e {x = "loc(#loc1)"}'])
    located = """#loc = loc("-":1:1)
#loc1 = loc("k.py":3:5)
a.a loc(#loc1)
a.b loc(fused[#loc4, #loc1])
a.c {
} loc(callsite(#loc2 at #loc1))
a.d loc(unknown)
a.e {x = "loc(#loc1)"} loc("name"(#loc2))
#loc2 = loc("k.py":7:9 to :12)
#loc4 = loc(#loc)"""
    lines = [None if place is None else place.line for place in mlir_places(located, plain)]
    assert lines == [3, 3, 7, 7, None, 7]


def test_llvm_debug_information_becomes_places():
    level = llvm_level(
        "x",
        'define void @f() !dbg !3 {\n  ret void, !dbg !4\n}\n\n!1 = !DIFile(filename: "k.py", directory: "/d")\n'
        '!3 = distinct !DISubprogram(name: "f", scope: !1, file: !1, line: 2)\n'
        "!4 = !DILocation(line: 5, column: 3, scope: !3)",
    )
    assert level.lines == ("define void @f() {", "  ret void", "}", "")
    assert [place and (place.file, place.line, place.column) for place in level.places] == [
        ("/d/k.py", 2, None),
        ("/d/k.py", 5, 2),
        None,
        None,
    ]


def test_linked_levels_agree_on_origins(finished):
    forms = levels(finished)
    linked = Linked(forms)
    meta = linked.meta()
    for index, level in enumerate(forms):
        content = linked.content(index)
        for line, origin in zip(level.places, content["origins"], strict=True):
            assert origin == -1 if line is None else meta["origins"][origin] == place_key(line)
        for origin, counts in enumerate(meta["counts"]):
            assert counts[index] == content["origins"].count(origin)


def test_a_line_of_the_kernel_is_found_from_source_to_isa(finished):
    meta = Linked(levels(finished)).meta()
    origin = meta["origins"].index(f"examples.py:{line_of('fx.copy(copy_atom, src, frag)')}")
    assert all(meta["counts"][origin])


def test_an_operation_appears_and_is_gone(finished):
    found = find(finished, "zipped_divide")
    assert found.names == ("fly.zipped_divide",)
    assert found.steps[0] == "in traced: appears (2)"
    assert "in 3 fly-layout-lowering: gone (there were 2)" in found.steps
    loads = find(finished, "buffer.load")
    assert loads.names == ("llvm.amdgcn.raw.ptr.buffer.load.v4i32", "rocdl.raw.ptr.buffer.load")
    assert "gone" not in " ".join(loads.steps[:-1])
    assert "buffer_load_dwordx4" in find(finished, "buffer_load").names
    assert find(finished, "no.such").steps == []
    assert "no.such" in repr(find(finished, "no.such"))


def test_a_pipeline_on_its_way_has_levels(launcher: JitFunction, tensors):
    pipeline = launcher.lower(*tensors, 128)
    assert [level.name for level in levels(pipeline)][-1] == "traced"
    pipeline.step()
    assert [level.name for level in levels(pipeline)][-1] == "1 fly-rewrite-func-signature"


def test_each_line_has_its_operation(finished):
    for index, level in enumerate(levels(finished)):
        names = Linked(levels(finished)).content(index)["operations"]
        assert len(names) == len(level.lines)
        if level.language != "python":
            assert Counter(filter(None, names)) == level.operations
            assert all(name in line for name, line in zip(names, level.lines, strict=True))
        else:
            assert not any(names)
