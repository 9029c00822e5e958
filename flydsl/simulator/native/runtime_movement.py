"""LLVM IR of the functions that move dwords: between rows and host addresses, and between lanes.

`gather<n>(host, rows)` and `scatter<n>(host, rows)` move n dwords per lane between 64 host addresses and n rows.
"""

from __future__ import annotations

from flydsl.simulator.native import layout
from flydsl.simulator.waves import LANES

_FOUR_BYTE_STEPS = f"<{', '.join(f'i64 {4 * lane}' for lane in range(LANES))}>"


def _one_by_one(name: str, type_: str, *, load: bool) -> str:
    """Gather or scatter numbers of a type, one per lane; a run of consecutive dwords as a whole."""
    widen = "" if type_ == "i32" else f"  %wide = zext {type_} %number to i32\n"
    narrow = "" if type_ == "i32" else f"  %narrow = trunc i32 %number to {type_}\n"
    stored = "%wide" if widen else "%number"
    small = "%narrow" if narrow else "%number"
    run = f"""  %all = load <64 x i64>, ptr %host, align 64
  %first = load i64, ptr %host
  %fi = insertelement <64 x i64> poison, i64 %first, i64 0
  %firsts = shufflevector <64 x i64> %fi, <64 x i64> poison, <64 x i32> zeroinitializer
  %expected = add <64 x i64> %firsts, {_FOUR_BYTE_STEPS}
  %difference = xor <64 x i64> %all, %expected
  %any = call i64 @llvm.vector.reduce.or.v64i64(<64 x i64> %difference)
  %consecutive = icmp eq i64 %any, 0
  br i1 %consecutive, label %whole, label %loop
whole:
  %start = inttoptr i64 %first to ptr
  %run = load <64 x i32>, ptr {"%start, align 4" if load else "%rows, align 64"}
  store <64 x i32> %run, ptr {"%rows, align 64" if load else "%start, align 4"}
  ret void
"""
    move = (
        f"""  %number = load {type_}, ptr %at, align 1
{widen}  store i32 {stored}, ptr %row"""
        if load
        else f"""  %number = load i32, ptr %row
{narrow}  store {type_} {small}, ptr %at, align 1"""
    )
    return f"""
define private void @{name}(ptr %host, ptr %rows) {{
entry:
{run if type_ == "i32" else "  br label %loop"}
loop:
  %lane = phi i64 [ 0, %entry ], [ %next, %loop ]
  %ph = getelementptr i64, ptr %host, i64 %lane
  %at = load ptr, ptr %ph
  %row = getelementptr i32, ptr %rows, i64 %lane
{move}
  %next = add i64 %lane, 1
  %done = icmp eq i64 %next, {LANES}
  br i1 %done, label %end, label %loop
end:
  ret void
}}
"""


def _several(name: str, dwords: int, *, load: bool) -> str:
    """Gather or scatter 2, 3 or 4 dwords per lane: four lanes at a time, transposed in registers."""
    type_ = f"<{dwords} x i32>"
    lines = []
    for i in range(4):
        lines.append(f"  %ph{i} = getelementptr i64, ptr %group, i64 {i}")
        lines.append(f"  %at{i} = load ptr, ptr %ph{i}")
    for r in range(dwords):
        lines.append(f"  %row{r} = getelementptr i8, ptr %start, i64 {layout.ROW_BYTES * r}")
    if load:
        lines += [f"  %x{i} = load {type_}, ptr %at{i}, align 1" for i in range(4)]
        lines += _transposed(dwords, 4, "x", "y")
        lines += [f"  store <4 x i32> %y{r}, ptr %row{r}, align 16" for r in range(dwords)]
    else:
        lines += [f"  %x{r} = load <4 x i32>, ptr %row{r}, align 16" for r in range(dwords)]
        lines += _transposed(4, dwords, "x", "y")
        lines += [f"  store {type_} %y{i}, ptr %at{i}, align 1" for i in range(4)]
    body = "\n".join(lines)
    return f"""
define private void @{name}(ptr %host, ptr %rows) {{
entry:
  br label %loop
loop:
  %lane = phi i64 [ 0, %entry ], [ %next, %loop ]
  %group = getelementptr i64, ptr %host, i64 %lane
  %start = getelementptr i32, ptr %rows, i64 %lane
{body}
  %next = add i64 %lane, 4
  %done = icmp eq i64 %next, {LANES}
  br i1 %done, label %end, label %loop
end:
  ret void
}}
"""


