"""LLVM IR of the functions that check addresses and find what they mean on the host.

`resolve_<space>(wave, active lanes, bytes, is a write, host)` reads 64 addresses from the workspace, and returns
whether every active lane may access that many bytes; if so, `host` has an address of the host for every lane.
"""

from __future__ import annotations

from flydsl.simulator.memory import SLOT_SHIFT
from flydsl.simulator.native import layout
from flydsl.simulator.numpy_memory import PRIVATE_APERTURE, SHARED_APERTURE
from flydsl.simulator.waves import LANES

_LANE_NUMBERS = ", ".join(f"i64 {lane}" for lane in range(LANES))

_RESOLVE = f"""
; The entry of the table for an address, or null for an address of no buffer.
define private ptr @buffer_at(ptr %wave, i64 %address) {{
  %slot = lshr i64 %address, {SLOT_SHIFT}
  %pc = getelementptr i8, ptr %wave, i64 {layout.BUFFER_COUNT}
  %count = load i64, ptr %pc
  %pt = getelementptr i8, ptr %wave, i64 {layout.BUFFERS}
  %table = load ptr, ptr %pt
  %offset = mul i64 %slot, {layout.BUFFER_BYTES}
  %entry = getelementptr i8, ptr %table, i64 %offset
  %known = icmp ult i64 %slot, %count
  %result = select i1 %known, ptr %entry, ptr null
  ret ptr %result
}}

; Where `size` bytes at a global address are on the host, or null. `row_size` bytes of them must lie in one row.
define private ptr @host_of(ptr %wave, i64 %address, i64 %size, i64 %row_size, i1 %write) {{
  %entry = call ptr @buffer_at(ptr %wave, i64 %address)
  %unknown = icmp eq ptr %entry, null
  br i1 %unknown, label %no, label %known
known:
  %base = load i64, ptr %entry
  %ph = getelementptr i8, ptr %entry, i64 {layout.BUFFER_HOST}
  %host = load i64, ptr %ph
  %ps = getelementptr i8, ptr %entry, i64 {layout.BUFFER_SIZE}
  %bytes = load i64, ptr %ps
  %pw = getelementptr i8, ptr %entry, i64 {layout.BUFFER_WRITABLE}
  %writable = load i64, ptr %pw
  %read_only = icmp eq i64 %writable, 0
  %forbidden = and i1 %write, %read_only
  %offset = sub i64 %address, %base
  %last = sub i64 %bytes, %size
  %fits = icmp sge i64 %last, 0
  %inside = icmp ule i64 %offset, %last
  %fine = and i1 %fits, %inside
  %allowed = xor i1 %forbidden, true
  %good = and i1 %fine, %allowed
  br i1 %good, label %inside_of_all, label %no
inside_of_all:
  %gap = call i1 @touches_gap(ptr %entry, i64 %offset, i64 %row_size)
  br i1 %gap, label %no, label %yes
yes:
  %at = add i64 %host, %offset
  %result = inttoptr i64 %at to ptr
  ret ptr %result
no:
  ret ptr null
}}

define private ptr @resolve_scalar(ptr %wave, i64 %address, i64 %size, i1 %where) {{
  br i1 %where, label %access, label %nothing
access:
  %result = call ptr @host_of(ptr %wave, i64 %address, i64 %size, i64 1, i1 false)
  ret ptr %result
nothing:
  %pw = getelementptr i8, ptr %wave, i64 {layout.WORKSPACE}
  %workspace = load ptr, ptr %pw
  %zeros = getelementptr i8, ptr %workspace, i64 {layout.NOWHERE}
  ret ptr %zeros
}}

; What stands in for the lanes that do not take part.
define private i64 @elsewhere(ptr %workspace, i1 %write) {{
  %offset = select i1 %write, i64 {layout.DUMP}, i64 {layout.NOWHERE}
  %place = getelementptr i8, ptr %workspace, i64 %offset
  %result = ptrtoint ptr %place to i64
  ret i64 %result
}}

define private i1 @resolve_global(ptr %wave, i64 %active, i64 %size, i1 %write, ptr %host) {{
  %pws = getelementptr i8, ptr %wave, i64 {layout.WORKSPACE}
  %workspace = load ptr, ptr %pws
  %elsewhere = call i64 @elsewhere(ptr %workspace, i1 %write)
  %ei = insertelement <64 x i64> poison, i64 %elsewhere, i64 0
  %everywhere = shufflevector <64 x i64> %ei, <64 x i64> poison, <64 x i32> zeroinitializer
  %addresses = load <64 x i64>, ptr %workspace, align 64
  %mask = bitcast i64 %active to <64 x i1>
  %none = icmp eq i64 %active, 0
  br i1 %none, label %nobody, label %somebody
nobody:
  store <64 x i64> %everywhere, ptr %host, align 64
  ret i1 true
somebody:
  %first = call i64 @llvm.cttz.i64(i64 %active, i1 true)
  %pf = getelementptr i64, ptr %workspace, i64 %first
  %address = load i64, ptr %pf
  %entry = call ptr @buffer_at(ptr %wave, i64 %address)
  %unknown = icmp eq ptr %entry, null
  br i1 %unknown, label %fault, label %known
known:
  %base = load i64, ptr %entry
  %ph = getelementptr i8, ptr %entry, i64 {layout.BUFFER_HOST}
  %storage = load i64, ptr %ph
  %ps = getelementptr i8, ptr %entry, i64 {layout.BUFFER_SIZE}
  %bytes = load i64, ptr %ps
  %pw = getelementptr i8, ptr %entry, i64 {layout.BUFFER_WRITABLE}
  %writable = load i64, ptr %pw
  %read_only = icmp eq i64 %writable, 0
  %forbidden = and i1 %write, %read_only
  %last = sub i64 %bytes, %size
  %short = icmp slt i64 %last, 0
  %bad = or i1 %forbidden, %short
  br i1 %bad, label %fault, label %check
check:
  %bi = insertelement <64 x i64> poison, i64 %base, i64 0
  %bases = shufflevector <64 x i64> %bi, <64 x i64> poison, <64 x i32> zeroinitializer
  %offsets = sub <64 x i64> %addresses, %bases
  %relevant = select <64 x i1> %mask, <64 x i64> %offsets, <64 x i64> zeroinitializer
  %furthest = call i64 @llvm.vector.reduce.umax.v64i64(<64 x i64> %relevant)
  %inside = icmp ule i64 %furthest, %last
  %prc = getelementptr i8, ptr %entry, i64 {layout.BUFFER_ROW_COUNT}
  %row_levels = load i64, ptr %prc
  %dense = icmp eq i64 %row_levels, 0
  br i1 %inside, label %inside_of_all, label %apart
inside_of_all:
  br i1 %dense, label %together, label %with_gaps
with_gaps:
  %gap = call i1 @some_touch_gap(ptr %entry, <64 x i64> %relevant, i64 %size)
  br i1 %gap, label %apart, label %together
together:
  %si = insertelement <64 x i64> poison, i64 %storage, i64 0
  %storages = shufflevector <64 x i64> %si, <64 x i64> poison, <64 x i32> zeroinitializer
  %places = add <64 x i64> %offsets, %storages
  %chosen = select <64 x i1> %mask, <64 x i64> %places, <64 x i64> %everywhere
  store <64 x i64> %chosen, ptr %host, align 64
  ret i1 true
apart:
  %result = call i1 @resolve_flat(ptr %wave, i64 %active, i64 %size, i1 %write, ptr %host)
  ret i1 %result
fault:
  ret i1 false
}}

; Lane by lane: the lanes may mean different buffers or memories.
define private i1 @resolve_flat(ptr %wave, i64 %active, i64 %size, i1 %write, ptr %host) {{
entry:
  %pws = getelementptr i8, ptr %wave, i64 {layout.WORKSPACE}
  %workspace = load ptr, ptr %pws
  %elsewhere = call i64 @elsewhere(ptr %workspace, i1 %write)
  br label %loop
loop:
  %lane = phi i64 [ 0, %entry ], [ %next, %store ]
  %ph = getelementptr i64, ptr %host, i64 %lane
  %shifted = lshr i64 %active, %lane
  %bit = trunc i64 %shifted to i1
  br i1 %bit, label %takes_part, label %store
takes_part:
  %pa = getelementptr i64, ptr %workspace, i64 %lane
  %address = load i64, ptr %pa
  %upper = and i64 %address, {~0xFFFFFFFF}
  %in_lds = icmp eq i64 %upper, {SHARED_APERTURE}
  br i1 %in_lds, label %local, label %maybe_scratch
maybe_scratch:
  %in_scratch = icmp eq i64 %upper, {PRIVATE_APERTURE}
  br i1 %in_scratch, label %local, label %global
local:
  %low = and i64 %address, {0xFFFFFFFF}
  %pl = getelementptr i8, ptr %wave, i64 {layout.LDS}
  %pr = getelementptr i8, ptr %wave, i64 {layout.SCRATCH}
  %pb = select i1 %in_lds, ptr %pl, ptr %pr
  %memory = load i64, ptr %pb
  %plb = getelementptr i8, ptr %wave, i64 {layout.LDS_BYTES}
  %prb = getelementptr i8, ptr %wave, i64 {layout.SCRATCH_BYTES}
  %pbb = select i1 %in_lds, ptr %plb, ptr %prb
  %bytes = load i64, ptr %pbb
  %prs = getelementptr i8, ptr %wave, i64 {layout.SCRATCH_STRIDE}
  %scratch_stride = load i64, ptr %prs
  %stride = select i1 %in_lds, i64 0, i64 %scratch_stride
  %own = mul i64 %lane, %stride
  %end = add i64 %low, %size
  %inside = icmp ule i64 %end, %bytes
  br i1 %inside, label %local_place, label %fault
local_place:
  %sum = add i64 %memory, %own
  %at_local = add i64 %sum, %low
  br label %store
global:
  %place = call ptr @host_of(ptr %wave, i64 %address, i64 %size, i64 %size, i1 %write)
  %at_global = ptrtoint ptr %place to i64
  %outside = icmp eq ptr %place, null
  br i1 %outside, label %fault, label %store
store:
  %at = phi i64 [ %elsewhere, %loop ], [ %at_local, %local_place ], [ %at_global, %global ]
  store i64 %at, ptr %ph
  %next = add i64 %lane, 1
  %done = icmp eq i64 %next, {LANES}
  br i1 %done, label %fine, label %loop
fine:
  ret i1 true
fault:
  ret i1 false
}}
"""


