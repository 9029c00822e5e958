"""printf-to-buffer: `gpu.printf` becomes a record in a buffer that the launcher hands to the kernels that print.

The launcher and these kernels have its address as a last parameter, an i64; `flydsl.printing` says what is in it. The
texts stay on the host, in the module's attribute `fly.formats`. Kernels that print nothing stay as they are. A printf
of the launcher itself becomes a call of the host, `flydsl.printing.HOST_PRINTF`, with its text in `fly.host_formats`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

from flydsl.arch import Arch
from flydsl.dialect import launch_func
from flydsl.dialect.location import source_location
from flydsl.dialect.walk import operations
from flydsl.errors import CompileError
from flydsl.passes.rewriting import create
from flydsl.printing import FORMATS, HEADER_WORDS, HOST_FORMATS, HOST_PRINTF, RECORD_WORDS, THREAD_BITS

name = "printf-to-buffer"
_PRINTS, _FORMAT = "fly.prints", "fly.format"
_ADD, _MONOTONIC = 1, 2  # MLIR, LLVMEnums.td, `AtomicBinOp` and `AtomicOrdering`
_UNSIGNED_LESS_OR_EQUAL = 7
_DYNAMIC = -(1 << 31)  # LLVM::GEPOp::kDynamicIndex
_WORD_BYTES = 4


def apply(module: ir.Operation, arch: Arch) -> None:
    """Lower the printfs of the kernels that have the attribute `fly.prints`."""
    kernels = {ir.StringAttr(f.attributes["sym_name"]).value: f for f in _printing_kernels(module)}
    launchers = [op.operation for op in module.regions[0].blocks[0].operations if op.operation.name == "func.func"]
    printing = [launcher for launcher in launchers if _PRINTS in launcher.attributes]
    if printing:
        _declare_host_printf(module)
        host_formats: list[ir.Attribute] = []
        for launcher in printing:
            _lower_launcher(launcher, host_formats)
        module.attributes[HOST_FORMATS] = ir.ArrayAttr.get(host_formats)
    if kernels:
        formats: list[ir.Attribute] = []
        for kernel in kernels.values():
            _lower_kernel(kernel, formats)
        module.attributes[FORMATS] = ir.ArrayAttr.get(formats)
        for launcher in launchers:
            _pass_buffer(launcher, kernels)


def _printing_kernels(module: ir.Operation) -> Iterator[ir.Operation]:
    """The kernels that still print: a `printf` after an endless loop, for example, has been removed."""
    for function in _functions(module):
        if _PRINTS in function.attributes:
            del function.attributes[_PRINTS]
            if _find(function, "gpu.printf"):
                yield function


def _functions(module: ir.Operation) -> Iterator[ir.Operation]:
    for op in module.regions[0].blocks[0].operations:
        if op.operation.name == "gpu.module":
            yield from (f.operation for f in op.regions[0].blocks[0].operations if f.operation.name == "gpu.func")


def _find(op: ir.Operation, wanted: str) -> list[ir.Operation]:
    return [inner for inner in operations(op) if inner.name == wanted]


def _add_parameter(function: ir.Operation) -> ir.Value:
    """Add one parameter, an i64, to a function."""
    i64 = ir.IntegerType.get_signless(64)
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    block = function.regions[0].blocks[0]
    if len(block.arguments) != len(kind.inputs):
        raise CompileError(
            "printf in a kernel with memory attributions is unsupported", at=source_location(function.location)
        )
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([*kind.inputs, i64], kind.results))
    if "arg_attrs" in function.attributes:
        given = ir.ArrayAttr(function.attributes["arg_attrs"])
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([*given, ir.DictAttr.get({})])
    return block.add_argument(i64, function.location)


def _lower_kernel(kernel: ir.Operation, formats: list[ir.Attribute]) -> None:
    address = _add_parameter(kernel)
    for printf in _find(kernel, "gpu.printf"):
        if _FORMAT not in printf.attributes:
            raise CompileError("gpu.printf of a C format is unsupported", at=source_location(printf.location))
        formats.append(printf.attributes[_FORMAT])
        with ir.InsertionPoint(printf):
            _Record(printf, address).write(len(formats))
        printf.erase()


def _declare_host_printf(module: ir.Operation) -> None:
    kind = ir.TypeAttr.get(ir.Type.parse("!llvm.func<void (i32, ptr)>"))
    attributes = {"sym_name": ir.StringAttr.get(HOST_PRINTF), "function_type": kind}
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        ir.Operation.create("llvm.func", [], [], attributes, regions=1, loc=ir.Location.unknown())


def _lower_launcher(launcher: ir.Operation, formats: list[ir.Attribute]) -> None:
    """Each printf stores its values in an array and calls the host with its number and the array."""
    del launcher.attributes[_PRINTS]
    for printf in _find(launcher, "gpu.printf"):
        formats.append(printf.attributes[_FORMAT])
        with ir.InsertionPoint(printf):
            _HostRecord(printf).write(len(formats))
        printf.erase()


def _pass_buffer(launcher: ir.Operation, kernels: dict[str, ir.Operation]) -> None:
    launches = [op for op in _find(launcher, launch_func.NAME) if launch_func.kernel_of(op) in kernels]
    address = _add_parameter(launcher)
    for launch in launches:
        launch_func.with_kernel_operands(launch, [*launch_func.kernel_operands(launch), address])


class _Words:
    """Builds operations on 32-bit words in memory, for one printf. pointer: the type of their addresses."""

    def __init__(self, printf: ir.Operation, pointer: str) -> None:
        self.printf, self.at = printf, printf.location
        self.i32, self.i64 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(64)
        self.pointer = ir.Type.parse(pointer)

    def _store_at(self, base: ir.Value, values: Sequence[ir.Value]) -> None:
        """Store values one after another."""
        offset = 0
        for value in values:
            place = self._element(base, self._constant(self.i64, offset))
            create("llvm.store", [value, place], [], self.at, {"alignment": ir.IntegerAttr.get(self.i64, _WORD_BYTES)})
            offset += _words_of(value)

    def _element(self, base: ir.Value, index: ir.Value) -> ir.Value:
        return self._op(
            "llvm.getelementptr",
            [base, index],
            self.pointer,
            rawConstantIndices=ir.DenseI32ArrayAttr.get([_DYNAMIC]),
            elem_type=ir.TypeAttr.get(self.i32),
        )

    def _constant(self, kind: ir.Type, value: int) -> ir.Value:
        return self._op("arith.constant", [], kind, value=ir.IntegerAttr.get(kind, value))

    def _op(self, operation: str, operands: list[ir.Value], kind: ir.Type, **attributes: ir.Attribute) -> ir.Value:
        return create(operation, operands, [kind], self.at, attributes).result


def _words_of(value: ir.Value) -> int:
    return int(value.type.width) // (8 * _WORD_BYTES)


class _HostRecord(_Words):
    """Builds the operations that hand one printf of a launcher to the host."""

    def __init__(self, printf: ir.Operation) -> None:
        super().__init__(printf, "!llvm.ptr")

    def write(self, number: int) -> None:
        """Store the values in an array on the stack and call the host."""
        values = list(self.printf.operands)
        words = self._constant(self.i64, max(sum(map(_words_of, values)), 1))
        array = self._op("llvm.alloca", [words], self.pointer, elem_type=ir.TypeAttr.get(self.i32))
        self._store_at(array, values)
        attributes = {
            "callee": ir.FlatSymbolRefAttr.get(HOST_PRINTF),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        }
        create("llvm.call", [self._constant(self.i32, number), array], [], self.at, attributes)


class _Record(_Words):
    """Builds the operations that write one record."""

    def __init__(self, printf: ir.Operation, address: ir.Value) -> None:
        super().__init__(printf, "!llvm.ptr<1>")
        self.buffer = self._op("llvm.inttoptr", [address], self.pointer)

    def write(self, number: int) -> None:
        """Reserve room and store the record. If there is no room, count it as missing."""
        values = list(self.printf.operands)
        words = RECORD_WORDS + sum(map(_words_of, values))
        start = self._atomic_add(0, words)
        room = self._op("llvm.load", [self._word(2)], self.i64, alignment=ir.IntegerAttr.get(self.i64, 8))
        end = self._op("arith.addi", [start, self._constant(self.i64, words)], self.i64)
        fits = self._op(
            "arith.cmpi",
            [end, room],
            ir.IntegerType.get_signless(1),
            predicate=ir.IntegerAttr.get(self.i64, _UNSIGNED_LESS_OR_EQUAL),
        )
        branch = ir.Operation.create("scf.if", [], [fits], regions=2, loc=self.at)
        with ir.InsertionPoint(branch.regions[0].blocks.append()):
            self._store(start, [self._constant(self.i32, number), *self._workgroup(), self._thread(), *values])
            ir.Operation.create("scf.yield", loc=self.at)
        with ir.InsertionPoint(branch.regions[1].blocks.append()):
            self._atomic_add(4, 1)
            ir.Operation.create("scf.yield", loc=self.at)

    def _store(self, start: ir.Value, values: list[ir.Value]) -> None:
        self._store_at(self._element(self._word(HEADER_WORDS), start), values)

    def _workgroup(self) -> list[ir.Value]:
        return [self._op(f"rocdl.workgroup.id.{axis}", [], self.i32) for axis in "xyz"]

    def _thread(self) -> ir.Value:
        packed = self._op("rocdl.workitem.id.x", [], self.i32)
        for i, axis in enumerate("yz", start=1):
            thread = self._op(f"rocdl.workitem.id.{axis}", [], self.i32)
            shifted = self._op("arith.shli", [thread, self._constant(self.i32, THREAD_BITS * i)], self.i32)
            packed = self._op("arith.ori", [packed, shifted], self.i32)
        return packed

    def _atomic_add(self, word: int, amount: int) -> ir.Value:
        """Add to a 64-bit number of the buffer and return its value before."""
        return self._op(
            "llvm.atomicrmw",
            [self._word(word), self._constant(self.i64, amount)],
            self.i64,
            bin_op=ir.IntegerAttr.get(self.i64, _ADD),
            ordering=ir.IntegerAttr.get(self.i64, _MONOTONIC),
            syncscope=ir.StringAttr.get("agent"),
        )

    def _word(self, index: int) -> ir.Value:
        return self._element(self.buffer, self._constant(self.i64, index))
