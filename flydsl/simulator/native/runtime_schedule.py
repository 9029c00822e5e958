"""LLVM IR of the scheduler: the loops over workgroups and over the waves of one."""

from __future__ import annotations

from flydsl.simulator.native import layout as at
from flydsl.simulator.operands import EXEC
from flydsl.simulator.waves import AT_BARRIER, ENDED, RUNNING

TURN_INSTRUCTIONS = 20_000
"""After so many instructions a wave lets the others of its workgroup go on: it may wait for them in a loop."""

assert 4 * EXEC < at.SCC


def _field(name: str, block: str, offset: int, type_: str = "i64") -> str:
    """Load a field of a block into %name; its address is %p_name."""
    return f"  %p_{name} = getelementptr i8, ptr %{block}, i64 {offset}\n  %{name} = load {type_}, ptr %p_{name}\n"


_LEAVE = f"""
; A handler returns to the scheduler, `steps` instructions after its own begin.
define private void @leave(ptr %wave, ptr %record, i64 %steps, i32 %status) {{
{_field("start", "wave", at.RUN_START)}{_field("executed", "wave", at.EXECUTED)}
  %here = ptrtoint ptr %record to i64
  %distance = sub i64 %here, %start
  %run = lshr i64 %distance, {at.RECORD_BYTES.bit_length() - 1}
  %before = add i64 %executed, %run
  %now = add i64 %before, %steps
  store i64 %now, ptr %p_executed
  %bytes = mul i64 %steps, {at.RECORD_BYTES}
  %next = getelementptr i8, ptr %record, i64 %bytes
  %p_pc = getelementptr i8, ptr %wave, i64 {at.PC}
  store ptr %next, ptr %p_pc
  %p_status = getelementptr i8, ptr %wave, i64 {at.STATUS}
  store i32 %status, ptr %p_status
  ret void
}}
"""

_FALL_BACK = f"""
; The handler of everything that has no other one.
define void @fall_back(ptr %wave, ptr %record) {{
  call void @leave(ptr %wave, ptr %record, i64 0, i32 {at.FALL_BACK})
  ret void
}}
"""

_START = f"""

define private void @set_id(ptr %wave, i64 %offset, i64 %id) {{
  %absent = icmp slt i64 %offset, 0
  br i1 %absent, label %end, label %set
set:
  %place = getelementptr i8, ptr %wave, i64 %offset
  %narrow = trunc i64 %id to i32
  store i32 %narrow, ptr %place
  br label %end
end:
  ret void
}}

; Put a fresh workgroup into the group block.
define private void @start_workgroup(ptr %group, ptr %launch, i64 %id) {{
entry:
{_field("waves", "group", at.GROUP_WAVES, "ptr")}{_field("lds", "group", at.GROUP_LDS, "ptr")}
{_field("scratch", "group", at.GROUP_SCRATCH, "ptr")}{_field("count", "launch", at.LAUNCH_WAVES)}
{_field("template", "launch", at.LAUNCH_TEMPLATE, "ptr")}{_field("grid_x", "launch", at.LAUNCH_GRID_X)}
{_field("grid_y", "launch", at.LAUNCH_GRID_Y)}{_field("id_x", "launch", at.LAUNCH_ID_X)}
{_field("id_y", "launch", at.LAUNCH_ID_Y)}{_field("id_z", "launch", at.LAUNCH_ID_Z)}
{_field("vgpr_bytes", "launch", at.LAUNCH_VGPR_BYTES)}{_field("agpr_bytes", "launch", at.LAUNCH_AGPR_BYTES)}
{_field("lds_bytes", "launch", at.LAUNCH_LDS_BYTES)}{_field("scratch_bytes", "launch", at.LAUNCH_SCRATCH_BYTES)}
  call void @llvm.memset.p0.i64(ptr %lds, i8 0, i64 %lds_bytes, i1 false)
  call void @llvm.memset.p0.i64(ptr %scratch, i8 0, i64 %scratch_bytes, i1 false)
  %x = urem i64 %id, %grid_x
  %rest = udiv i64 %id, %grid_x
  %y = urem i64 %rest, %grid_y
  %z = udiv i64 %rest, %grid_y
  br label %loop
loop:
  %w = phi i64 [ 0, %entry ], [ %next, %loop ]
  %o = mul i64 %w, {at.WAVE_STRIDE}
  %wave = getelementptr i8, ptr %waves, i64 %o
  %ot = mul i64 %w, {at.TEMPLATE_BYTES}
  %fresh = getelementptr i8, ptr %template, i64 %ot
  %v0 = getelementptr i8, ptr %wave, i64 {at.VGPR}
  %agpr = getelementptr i8, ptr %wave, i64 {at.VGPR + (at.WAVE_BYTES - at.VGPR) // 2}
  call void @llvm.memset.p0.i64(ptr %v0, i8 0, i64 %vgpr_bytes, i1 false)
  call void @llvm.memset.p0.i64(ptr %agpr, i8 0, i64 %agpr_bytes, i1 false)
  %kept = getelementptr i8, ptr %wave, i64 {at.LDS}
  %own_lds = load ptr, ptr %kept
  %p_own_scratch = getelementptr i8, ptr %wave, i64 {at.SCRATCH}
  %own_scratch = load ptr, ptr %p_own_scratch
  %p_workspace = getelementptr i8, ptr %wave, i64 {at.WORKSPACE}
  %workspace = load ptr, ptr %p_workspace
  %p_counting = getelementptr i8, ptr %wave, i64 {at.COUNTING}
  %counting = load ptr, ptr %p_counting
  call void @llvm.memcpy.p0.p0.i64(ptr %wave, ptr %fresh, i64 {at.TEMPLATE_BYTES}, i1 false)
  store ptr %own_lds, ptr %kept
  store ptr %own_scratch, ptr %p_own_scratch
  store ptr %workspace, ptr %p_workspace
  store ptr %counting, ptr %p_counting
  call void @set_id(ptr %wave, i64 %id_x, i64 %x)
  call void @set_id(ptr %wave, i64 %id_y, i64 %y)
  call void @set_id(ptr %wave, i64 %id_z, i64 %z)
  %next = add i64 %w, 1
  %done = icmp eq i64 %next, %count
  br i1 %done, label %end, label %loop
end:
  %p_active = getelementptr i8, ptr %group, i64 {at.GROUP_ACTIVE}
  store i64 1, ptr %p_active
  %p_id = getelementptr i8, ptr %group, i64 {at.GROUP_WORKGROUP}
  store i64 %id, ptr %p_id
  %p_wave = getelementptr i8, ptr %group, i64 {at.GROUP_WAVE}
  store i64 0, ptr %p_wave
  ret void
}}
"""

