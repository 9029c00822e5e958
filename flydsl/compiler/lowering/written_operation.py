"""Operations of a compilation as its texts show them: `pipeline.operations("logical_divide")`."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from flydsl.dialect.ops import OPS_BY_MLIR_NAME
from flydsl.dialect.text import to_text, written_form
from flydsl.dialect.walk import operations


@dataclass(frozen=True, repr=False)
class WrittenOperation:
    """One operation. name: with its dialect. text: without what is inside it.

    operand_types, result_types: as the text spells them.
    """

    name: str
    text: str
    operand_types: tuple[str, ...]
    result_types: tuple[str, ...]

    def __repr__(self) -> str:
        return self.text


def written_operations(module: ir.Operation, name: str) -> list[WrittenOperation]:
    """The operations of a module whose name contains `name`, in program order."""
    return [_written(op) for op in operations(module) if name in _name(op)]


def _name(op: ir.Operation) -> str:
    mlir_name = op.operation.name
    return f"fly.{OPS_BY_MLIR_NAME[mlir_name].name}" if mlir_name in OPS_BY_MLIR_NAME else mlir_name


def _written(op: ir.Operation) -> WrittenOperation:
    first_line = to_text(op).partition("\n")[0]
    return WrittenOperation(_name(op), first_line.strip(), _types(op.operands), _types(op.results))


def _types(values: ir.OpOperandList | ir.OpResultList) -> tuple[str, ...]:
    return tuple(written_form(str(value.type)) for value in values)
