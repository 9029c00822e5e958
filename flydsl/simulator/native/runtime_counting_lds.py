"""LLVM IR that counts LDS bank conflicts: `count_lds`, by the rule that the instruction's pattern area points to."""

from __future__ import annotations

from flydsl.simulator.native import layout as at
from flydsl.simulator.native.runtime_fields import add, field, place

_DWORD_SHIFT = 2

LDS_FUNCTIONS = f"""
define private void @count_lds(ptr %counting, ptr %entry_of, i64 %active, i64 %size, ptr %addresses) {{
entry:
  %lanes = call i64 @llvm.ctpop.i64(i64 %active)
  %bytes = mul i64 %lanes, %size
{add("total_bytes", "entry_of", at.ENTRY_LDS_BYTES, "%bytes")}
{field("pattern", "entry_of", at.ENTRY_PATTERN, "ptr")}{field("rule", "pattern", at.PATTERN_RULE, "ptr")}
  %unknown = icmp eq ptr %rule, null
  br i1 %unknown, label %end, label %look
look:
  %known = call i1 @matches(ptr %pattern, i64 %active, ptr %addresses, i64 3)
  br i1 %known, label %add, label %work_out
work_out:
  call void @lds_passes(ptr %counting, ptr %pattern, ptr %rule, i64 %active, ptr %addresses)
  br label %add
add:
{field("result", "pattern", at.PATTERN_RESULT)}{field("phase_result", "pattern", at.PATTERN_PHASES)}
{field("unaligned", "pattern", at.PATTERN_UNALIGNED)}
{add("passes", "entry_of", at.ENTRY_LDS_PASSES, "%result")}
{add("phases", "entry_of", at.ENTRY_LDS_PHASES, "%phase_result")}
{add("uncounted", "pattern", at.PATTERN_UNCOUNTED, "%unaligned")}
  ret void
end:
  ret void
}}

; What a pattern costs: in every phase, the most different dwords that are wanted from one bank.
define private void @lds_passes(ptr %counting, ptr %pattern, ptr %rule, i64 %active, ptr %addresses) {{
entry:
{place("to_result", "pattern", at.PATTERN_RESULT)}{place("to_phases", "pattern", at.PATTERN_PHASES)}
{place("to_unaligned", "pattern", at.PATTERN_UNALIGNED)}{place("to_worst", "pattern", at.PATTERN_MAX_WAYS)}
{place("ways", "counting", at.COUNTING_WAYS)}{field("dwords", "rule", at.RULE_DWORDS)}
{field("banks", "rule", at.RULE_BANKS)}{field("phases", "rule", at.RULE_PHASES)}
{field("per_phase", "rule", at.RULE_LANES_PER_PHASE)}{place("lane_numbers", "rule", at.RULE_LANES)}
  store i64 0, ptr %to_result
  store i64 0, ptr %to_phases
  %all = load <64 x i64>, ptr %addresses, align 64
  %within = and <64 x i64> %all, splat (i64 3)
  %are_off = icmp ne <64 x i64> %within, zeroinitializer
  %off = bitcast <64 x i1> %are_off to i64
  %off_active = and i64 %off, %active
  %is_off = icmp ne i64 %off_active, 0
  %unaligned = zext i1 %is_off to i64
  store i64 %unaligned, ptr %to_unaligned
  br i1 %is_off, label %end, label %phase
phase:
  %p = phi i64 [ 0, %entry ], [ %p_next, %phase_done ]
  %total = phi i64 [ 0, %entry ], [ %total_now, %phase_done ]
  %busy = phi i64 [ 0, %entry ], [ %busy_now, %phase_done ]
  %stamp = call i64 @new_stamp(ptr %counting)
  call void @llvm.memset.p0.i64(ptr %ways, i8 0, i64 {8 * at.MAX_BANKS}, i1 false)
  %start = mul i64 %p, %per_phase
  br label %lane
lane:
  %i = phi i64 [ 0, %phase ], [ %i_next, %lane_done ]
  %most = phi i64 [ 0, %phase ], [ %most_after, %lane_done ]
  %position = add i64 %start, %i
  %p_lane = getelementptr i64, ptr %lane_numbers, i64 %position
  %number = load i64, ptr %p_lane
  %shifted = lshr i64 %active, %number
  %takes_part = trunc i64 %shifted to i1
  br i1 %takes_part, label %accesses, label %lane_done
accesses:
  %p_address = getelementptr i64, ptr %addresses, i64 %number
  %address = load i64, ptr %p_address
  %first_dword = lshr i64 %address, {_DWORD_SHIFT}
  br label %dword
dword:
  %k = phi i64 [ 0, %accesses ], [ %k_next, %dword ]
  %m = phi i64 [ %most, %accesses ], [ %most_now, %dword ]
  %d = add i64 %first_dword, %k
  %fresh = call i64 @insert(ptr %counting, i64 %d, i64 %stamp)
  %bank = urem i64 %d, %banks
  %p_ways = getelementptr i64, ptr %ways, i64 %bank
  %w = load i64, ptr %p_ways
  %w_now = add i64 %w, %fresh
  store i64 %w_now, ptr %p_ways
  %is_more = icmp ugt i64 %w_now, %m
  %most_now = select i1 %is_more, i64 %w_now, i64 %m
  %k_next = add i64 %k, 1
  %k_more = icmp ult i64 %k_next, %dwords
  br i1 %k_more, label %dword, label %lane_done
lane_done:
  %most_after = phi i64 [ %most, %lane ], [ %most_now, %dword ]
  %i_next = add i64 %i, 1
  %i_more = icmp ult i64 %i_next, %per_phase
  br i1 %i_more, label %lane, label %phase_done
phase_done:
  %total_now = add i64 %total, %most_after
  %is_busy = icmp ne i64 %most_after, 0
  %one = zext i1 %is_busy to i64
  %busy_now = add i64 %busy, %one
  %worst = load i64, ptr %to_worst
  %is_worst = icmp ugt i64 %most_after, %worst
  %worst_now = select i1 %is_worst, i64 %most_after, i64 %worst
  store i64 %worst_now, ptr %to_worst
  %p_next = add i64 %p, 1
  %p_more = icmp ult i64 %p_next, %phases
  br i1 %p_more, label %phase, label %done
done:
  store i64 %total_now, ptr %to_result
  store i64 %busy_now, ptr %to_phases
  ret void
end:
  ret void
}}
"""
