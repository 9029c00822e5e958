"""The handler of one shape: its control flow, and the function text around what the semantics compute."""

from __future__ import annotations

from flydsl.simulator.decoding.program import CODE_BASE, INSTRUCTION_BYTES
from flydsl.simulator.modes import FloatMode
from flydsl.simulator.native import layout
from flydsl.simulator.native.builder.ir import LlvmValue, constant
from flydsl.simulator.native.builder.matrix import NativeMatrix
from flydsl.simulator.native.shape import OperandShape
from flydsl.simulator.waves import AT_BARRIER, AT_CLUSTER_BARRIER, ENDED, RUNNING

_RECORD_SHIFT = layout.RECORD_BYTES.bit_length() - 1
_CODE_SHIFT = INSTRUCTION_BYTES.bit_length() - 1


class HandlerBuilder(NativeMatrix):
    """The whole builder. %wave is the wave block, %record the instruction's record.

    Vector results are written at the end, all of them at once: first without, then with regard to EXEC.
    """

    def __init__(self, mode: FloatMode, lane_count: int) -> None:
        super().__init__(mode, lane_count)
        self._rows: list[tuple[str, LlvmValue, bool]] = []
        self._falls_back = ""  # the label of the block that leaves the instruction to the lock-step machine
        self._leave: tuple[int | str, bool] | None = None  # status, and whether the pc moves on
        self._target: str | None = None  # the record to jump to, in any case
        self._branch: tuple[LlvmValue, int] | None = None

    # --- registers

    def register_pointer(self, register: OperandShape) -> str:
        at = layout.slot_offset(register.slot)
        if register.half is None:
            return self.wave_pointer(self.body.load("i64", self.record_pointer(at)))
        offset = LlvmValue(self.body.load("i32", self.record_pointer(at + 4 * register.half)), "i32", 0)
        return self.wave_pointer(self.zext(offset, "i64").text)

    def record_pointer(self, offset: int) -> str:
        return self.body.pointer("%record", offset)

    def write_row(self, pointer: str, value: LlvmValue, ignores_exec: bool = False) -> None:
        self._rows.append((pointer, self.broadcast(value), ignores_exec))

    def constant_mask(self, lanes: list[bool]) -> LlvmValue:
        return LlvmValue(
            f"<{', '.join('i1 true' if lane else 'i1 false' for lane in lanes)}>", "i1", self.lane_count, True
        )

    def read_scc(self) -> LlvmValue:
        byte = LlvmValue(self.body.load("i8", self.wave_pointer(layout.Wave.scc.offset)), "i8", 0)
        return self.icmp("ne", byte, constant("i8", 0))

    def write_scc(self, value: LlvmValue) -> None:
        if value.lanes:
            raise NotImplementedError("a value per lane for SCC")
        self.body.store(self.zext(value, "i8"), self.wave_pointer(layout.Wave.scc.offset))

    # --- control

    def next_pc(self) -> LlvmValue:
        index = self.lshr(self._distance_from(layout.Wave.records.offset), constant("i64", _RECORD_SHIFT))
        after = self.shl(self.add(index, constant("i64", 1)), constant("i64", _CODE_SHIFT))
        return self.add(after, constant("i64", CODE_BASE))

    def jump(self, address: LlvmValue) -> None:
        index = self.lshr(self.sub(address, constant("i64", CODE_BASE)), constant("i64", _CODE_SHIFT))
        count = LlvmValue(self.body.load("i64", self.wave_pointer(layout.Wave.record_count.offset)), "i64", 0)
        self.fall_back_if(self.icmp("uge", index, count).text)
        records = self.body.load("ptr", self.wave_pointer(layout.Wave.records.offset))
        self._target = self.body.pointer(records, self.shl(index, constant("i64", _RECORD_SHIFT)).text)

    def branch(self, condition: LlvmValue, slot: int) -> None:
        self._branch = (condition, slot)

    def barrier_signal(self) -> LlvmValue:
        signals = self.workspace_pointer(layout.Workspace.signals.offset)
        before = LlvmValue(self.body.load("i64", signals), "i64", 0)
        self.body.store(self.add(before, constant("i64", 1)), signals)
        return self.icmp("eq", before, constant("i64", 0))

    def barrier_wait(self) -> None:
        self._leave = (self._status_after(layout.Wave.may_pass.offset, AT_BARRIER).text, True)

    def _status_after(self, may_pass_offset: int, waiting: int) -> LlvmValue:
        """The status of a wave that comes to a barrier: `waiting`, unless all have arrived."""
        may_pass = self.wave_pointer(may_pass_offset)
        passes = self.icmp("ne", LlvmValue(self.body.load("i64", may_pass), "i64", 0), constant("i64", 0))
        self.body.store(constant("i64", 0), may_pass)
        return self.select(passes, constant("i32", RUNNING), constant("i32", waiting))

    def cluster_barrier_signal(self, in_cluster: LlvmValue) -> None:
        signals = self.workspace_pointer(layout.Workspace.cluster_signals.offset)
        before = LlvmValue(self.body.load("i64", signals), "i64", 0)
        self.fall_back_if(self.and_(in_cluster, self.icmp("ne", before, constant("i64", 0))).text)
        self.body.store(self.zext(in_cluster, "i64"), signals)

    def is_cluster_unsignalled(self) -> LlvmValue:
        raise NotImplementedError("whether a workgroup is the first one of its cluster")

    def cluster_barrier_wait(self, in_cluster: LlvmValue) -> None:
        status = self._status_after(layout.Wave.may_pass_cluster.offset, AT_CLUSTER_BARRIER)
        self._leave = (self.select(in_cluster, status, constant("i32", RUNNING)).text, True)

    def end_wave(self) -> None:
        self._leave = (ENDED, True)

    def trap(self) -> None:
        self._leave = (layout.FALL_BACK, False)

    def wait(self) -> None:
        """Let the other waves go first, as while a wave waits for memory.

        So all waves execute the code right after a barrier before one gets far beyond it. Programs that read there and
        overwrite later, without a barrier in between, work on the hardware, and must work here.
        """
        self.yield_wave()

    def fence(self, ordering: str) -> None:
        self.body.do(f"fence {ordering}")

    def yield_wave(self) -> None:
        self._leave = (RUNNING, True)

    def read_mode(self) -> LlvmValue:
        return LlvmValue(self.body.load("i32", self.wave_pointer(layout.Wave.mode.offset)), "i32", 0)

    def write_mode(self, value: LlvmValue) -> None:
        if value.lanes:
            raise NotImplementedError("a value per lane for MODE")
        self.body.store(value, self.wave_pointer(layout.Wave.mode.offset))
        self._leave = (layout.MODE_CHANGED, True)

    def clock(self) -> LlvmValue:
        executed = LlvmValue(self.body.load("i64", self.wave_pointer(layout.Wave.executed.offset)), "i64", 0)
        run = self.lshr(self._distance_from(layout.Wave.run_start.offset), constant("i64", _RECORD_SHIFT))
        return self.add(executed, run)

    def _distance_from(self, field: int) -> LlvmValue:
        """Distance in bytes from a record that the wave block points to, to this one."""
        there = self.body.load("i64", self.wave_pointer(field))
        here = self.body.emit("ptrtoint ptr %record to i64")
        return LlvmValue(self.body.emit(f"sub i64 {here}, {there}"), "i64", 0)

    def fall_back_if(self, condition: str) -> None:
        self._falls_back = self._falls_back or self.body.label()
        following = self.body.label()
        self.body.do(f"br i1 {condition}, label %{self._falls_back}, label %{following}")
        self.body.start_block(following)

    def fall_back_where(self, condition: LlvmValue) -> None:
        self.fall_back_if(self.body.emit(f"icmp ne {self.ballot(condition)}, 0"))

    # --- the end of a handler

    def finish(self) -> None:
        """Write the vector results, and continue with the next handler or return."""
        self._store_rows()
        if self._leave is not None:
            status, moves_on = self._leave
            self._return(status, moves_on)
        elif self._target is not None:
            self._take(self._target)
        else:
            if self._branch is not None:
                self._emit_branch(*self._branch)
            self._continue_at(self.record_pointer(layout.RECORD_BYTES))
        if self._falls_back:
            self.body.start_block(self._falls_back)
            self._return(layout.FALL_BACK, moves_on=False)

    def _store_rows(self) -> None:
        always = [row for row in self._rows if row[2]]
        masked = [row for row in self._rows if not row[2]]
        for pointer, value, _ in always:
            self.store_row(value, pointer)
        if not masked:
            return
        if self.lane_enable is not None:
            self._store_masked(masked, self.and_(self.exec_mask(), self.lane_enable))
            return
        body = self.body
        full, partial, done = body.label(), body.label(), body.label()
        every = constant("i64", (1 << self.lane_count) - 1).text
        is_full = body.emit(f"icmp eq {self.exec_bits}, {every}")
        body.do(f"br i1 {is_full}, label %{full}, label %{partial}")
        body.start_block(full)
        for pointer, value, _ in masked:
            self.store_row(value, pointer)
        body.do(f"br label %{done}")
        body.start_block(partial)
        self._store_masked(masked, self.exec_mask())
        body.do(f"br label %{done}")
        body.start_block(done)

    def _store_masked(self, rows: list[tuple[str, LlvmValue, bool]], mask: LlvmValue) -> None:
        for pointer, value, _ in rows:
            self.store_row(self.select(mask, value, self.load_row(pointer, value.type)), pointer)

    def _emit_branch(self, condition: LlvmValue, slot: int) -> None:
        if condition.lanes:
            raise NotImplementedError("a branch on a value per lane")
        body = self.body
        taken, not_taken = body.label(), body.label()
        body.do(f"br {condition}, label %{taken}, label %{not_taken}")
        body.start_block(taken)
        distance = body.load("i64", self.record_pointer(layout.slot_offset(slot)))
        self._take(body.pointer("%record", distance))
        body.start_block(not_taken)

    def _take(self, target: str) -> None:
        """End a straight run at a taken branch: account for it, and return if the wave's turn is over."""
        body = self.body
        run = self.lshr(self._distance_from(layout.Wave.run_start.offset), constant("i64", _RECORD_SHIFT))
        executed_pointer = self.wave_pointer(layout.Wave.executed.offset)
        before = LlvmValue(body.load("i64", executed_pointer), "i64", 0)
        executed = self.add(before, self.add(run, constant("i64", 1)))
        body.store(executed, executed_pointer)
        body.store(f"ptr {target}", self.wave_pointer(layout.Wave.run_start.offset))
        stop = body.load("i64", self.wave_pointer(layout.Wave.stop_at.offset))
        over, go = body.label(), body.label()
        body.do(f"br i1 {body.emit(f'icmp uge {executed}, {stop}')}, label %{over}, label %{go}")
        body.start_block(over)
        body.store(f"ptr {target}", self.wave_pointer(layout.Wave.pc.offset))
        body.do("ret void")
        body.start_block(go)
        self._continue_at(target)

    def _continue_at(self, record: str) -> None:
        handler = self.body.load("ptr", record)
        self.body.do(f"musttail call void {handler}(ptr %wave, ptr {record})")
        self.body.do("ret void")

    def _return(self, status: int | str, moves_on: bool) -> None:
        """Return to the scheduler, with this instruction executed or not."""
        steps = int(moves_on)
        self.body.call_void("leave", "ptr %wave", "ptr %record", f"i64 {steps}", f"i32 {status}")
        self.body.do("ret void")


def function_text(name: str, body: list[str]) -> str:
    """A handler as LLVM IR."""
    lines = "\n".join(body)
    return f"define void @{name}(ptr %wave, ptr %record) {{\nentry:\n{lines}\n}}\n"
