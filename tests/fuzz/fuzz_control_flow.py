"""Random programs of branches, loops, early exits and functions compute on the device what they compute in Python."""

from __future__ import annotations

import linecache
import os
import random
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch

import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler.rewrite import rewrite
from flydsl.errors import FlyError
from flydsl.expr import range_constexpr

TOGETHER = 5  # programs that are compiled as one module

PROGRAM = """\
def program(A, B, R, a, b):
    x = 0
    y = a
    z = 1
    L = [0, a, b]
    def bump(v):
        nonlocal z
        z = (z + v) & 63
        L[1] = (L[1] - z) & 63
    def helper(p, q):
{helper}
        return p
{body}
    x = (x + helper(x, y)) & 63
    B[0] = x
    B[1] = y
    B[2] = z
    for j in range_constexpr(3):
        B[3 + j] = L[j]
    for j in range_constexpr(2):
        B[6 + j] = R[j]
"""


class Writer:
    """Writes random source on the names that it is given. Six bits are kept of each number: none grows past 32."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        # A register tensor stays memory where a position in it is a runtime value, which may lie outside.
        self.register = ("R[1]", "R[a & 1]", "R[a]", "R[b - 2]")[seed % 4]

    def program(self) -> str:
        helper = self.block(["p", "q"], 2, 3, ("return {} & 63",))
        body = self.block(["x", "y", "z"], 1, 3, ())
        return PROGRAM.format(helper="\n".join(helper), body="\n".join(body))

    def number(self, names: list[str], depth: int = 2) -> str:
        leaf = self.random.choice(
            [*names, str(self.random.randrange(-3, 9)), "a", "b", f"L[{self.random.randrange(3)}]", self.register]
        )
        forms = [
            lambda: leaf,
            lambda: f"({self.number(names, depth - 1)} {self.random.choice('+-*')} {self.number(names, depth - 1)})",
            lambda: f"({self.number(names, depth - 1)} if {self.truth(names, depth - 1)} else {leaf})",
            lambda: f"A[{self.number(names, depth - 1)} & 15]",
            lambda: f"(({self.truth(names, depth - 1)}) + 0)",
        ]
        return self.random.choice(forms)() if depth else leaf

    def truth(self, names: list[str], depth: int = 2) -> str:
        simple = f"{self.random.choice(names)} {self.random.choice(['<', '<=', '==', '!='])} {self.number(names, 0)}"
        forms = [
            lambda: simple,
            lambda: f"({self.truth(names, depth - 1)} and {self.truth(names, depth - 1)})",
            lambda: f"({self.truth(names, depth - 1)} or {self.truth(names, depth - 1)})",
            lambda: f"(not {self.truth(names, depth - 1)})",
            lambda: f"({self.number(names, 0)} < {self.number(names, depth - 1)} <= {self.number(names, 0)})",
        ]
        return self.random.choice(forms)() if depth > 0 else simple

    def block(self, names: list[str], indent: int, depth: int, leave: tuple[str, ...]) -> list[str]:
        lines = []
        for _ in range(self.random.randrange(1, 4)):
            statement = self.statement(names, depth, leave)
            lines += ["    " * indent + line for line in statement]
        return lines

    def statement(self, names: list[str], depth: int, leave: tuple[str, ...]) -> list[str]:
        def inner(leave: tuple[str, ...]) -> list[str]:
            return self.block(names, 1, depth - 1, leave)

        kind = self.random.choice(["assign", "element", "call", "if", "for", "while", "unrolled", "leave"])
        if kind == "leave" and leave:
            return [f"if {self.truth(names)}:", "    " + self.random.choice(leave).format(self.number(names))]
        if kind == "element":
            place = self.random.choice([f"L[{self.random.randrange(3)}]", "R[0]", "R[1]", self.register])
            return [f"{place} = {self.number(names)} & 63"]
        if kind == "call":
            return [f"bump({self.number(names)} & 63)"]
        if kind in ("assign", "leave") or not depth:
            return [f"{self.random.choice(names)} = {self.number(names)} & 63"]
        if kind == "if":
            return [f"if {self.truth(names)}:", *inner(leave), f"elif {self.truth(names)}:", *inner(leave), "else:",
                    *inner(leave)]  # fmt: skip
        self.count += 1
        name, out = f"i{self.count}", ("break", "continue", *(way for way in leave if way.startswith("return")))
        if kind == "for":
            return [f"for {name} in range({self.random.choice(['a & 3', '2', 'b & 3'])}):", *inner(out)]
        if kind == "unrolled":
            return [f"for {name} in range_constexpr(2):", *inner(out)]
        return [f"{name} = a & 3", f"while {name} > 0 and {self.truth(names, 1)}:", f"    {name} -= 1", *inner(out)]


class Registers(list[int]):
    """A list that a position outside of takes the last element of, also a negative one: as register tensors do."""

    def __getitem__(self, position: Any) -> Any:
        return super().__getitem__(self._inside(position))

    def __setitem__(self, position: Any, value: Any) -> None:
        super().__setitem__(self._inside(position), value)

    def _inside(self, position: int) -> int:
        return position if 0 <= position < len(self) else len(self) - 1


def compiled(source: str, seed: int) -> Callable[..., None]:
    """The program, with its source where a traceback and the compiler find it."""
    file = f"<program {seed}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace: dict[str, Any] = {"range_constexpr": range_constexpr}
    exec(compile(source, file, "exec"), namespace)
    return namespace["program"]


def kernel_of(source: str, seed: int, row: int) -> Any:
    """A kernel of the program that writes its results to one row of B."""
    program = compiled(source, seed)

    def typed(A: fx.Tensor, B: fx.Tensor, a: fx.Int32, b: fx.Int32):
        R = fx.make_rmem_tensor(2, fx.Int32)
        R[0] = 3
        R[1] = 7
        rewrite(program)(A, B[row, None], R, a, b)

    return flyc.kernel(typed)


def check(*seeds: int) -> None:
    """Compare programs, compiled together, for four pairs of arguments. Raises AssertionError, with the source."""
    sources = [Writer(seed).program() for seed in seeds]
    kernels = [kernel_of(source, seed, row) for row, (source, seed) in enumerate(zip(sources, seeds, strict=True))]

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, a: fx.Int32, b: fx.Int32):
        for kernel in kernels:
            kernel(A, B, a, b).launch(grid=1, block=1)

    A = (torch.arange(16) * 5 % 11 - 3).to(torch.int32)
    choose = random.Random(seeds[0])
    for a, b in [(choose.randrange(-4, 9), choose.randrange(-4, 9)) for _ in range(4)]:
        B = torch.zeros(len(seeds), 8, dtype=torch.int32)
        try:
            launch(A, B, a, b)
        except FlyError as error:
            raise AssertionError(f"check{seeds} of a={a}, b={b}:\n{error}") from error
        for seed, source, row in zip(seeds, sources, B.tolist(), strict=True):
            expected = [0] * 8
            compiled(source, seed)(A.tolist(), expected, Registers([3, 7]), a, b)
            assert row == expected, f"program {seed} of a={a}, b={b}: {row}, not {expected}\n{source}"


def run(seed: int, count: int) -> None:
    """Check `count` programs. The opt levels take turns."""
    chosen = random.Random(seed)
    seeds = [chosen.randrange(1 << 32) for _ in range(count)]
    findings = []
    for number, first in enumerate(range(0, count, TOGETHER)):
        with mock.patch.dict(os.environ, FLYDSL_COMPILE_OPT_LEVEL=str(number % 4)):
            try:
                check(*seeds[first : first + TOGETHER])
            except AssertionError as finding:
                findings.append(f"at opt level {number % 4}: {finding}")
    assert not findings, "\n\n".join(findings)
