"""Reads a launcher in LLVM's dialect into the steps of a `PlannedLauncher`, as far as it computes with integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate

from mlir import ir
from mlir._mlir_libs._mlirDialectsLLVM import StructType  # without the classes of the dialect's operations

from flydsl.compiler.lowering.host_integers import MOST_BITS, computation, signed, unsigned
from flydsl.dialect import launch_func
from flydsl.printing import HOST_PRINTF
from flydsl.runtime import planned_launcher as plan
from flydsl.runtime.planned_launcher import Block, Launch, PlannedLauncher, Run


class NotPlanned(Exception):
    """The launcher does what no plan can say."""


def planned_launcher(module: ir.Module, entry: str, codes: Sequence[str]) -> PlannedLauncher | None:
    """The launcher of a module as the stages leave it; None if it is none that a plan can describe.

    entry: its function. codes: the struct codes of the function's parameters.
    """
    functions = [op.operation for op in module.body if op.operation.name == "llvm.func"]
    launcher = next(f for f in functions if ir.StringAttr(f.attributes["sym_name"]).value == entry)
    try:
        return _Planner(list(launcher.regions[0].blocks), codes).launcher
    except NotPlanned:
        return None


class _Planner:
    """Reads the blocks of a launcher, in order."""

    def __init__(self, blocks: Sequence[ir.Block], codes: Sequence[str]) -> None:
        self._arguments = {argument: i for i, argument in enumerate(blocks[0].arguments)}
        self._firsts = list(accumulate(map(len, codes), initial=0))  # of the numbers of each argument
        self._template: list[int | None] = [None] * self._firsts[-1]
        self._constants: dict[ir.Value, int] = {}
        self._places = {value: self._add(None) for block in blocks[1:] for value in block.arguments}
        self._blocks = blocks
        self._launches: list[Launch] = []
        self.launcher = PlannedLauncher(codes, self._template, [self._block(b) for b in blocks], self._launches)

    def _block(self, block: ir.Block) -> Block:
        self._read = Block()
        *operations, last = [op.operation for op in block]
        for op in operations:
            self._read_operation(op)
        self._read.following = self._following(last)
        return self._read

    def _read_operation(self, op: ir.Operation) -> None:
        readers: dict[str, Callable[[ir.Operation], None]] = {
            launch_func.NAME: self._launch,
            "llvm.mlir.constant": self._constant,
            "llvm.extractvalue": self._extract,
            "llvm.alloca": self._allocate,
            "llvm.getelementptr": self._element,
            "llvm.store": self._store,
            "llvm.call": self._print,
        }
        readers.get(op.name, self._compute)(op)

    # --- operations

    def _constant(self, op: ir.Operation) -> None:
        if isinstance(op.results[0].type, ir.IntegerType):
            self._constants[op.results[0]] = ir.IntegerAttr(op.attributes["value"]).value

    def _compute(self, op: ir.Operation) -> None:
        compute = computation(op, [self._constants.get(operand) for operand in op.operands])
        if compute is None or not _is_number(op.results[0].type):
            raise NotPlanned(op.name)
        self._places[op.results[0]] = self._computed(compute, *map(self._place, op.operands))

    def _extract(self, op: ir.Operation) -> None:
        """A number of an argument that has several."""
        argument, type_ = self._arguments.get(op.operands[0]), op.operands[0].type
        if argument is None or not _is_number(op.results[0].type):
            raise NotPlanned(op.name)
        place = self._firsts[argument]
        for i in ir.DenseI64ArrayAttr(op.attributes["position"]):
            parts = type_.body
            place += sum(map(_leaves, parts[:i]))
            type_ = parts[i]
        self._places[op.results[0]] = place

    def _allocate(self, op: ir.Operation) -> None:
        count, type_ = self._constants.get(op.operands[0]), ir.TypeAttr(op.attributes["elem_type"]).value
        if count is None:
            raise NotPlanned(op.name)
        self._places[op.results[0]] = place = self._add(None)
        self._read.steps.append(plan.allocating(place, count * _bytes(type_)))

    def _element(self, op: ir.Operation) -> None:
        """The address of an element, whose number is known."""
        indices = list(ir.DenseI32ArrayAttr(op.attributes["rawConstantIndices"]))
        if len(op.operands) != 1 or len(indices) != 1:
            raise NotPlanned(op.name)
        distance = indices[0] * _bytes(ir.TypeAttr(op.attributes["elem_type"]).value)
        self._places[op.results[0]] = self._computed(lambda base: base + distance, self._place(op.operands[0]))

    def _store(self, op: ir.Operation) -> None:
        value, address = op.operands
        number = self._computed(partial(unsigned, 8 * _bytes(value.type)), self._place(value))
        self._read.steps.append(plan.storing(number, _bytes(value.type), self._place(address)))

    def _print(self, op: ir.Operation) -> None:
        if "callee" not in op.attributes or ir.FlatSymbolRefAttr(op.attributes["callee"]).value != HOST_PRINTF:
            raise NotPlanned(op.name)
        number, values = op.operands
        self._read.steps.append(plan.printing(self._constants[number], self._place(values)))

    def _launch(self, launch: ir.Operation) -> None:
        operands, places = list(launch.operands), launch_func.places_of(launch)
        arguments = tuple(self._arguments.get(operands[place]) for place in places.of_kernel)
        of_numbers = (place for place, i in zip(places.of_kernel, arguments, strict=True) if i is None)
        made = Launch(
            launch_func.kernel_of(launch),
            tuple(self._signed(operands[place]) for place in places.sizes),
            self._add(0) if places.lds_bytes is None else self._signed(operands[places.lds_bytes]),
            self._add(0) if places.stream is None else self._place(operands[places.stream]),
            arguments,
            tuple(self._place(operands[place]) for place in of_numbers),
        )
        self._read.steps.append(plan.launching(len(self._launches), made))
        self._launches.append(made)

    # --- ends of blocks

    def _following(self, op: ir.Operation) -> Callable[[Run], int | None]:
        if op.name == "llvm.return":
            return lambda run: None
        if op.name == "llvm.br":
            return self._going_to(op.successors[0], list(op.operands))
        if op.name == "llvm.cond_br":
            _, when_true, when_false = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
            condition, *operands = op.operands
            if_true = self._going_to(op.successors[0], operands[:when_true])
            if_false = self._going_to(op.successors[1], operands[when_true : when_true + when_false])
            return plan.choosing(self._place(condition), if_true, if_false)
        raise NotPlanned(op.name)

    def _going_to(self, block: ir.Block, operands: Sequence[ir.Value]) -> Callable[[Run], int]:
        arguments = [self._places[argument] for argument in block.arguments]
        return plan.going_to(self._blocks.index(block), arguments, [self._place(value) for value in operands])

    # --- places

    def _add(self, number: int | None) -> int:
        self._template.append(number)
        return len(self._template) - 1

    def _computed(self, compute: Callable[..., int], *operands: int) -> int:
        """The place of a number that a step computes."""
        result = self._add(None)
        self._read.steps.append(plan.computing(result, compute, operands))
        return result

    def _place(self, value: ir.Value) -> int:
        if not _is_number(value.type):
            raise NotPlanned(str(value.type))
        if value in self._constants:
            return self._add(unsigned(value.type.width, self._constants[value]))
        if value in self._arguments:
            return self._firsts[self._arguments[value]]
        if value not in self._places:
            raise NotPlanned("a value of a block further down")
        return self._places[value]

    def _signed(self, value: ir.Value) -> int:
        """The place of an integer with its sign."""
        if value in self._constants:
            return self._add(self._constants[value])
        return self._computed(partial(signed, ir.IntegerType(value.type).width), self._place(value))


def _is_number(type_: ir.Type) -> bool:
    if isinstance(type_, ir.IntegerType):
        return bool(type_.width <= MOST_BITS)
    return str(type_).startswith("!llvm.ptr")


def _bytes(type_: ir.Type) -> int:
    """The size of an integer or a pointer in memory. Raises NotPlanned for other types, whose layout LLVM knows."""
    if not _is_number(type_):
        raise NotPlanned(str(type_))
    bits = type_.width if isinstance(type_, ir.IntegerType) else MOST_BITS
    return max(8, 1 << (bits - 1).bit_length()) // 8


def _leaves(type_: ir.Type) -> int:
    """The numbers that a value of a type consists of."""
    return sum(map(_leaves, type_.body)) if isinstance(type_, StructType) else 1
