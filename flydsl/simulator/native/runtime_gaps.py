"""LLVM IR of the functions that look whether an access touches a gap of a view: see `gaps`."""

from __future__ import annotations

from flydsl.simulator.native import layout

_TWO_TO_52 = 0x4330000000000000
"""An f64 whose lowest bits count ones: an integer below that, or'ed into it, is added to it."""


def _splat(name: str, type_: str) -> str:
    """%names from %name."""
    return (
        f"  %{name}_0 = insertelement <64 x {type_}> poison, {type_} %{name}, i64 0\n"
        f"  %{name}s = shufflevector <64 x {type_}> %{name}_0, <64 x {type_}> poison, <64 x i32> zeroinitializer"
    )


_GAPS = f"""
; Whether an access of `size` bytes touches a gap of a buffer.
define private i1 @touches_gap(ptr %buffer, i64 %start, i64 %size) {{
entry:
  %pr = getelementptr i8, ptr %buffer, i64 {layout.BUFFER_ROWS}
  %rows = load ptr, ptr %pr
  %pc = getelementptr i8, ptr %buffer, i64 {layout.BUFFER_ROW_COUNT}
  %count = load i64, ptr %pc
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %within ]
  %offset = phi i64 [ %start, %entry ], [ %rest, %within ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %no
look:
  %o = mul i64 %i, {layout.ROWS_BYTES}
  %ps = getelementptr i8, ptr %rows, i64 %o
  %stride = load i64, ptr %ps
  %pe = getelementptr i8, ptr %ps, i64 8
  %extent = load i64, ptr %pe
  %rest = urem i64 %offset, %stride
  %end = add i64 %rest, %size
  %beyond = icmp ugt i64 %end, %extent
  br i1 %beyond, label %yes, label %within
within:
  %next = add i64 %i, 1
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}}

; Whether one of 64 accesses does. Offsets are below 2^35, so that f64 has them, and their products, exactly; what is
; beyond by one row because 1 / stride was rounded is put right.
define private i1 @some_touch_gap(ptr %buffer, <64 x i64> %starts, i64 %size) {{
entry:
  %pr = getelementptr i8, ptr %buffer, i64 {layout.BUFFER_ROWS}
  %rows = load ptr, ptr %pr
  %pc = getelementptr i8, ptr %buffer, i64 {layout.BUFFER_ROW_COUNT}
  %count = load i64, ptr %pc
  %bits = add i64 {_TWO_TO_52}, 0
{_splat("bits", "i64")}
  %magic = or <64 x i64> %starts, %bitss
  %big = bitcast <64 x i64> %magic to <64 x double>
  %bias = bitcast <64 x i64> %bitss to <64 x double>
  %all = fsub <64 x double> %big, %bias
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %within ]
  %offsets = phi <64 x double> [ %all, %entry ], [ %rests, %within ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %no
look:
  %o = mul i64 %i, {layout.ROWS_BYTES}
  %ps = getelementptr i8, ptr %rows, i64 %o
  %whole_stride = load i64, ptr %ps
  %stride = uitofp i64 %whole_stride to double
  %pe = getelementptr i8, ptr %ps, i64 8
  %extent = load i64, ptr %pe
  %whole_last = sub i64 %extent, %size
  %last = sitofp i64 %whole_last to double
  %inverse = fdiv double 1.0, %stride
{_splat("stride", "double")}
{_splat("inverse", "double")}
{_splat("last", "double")}
  %quotients = fmul <64 x double> %offsets, %inverses
  %rounded = call <64 x double> @llvm.floor.v64f64(<64 x double> %quotients)
  %starts_of_rows = fmul <64 x double> %rounded, %strides
  %about = fsub <64 x double> %offsets, %starts_of_rows
  %too_small = fcmp olt <64 x double> %about, zeroinitializer
  %raised = fadd <64 x double> %about, %strides
  %not_negative = select <64 x i1> %too_small, <64 x double> %raised, <64 x double> %about
  %too_large = fcmp oge <64 x double> %not_negative, %strides
  %lowered = fsub <64 x double> %not_negative, %strides
  %rests = select <64 x i1> %too_large, <64 x double> %lowered, <64 x double> %not_negative
  %beyond = fcmp ogt <64 x double> %rests, %lasts
  %lanes = bitcast <64 x i1> %beyond to i64
  %some = icmp ne i64 %lanes, 0
  br i1 %some, label %yes, label %within
within:
  %next = add i64 %i, 1
  br label %loop
yes:
  ret i1 true
no:
  ret i1 false
}}
"""


def gap_functions() -> str:
    """LLVM IR of both."""
    return _GAPS