def _transposed(rows: int, columns: int, source: str, target: str) -> list[str]:
    """`columns` vectors of `rows` numbers become `rows` vectors of `columns` numbers."""
    lines = []
    type_ = f"<{rows} x i32>"
    for r in range(rows):
        value = "poison"
        for c in range(columns):
            element = f"%{target}e{r}_{c}"
            lines.append(f"  {element} = extractelement {type_} %{source}{c}, i64 {r}")
            name = f"%{target}{r}" if c == columns - 1 else f"%{target}i{r}_{c}"
            lines.append(f"  {name} = insertelement <{columns} x i32> {value}, i32 {element}, i64 {c}")
            value = name
    return lines


_MOVEMENT = f"""
; Rows: numbers, lanes (of which the lowest six bits count), result.
define private void @permute_lanes(ptr %rows) {{
entry:
  br label %loop
loop:
  %lane = phi i64 [ 0, %entry ], [ %next, %loop ]
  %pw = getelementptr i32, ptr %rows, i64 %lane
  %pi = getelementptr i8, ptr %pw, i64 {layout.ROW_BYTES}
  %index = load i32, ptr %pi
  %low = and i32 %index, {LANES - 1}
  %from = zext i32 %low to i64
  %px = getelementptr i32, ptr %rows, i64 %from
  %x = load i32, ptr %px
  %po = getelementptr i8, ptr %pw, i64 {2 * layout.ROW_BYTES}
  store i32 %x, ptr %po
  %next = add i64 %lane, 1
  %done = icmp eq i64 %next, {LANES}
  br i1 %done, label %end, label %loop
end:
  ret void
}}

; The active lanes' numbers go to the lanes named, the highest one last; 0 where none goes.
define private void @scatter_lanes(ptr %rows, i64 %active) {{
entry:
  %result = getelementptr i8, ptr %rows, i64 {2 * layout.ROW_BYTES}
  store <64 x i32> zeroinitializer, ptr %result, align 64
  br label %loop
loop:
  %lane = phi i64 [ 0, %entry ], [ %next, %after ]
  %shifted = lshr i64 %active, %lane
  %bit = trunc i64 %shifted to i1
  br i1 %bit, label %move, label %after
move:
  %px = getelementptr i32, ptr %rows, i64 %lane
  %x = load i32, ptr %px
  %pi = getelementptr i8, ptr %px, i64 {layout.ROW_BYTES}
  %index = load i32, ptr %pi
  %low = and i32 %index, {LANES - 1}
  %to = zext i32 %low to i64
  %po = getelementptr i32, ptr %result, i64 %to
  store i32 %x, ptr %po
  br label %after
after:
  %next = add i64 %lane, 1
  %done = icmp eq i64 %next, {LANES}
  br i1 %done, label %end, label %loop
end:
  ret void
}}
"""


def moving_functions() -> str:
    """LLVM IR of all of them. They are private: every object file has those that it uses."""
    parts = [_one_by_one("gather1", "i32", load=True), _one_by_one("scatter1", "i32", load=False), _MOVEMENT]
    for bits in (8, 16):
        parts.append(_one_by_one(f"gather_bytes{bits // 8}", f"i{bits}", load=True))
        parts.append(_one_by_one(f"scatter_bytes{bits // 8}", f"i{bits}", load=False))
    for dwords in (2, 3, 4):
        parts.append(_several(f"gather{dwords}", dwords, load=True))
        parts.append(_several(f"scatter{dwords}", dwords, load=False))
    return "".join(parts)
