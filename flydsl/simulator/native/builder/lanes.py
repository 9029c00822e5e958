"""Lanes of the builder as LLVM IR: EXEC, masks, and data that moves between lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flydsl.hsaco.operands import EXEC
from flydsl.simulator.modes import FloatMode
from flydsl.simulator.native import layout
from flydsl.simulator.native.builder.floats import NativeFloats
from flydsl.simulator.native.builder.ir import (
    Body,
    Function,
    LlvmValue,
    constant,
    indices,
    shared_function,
    vector_type,
)


class NativeLanes(NativeFloats):
    """%wave is the wave block, %workspace the thread's workspace. EXEC is read once, when the handler begins."""

    def __init__(self, mode: FloatMode, lane_count: int) -> None:
        super().__init__(mode, lane_count)
        self.exec_bits = self.load_lane_bits(self.wave_pointer(4 * EXEC))
        self._workspace: str | None = None
        self.has_loops = False  # in the handler or in the functions that it calls
        self.functions: dict[str, Function] = {}  # that it shares with others, by name
        self.lane_enable: LlvmValue | None = None  # set by the operand of a DPP instruction

    def wave_pointer(self, offset: int | str) -> str:
        return self.body.pointer("%wave", offset)

    def workspace_pointer(self, offset: int | str) -> str:
        if self._workspace is None:
            self._workspace = self.body.load("ptr", self.wave_pointer(layout.Wave.workspace.offset))
        return self.body.pointer(self._workspace, offset)

    def load_row(self, pointer: str, type_: str = "i32") -> LlvmValue:
        return LlvmValue(self.body.load(vector_type(type_, self.lane_count), pointer, 64), type_, self.lane_count)

    def store_row(self, value: LlvmValue, pointer: str) -> None:
        self.body.store(self.broadcast(value), pointer, 64)

    # --- masks

    def load_lane_bits(self, pointer: str, alignment: int = 0) -> LlvmValue:
        """The bits of a lane mask, read from as many scalar registers as it needs, as an i64."""
        type_ = f"i{self.lane_count}"
        return self.zext(LlvmValue(self.body.load(type_, pointer, alignment), type_, 0), "i64")

    def store_lane_bits(self, bits: LlvmValue, pointer: str) -> None:
        self.body.store(self.trunc(bits, f"i{self.lane_count}"), pointer, 4)

    def lane_id(self) -> LlvmValue:
        numbers = ", ".join(f"i32 {lane}" for lane in range(self.lane_count))
        return LlvmValue(f"<{numbers}>", "i32", self.lane_count, True)

    def per_lane(self, x: LlvmValue) -> LlvmValue:
        return self.broadcast(x)

    def exec_mask(self) -> LlvmValue:
        return self.mask_bits(self.exec_bits)

    def mask_bits(self, bits: LlvmValue) -> LlvmValue:
        bits = self.trunc(bits, f"i{self.lane_count}")
        return LlvmValue(
            self.body.emit(f"bitcast {bits} to {vector_type('i1', self.lane_count)}"), "i1", self.lane_count
        )

    def bits_of_mask(self, mask: LlvmValue) -> LlvmValue:
        """A 64-bit scalar of one bit per lane, active or not."""
        type_ = f"i{self.lane_count}"
        return self.zext(LlvmValue(self.body.emit(f"bitcast {self.broadcast(mask)} to {type_}"), type_, 0), "i64")

    def ballot(self, condition: LlvmValue) -> LlvmValue:
        return self.and_(self.bits_of_mask(condition), self.exec_bits)

    # --- movement

    def read_lane(self, x: LlvmValue, lane: LlvmValue) -> LlvmValue:
        if not x.lanes:
            return x
        chosen = self.and_(lane, constant(lane.type, self.lane_count - 1))
        return LlvmValue(self.body.emit(f"extractelement {x}, {chosen}"), x.type, 0)

    def read_first_lane(self, x: LlvmValue) -> LlvmValue:
        # 64 trailing zeros if no lane is active: then it is lane 0.
        first = self.and_(self.cttz(self.exec_bits), constant("i64", self.lane_count - 1))
        return self.read_lane(x, first)

    def permute(self, x: LlvmValue, lane: LlvmValue) -> LlvmValue:
        return self._move("permute_lanes", x, lane)

    def scatter_lanes(self, x: LlvmValue, target: LlvmValue) -> LlvmValue:
        return self._move("scatter_lanes", x, target, self.exec_bits)

    def _move(self, function: str, x: LlvmValue, lane: LlvmValue, *more: LlvmValue) -> LlvmValue:
        """Move data between lanes through the workspace: rows 0 and 1 hold numbers and lanes, row 2 the result."""
        if x.type != "i32" or lane.type != "i32":
            raise NotImplementedError(f"{function} of {x.type} by {lane.type}")
        self.has_loops = True
        rows = self.workspace_pointer(layout.Workspace.data.offset)
        self.store_row(x, rows)
        self.store_row(lane, self.body.pointer(rows, layout.ROW_BYTES))
        self.body.call_void(function, f"ptr {rows}", *more)
        return self.load_row(self.body.pointer(rows, 2 * layout.ROW_BYTES))

    def permute_constant(self, x: LlvmValue, source: Sequence[int]) -> LlvmValue:
        if not x.lanes:
            return x
        moved = self.body.emit(f"shufflevector {x}, {x.llvm_type} poison, {indices(source)}")
        return LlvmValue(moved, x.type, self.lane_count)

    # --- computations of many values

    def shared(self, compute: Callable[[Any, LlvmValue], LlvmValue], x: LlvmValue) -> LlvmValue:
        """`compute` as a function of its own, which gets a row of the workspace and leaves its result there."""
        if not x.lanes:
            return compute(self, x)
        part = NativeFloats(self._mode, self.lane_count)
        given = LlvmValue(part.body.load(x.llvm_type, "%row", 64), x.type, x.lanes)
        result = part.broadcast(compute(part, given))
        part.body.store(result, "%row", 64)
        row = self.workspace_pointer(layout.Workspace.data.offset)
        self.store_row(x, row)
        self.call_shared(part.body, {"%row": row})
        return self.load_row(row, result.type)

    def call_shared(self, body: Body, pointers: Mapping[str, str]) -> None:
        """Call a function that handlers share. body: its body without the return; pointers: addresses by parameter."""
        function = shared_function(body, list(pointers))
        self.functions[function.name] = function
        self.body.call_void(function.name, *(f"ptr {pointer}" for pointer in pointers.values()))

    # --- vector registers at an index known at run time

    def read_register(self, register: Any, index: LlvmValue) -> LlvmValue:
        return self.load_row(self._indexed_row(register, index))

    def write_register(self, register: Any, index: LlvmValue, value: LlvmValue) -> None:
        self.write_row(self._indexed_row(register, index), value)

    def _indexed_row(self, register: Any, index: LlvmValue) -> str:
        """The row of an i32 index. Beyond the kernel's registers the lock-step machine raises the error."""
        distance = self.mul(self.zext(index, "i64"), constant("i64", layout.ROW_BYTES))
        first = LlvmValue(self.body.load("i64", self.record_pointer(layout.slot_offset(register.slot))), "i64", 0)
        offset = self.add(first, distance)
        end = LlvmValue(self.body.load("i64", self.wave_pointer(layout.Wave.vgpr_end.offset)), "i64", 0)
        self.fall_back_if(self.icmp("uge", offset, end).text)
        return self.wave_pointer(offset.text)

    def record_pointer(self, offset: int) -> str:
        raise NotImplementedError

    def fall_back_if(self, condition: str) -> None:
        raise NotImplementedError

    def write_row(self, pointer: str, value: LlvmValue, ignores_exec: bool = False) -> None:
        raise NotImplementedError
