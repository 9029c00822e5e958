"""No memory operation moves across a barrier, of whatever kind and on whatever architecture.

Random programs without branches, but for one at the end that uses all values: reads that are used behind a branch only
are what LLVM 22.1 moves there. Each operation has an offset of its own, by which it is found again in the listing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from flydsl.arch import ARCHS, Arch, get_arch
from flydsl.codegen import compile_llvm_ir, llvm
from flydsl.codegen.llvm_bugs.barriers import GUARD, guard_barriers

FIRST_OFFSET, STEP = 1024, 16
SPACES = {"ds": ("3", "%lds"), "global": ("1", "%global")}

_DECLARATIONS = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
declare void @llvm.amdgcn.s.barrier.signal(i32)
declare void @llvm.amdgcn.s.barrier.wait(i16)
attributes #0 = { "amdgpu-flat-work-group-size"="256,256" }
"""
RELEASE, ACQUIRE = (f'fence syncscope("workgroup") {order}' for order in ("release", "acquire"))
WHOLE = "call void @llvm.amdgcn.s.barrier()"
SIGNAL, WAIT = "call void @llvm.amdgcn.s.barrier.signal(i32 -1)", "call void @llvm.amdgcn.s.barrier.wait(i16 -1)"
# Each kind is a list of steps, and between two steps other operations may stand.
KINDS = {
    "with fences": [f"{RELEASE} {WHOLE} {ACQUIRE}"],
    "bare": [WHOLE],
    "split with fences": [f"{RELEASE} {SIGNAL}", f"{WAIT} {ACQUIRE}"],
    "split": [SIGNAL, WAIT],
}


class Program:
    """LLVM IR of a random kernel; `places` is, by offset, how many steps of barriers stand before an operation."""

    def __init__(self, seed: int, steps: list[str], operations: int = 24) -> None:
        self.rng = random.Random(seed)
        self.places: dict[tuple[str, int], int] = {}
        self.values = ["%t"]
        lines = list(self._operations(steps, operations))
        uses = [
            f"%use{i} = getelementptr i32, ptr addrspace(1) %out, i32 {i}\n"
            f"store volatile i32 {value}, ptr addrspace(1) %use{i}"
            for i, value in enumerate(self.values)
        ]
        self.llvm_ir = f"""
@tile = internal addrspace(3) global [4096 x i8] poison, align 16
define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out, i32 %n) #0 {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %lds = getelementptr i32, ptr addrspace(3) @tile, i32 %t
  %global = getelementptr i32, ptr addrspace(1) %in, i32 %t
  %any = icmp sgt i32 %n, 0
{chr(10).join(lines)}
  br i1 %any, label %then, label %exit
then:
{chr(10).join(uses)}
  br label %exit
exit:
  ret void
}}
{_DECLARATIONS}"""

    def _operations(self, steps: list[str], count: int) -> Iterator[str]:
        passed = 0
        for i in range(count):
            kind = self.rng.choice(("barrier", "load", "load", "store", "add", "mul"))
            if kind == "barrier":
                yield steps[passed % len(steps)]
                passed += 1
            elif kind in ("load", "store"):
                yield from self._access(i, kind, passed)
            else:
                yield f"%v{i} = {kind} i32 {self._value()}, {self._value()}"
                self.values.append(f"%v{i}")

    def _access(self, i: int, kind: str, passed: int) -> Iterator[str]:
        name = self.rng.choice(list(SPACES))
        space, base = SPACES[name]
        offset = FIRST_OFFSET + STEP * i
        self.places[name, offset] = passed
        yield f"%p{i} = getelementptr i8, ptr addrspace({space}) {base}, i32 {offset}"
        if kind == "load":
            yield f"%v{i} = load i32, ptr addrspace({space}) %p{i}"
            self.values.append(f"%v{i}")
        else:
            yield f"store i32 {self._value()}, ptr addrspace({space}) %p{i}"

    def _value(self) -> str:
        return self.rng.choice(self.values)


def moved(program: Program, listing: str, steps_of_a_barrier: int) -> list[str]:
    """Memory instructions of a listing that are not between the barriers between which they were written."""
    found, passed = [], 0
    for line in listing.splitlines():
        text = line.partition(";")[0].strip()
        if re.match(r"s_barrier(?!_wait)", text):
            passed += 1
        if text.startswith("s_barrier_wait"):
            passed += steps_of_a_barrier - 1
        if access := re.match(r"(ds|global)_(?:read|write|load|store)", text):
            found += [text for at in _offsets(text) if program.places.get((access[1], at), passed) != passed]
    return found


