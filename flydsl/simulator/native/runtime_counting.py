"""LLVM IR of counting: two handlers that go before an instruction's own one, and the observer of accesses.

Lines of lanes in order are counted at once. Any other pattern of addresses mostly comes back: the next iteration, the
next wave. What it costs depends on the distances between lanes and on where the first one lies in a line (a dword, for
LDS), so it is worked out once and recognized after that.
"""

from __future__ import annotations

from flydsl.simulator.counters.raw import LINE_BYTES
from flydsl.simulator.native import layout as at
from flydsl.simulator.native.memory import SPACES
from flydsl.simulator.native.runtime_counting_lds import LDS_FUNCTIONS
from flydsl.simulator.native.runtime_fields import add, field, place
from flydsl.simulator.numpy_memory import PRIVATE_APERTURE, SHARED_APERTURE
from flydsl.simulator.operands import EXEC
from flydsl.simulator.waves import LANES

_LINE_SHIFT = LINE_BYTES.bit_length() - 1
_NEIGHBOURS = ", ".join(f"i32 {max(lane - 1, 0)}" for lane in range(LANES))
_HASH = 0x9E37_79B9_7F4A_7C15  # 2**64 divided by the golden ratio: spreads consecutive numbers


def _counting_handler(name: str, *, has_accesses: bool) -> str:
    """Count an execution and its lanes, and go on to the instruction's own handler, beyond the end of the records."""
    start_access = (
        place("p_entry", "counting", at.COUNTING_ENTRY)
        + "  store ptr %entry, ptr %p_entry\n"
        + place("p_part", "counting", at.COUNTING_PART)
        + "  store i64 0, ptr %p_part\n"
    )
    return f"""
define void @{name}(ptr %wave, ptr %record) {{
{field("counting", "wave", at.COUNTING, "ptr")}{field("records", "wave", at.RECORDS)}
{field("count", "wave", at.RECORD_COUNT)}{field("exec", "wave", 4 * EXEC)}
  %here = ptrtoint ptr %record to i64
  %distance = sub i64 %here, %records
  %offset = add i64 %distance, {at.COUNTING_ENTRIES}
  %entry = getelementptr i8, ptr %counting, i64 %offset
{add("executions", "entry", at.ENTRY_EXECUTIONS, "1")}
  %lanes = call i64 @llvm.ctpop.i64(i64 %exec)
{add("active", "entry", at.ENTRY_ACTIVE_LANES, "%lanes")}
{start_access if has_accesses else ""}
  %p_own = getelementptr [{at.RECORD_BYTES} x i8], ptr %record, i64 %count
  %own = load ptr, ptr %p_own
  musttail call void %own(ptr %wave, ptr %record)
  ret void
}}
"""


