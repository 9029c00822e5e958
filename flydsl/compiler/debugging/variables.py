"""The variables of kernels in their machine code: a second compilation that keeps their names, for a debugger.

It must give the same machine code, byte for byte. LLVM's scheduler now and then lets a debug record decide; then the
variables are left out whose records do that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir

from flydsl.codegen import CodeObject, start_llvm_ir
from flydsl.codegen.assemble import assemble
from flydsl.codegen.debug_values import CALLEE, DebugValue, with_debug_values
from flydsl.compiler.lowering.gpu_module_to_binary import device_llvm_ir, gpu_module_of
from flydsl.compiler.pipeline import Pipeline
from flydsl.dialect.context import context, lock
from flydsl.dialect.leaves import dynamic_leaves
from flydsl.dialect.location import source_location
from flydsl.dialect.ops import attributes_of
from flydsl.dialect.types import MemRefType, PointerType, fly_type
from flydsl.dialect.variables import PARAMETERS
from flydsl.dialect.walk import operations
from flydsl.expr.control_flow.variables import keeping_names
from flydsl.hsaco.elf import read_contents
from flydsl.hsaco.variables import (
    Parameter,
    Variable,
    Variables,
    instruction_offsets,
    read_variables,
    variable_without_places,
    with_labels,
)

_NAME = "fly.variable"
_MOST_ATTEMPTS = 16
# What computes a value and does nothing else, by the beginnings of names. Unused loads are removed earlier.
_WITHOUT_EFFECT = (
    *(f"llvm.{name}" for name in (
        "add", "and", "ashr", "bitcast", "extract", "fadd", "fcmp", "fdiv", "fmul", "fneg", "fp", "fsub",
        "getelementptr", "icmp", "insert", "inttoptr", "load", "lshr", "mlir.constant", "mul", "or", "ptrtoint", "sdiv",
        "select", "sext", "shl", "shufflevector", "sitofp", "srem", "sub", "trunc", "udiv", "uitofp", "urem", "xor",
        "zext",
    )),
    "rocdl.workgroup.id", "rocdl.workitem.id",
)  # fmt: skip


def variables_of(trace: Callable[[], Pipeline], code: CodeObject) -> Variables:
    """The variables of kernels that were compiled to `code`. trace: traces the same launcher for the same arguments.

    Those that cannot be kept without changing the machine code have no places, and none has if the source has changed.
    """
    with keeping_names():
        pipeline = trace()
    with lock, context():
        parameters, entries = _parameters(pipeline.module)
    pipeline.run(until=len(pipeline.stages) - 1)
    with lock, context(), ir.Location.unknown():
        values: list[DebugValue] = []
        every: dict[tuple[str, str], None] = {}

        def prepare(device: ir.Module) -> None:
            every.update(dict.fromkeys((v.kernel, v.title) for v in map(_debug_value, _variables(device))))
            _remove_dead_values(device)
            values.extend(_with_calls(device))

        llvm_ir = device_llvm_ir(gpu_module_of(pipeline.module), pipeline.traced.libraries, prepare)
    attempts = _Attempts(code, llvm_ir, values, pipeline.traced.hints.llvm_options)
    found: tuple[Variable, ...] = ()
    named = attempts.with_most(list(dict.fromkeys(value.name for value in values)))
    if named is not None:
        offsets = instruction_offsets(assemble(with_labels(named.listing), code.arch))
        found = read_variables(named.hsaco, offsets)
    known = {(variable.kernel, variable.title): variable for variable in found}
    variables = tuple(known.get(key) or variable_without_places(*key) for key in every)
    return Variables(variables, parameters, entries)


def _parameters(module: ir.Module) -> tuple[tuple[Parameter, ...], dict[str, int]]:
    """The parameters of a traced module's kernels, and how many arguments each kernel has in a code object.

    A tensor has its address and, where its layout is not all static, one more argument with the rest.
    """
    found: list[Parameter] = []
    entries: dict[str, int] = {}
    for op in operations(module.operation):
        if op.name != "gpu.func" or PARAMETERS not in op.attributes:
            continue
        kernel, entry = ir.StringAttr(op.attributes["sym_name"]).value, 0
        names = [ir.StringAttr(name).value for name in ir.ArrayAttr(op.attributes[PARAMETERS])]
        del op.attributes[PARAMETERS]
        for name, argument in zip(names, op.regions[0].blocks[0].arguments, strict=True):
            kind = fly_type(argument.type)
            is_tensor = isinstance(kind, MemRefType)
            element = str(kind.element) if isinstance(kind, MemRefType | PointerType) else str(argument.type)
            found.append(Parameter(kernel, name, element, entry, is_tensor or isinstance(kind, PointerType)))
            entry += 2 if isinstance(kind, MemRefType) and dynamic_leaves(kind.layout) else 1
        entries[kernel] = entry
    return tuple(found), entries


@dataclass
class _Attempts:
    """Compilations of LLVM IR with the values of some variables, which must give the machine code of `code`."""

    code: CodeObject
    llvm_ir: str
    values: Sequence[DebugValue]
    llvm_options: tuple[str, ...]
    left: int = _MOST_ATTEMPTS

    def with_most(self, names: list[str]) -> CodeObject | None:
        """The compilation that keeps as many of these variables as do not change the machine code."""
        made = self._compiled(names)
        if made is None and self._compiled([]) is not None:
            _, made = self._most(names)
        return made

    def _most(self, names: list[str]) -> tuple[list[str], CodeObject | None]:
        made = self._compiled(names)
        if made is not None or len(names) < 2:
            return (names if made else []), made
        middle = len(names) // 2
        parts = [self._most(part) for part in (names[:middle], names[middle:])]
        together = [name for part, _ in parts for name in part]
        best = max(parts, key=lambda part: len(part[0]))
        if together not in (names, *(part for part, _ in parts)):
            made = self._compiled(together)
        return (together, made) if made else best

    def _compiled(self, names: Sequence[str]) -> CodeObject | None:
        if not self.left:
            return None
        self.left -= 1
        made = start_llvm_ir(
            with_debug_values(self.llvm_ir, self.values, frozenset(names)),
            self.code.arch,
            opt_level=self.code.opt_level,
            debug_info=True,
            llvm_options=self.llvm_options,
        ).result()
        return made if _machine_code(made) == _machine_code(self.code) else None


def _machine_code(code: CodeObject) -> bytes:
    return read_contents(code.hsaco).sections[".text"]


def _with_calls(device: ir.Module) -> list[DebugValue]:
    """Replace each `fly.variable` of a module by a call that `with_debug_values` knows; what each says."""
    found = _variables(device)
    for i, op in enumerate(found):
        device.body.append(ir.Operation.parse(f'llvm.func @"{CALLEE}{i}"({op.operands[0].type})'))
        with ir.InsertionPoint(op), op.location:
            attributes = {
                "callee": ir.FlatSymbolRefAttr.get(f"{CALLEE}{i}"),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0]),
                "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            }
            ir.Operation.create("llvm.call", operands=[op.operands[0]], attributes=attributes)
    values = list(map(_debug_value, found))
    for op in found:
        op.erase()
    return values


def _variables(device: ir.Module) -> list[ir.Operation]:
    return [op for op in operations(device.operation) if op.name == _NAME]


def _remove_dead_values(device: ir.Module) -> None:
    """Remove the values that only `fly.variable` uses, and these: what only a debugger uses is optimised out, and while
    it is there, LLVM may decide otherwise about what it is computed from."""
    for op in reversed(operations(device.operation)):
        if op.name.startswith(_WITHOUT_EFFECT) and len(op.results):
            users = [use.owner.operation for result in op.results for use in result.uses]
            if all(user.name == _NAME for user in users):
                for user in users:
                    user.erase()
                op.erase()


def _debug_value(op: ir.Operation) -> DebugValue:
    given, kind, at = attributes_of(op), op.operands[0].type, source_location(op.location)
    function = op.parent
    while function.name != "llvm.func":
        function = function.parent
    return DebugValue(
        ir.StringAttr(function.attributes["sym_name"]).value,
        given["variable"],
        given["element"],
        given["offset"],
        int(kind.shape[0]) if isinstance(kind, ir.VectorType) else 1,
        given["elements"],
        at.line if at else 0,
        "ended" in given,
    )