_MODES = f"""
; Continue a wave in the program bound to its new MODE. False if there is none yet.
define private i1 @enter_mode(ptr %wave, ptr %launch) {{
entry:
{_field("mode", "wave", at.MODE, "i32")}{_field("count", "launch", at.LAUNCH_MODE_COUNT)}
  %wanted = zext i32 %mode to i64
  %modes = getelementptr i8, ptr %launch, i64 {at.LAUNCH_MODES}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %other ]
  %o = mul i64 %i, 16
  %p = getelementptr i8, ptr %modes, i64 %o
  %candidate = load i64, ptr %p
  %same = icmp eq i64 %candidate, %wanted
  br i1 %same, label %found, label %other
other:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %none
found:
  %p_new = getelementptr i8, ptr %p, i64 8
  %new = load i64, ptr %p_new
{_field("records", "wave", at.RECORDS)}{_field("pc", "wave", at.PC)}
  %distance = sub i64 %pc, %records
  %there = add i64 %new, %distance
  store i64 %there, ptr %p_pc
  store i64 %new, ptr %p_records
  %p_status = getelementptr i8, ptr %wave, i64 {at.STATUS}
  store i32 {RUNNING}, ptr %p_status
  ret i1 true
none:
  ret i1 false
}}
"""

_RUN = f"""
; Run until all workgroups have ended, the budget is spent, or something needs attention; says which.
define i64 @run(ptr %group) {{
entry:
{_field("launch", "group", at.GROUP_LAUNCH, "ptr")}{_field("waves", "group", at.GROUP_WAVES, "ptr")}
{_field("count", "launch", at.LAUNCH_WAVES)}{_field("limit", "launch", at.LAUNCH_LIMIT)}
  %p_active = getelementptr i8, ptr %group, i64 {at.GROUP_ACTIVE}
  %p_turn = getelementptr i8, ptr %group, i64 {at.GROUP_WAVE}
  %p_budget = getelementptr i8, ptr %group, i64 {at.GROUP_BUDGET}
  %p_total = getelementptr i8, ptr %group, i64 {at.GROUP_EXECUTED}
  %p_next_id = getelementptr i8, ptr %launch, i64 {at.LAUNCH_NEXT}
  %active = load i64, ptr %p_active
  %resumes = icmp ne i64 %active, 0
  br i1 %resumes, label %turn, label %fetch
fetch:
  %id = atomicrmw add ptr %p_next_id, i64 1 monotonic
  %p_last = getelementptr i8, ptr %launch, i64 {at.LAUNCH_COUNT}
  %last = load i64, ptr %p_last
  %exhausted = icmp uge i64 %id, %last
  br i1 %exhausted, label %all_done, label %start
all_done:
  ret i64 {at.DONE}
start:
  call void @start_workgroup(ptr %group, ptr %launch, i64 %id)
  br label %turn

turn:
  %w = load i64, ptr %p_turn
  %over = icmp uge i64 %w, %count
  br i1 %over, label %round, label %look
look:
  %o = mul i64 %w, {at.WAVE_STRIDE}
  %wave = getelementptr i8, ptr %waves, i64 %o
  %p_status = getelementptr i8, ptr %wave, i64 {at.STATUS}
  %status = load i32, ptr %p_status
  %runs = icmp eq i32 %status, {RUNNING}
  br i1 %runs, label %go, label %advance
go:
{_field("executed", "wave", at.EXECUTED)}{_field("pc", "wave", at.PC, "ptr")}
  %turn_end = add i64 %executed, {TURN_INSTRUCTIONS}
  %sooner = icmp ult i64 %turn_end, %limit
  %stop = select i1 %sooner, i64 %turn_end, i64 %limit
  %p_stop = getelementptr i8, ptr %wave, i64 {at.STOP_AT}
  store i64 %stop, ptr %p_stop
  %p_start = getelementptr i8, ptr %wave, i64 {at.RUN_START}
  store ptr %pc, ptr %p_start
  %handler = load ptr, ptr %pc
  call void %handler(ptr %wave, ptr %pc)
  %now = load i64, ptr %p_executed
  %spent = sub i64 %now, %executed
  %budget = load i64, ptr %p_budget
  %left = sub i64 %budget, %spent
  store i64 %left, ptr %p_budget
  %after = load i32, ptr %p_status
  %ordinary = icmp ule i32 %after, {ENDED}
  br i1 %ordinary, label %check_limit, label %special
special:
  %is_mode = icmp eq i32 %after, {at.MODE_CHANGED}
  br i1 %is_mode, label %mode, label %attention
mode:
  %entered = call i1 @enter_mode(ptr %wave, ptr %launch)
  br i1 %entered, label %turn, label %attention
attention:
  %reason = zext i32 %after to i64
  ret i64 %reason
check_limit:
  %ended = icmp eq i32 %after, {ENDED}
  %beyond = icmp ugt i64 %now, %limit
  %reached = icmp uge i64 %now, %limit
  %too_many = select i1 %ended, i1 %beyond, i1 %reached
  br i1 %too_many, label %too_long, label %advance
too_long:
  ret i64 {at.LIMIT_REACHED}
advance:
  %next = add i64 %w, 1
  store i64 %next, ptr %p_turn
  %budget_now = load i64, ptr %p_budget
  %spent_all = icmp sle i64 %budget_now, 0
  br i1 %spent_all, label %slice_over, label %turn
slice_over:
  ret i64 {at.SLICE_OVER}

; Every wave had its turn: is the workgroup done, does it pass a barrier, or is it stuck?
round:
  store i64 0, ptr %p_turn
  br label %survey
survey:
  %i = phi i64 [ 0, %round ], [ %i_next, %survey ]
  %running = phi i1 [ false, %round ], [ %running_now, %survey ]
  %waiting = phi i1 [ false, %round ], [ %waiting_now, %survey ]
  %gone = phi i1 [ false, %round ], [ %gone_now, %survey ]
  %sum = phi i64 [ 0, %round ], [ %sum_now, %survey ]
  %io = mul i64 %i, {at.WAVE_STRIDE}
  %iw = getelementptr i8, ptr %waves, i64 %io
  %ips = getelementptr i8, ptr %iw, i64 {at.STATUS}
  %is = load i32, ptr %ips
  %ipe = getelementptr i8, ptr %iw, i64 {at.EXECUTED}
  %ie = load i64, ptr %ipe
  %sum_now = add i64 %sum, %ie
  %is_running = icmp eq i32 %is, {RUNNING}
  %is_waiting = icmp eq i32 %is, {AT_BARRIER}
  %is_gone = icmp eq i32 %is, {ENDED}
  %running_now = or i1 %running, %is_running
  %waiting_now = or i1 %waiting, %is_waiting
  %gone_now = or i1 %gone, %is_gone
  %i_next = add i64 %i, 1
  %i_done = icmp eq i64 %i_next, %count
  br i1 %i_done, label %judge, label %survey
judge:
  br i1 %running_now, label %turn, label %nobody_runs
nobody_runs:
  br i1 %waiting_now, label %barrier, label %workgroup_done
barrier:
  br i1 %gone_now, label %deadlock, label %release
deadlock:
  ret i64 {at.DEADLOCK}
release:
  %j = phi i64 [ 0, %barrier ], [ %j_next, %release ]
  %jo = mul i64 %j, {at.WAVE_STRIDE}
  %jw = getelementptr i8, ptr %waves, i64 %jo
  %jps = getelementptr i8, ptr %jw, i64 {at.STATUS}
  store i32 {RUNNING}, ptr %jps
  %j_next = add i64 %j, 1
  %j_done = icmp eq i64 %j_next, %count
  br i1 %j_done, label %turn, label %release
workgroup_done:
  store i64 0, ptr %p_active
  %total = load i64, ptr %p_total
  %total_now = add i64 %total, %sum_now
  store i64 %total_now, ptr %p_total
  br label %fetch
}}
"""


def leave_function() -> str:
    """LLVM IR of `leave`, which handlers call."""
    return _LEAVE


def schedule_functions() -> str:
    """LLVM IR of `run`, which Python calls, and of the handler `fall_back`."""
    return _FALL_BACK + _START + _MODES + _RUN
