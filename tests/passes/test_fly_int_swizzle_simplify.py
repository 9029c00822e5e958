"""Constants move out of swizzles where that changes no bit."""

from __future__ import annotations

import re
from collections.abc import Callable

PASS = "fly-int-swizzle-simplify"


def swizzled(added: int, mask: int = 448, shift: int = 3) -> str:
    return f"""
        func.func @f(%x: i32) -> i32 {{
          %added = arith.constant {added} : i32
          %mask = arith.constant {mask} : i32
          %shift = arith.constant {shift} : i32
          %i = arith.addi %x, %added : i32
          %m = arith.andi %i, %mask : i32
          %s = arith.shrsi %m, %shift : i32
          %r = arith.xori %i, %s : i32
          return %r : i32
        }}"""


def test_a_constant_above_the_swizzle_is_added_afterwards(check: Callable[..., str]) -> None:
    text = check("// CHECK: arith.xori %arg0\n// CHECK: arith.addi\n// CHECK: return" + swizzled(1024), PASS)
    assert re.search(r"constant 1024", text[text.index("xori") :])


def test_the_part_below_stays_inside(check: Callable[..., str]) -> None:
    text = check("// CHECK: arith.addi %arg0\n// CHECK: arith.xori\n// CHECK: arith.addi" + swizzled(512 + 32), PASS)
    before, after = text.split("arith.xori")
    assert "constant 32 " in before
    assert "constant 512 " in after


def test_equal_swizzles_become_one(check: Callable[..., str]) -> None:
    body = "".join(
        f"""
          %c{i} = arith.constant {1024 * i} : i32
          %i{i} = arith.addi %x, %c{i} : i32
          %m{i} = arith.andi %i{i}, %mask : i32
          %s{i} = arith.shrsi %m{i}, %shift : i32
          %r{i} = arith.xori %i{i}, %s{i} : i32"""
        for i in (1, 2, 3)
    )
    text = check(
        f"""
        func.func @f(%x: i32) -> (i32, i32, i32) {{
          %mask = arith.constant 448 : i32
          %shift = arith.constant 3 : i32{body}
          return %r1, %r2, %r3 : i32, i32, i32
        }}""",
        PASS,
        "canonicalize",
    )
    assert text.count("arith.xori") == 1


def test_an_xor_of_other_values_is_no_swizzle(check: Callable[..., str]) -> None:
    check(
        """
        // CHECK: arith.addi
        // CHECK: arith.xori
        // CHECK-NOT: arith.shrsi
        func.func @f(%x: i32, %y: i32) -> i32 {
          %c = arith.constant 1024 : i32
          %i = arith.addi %x, %c : i32
          %r = arith.xori %i, %y : i32
          return %r : i32
        }""",
        PASS,
    )