def _resolve_local(space: str, memory: int, limit: int, own: str) -> str:
    """LDS and scratch: offsets below a limit; `own` gives lanes a part of the memory each."""
    return f"""
define private i1 @resolve_{space}(ptr %wave, i64 %active, i64 %size, i1 %write, ptr %host) {{
  %pws = getelementptr i8, ptr %wave, i64 {layout.WORKSPACE}
  %workspace = load ptr, ptr %pws
  %elsewhere = call i64 @elsewhere(ptr %workspace, i1 %write)
  %ei = insertelement <64 x i64> poison, i64 %elsewhere, i64 0
  %everywhere = shufflevector <64 x i64> %ei, <64 x i64> poison, <64 x i32> zeroinitializer
  %addresses = load <64 x i64>, ptr %workspace, align 64
  %mask = bitcast i64 %active to <64 x i1>
  %pm = getelementptr i8, ptr %wave, i64 {memory}
  %memory = load i64, ptr %pm
  %pl = getelementptr i8, ptr %wave, i64 {limit}
  %limit = load i64, ptr %pl
  %relevant = select <64 x i1> %mask, <64 x i64> %addresses, <64 x i64> zeroinitializer
  %furthest = call i64 @llvm.vector.reduce.umax.v64i64(<64 x i64> %relevant)
  %end = add i64 %furthest, %size
  %inside = icmp ule i64 %end, %limit
  %nobody = icmp eq i64 %active, 0
  %fine = or i1 %inside, %nobody
  br i1 %fine, label %place, label %fault
place:
  %mi = insertelement <64 x i64> poison, i64 %memory, i64 0
  %memories = shufflevector <64 x i64> %mi, <64 x i64> poison, <64 x i32> zeroinitializer
{own}
  %places = add <64 x i64> %addresses, %parts
  %chosen = select <64 x i1> %mask, <64 x i64> %places, <64 x i64> %everywhere
  store <64 x i64> %chosen, ptr %host, align 64
  ret i1 true
fault:
  ret i1 false
}}
"""


_LDS_PART = "  %parts = add <64 x i64> %memories, zeroinitializer"
_SCRATCH_PART = f"""  %pst = getelementptr i8, ptr %wave, i64 {layout.SCRATCH_STRIDE}
  %stride = load i64, ptr %pst
  %sti = insertelement <64 x i64> poison, i64 %stride, i64 0
  %strides = shufflevector <64 x i64> %sti, <64 x i64> poison, <64 x i32> zeroinitializer
  %owns = mul <64 x i64> %strides, <{_LANE_NUMBERS}>
  %parts = add <64 x i64> %memories, %owns"""


def resolving_functions() -> str:
    """LLVM IR of all of them. They are private: every object file has those that it uses."""
    return (
        _RESOLVE
        + _resolve_local("lds", layout.LDS, layout.LDS_BYTES, _LDS_PART)
        + _resolve_local("scratch", layout.SCRATCH, layout.SCRATCH_BYTES, _SCRATCH_PART)
    )
