"""Planned launchers do what compiled ones do, which LLVM is the reference for."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import pytest
from mlir import ir

from flydsl.compiler.lowering.host_launches import host_module
from flydsl.compiler.lowering.launch_planner import planned_launcher
from flydsl.dialect.context import context
from flydsl.errors import ArgumentError
from flydsl.printing import HOST_PRINTF
from flydsl.runtime.argument_slots import TooLarge
from flydsl.runtime.compiled_launcher import CompiledLauncher
from flydsl.runtime.planned_launcher import PlannedLauncher


class Calls:
    """Stands in for a `Call`: the launches, each with the first bytes of its kernel's operands, and what is printed."""

    def __init__(self, *widths: int) -> None:
        self._bytes = [width // 8 for width in widths]
        self.seen: list[tuple[Any, ...]] = []
        self.refuses = False

    def launch(self, number: int, grid: Any, block: Any, lds: int, stream: int, params: Any) -> None:
        operands = [ctypes.string_at(params[i], size) for i, size in enumerate(self._bytes)]
        self.seen.append((number, grid, block, lds, stream, operands))

    def print(self, number: int, values: int) -> None:
        self.seen.append((number, ctypes.string_at(values, 5)))
        if self.refuses:
            raise ArgumentError("refused")


def both(parameters: str, body: str, codes: Sequence[str], operand: str = "") -> tuple[Any, Any]:
    """The planned and the compiled launcher with this body, which ends in a launch if `operand` names its operand."""
    names = [name.strip().partition(":") for name in parameters.split(",")]
    launch = (
        f"""
      %size = llvm.mlir.constant(1 : i64) : i64
      gpu.launch_func @kernels::@k blocks in (%size, %size, %size) threads in (%size, %size, %size) : i64
        args({operand})
      llvm.return"""
        if operand
        else ""
    )
    text = f"""
      module attributes {{gpu.container_module}} {{
        gpu.module @kernels {{ gpu.func @k(%x: {operand.partition(":")[2] or names[0][2]}) kernel {{ gpu.return }} }}
        llvm.func @{HOST_PRINTF}(i32, !llvm.ptr)
        llvm.func @f({parameters}) {{ {body} {launch} }}
      }}"""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        planned = planned_launcher(module, "f", codes)
        host, kernels = host_module(module)
        return planned, CompiledLauncher(host, "f", codes, kernels)


def seen_by(launcher: Any, values: Sequence[Any], *widths: int) -> list[tuple[Any, ...]]:
    calls = Calls(*widths)
    launcher.run(values, calls)
    return calls.seen


WIDTHS = {"b": 8, "h": 16, "i": 32, "q": 64}


def edges(width: int) -> list[int]:
    least = -(1 << width - 1)
    return [0, 1, -1, 2, 7, -100, least, least + 1, -least - 1]


@pytest.mark.parametrize("code", ["b", "i", "q"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "and", "or", "xor"])
def test_operations_of_two_integers(name: str, code: str) -> None:
    type_ = f"i{WIDTHS[code]}"
    launchers = both(f"%x: {type_}, %y: {type_}", f"%z = llvm.{name} %x, %y : {type_}", [code] * 2, f"%z : {type_}")
    for x in edges(WIDTHS[code]):
        for y in edges(WIDTHS[code]):
            planned, compiled = (seen_by(launcher, [x, y], WIDTHS[code]) for launcher in launchers)
            assert planned == compiled, (x, y)


@pytest.mark.parametrize("code", ["h", "q"])
@pytest.mark.parametrize(
    ("name", "right"),
    [(name, right) for name in ("shl", "lshr", "ashr") for right in (0, 3, 15)]
    + [(name, right) for name in ("udiv", "urem", "sdiv", "srem") for right in (1, 7, -7, 100)],
)
def test_operations_with_a_constant(name: str, right: int, code: str) -> None:
    type_ = f"i{WIDTHS[code]}"
    body = f"%c = llvm.mlir.constant({right} : {type_}) : {type_}\n %z = llvm.{name} %x, %c : {type_}"
    launchers = both(f"%x: {type_}", body, [code], f"%z : {type_}")
    for x in edges(WIDTHS[code]):
        planned, compiled = (seen_by(launcher, [x], WIDTHS[code]) for launcher in launchers)
        assert planned == compiled, x


@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
def test_comparisons_and_choices(predicate: str) -> None:
    body = f'%c = llvm.icmp "{predicate}" %x, %y : i32\n %z = llvm.select %c, %x, %y : i1, i32'
    launchers = both("%x: i32, %y: i32", body, ["i", "i"], "%z : i32")
    for x in edges(32):
        for y in edges(32):
            planned, compiled = (seen_by(launcher, [x, y], 32) for launcher in launchers)
            assert planned == compiled, (x, y)


@pytest.mark.parametrize(("name", "code", "result"), [("sext", "h", 64), ("zext", "h", 64), ("trunc", "q", 16)])
def test_conversions(name: str, code: str, result: int) -> None:
    body = f"%z = llvm.{name} %x : i{WIDTHS[code]} to i{result}"
    launchers = both(f"%x: i{WIDTHS[code]}", body, [code], f"%z : i{result}")
    for x in edges(WIDTHS[code]):
        planned, compiled = (seen_by(launcher, [x], result) for launcher in launchers)
        assert planned == compiled, x


def test_booleans_are_one_byte_for_kernels() -> None:
    body = "%z = llvm.mlir.constant(true) : i1"
    for launcher in both("%x: i32", body, ["i"], "%z : i1"):
        assert seen_by(launcher, [0], 8)[0][-1] == [b"\1"]


PAIR = "!llvm.struct<packed (struct<packed (i32, f32)>, struct<packed (i64)>)>"


def test_a_number_among_those_of_an_argument() -> None:
    body = f"%z = llvm.extractvalue %x[1, 0] : {PAIR}"
    for launcher in both(f"%x: {PAIR}", body, ["ifq"], "%z : i64"):
        assert seen_by(launcher, [1, 2.0, -3], 64)[0][-1] == [(-3).to_bytes(8, "little", signed=True)]


def test_arguments_reach_kernels_as_they_are() -> None:
    for launcher in both(f"%x: {PAIR}", "", ["ifq"], f"%x : {PAIR}"):
        assert seen_by(launcher, [1, 0.0, 2], 128)[0][-1] == [b"\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"]


LOOP = """
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%zero, %x : i64, i64)
^head(%i: i64, %size: i64):
  %more = llvm.icmp "slt" %i, %n : i64
  llvm.cond_br %more, ^inside, ^end
^inside:
  gpu.launch_func @kernels::@k blocks in (%size, %one, %one) threads in (%one, %one, %one) : i64 args(%i : i64)
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next, %next : i64, i64)
^end:
  llvm.return
"""


def test_a_loop_of_launches() -> None:
    for launcher in both("%x: i64, %n: i64", LOOP, ["q", "q"]):
        seen = seen_by(launcher, [9, 3], 8)
        assert [(grid[0], operands) for _, grid, _, _, _, operands in seen] == [
            (9, [b"\0"]),
            (1, [b"\1"]),
            (2, [b"\2"]),
        ]


REFUSAL = """
  %two = llvm.mlir.constant(2 : i64) : i64
  %five = llvm.mlir.constant(5 : i32) : i32
  %low = llvm.trunc %n : i64 to i8
  %many = llvm.icmp "ugt" %n, %two : i64
  llvm.cond_br %many, ^refuse, ^go_on
^refuse:
  %values = llvm.alloca %two x i32 : (i64) -> !llvm.ptr
  %narrow = llvm.trunc %n : i64 to i32
  llvm.store %narrow, %values : i32, !llvm.ptr
  %second = llvm.getelementptr %values[1] : (!llvm.ptr) -> !llvm.ptr, i32
  llvm.store %low, %second : i8, !llvm.ptr
  llvm.call @flydsl_host_printf(%five, %values) : (i32, !llvm.ptr) -> ()
  llvm.br ^go_on
^go_on:
  gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) : i64 args(%n : i64)
  llvm.return
"""


def test_printing_and_refusing() -> None:
    for launcher in both("%n: i64", REFUSAL, ["q"]):
        assert [len(entry) for entry in seen_by(launcher, [2])] == [6]
        assert seen_by(launcher, [-3])[0] == (5, b"\xfd\xff\xff\xff\xfd")
        calls = Calls()
        calls.refuses = True
        with pytest.raises(ArgumentError, match="refused"):
            launcher.run([3], calls)
        assert len(calls.seen) == 1


def test_a_number_that_is_too_large() -> None:
    for launcher in both("%x: i32", "", ["i"], "%x : i32"):
        with pytest.raises(TooLarge):
            launcher.run([1 << 31], Calls())


@pytest.mark.parametrize(
    "body",
    [
        "%y = llvm.fadd %x, %x : f32\n %z = llvm.fptosi %y : f32 to i64",
        "%z = llvm.mlir.zero : i64",
        "%b = llvm.bitcast %x : f32 to i32\n %z = llvm.zext %b : i32 to i64",
    ],
)
def test_what_is_left_to_the_compiled_launcher(body: str) -> None:
    planned, compiled = both("%x: f32", body, ["f"], "%z : i64")
    assert planned is None
    assert seen_by(compiled, [1.0], 64)


def test_most_launchers_are_planned() -> None:
    planned, _ = both("%x: i32", "", ["i"], "%x : i32")
    assert isinstance(planned, PlannedLauncher)