def _offsets(text: str) -> list[int]:
    unit = 4 * (64 if "st64" in text else 1)
    halves = [unit * int(offset) for offset in re.findall(r"offset[01]:(\d+)", text)]
    return halves + [int(offset) for offset in re.findall(r"offset:(\d+)", text)]


def kinds(arch: Arch) -> list[str]:
    has_split_barriers = arch.name in {"gfx1201", "gfx1250"}
    return [kind for kind in KINDS if has_split_barriers or not kind.startswith("split")]


@pytest.mark.slow
@pytest.mark.parametrize("opt_level", range(4))
@pytest.mark.parametrize(("arch", "kind"), [(arch, kind) for arch in ARCHS for kind in kinds(arch)])
@pytest.mark.diagonal(4)
def test_no_access_moves_across_a_barrier(arch: Arch, kind: str, opt_level: int) -> None:
    checked = 0
    for seed in (12, 20 + opt_level):  # 12 is one that LLVM 22.1 compiles wrongly without guards
        program = Program(seed, KINDS[kind])
        listing = compile_llvm_ir(program.llvm_ir, arch, opt_level=opt_level).listing
        assert moved(program, listing, len(KINDS[kind])) == [], seed
        checked += len(program.places)
    assert checked > 10


@pytest.mark.slow
def test_llvm_still_moves_reads_across_barriers(monkeypatch: pytest.MonkeyPatch) -> None:
    """When this fails, LLVM no longer needs `flydsl.codegen.llvm_bugs.barriers`, and it can go."""
    monkeypatch.setattr(llvm.barriers, "guard_barriers", lambda text: text)
    programs = [Program(seed, KINDS["bare"]) for seed in range(12, 20)]
    listings = [llvm.compile_module(p.llvm_ir, get_arch("gfx942"), 2).listing for p in programs]
    assert any(moved(p, listing, 1) for p, listing in zip(programs, listings, strict=True)), (
        "this LLVM moves no read across a barrier: flydsl/codegen/llvm_bugs/barriers.py is not needed any more"
    )


@pytest.mark.parametrize("kind", kinds(get_arch("gfx1250")))
def test_a_guard_costs_no_instruction_and_is_not_seen(kind: str) -> None:
    program = Program(3, KINDS[kind])
    code = compile_llvm_ir(program.llvm_ir, get_arch("gfx1250"))
    assert "ASMSTART" not in code.listing
    assert "asm sideeffect" in code.optimized_llvm_ir
    assert code.llvm_ir == program.llvm_ir


UNIFORM_LOAD_BEHIND_A_BARRIER = f"""
define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) #0 {{
  {RELEASE}
  {WHOLE}
  {ACQUIRE}
  %x = load i32, ptr addrspace(1) %in
  store i32 %x, ptr addrspace(1) %out
  ret void
}}
{_DECLARATIONS}"""


def test_a_uniform_load_behind_a_barrier_stays_scalar() -> None:
    assert "global_load" not in compile_llvm_ir(UNIFORM_LOAD_BEHIND_A_BARRIER, get_arch("gfx942")).listing


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        f"  tail {WHOLE}, !dbg !1",
        "%first = call i1 @llvm.amdgcn.s.barrier.signal.isfirst(i32 -1)",
        "call void @llvm.amdgcn.wave.barrier()",
        "call void @llvm.amdgcn.s.cluster.barrier()",
        RELEASE,
        "fence acquire",
        f"%x = load i32, ptr %p {WHOLE}",
    ],
)
def test_each_kind_of_barrier_is_guarded(text: str) -> None:
    result = guard_barriers(text)
    assert result.count(GUARD) == 1
    assert result.replace(f"{GUARD} ", "") == text
    assert "\n" not in result


@pytest.mark.parametrize(
    "text",
    [
        "declare void @llvm.amdgcn.s.barrier()",
        "; fence acquire",
        '!1 = !DIFile(filename: "fence acquire", directory: "barrier")',
        "@fence = global i32 0",
        "call void @llvm.amdgcn.sched.barrier(i32 0)",
        "call void @my_barrier()",
        "%fence = add i32 %x, 1",
    ],
)
def test_nothing_else_is(text: str) -> None:
    assert guard_barriers(text) == text