_OBSERVE = f"""
define void @observe(ptr %wave, i64 %active, i64 %size, i64 %space) {{
entry:
{field("counting", "wave", at.COUNTING, "ptr")}{field("addresses", "wave", at.WORKSPACE, "ptr")}
{field("entry_of", "counting", at.COUNTING_ENTRY, "ptr")}
  %nobody = icmp eq i64 %active, 0
  br i1 %nobody, label %end, label %somebody
somebody:
  switch i64 %space, label %flat [
    i64 {SPACES.index("global")}, label %global
    i64 {SPACES.index("lds")}, label %lds
    i64 {SPACES.index("scratch")}, label %scratch
  ]
global:
  call void @count_global(ptr %counting, ptr %entry_of, i64 %active, i64 %size, ptr %addresses)
  ret void
lds:
  call void @count_lds(ptr %counting, ptr %entry_of, i64 %active, i64 %size, ptr %addresses)
  ret void
scratch:
  call void @count_scratch(ptr %entry_of, i64 %active, i64 %size)
  ret void
flat:
  %all = load <64 x i64>, ptr %addresses, align 64
  %upper = and <64 x i64> %all, splat (i64 {~0xFFFFFFFF})
  %is_lds = icmp eq <64 x i64> %upper, splat (i64 {SHARED_APERTURE})
  %is_scratch = icmp eq <64 x i64> %upper, splat (i64 {PRIVATE_APERTURE})
  %lds_lanes = bitcast <64 x i1> %is_lds to i64
  %scratch_lanes = bitcast <64 x i1> %is_scratch to i64
  %in_lds = and i64 %lds_lanes, %active
  %in_scratch = and i64 %scratch_lanes, %active
  %local = or i64 %in_lds, %in_scratch
  %in_global = xor i64 %active, %local
  call void @count_scratch(ptr %entry_of, i64 %in_scratch, i64 %size)
  %any_lds = icmp ne i64 %in_lds, 0
  br i1 %any_lds, label %some_lds, label %after_lds
some_lds:
  call void @count_lds(ptr %counting, ptr %entry_of, i64 %in_lds, i64 %size, ptr %addresses)
  br label %after_lds
after_lds:
  %any_global = icmp ne i64 %in_global, 0
  br i1 %any_global, label %some_global, label %end
some_global:
  call void @count_global(ptr %counting, ptr %entry_of, i64 %in_global, i64 %size, ptr %addresses)
  ret void
end:
  ret void
}}

define private void @count_scratch(ptr %entry, i64 %active, i64 %size) {{
  %lanes = call i64 @llvm.ctpop.i64(i64 %active)
  %bytes = mul i64 %lanes, %size
{field("pattern", "entry", at.ENTRY_PATTERN, "ptr")}{add("scratch", "pattern", at.PATTERN_SCRATCH_BYTES, "%bytes")}
  ret void
}}

; Whether the pattern is the last one of this instruction. If not, it is so from now on.
define private i1 @matches(ptr %pattern, i64 %active, ptr %addresses, i64 %low_mask) {{
  %first = call i64 @llvm.cttz.i64(i64 %active, i1 true)
  %p_base = getelementptr i64, ptr %addresses, i64 %first
  %base = load i64, ptr %p_base
  %low = and i64 %base, %low_mask
  %all = load <64 x i64>, ptr %addresses, align 64
  %bi = insertelement <64 x i64> poison, i64 %base, i64 0
  %bases = shufflevector <64 x i64> %bi, <64 x i64> poison, <64 x i32> zeroinitializer
  %distances = sub <64 x i64> %all, %bases
  %mask = bitcast i64 %active to <64 x i1>
  %relative = select <64 x i1> %mask, <64 x i64> %distances, <64 x i64> zeroinitializer
{field("last_active", "pattern", at.PATTERN_ACTIVE)}{field("last_low", "pattern", at.PATTERN_LOW)}
{place("p_relative", "pattern", at.PATTERN_RELATIVE)}
  %last = load <64 x i64>, ptr %p_relative, align 64
  %differ = icmp ne <64 x i64> %last, %relative
  %different = bitcast <64 x i1> %differ to i64
  %a = xor i64 %active, %last_active
  %b = xor i64 %low, %last_low
  %ab = or i64 %a, %b
  %abc = or i64 %ab, %different
  %same = icmp eq i64 %abc, 0
  br i1 %same, label %yes, label %no
yes:
  ret i1 true
no:
  store i64 %active, ptr %p_last_active
  store i64 %low, ptr %p_last_low
  store <64 x i64> %relative, ptr %p_relative, align 64
  ret i1 false
}}
"""

_SET = f"""
define private i64 @new_stamp(ptr %counting) {{
{add("stamp", "counting", at.COUNTING_STAMP, "1")}
  ret i64 %stamp_sum
}}

; Put a number into the set. 1 if it was not there, else 0.
define private i64 @insert(ptr %counting, i64 %number, i64 %stamp) {{
entry:
{place("set", "counting", at.COUNTING_SET)}
  %spread = mul i64 %number, {_HASH}
  %start = lshr i64 %spread, {64 - at.SET_SIZE_LOG2}
  br label %loop
loop:
  %i = phi i64 [ %start, %entry ], [ %next, %other ]
  %slot = getelementptr [16 x i8], ptr %set, i64 %i
  %p_stamp = getelementptr i8, ptr %slot, i64 8
  %its_stamp = load i64, ptr %p_stamp
  %used = icmp eq i64 %its_stamp, %stamp
  br i1 %used, label %compare, label %free
compare:
  %its_number = load i64, ptr %slot
  %same = icmp eq i64 %its_number, %number
  br i1 %same, label %found, label %other
other:
  %after = add i64 %i, 1
  %next = and i64 %after, {(1 << at.SET_SIZE_LOG2) - 1}
  br label %loop
found:
  ret i64 0
free:
  store i64 %number, ptr %slot
  store i64 %stamp, ptr %p_stamp
  ret i64 1
}}
"""

