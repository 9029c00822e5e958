"""Memory operations of the builder as LLVM IR.

An access happens in two steps. The runtime function `resolve_<space>` checks the addresses of all lanes and turns them
into host addresses; lanes that do not take part get a place in the workspace, so that the second step, a plain gather
or scatter, has no conditions. An access that does not resolve has had no effect yet: the handler then leaves it to the
lock-step machine, which finds the same fault and says what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flydsl.simulator.memory.buffers import PRIVATE_APERTURE, SHARED_APERTURE
from flydsl.simulator.memory.tensor_descriptor import GROUP_WORDS
from flydsl.simulator.native import layout
from flydsl.simulator.native.builder.ir import LlvmValue, constant, scalar_type
from flydsl.simulator.native.builder.lanes import NativeLanes
from flydsl.simulator.native.builder.values import bits_of
from flydsl.simulator.waves import LANES


class NativeMemory(NativeLanes):
    """Loads, stores and atomics. Scalar addresses are those of SMEM, which ignores EXEC."""

    # --- loads

    def load(
        self, space: str, address: LlvmValue, dwords: int, where: LlvmValue | None = None
    ) -> tuple[LlvmValue, ...]:
        if not address.lanes:
            return self._load_scalar(space, address, dwords, where)
        host = self._resolve(space, address, 4 * dwords, where, layout.LOADS)
        data = self.workspace_pointer(layout.Workspace.data.offset)
        self.body.call_void(f"gather{dwords}", f"ptr {host}", f"ptr {data}")
        return tuple(self.load_row(self.body.pointer(data, layout.ROW_BYTES * i)) for i in range(dwords))

    def load_dwords(
        self,
        space: str,
        address: LlvmValue,
        dwords: int,
        whole: LlvmValue,
        dword: Callable[[int], tuple[LlvmValue, LlvmValue]],
    ) -> tuple[LlvmValue, ...]:
        """Load all dwords at once if all active lanes read them all, else one by one."""
        body, address = self.body, self._vector(address)
        at_once, found, one_by_one, done = (body.label() for _ in range(4))
        data = self.workspace_pointer(layout.Workspace.data.offset)
        is_whole = self.icmp("eq", self._active_bits(whole), self.exec_bits)
        body.do(f"br {is_whole}, label %{at_once}, label %{one_by_one}")
        body.start_block(at_once)
        host, is_found = self._resolved(space, address, 4 * dwords, self.exec_bits, layout.LOADS)
        body.do(f"br i1 {is_found}, label %{found}, label %{one_by_one}")
        body.start_block(found)
        self._observe(space, self.exec_bits, 4 * dwords, layout.LOADS, host)
        body.call_void(f"gather{dwords}", f"ptr {host}", f"ptr {data}")
        body.do(f"br label %{done}")
        body.start_block(one_by_one)
        for i in range(dwords):
            at, where = dword(i)
            host = self._resolve(space, at, 4, where, layout.LOADS)
            body.call_void("gather1", f"ptr {host}", f"ptr {body.pointer(data, layout.ROW_BYTES * i)}")
        body.do(f"br label %{done}")
        body.start_block(done)
        return tuple(self.load_row(body.pointer(data, layout.ROW_BYTES * i)) for i in range(dwords))

    def load_small(self, space: str, address: LlvmValue, bytes_: int, where: LlvmValue | None = None) -> LlvmValue:
        host = self._resolve(space, self._vector(address), bytes_, where, layout.LOADS)
        data = self.workspace_pointer(layout.Workspace.data.offset)
        self.body.call_void(f"gather_bytes{bytes_}", f"ptr {host}", f"ptr {data}")
        return self.load_row(data)

    def _load_scalar(
        self, space: str, address: LlvmValue, dwords: int, where: LlvmValue | None
    ) -> tuple[LlvmValue, ...]:
        if space != "global":
            raise NotImplementedError(f"scalar load from {space}")
        condition = constant("i64", 1) if where is None else self.zext(where, "i64")
        host = self.body.call("ptr", "resolve_scalar", "ptr %wave", address, f"i64 {4 * dwords}", condition)
        self.fall_back_if(self.body.emit(f"icmp eq ptr {host}, null"))
        loaded = self.body.load(f"<{dwords} x i32>", host, 4)
        return tuple(
            LlvmValue(self.body.emit(f"extractelement <{dwords} x i32> {loaded}, i64 {i}"), "i32", 0)
            for i in range(dwords)
        )

    # --- stores

    def store(
        self, space: str, address: LlvmValue, values: Sequence[LlvmValue], where: LlvmValue | None = None
    ) -> None:
        data = self._lay_out(values)
        host = self._resolve(space, self._vector(address), 4 * len(values), where, layout.STORES)
        self.body.call_void(f"scatter{len(values)}", f"ptr {host}", f"ptr {data}")

    def store_dwords(
        self, space: str, addresses: Sequence[LlvmValue], values: Sequence[LlvmValue], where: Sequence[LlvmValue | None]
    ) -> None:
        data = self._lay_out(values)
        hosts = [
            self._resolve(space, self._vector(address), 4, w, layout.STORES, area=area)
            for area, (address, w) in enumerate(zip(addresses, where, strict=True))
        ]
        for i, host in enumerate(hosts):
            self.body.call_void("scatter1", f"ptr {host}", f"ptr {self.body.pointer(data, layout.ROW_BYTES * i)}")

    def store_small(
        self, space: str, address: LlvmValue, value: LlvmValue, bytes_: int, where: LlvmValue | None = None
    ) -> None:
        data = self._lay_out([value])
        host = self._resolve(space, self._vector(address), bytes_, where, layout.STORES)
        self.body.call_void(f"scatter_bytes{bytes_}", f"ptr {host}", f"ptr {data}")

    def _lay_out(self, values: Sequence[LlvmValue]) -> str:
        """Put values into the workspace, before an observer is told of their addresses: it may look at them."""
        data = self.workspace_pointer(layout.Workspace.data.offset)
        for i, value in enumerate(values):
            self.store_row(value, self.body.pointer(data, layout.ROW_BYTES * i))
        return data

    # --- atomics

    def atomic(
        self,
        space: str,
        address: LlvmValue,
        update: Callable[..., LlvmValue],
        operands: Sequence[LlvmValue],
        where: LlvmValue | None = None,
    ) -> LlvmValue:
        """Run an atomic, one active lane after the other.

        Waves of a launch with global atomics share a thread, but other processes may share the memory.
        """
        type_ = operands[0].type
        host = self._resolve(space, self._vector(address), bits_of(type_) // 8, where, layout.ATOMIC)
        rows = self.workspace_pointer(layout.Workspace.data.offset)
        stride = 2 * layout.ROW_BYTES
        for i, operand in enumerate((constant(type_, 0), *operands)):  # row 0 is the result
            self.store_row(operand, self.body.pointer(rows, stride * i))
        self._for_each_lane(
            self._active_bits(where),
            lambda lane: self._update_lane(host, rows, stride, lane, update, operands, is_alone=space == "lds"),
        )
        return self.load_row(rows, type_)

    def _update_lane(
        self,
        host: str,
        rows: str,
        stride: int,
        lane: str,
        update: Callable[..., LlvmValue],
        operands: Sequence[LlvmValue],
        *,
        is_alone: bool,
    ) -> None:
        """Update the memory of one lane. is_alone: nothing else can access it meanwhile."""
        type_ = operands[0].type
        llvm = scalar_type(type_)
        target = self.body.load("ptr", self.body.emit(f"getelementptr i64, ptr {host}, i64 {lane}"))
        places = [
            self.body.emit(f"getelementptr {llvm}, ptr {self.body.pointer(rows, stride * i)}, i64 {lane}")
            for i in range(len(operands) + 1)
        ]
        given = [LlvmValue(self.body.load(llvm, place), type_, 0) for place in places[1:]]
        if is_alone:
            old = LlvmValue(self.body.load(llvm, target), type_, 0)
            self.body.store(update(old, *given), target)
        else:
            old = self._exchange(target, type_, lambda old: update(old, *given))
        self.body.store(old, places[0])

    def _exchange(self, target: str, type_: str, new: Callable[[LlvmValue], LlvmValue]) -> LlvmValue:
        """Replace what memory holds by what `new` makes of it, as one step for every process; return the old value."""
        body, bits = self.body, f"i{bits_of(type_)}"
        first = body.load(bits, target)
        before, again, done = body.block, body.label(), body.label()
        seen, following = body.name(), body.name()
        body.do(f"br label %{again}")
        body.start_block(again)
        phi = len(body.lines)
        body.do("")  # the phi, once it is known where the loop comes from
        old = self.bitcast(LlvmValue(seen, bits, 0), type_)
        replacement = self.bitcast(new(old), bits)
        pair = body.emit(f"cmpxchg ptr {target}, {bits} {seen}, {replacement} seq_cst seq_cst")
        body.do(f"{following} = extractvalue {{ {bits}, i1 }} {pair}, 0")
        succeeded = body.emit(f"extractvalue {{ {bits}, i1 }} {pair}, 1")
        body.lines[phi] = f"  {seen} = phi {bits} [ {first}, %{before} ], [ {following}, %{body.block} ]"
        body.do(f"br i1 {succeeded}, label %{done}, label %{again}")
        body.start_block(done)
        return old

    def _for_each_lane(self, active: LlvmValue, visit: Callable[[str], None]) -> None:
        """Emit a loop over the set bits of `active`, lowest first."""
        body = self.body
        before, head, inside, after = body.block, body.label(), body.label(), body.label()
        remaining, lane, rest = body.name(), body.name(), body.name()
        body.do(f"br label %{head}")
        body.start_block(head)
        phi = len(body.lines)
        body.do("")  # the phi, once it is known where the loop comes from
        none = body.emit(f"icmp eq i64 {remaining}, 0")
        body.do(f"br i1 {none}, label %{after}, label %{inside}")
        body.start_block(inside)
        body.declarations.add("declare i64 @llvm.cttz.i64(i64, i1)")
        body.do(f"{lane} = call i64 @llvm.cttz.i64(i64 {remaining}, i1 true)")
        visit(lane)
        less = body.emit(f"sub i64 {remaining}, 1")
        body.do(f"{rest} = and i64 {remaining}, {less}")
        body.lines[phi] = f"  {remaining} = phi i64 [ {active.text}, %{before} ], [ {rest}, %{body.block} ]"
        body.do(f"br label %{head}")
        body.start_block(after)

    # --- tiles

    def move_tensor(self, words: Sequence[LlvmValue], *, is_load: bool) -> None:
        descriptor = self.workspace_pointer(layout.Workspace.data.offset)
        given = list(words)
        if len(given) < sum(GROUP_WORDS):
            lists_no_rows = self.body.emit(f"xor i32 {words[0].text}, -1")
            has_one_plane = self.body.emit(f"lshr i32 {lists_no_rows}, 31")
            given += [LlvmValue(has_one_plane, "i32", 0), *[constant("i32", 0)] * (sum(GROUP_WORDS) - len(words) - 1)]
        for i, word in enumerate(given):
            self.body.store(word, self.body.pointer(descriptor, 4 * i))
        moved = self.body.call("i64", "move_tensor", "ptr %wave", f"ptr {descriptor}", f"i64 {int(is_load)}")
        self.fall_back_if(self.body.emit(f"icmp eq i64 {moved}, 0"))

    def aperture(self, name: str) -> LlvmValue:
        value = SHARED_APERTURE if "shared" in name else PRIVATE_APERTURE
        return constant("i64", value | 0xFFFF_FFFF if name.endswith("_limit") else value)

    # --- addresses

    @staticmethod
    def _vector(address: LlvmValue) -> LlvmValue:
        if not address.lanes:
            raise NotImplementedError("a scalar address")
        return address

    def _active_bits(self, where: LlvmValue | None) -> LlvmValue:
        return self.exec_bits if where is None else self.and_(self.bits_of_mask(where), self.exec_bits)

    def _resolve(
        self,
        space: str,
        address: LlvmValue,
        size: int,
        where: LlvmValue | None,
        access: int,
        area: int = 0,
    ) -> str:
        """Check an access of `size` bytes (see `layout.LOADS`); return a pointer to the host addresses of the lanes."""
        active = self._active_bits(where)
        if access == layout.ATOMIC:
            self._require_alignment(self.zext(address, "i64"), size, active)
        host, is_found = self._resolved(space, address, size, active, access, area)
        self.fall_back_if(self.body.emit(f"xor i1 {is_found}, true"))
        self._observe(space, active, size, access, host)
        return host

    def _resolved(
        self, space: str, address: LlvmValue, size: int, active: LlvmValue, access: int, area: int = 0
    ) -> tuple[str, str]:
        """A pointer to the host addresses of the lanes, and whether the active ones may access `size` bytes there."""
        if area >= layout.HOST_AREAS:
            raise NotImplementedError(f"more than {layout.HOST_AREAS} addresses at once")
        self.has_loops = True
        self.store_row(self.zext(address, "i64"), self.workspace_pointer(layout.Workspace.addresses.offset))
        host = self.workspace_pointer(layout.Workspace.host.offset + 8 * LANES * area)
        resolved = self.body.call(
            "i64", f"resolve_{space}", "ptr %wave", active, f"i64 {size}", f"i64 {access}", f"ptr {host}"
        )
        return host, self.body.emit(f"icmp ne i64 {resolved}, 0")

    def _observe(self, space: str, active: LlvmValue, size: int, access: int, host: str) -> None:
        """Call the observer, if any, for an access that succeeds: its addresses are in the workspace."""
        body = self.body
        told = f"ptr %wave, {active}, i64 {size}, i64 {layout.SPACES.index(space)}, i64 {access}, ptr {host}"
        observer = body.load("ptr", self.wave_pointer(layout.Wave.observer.offset))
        observed, following = body.label(), body.label()
        body.do(f"br i1 {body.emit(f'icmp eq ptr {observer}, null')}, label %{following}, label %{observed}")
        body.start_block(observed)
        body.do(f"call void {observer}({told})")
        body.do(f"br label %{following}")
        body.start_block(following)

    def _require_alignment(self, address: LlvmValue, size: int, active: LlvmValue) -> None:
        low = self.and_(address, constant("i64", size - 1))
        misaligned = self.bits_of_mask(self.icmp("ne", low, constant("i64", 0)))
        self.fall_back_if(self.body.emit(f"icmp ne {self.and_(misaligned, active)}, 0"))

    def fall_back_if(self, condition: str) -> None:
        raise NotImplementedError
