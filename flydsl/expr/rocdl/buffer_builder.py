"""MLIR's classes of buffer instructions, with the cache policy in each form that FlyDSL's programs have."""

from __future__ import annotations

import inspect
from typing import Any

from mlir import ir

from flydsl.expr.numeric import Int32
from flydsl.expr.rocdl.raw_buffer import AUX_MAX
from flydsl.expr.tracing.builder import MlirBuilder, is_value
from flydsl.expr.tracing.immediates import immediate


class BufferBuilder(MlirBuilder):
    """A class of operations whose last operand `aux` is the cache policy.

    It may also be a number or an attribute, or left out, which is 0: in the MLIR of FlyDSL 0.3 and later it is an
    attribute.
    """

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        operands = [
            parameter.name
            for parameter in inspect.signature(self._target.__init__).parameters.values()
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ][1:]
        given = list(arguments)
        policy = given.pop() if len(given) == len(operands) else named.pop("aux", None)
        if not is_value(policy):
            number = immediate(f"aux of {self.__name__}", 0 if policy is None else policy, 0, AUX_MAX)
            policy = Int32(number).ir_value()
        return super().__call__(*given, **named, aux=policy)


def builder_of(operation: type[ir.OpView]) -> MlirBuilder:
    """The builder for an operation class of ROCDL."""
    takes_policy = operation.__name__.startswith(("RawPtrBuffer", "RawBuffer"))
    return BufferBuilder(operation) if takes_policy else MlirBuilder(operation)
