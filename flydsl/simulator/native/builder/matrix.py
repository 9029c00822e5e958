"""Matrix products of the builder as LLVM IR, in the order of accumulation that `isa.matrix` states.

The elements of A and B go into the workspace in the type in which products are exact: row e is every lane's e-th
element. There the elements of one k and one row of A (or column of B) are neighbours, so that a row of D is a sum over
k of one number of A times a vector of B.

To make elements of 16 bits and less takes as long as the products or longer, and programs multiply a fragment of A
with several of B. So the workspace keeps fragments: where the registers hold what they held before, their elements are
there.

The sums are a function of their own, for all handlers that differ in the formats of elements only. They are what takes
time, while a handler that spreads elements takes time to optimize, a second for some.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from ctypes import sizeof
from dataclasses import dataclass

from flydsl.simulator.isa.matrix import MatrixShape
from flydsl.simulator.native import host, layout
from flydsl.simulator.native.builder.ir import Body, LlvmValue, Registers, constant, scalar_type
from flydsl.simulator.native.builder.memory import NativeMemory
from flydsl.simulator.native.builder.values import bits_of
from flydsl.simulator.waves import LANES

_ROWS_AT_ONCE = 4


@dataclass(frozen=True)
class Fragment:
    """An operand whose elements are in the workspace."""

    elements: str


Operand = Fragment | Sequence[LlvmValue]


class NativeMatrix(NativeMemory):
    """Matrix products of the builder."""

    def fragment(
        self,
        operand: str,
        registers: Sequence[LlvmValue],
        origin: str,
        shape: MatrixShape,
        make: Callable[[Sequence[LlvmValue]], list[LlvmValue]],
    ) -> Operand:
        """An operand, made unless the workspace has it."""
        if not isinstance(registers, Registers) or len(registers) * shape.lanes > layout.FRAGMENT_ROWS * LANES:
            return make(registers)
        body, type_ = self.body, _type_of(shape)
        place = self._place_of_fragment(operand, registers)
        elements = body.pointer(place, layout.Fragment.elements.offset)
        rows = body.pointer(place, layout.Fragment.registers.offset)
        number = self._number_of(f"{origin} {type_} {len(registers)}")
        is_known = self._holds(place, rows, registers, number)
        known, unknown = body.label(), body.label()
        body.do(f"br {is_known}, label %{known}, label %{unknown}")
        body.start_block(unknown)
        body.store(number, place)
        held = self._loaded(registers)
        for i, register in enumerate(held):
            self.store_row(register, body.pointer(rows, 4 * shape.lanes * i))
        self.put_elements(make(held), elements, shape)
        body.do(f"br label %{known}")
        body.start_block(known)
        return Fragment(elements)

    def _loaded(self, registers: Registers) -> list[LlvmValue]:
        """The registers read once more, so that the host need not hold them until then."""
        first = self.wave_pointer(registers.offset)
        return [self.load_row(self.body.pointer(first, layout.ROW_BYTES * i)) for i in range(len(registers))]

    def _place_of_fragment(self, operand: str, registers: Registers) -> str:
        """The fragment of the workspace for these registers, which some others of the same operand share."""
        size_log2 = (len(registers) * layout.ROW_BYTES).bit_length() - 1
        number = self.lshr(LlvmValue(registers.offset, "i64", 0), constant("i64", size_log2))
        chosen = self.and_(number, constant("i64", layout.FRAGMENTS - 1))
        distance = self.mul(chosen, constant("i64", sizeof(layout.Fragment)))
        areas = {"a": layout.Workspace.fragments_a, "b": layout.Workspace.fragments_b}
        return self.body.pointer(self.workspace_pointer(areas[operand].offset), distance.text)

    def _number_of(self, origin: str) -> LlvmValue:
        """The number of what makes elements: never 0."""
        digest = hashlib.sha256(f"{origin} {self._mode.bits} {self.lane_count}".encode()).digest()
        return constant("i64", int.from_bytes(digest[:8], "little") | 1)

    def _holds(self, place: str, rows: str, registers: Registers, number: LlvmValue) -> LlvmValue:
        """True if a fragment was made of registers with the same content."""
        difference = constant("i32", 0)
        for i, register in enumerate(registers):
            before = self.load_row(self.body.pointer(rows, 4 * self.lane_count * i))
            difference = self.or_(difference, self.xor(self.broadcast(register), before))
        differing = self.bits_of_mask(self.icmp("ne", difference, constant("i32", 0)))
        is_same = self.icmp("eq", differing, constant("i64", 0))
        return self.and_(is_same, self.icmp("eq", LlvmValue(self.body.load("i64", place), "i64", 0), number))

    def put_elements(self, elements: Sequence[LlvmValue], place: str, shape: MatrixShape) -> None:
        """Store elements in the type in which they are multiplied."""
        type_ = _type_of(shape)
        is_narrow = type_ == "f64" and elements[0].type != "f64"
        rows = self.workspace_pointer(layout.Workspace.data.offset) if is_narrow else place
        row_bytes = shape.lanes * (4 if is_narrow else bits_of(type_) // 8)
        for e, element in enumerate(elements):
            row = self._convert("fpext", element, "f32") if is_narrow else element
            self.store_row(row, self.body.pointer(rows, row_bytes * e))
        if is_narrow:
            self.body.call_void("widen", f"ptr {rows}", f"ptr {place}", f"i64 {shape.lanes * len(elements)}")

    def matmul(self, a: Operand, b: Operand, c: Sequence[LlvmValue], shape: MatrixShape) -> tuple[LlvmValue, ...]:
        self.has_loops = True
        of_a = self._elements_of(a, layout.Workspace.matrix_a.offset, shape)
        of_b = self._elements_of(b, layout.Workspace.matrix_b.offset, shape)
        d = self.workspace_pointer(layout.Workspace.data.offset)
        row_bytes = _result_row_bytes(shape)
        if isinstance(c, Registers) and shape.result_type != "f64":
            of_c = self.wave_pointer(c.offset)
        else:
            of_c = d
            for i, value in enumerate(c):
                self.store_row(value, self.body.pointer(d, row_bytes * i))
        self.call_shared(_Product(shape).emit(), {"%a": of_a, "%b": of_b, "%c": of_c, "%d": d})
        result_type = "f64" if shape.result_type == "f64" else "i32"
        return tuple(
            self.load_row(self.body.pointer(d, row_bytes * i), result_type) for i in range(shape.results_per_lane)
        )

    def _elements_of(self, operand: Operand, area: int, shape: MatrixShape) -> str:
        if isinstance(operand, Fragment):
            return operand.elements
        place = self.workspace_pointer(area)
        self.put_elements(operand, place, shape)
        return place


def _type_of(shape: MatrixShape) -> str:
    """The type that a product is computed in."""
    return "i32" if shape.result_type == "i32" else "f64"


def _result_row_bytes(shape: MatrixShape) -> int:
    """The distance between rows of C and D: that between registers."""
    return layout.ROW_BYTES * bits_of(shape.result_type) // 32


class _Product:
    """The function of one matrix product of the elements at %a and %b, plus C at %c, whose results go to %d.

    The sums of a tile of D stay in registers of the host: of `_fours` times four rows, and `_columns`. `_type`: see
    `_type_of`.
    """

    def __init__(self, shape: MatrixShape) -> None:
        self._body, self._shape = Body(), shape
        self._type = _type_of(shape)
        self._bytes = bits_of(self._type) // 8
        self._element = scalar_type(self._type)
        self._result_bytes = bits_of(shape.result_type) // 8
        self._row_bytes, self._result_row_bytes = shape.lanes * self._bytes, _result_row_bytes(shape)
        self._is_row_by_row = shape.result_type == "f64" or shape.m < _ROWS_AT_ONCE * 4
        self._fours, self._columns = (1, shape.n) if self._is_row_by_row else self._tile()
        self._row = f"<{self._columns} x {self._element}>"
        self._result_row = f"<{self._columns} x {scalar_type(shape.result_type)}>"

    def _tile(self) -> tuple[int, int]:
        """The rows, in fours, and columns whose sums take half of the host's registers: they are enough of them for
        the latency of additions, and the rest is for operands."""
        sums = host.tier().vector_bytes * host.tier().vector_registers // 2 // self._bytes
        columns = min(self._shape.n, sums // _ROWS_AT_ONCE)
        return max(min(sums // (_ROWS_AT_ONCE * columns), 2), 1), columns

    def emit(self) -> Body:
        """The whole of it, without its end."""
        if self._is_row_by_row:
            self._emit_each_row()
        else:
            self._emit_loop()
        return self._body

    def _emit_each_row(self) -> None:
        """Emit straight-line code: for products of few rows, and f64, whose rows are scattered."""
        shape = self._shape
        for index in range(shape.results_per_lane):
            for group in range(shape.lanes // shape.n):
                block, row, _ = shape.place(index, group * shape.n)
                a = self._body.pointer("%a", self._bytes * (block * shape.m + row))
                b = self._body.pointer("%b", self._bytes * block * shape.n)
                self._accumulate([a], b, [self._result_row_bytes * index + self._result_bytes * group * shape.n])

    def _emit_loop(self) -> None:
        """Emit a loop: each turn computes a tile. Four rows are four registers of one group of lanes."""
        shape, body = self._shape, self._body
        parts = shape.n // self._columns
        fours_per_block = shape.m // _ROWS_AT_ONCE

        def turn(t: str, _: list[str]) -> list[str]:
            part = body.emit(f"urem i64 {t}, {parts}")
            first = body.emit(f"mul i64 {body.emit(f'udiv i64 {t}, {parts}')}, {self._fours}")
            fours = [first, *(body.emit(f"add i64 {first}, {i}") for i in range(1, self._fours))]
            column = body.emit(f"mul i64 {part}, {self._columns * self._bytes}")
            block = body.emit(f"udiv i64 {first}, {fours_per_block}")
            b = body.pointer(body.pointer("%b", body.emit(f"mul i64 {block}, {shape.n * self._bytes}")), column)
            result_column = body.emit(f"mul i64 {part}, {self._columns * self._result_bytes}")
            places = [body.emit(f"add i64 {self._place_of_result(four)}, {result_column}") for four in fours]
            self._accumulate([self._first_of_a(four) for four in fours], b, places)
            return []

        self._count_up_to(shape.m * shape.blocks // _ROWS_AT_ONCE // self._fours * parts, [], turn)

    def _place_of_result(self, four: str) -> str:
        """The place of the first of four rows in C and D."""
        body, groups = self._body, self._shape.lanes // self._shape.n
        step = _ROWS_AT_ONCE * self._result_row_bytes
        register = body.emit(f"mul i64 {body.emit(f'udiv i64 {four}, {groups}')}, {step}")
        group = body.emit(f"urem i64 {four}, {groups}")
        return body.emit(f"add i64 {register}, {body.emit(f'mul i64 {group}, {self._shape.n * self._result_bytes}')}")

    def _first_of_a(self, four: str) -> str:
        """The place of the first of four rows in A."""
        return self._body.pointer("%a", self._body.emit(f"mul i64 {self._first_row(four)}, {self._bytes}"))

    def _first_row(self, four: str) -> str:
        """The first of four rows: four times their number, unless lanes hold the rows in another order."""
        shape, groups, body = self._shape, self._shape.lanes // self._shape.n, self._body
        fours = range(shape.m * shape.blocks // _ROWS_AT_ONCE)
        places = [shape.place(_ROWS_AT_ONCE * (number // groups), number % groups * shape.n) for number in fours]
        rows = [block * shape.m + row for block, row, _ in places]
        if rows == [_ROWS_AT_ONCE * number for number in fours]:
            return body.emit(f"mul i64 {four}, {_ROWS_AT_ONCE}")
        unit = 1 if shape.row_step > 1 else _ROWS_AT_ONCE  # so that a row is four bits of the table
        table = sum(row // unit << 4 * number for number, row in zip(fours, rows, strict=True))
        at = body.emit(f"shl i64 {four}, 2")
        row = body.emit(f"and i64 {body.emit(f'lshr i64 {table}, {at}')}, 15")
        return body.emit(f"mul i64 {row}, {unit}")

    def _count_up_to(self, count: int, start: Sequence[str], visit: Callable[[str, list[str]], list[str]]) -> list[str]:
        """Emit a loop that carries some rows: `visit` gets the counter and the rows, and returns the next rows."""
        body = self._body
        before, head, after = body.block, body.label(), body.label()
        counter, following = body.name(), body.name()
        carried = [body.name() for _ in start]
        body.do(f"br label %{head}")
        body.start_block(head)
        phis = len(body.lines)
        body.lines += [""] * (1 + len(start))  # once it is known where the loop comes from
        new = visit(counter, carried)
        edges = f"[ {{}}, %{before} ], [ {{}}, %{body.block} ]"
        body.lines[phis] = f"  {counter} = phi i64 {edges.format(0, following)}"
        for i, (name, first, next_) in enumerate(zip(carried, start, new, strict=True)):
            body.lines[phis + 1 + i] = f"  {name} = phi {self._row} {edges.format(first, next_)}"
        body.do(f"{following} = add i64 {counter}, 1")
        done = body.emit(f"icmp eq i64 {following}, {count}")
        body.do(f"br i1 {done}, label %{after}, label %{head}")
        body.start_block(after)
        return new

    def _accumulate(self, of_a: Sequence[str], b: str, places: Sequence[str | int]) -> None:
        """Add the products of rows of A with B to those of C, and store D.

        of_a, places: where the first row is in A, and in C and D, of each four, or of a single row. k ascends: the
        groups of lanes in a loop, the elements of a lane within.
        """
        shape, body = self._shape, self._body
        each, step = 1 if self._is_row_by_row else _ROWS_AT_ONCE, self._bytes * shape.row_step
        of_c, of_d = (
            [body.pointer(first, self._result_row_bytes * j) for first in firsts for j in range(each)]
            for firsts in ([body.pointer(area, place) for place in places] for area in ("%c", "%d"))
        )
        start = [body.load(self._row, row, 8) if shape.result_type == "f64" else self._zero for row in of_c]

        def k_group(group: str, carried: list[str]) -> list[str]:
            totals = list(carried)
            distance = body.emit(f"mul i64 {group}, {self._bytes * shape.m * shape.blocks}")
            lefts = [body.pointer(first, distance) for first in of_a]
            right = body.pointer(b, body.emit(f"mul i64 {group}, {self._bytes * shape.n * shape.blocks}"))
            for e in range(shape.elements_per_lane):
                row_of_element = self._row_bytes * e
                vector = body.load(self._row, body.pointer(right, row_of_element), 4)
                for j, total in enumerate(totals):
                    at = body.pointer(lefts[j // each], row_of_element + step * (j % each))
                    totals[j] = self._multiply_add(self._splat(body.load(self._element, at)), vector, total)
            return totals

        totals = self._count_up_to(shape.k_groups, start, k_group)
        for c, d, total in zip(of_c, of_d, totals, strict=True):
            body.store(f"{self._result_row} {self._finished(total, c)}", d, 4)

    @property
    def _zero(self) -> str:
        """The neutral element of addition, which preserves the first product including its sign."""
        return f"splat ({self._element} {'0' if self._type == 'i32' else '0x8000000000000000'})"

    def _splat(self, number: str) -> str:
        single = self._body.emit(f"insertelement {self._row} poison, {self._element} {number}, i64 0")
        mask = f"<{self._columns} x i32> zeroinitializer"
        return self._body.emit(f"shufflevector {self._row} {single}, {self._row} poison, {mask}")

    def _multiply_add(self, x: str, y: str, total: str) -> str:
        body, row = self._body, self._row
        if self._shape.result_type == "f64":
            return body.call(row, f"llvm.fma.v{self._columns}f64", *(_Typed(row, v) for v in (x, y, total)))
        if self._type == "i32":
            return body.emit(f"add {row} {total}, {body.emit(f'mul {row} {x}, {y}')}")
        # The product is exact, so that contracting it with the addition changes nothing but the speed.
        return body.emit(f"fadd contract {row} {total}, {body.emit(f'fmul contract {row} {x}, {y}')}")

    def _finished(self, total: str, of_c: str) -> str:
        """The row of D: rounded to its type after adding that of C, by its address."""
        body = self._body
        if self._shape.result_type == "f64":
            return self._settled(total)
        c = body.load(self._result_row, of_c, 4)
        if self._type == "i32":
            return body.emit(f"add {self._row} {total}, {c}")
        wide = body.emit(f"fpext {self._result_row} {c} to {self._row}")
        exact = body.emit(f"fadd {self._row} {total}, {wide}")
        near = body.emit(f"fptrunc {self._row} {exact} to {self._result_row}")
        return self._settled(self._odd(near, exact) if self._shape.rounds_to_odd else near)

    def _odd(self, near: str, exact: str) -> str:
        """The f32 next to an exact number, towards zero; the last bit is set if anything was lost."""
        body, whole = self._body, f"<{self._columns} x i32>"
        back = body.emit(f"fpext {self._result_row} {near} to {self._row}")
        magnitudes = [
            body.call(self._row, f"llvm.fabs.v{self._columns}f64", _Typed(self._row, x)) for x in (back, exact)
        ]
        is_beyond = body.emit(f"fcmp ogt {self._row} {magnitudes[0]}, {magnitudes[1]}")
        is_inexact = body.emit(f"fcmp one {self._row} {back}, {exact}")
        beyond, inexact = (
            body.emit(f"zext <{self._columns} x i1> {condition} to {whole}") for condition in (is_beyond, is_inexact)
        )
        bits = body.emit(f"bitcast {self._result_row} {near} to {whole}")
        truncated = body.emit(f"sub {whole} {bits}, {beyond}")
        return body.emit(f"bitcast {whole} {body.emit(f'or {whole} {truncated}, {inexact}')} to {self._result_row}")

    def _settled(self, row: str) -> str:
        """A row of floats in which every NaN is the default one."""
        is_nan = self._body.emit(f"fcmp uno {self._result_row} {row}, zeroinitializer")
        nan = f"splat ({scalar_type(self._shape.result_type)} 0x7FF8000000000000)"
        mask = f"<{self._columns} x i1>"
        return self._body.emit(f"select {mask} {is_nan}, {self._result_row} {nan}, {self._result_row} {row}")


class _Typed:
    """A value of a type without a name in the builder."""

    def __init__(self, llvm_type: str, text: str) -> None:
        self.llvm_type, self._text = llvm_type, text

    def __str__(self) -> str:
        return f"{self.llvm_type} {self._text}"