_LINES = f"""
; An instruction may make several accesses of the same lanes: a line that more than one of them touches counts once.
define private void @count_global(ptr %counting, ptr %entry_of, i64 %active, i64 %size, ptr %addresses) {{
entry:
  %lanes = call i64 @llvm.ctpop.i64(i64 %active)
  %bytes = mul i64 %lanes, %size
{add("total_bytes", "entry_of", at.ENTRY_GLOBAL_BYTES, "%bytes")}
{field("part", "counting", at.COUNTING_PART)}
  %next_part = add i64 %part, 1
  store i64 %next_part, ptr %p_part
{place("masks", "counting", at.COUNTING_MASKS)}{place("rows", "counting", at.COUNTING_ROWS)}
  %p_mask = getelementptr i64, ptr %masks, i64 %part
  store i64 %active, ptr %p_mask
  %row = getelementptr [512 x i8], ptr %rows, i64 %part
  %all = load <64 x i64>, ptr %addresses, align 64
  store <64 x i64> %all, ptr %row, align 64
{field("pattern", "entry_of", at.ENTRY_PATTERN, "ptr")}
{place("p_result", "pattern", at.PATTERN_RESULT)}
  %is_first = icmp eq i64 %part, 0
  br i1 %is_first, label %first, label %later
first:
  %quick = call i64 @ordered_lines(i64 %active, i64 %size, <64 x i64> %all)
  %is_quick = icmp ne i64 %quick, 0
  br i1 %is_quick, label %add, label %look
look:
  %known = call i1 @matches(ptr %pattern, i64 %active, ptr %addresses, i64 {LINE_BYTES - 1})
  br i1 %known, label %as_before, label %work_out
as_before:
  %before = load i64, ptr %p_result
  br label %add
work_out:
  %exact = call i64 @new_lines(ptr %counting, i64 0, i64 %size)
  store i64 %exact, ptr %p_result
  br label %add
add:
  %lines = phi i64 [ %quick, %first ], [ %before, %as_before ], [ %exact, %work_out ]
{add("lines_first", "entry_of", at.ENTRY_GLOBAL_LINES, "%lines")}
  ret void
later:
  %previous = sub i64 %part, 1
  %p_previous_mask = getelementptr i64, ptr %masks, i64 %previous
  %previous_mask = load i64, ptr %p_previous_mask
  %previous_row = getelementptr [512 x i8], ptr %rows, i64 %previous
  %there = load <64 x i64>, ptr %previous_row, align 64
  %reach = sub i64 %size, 1
  %ri = insertelement <64 x i64> poison, i64 %reach, i64 0
  %reaches = shufflevector <64 x i64> %ri, <64 x i64> poison, <64 x i32> zeroinitializer
  %last_bytes = add <64 x i64> %all, %reaches
  %xa = xor <64 x i64> %all, %there
  %xb = xor <64 x i64> %last_bytes, %there
  %x = or <64 x i64> %xa, %xb
  %differ = icmp ugt <64 x i64> %x, splat (i64 {LINE_BYTES - 1})
  %differing = bitcast <64 x i1> %differ to i64
  %missing = xor i64 %previous_mask, -1
  %suspects = or i64 %differing, %missing
  %new = and i64 %suspects, %active
  %none_new = icmp eq i64 %new, 0
  br i1 %none_new, label %end, label %maybe
maybe:
  %more = call i64 @new_lines(ptr %counting, i64 %part, i64 %size)
{add("lines_later", "entry_of", at.ENTRY_GLOBAL_LINES, "%more")}
  ret void
end:
  ret void
}}

; How many lines the lanes touch if all are active, each touches one, and none one before its neighbour's; else 0.
define private i64 @ordered_lines(i64 %active, i64 %size, <64 x i64> %all) {{
  %reach = sub i64 %size, 1
  %ri = insertelement <64 x i64> poison, i64 %reach, i64 0
  %reaches = shufflevector <64 x i64> %ri, <64 x i64> poison, <64 x i32> zeroinitializer
  %last_bytes = add <64 x i64> %all, %reaches
  %lines = lshr <64 x i64> %all, splat (i64 {_LINE_SHIFT})
  %ends = lshr <64 x i64> %last_bytes, splat (i64 {_LINE_SHIFT})
  %neighbours = shufflevector <64 x i64> %lines, <64 x i64> poison, <64 x i32> <{_NEIGHBOURS}>
  %go_back = icmp ult <64 x i64> %lines, %neighbours
  %cross = icmp ne <64 x i64> %lines, %ends
  %disorder = or <64 x i1> %go_back, %cross
  %disorderly = bitcast <64 x i1> %disorder to i64
  %inactive = xor i64 %active, -1
  %obstacles = or i64 %disorderly, %inactive
  %is_ordered = icmp eq i64 %obstacles, 0
  %differ = icmp ne <64 x i64> %lines, %neighbours
  %changes = bitcast <64 x i1> %differ to i64
  %change_count = call i64 @llvm.ctpop.i64(i64 %changes)
  %count = add i64 %change_count, 1
  %result = select i1 %is_ordered, i64 %count, i64 0
  ret i64 %result
}}

; How many lines the last part touches that the parts before it do not.
define private i64 @new_lines(ptr %counting, i64 %last_part, i64 %size) {{
entry:
  %stamp = call i64 @new_stamp(ptr %counting)
{place("masks", "counting", at.COUNTING_MASKS)}{place("rows", "counting", at.COUNTING_ROWS)}
  %reach = sub i64 %size, 1
  br label %part
part:
  %q = phi i64 [ 0, %entry ], [ %q_next, %part_done ]
  %p_mask = getelementptr i64, ptr %masks, i64 %q
  %mask = load i64, ptr %p_mask
  %row = getelementptr [512 x i8], ptr %rows, i64 %q
  br label %lanes
lanes:
  %rest = phi i64 [ %mask, %part ], [ %less, %lane_done ]
  %count = phi i64 [ 0, %part ], [ %count_now, %lane_done ]
  %no_more = icmp eq i64 %rest, 0
  br i1 %no_more, label %part_done, label %lane
lane:
  %i = call i64 @llvm.cttz.i64(i64 %rest, i1 true)
  %rest_minus = sub i64 %rest, 1
  %less = and i64 %rest, %rest_minus
  %p_address = getelementptr i64, ptr %row, i64 %i
  %address = load i64, ptr %p_address
  %end_address = add i64 %address, %reach
  %first_line = lshr i64 %address, {_LINE_SHIFT}
  %last_line = lshr i64 %end_address, {_LINE_SHIFT}
  br label %line
line:
  %l = phi i64 [ %first_line, %lane ], [ %l_next, %line ]
  %n = phi i64 [ %count, %lane ], [ %count_now, %line ]
  %fresh = call i64 @insert(ptr %counting, i64 %l, i64 %stamp)
  %count_now = add i64 %n, %fresh
  %l_next = add i64 %l, 1
  %line_more = icmp ule i64 %l_next, %last_line
  br i1 %line_more, label %line, label %lane_done
lane_done:
  br label %lanes
part_done:
  %q_next = add i64 %q, 1
  %parts_more = icmp ule i64 %q_next, %last_part
  br i1 %parts_more, label %part, label %end
end:
  ret i64 %count
}}
"""

COUNTING_FUNCTIONS = ("count", "count_access", "observe")


def counting_functions() -> str:
    """LLVM IR of the handlers `count` and `count_access`, and of the observer `observe`."""
    handlers = _counting_handler("count", has_accesses=False) + _counting_handler("count_access", has_accesses=True)
    return "declare i64 @llvm.ctpop.i64(i64)\n" + handlers + _OBSERVE + _SET + _LINES + LDS_FUNCTIONS
