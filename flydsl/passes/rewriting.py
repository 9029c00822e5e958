"""The common operations of the passes: walking, creating and replacing operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mlir import ir

from flydsl.dialect import ops
from flydsl.dialect.elements import element_type
from flydsl.dialect.location import source_location
from flydsl.dialect.ops import OPS_BY_MLIR_NAME, Effect
from flydsl.dialect.types import fly_type
from flydsl.dialect.walk import operations
from flydsl.errors import CompileError

FUNCTIONS = ("gpu.func", "func.func")


# Asked of every operation, several times.
_NAMES = {mlir_name: spec.name for mlir_name, spec in OPS_BY_MLIR_NAME.items()}
_REMOVABLE = {mlir_name for mlir_name, spec in OPS_BY_MLIR_NAME.items() if spec.effect is not Effect.WRITE}


def fly_name(op: ir.Operation) -> str:
    """The name of a fly operation without its dialect, `memref.load`; empty for other dialects."""
    return _NAMES.get(op.name, "")


def is_removable(op: ir.Operation) -> bool:
    """True if a fly operation without uses can be removed."""
    return op.name in _REMOVABLE


def is_used(op: ir.Operation) -> bool:
    """True if a result of an operation has a use."""
    return any(next(result.uses, None) is not None for result in op.results)


def is_pure(op: ir.Operation) -> bool:
    """True if two fly operations with equal operands, attributes and types are the same value."""
    spec = OPS_BY_MLIR_NAME.get(op.name)
    return spec is not None and spec.effect is Effect.NONE


def blocks(root: ir.Operation) -> Iterator[ir.Block]:
    """Every block below an operation, outer before inner."""
    for region in root.regions:
        for block in region.blocks:
            yield block
            for op in block.operations:
                yield from blocks(op.operation)


def functions(module: ir.Operation) -> list[ir.Operation]:
    """Kernels (`gpu.func`) and launchers (`func.func`), also those of modules inside. Declarations are left out."""
    return [op for op in _with_declarations(module) if len(op.regions[0].blocks)]


def declarations(module: ir.Operation) -> list[ir.Operation]:
    """Functions without a body, which are defined elsewhere."""
    return [op for op in _with_declarations(module) if not len(op.regions[0].blocks)]


def _with_declarations(module: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []
    for view in module.regions[0].blocks[0].operations:
        op = view.operation
        if op.name in FUNCTIONS:
            found.append(op)
        elif op.name in ("gpu.module", "builtin.module"):
            found += _with_declarations(op)
    return found


def enclosing_function(op: ir.Operation) -> ir.Operation:
    """The kernel or launcher that contains an operation."""
    parent = op.parent
    while parent.name not in FUNCTIONS:
        parent = parent.parent
    return parent.operation


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The operation that has this value as a result; None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def operand_of(value: ir.Value, operation: str, index: int = 0) -> ir.Value:
    """An operand of the fly operation that makes a value. Raises CompileError if another operation makes it."""
    maker = defining_op(value)
    if maker is None or fly_name(maker) != operation:
        at = None if maker is None else source_location(maker.location)
        raise CompileError(f"{fly_type(value.type) or value.type} is not the result of a fly.{operation}", at=at)
    return maker.operands[index]


def entry_block(function: ir.Operation) -> ir.Block:
    """The first block of a function."""
    return function.regions[0].blocks[0]


def terminator(block: ir.Block) -> ir.Operation:
    """The `scf.yield` or `scf.condition` at the end of a block. Raises CompileError if there is none."""
    count = len(block.operations)
    last = block.operations[count - 1].operation if count else None
    if last is None or last.name not in ("scf.yield", "scf.condition"):
        raise CompileError(
            f"a block of {block.owner.operation.name} does not end with an scf.yield",
            at=source_location(block.owner.operation.location),
            hint="scf.YieldOp([...]) comes last in it, and scf.ConditionOp in the condition of a while loop",
        )
    return last


def update_function_type(function: ir.Operation) -> None:
    """Set a function's type to that of its entry block's arguments."""
    inputs = [argument.type for argument in entry_block(function).arguments]
    old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, old.results))


def replace(op: ir.Operation, values: Sequence[ir.Value]) -> None:
    """Replace the results of an operation by `values`, and remove it."""
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def create(
    name: str,
    operands: Sequence[ir.Value],
    results: Sequence[ir.Type],
    at: ir.Location,
    attributes: Mapping[str, ir.Attribute] | None = None,
) -> ir.Operation:
    """Create an upstream operation at the insertion point."""
    return ir.Operation.create(name, list(results), list(operands), dict(attributes or {}), loc=at)


def create_fly(
    name: str,
    operands: Sequence[ir.Value],
    at: ir.Location,
    *,
    results: Sequence[object] | None = None,
    attributes: ops.Attributes | None = None,
) -> ir.Operation:
    """Create `fly.<name>` at the insertion point."""
    return ops.create(name, operands, results=results, attributes=attributes, at=at)


def constant(value: int, bits: int, at: ir.Location) -> ir.Value:
    """An integer constant of a width."""
    kind = element_type(f"i{bits}")
    return create("arith.constant", [], [kind], at, {"value": ir.IntegerAttr.get(kind, value)}).result


def constant_of(value: ir.Value) -> int | None:
    """The integer of the `arith.constant` that makes a value, or None."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    return int(attribute.value) if isinstance(attribute, ir.IntegerAttr) else None


def splat_of(value: ir.Value) -> int | None:
    """The integer of a constant, or of all elements of a constant vector; None for anything else."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    return int(ir.IntegerAttr(attribute).value)


def erase_dead(root: ir.Operation) -> None:
    """Remove fly operations whose results are not used, users before their operands."""
    for op in reversed(operations(root)):
        if is_removable(op) and not is_used(op):
            op.erase()


def values_of(atom: ir.Value) -> dict[str, ir.Value]:
    """The values that were set on an atom, the last one of each name."""
    values: dict[str, ir.Value] = {}
    while (op := defining_op(atom)) is not None and fly_name(op) == "atom.set_value":
        atom, value = op.operands
        values.setdefault(str(ir.StringAttr(op.attributes["field"]).value), value)
    return values


def zeros(kind: ir.VectorType, at: ir.Location) -> ir.Value:
    """A vector of zeros."""
    element = kind.element_type
    is_whole = isinstance(element, ir.IntegerType | ir.IndexType)
    zero = ir.IntegerAttr.get(element, 0) if is_whole else ir.FloatAttr.get(element, 0.0)
    return create("arith.constant", [], [kind], at, {"value": ir.DenseElementsAttr.get_splat(kind, zero)}).result
