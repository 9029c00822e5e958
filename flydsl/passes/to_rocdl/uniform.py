"""Sums split into the part that all threads of a wave share and the part that differs between them.

A scalar register can hold the first part, and buffer instructions add one to their address for free.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mlir import ir

from flydsl.dialect.elements import element_type
from flydsl.passes.rewriting import constant_of, create, defining_op

# Operations that give every thread the same result on operands that are the same for every thread.
_UNIFORM_SOURCES = ("gpu.block_id", "gpu.grid_dim", "gpu.block_dim", "arith.constant")
_UNIFORM_ON_UNIFORM = ("arith.", "llvm.extractvalue")
_NONNEGATIVE_SOURCES = ("gpu.block_id", "gpu.thread_id", "gpu.grid_dim", "gpu.block_dim")
_NONNEGATIVE_ON_NONNEGATIVE = tuple(
    f"arith.{name}"
    for name in (
        "addi", "muli", "divsi", "divui", "ceildivsi", "remsi", "remui", "shrsi", "shrui", "shli", "xori", "ori",
        "extsi", "extui", "trunci", "index_cast", "index_castui", "minsi", "maxsi",
    )
)  # fmt: skip


# What is known of the values of the function that is converted. A compilation holds the lock of the one MLIR context.
_uniform: dict[ir.Value, bool] = {}
_nonnegative: dict[ir.Value, bool] = {}


@contextmanager
def remembering() -> Iterator[None]:
    """Keep what `split_sum` finds out of values. None of them may be removed inside."""
    try:
        yield
    finally:
        _uniform.clear()
        _nonnegative.clear()


def split_sum(value: ir.Value, largest: int, at: ir.Location) -> tuple[ir.Value | None, ir.Value | None]:
    """A 32-bit sum as (uniform, divergent): their sum modulo 2**32 is the value; None for an empty part.

    Constants from 0 to `largest`, which the instruction itself can hold, stay with the divergent part. So does
    everything where a summand may be negative: hardware adds the parts as unsigned numbers. For use in `remembering()`.
    """
    terms = list(_terms(value))
    if not all(is_nonnegative(term, _nonnegative) for term in terms):
        return None, value
    parts: dict[bool, list[ir.Value]] = {True: [], False: []}
    for term in terms:
        number = constant_of(term)
        small = number is not None and number <= largest
        parts[not small and is_uniform(term, _uniform)].append(term)
    return _sum(parts[True], at), _sum(parts[False], at)


def _terms(value: ir.Value) -> Iterator[ir.Value]:
    """The summands of a sum, also of one that is truncated afterwards: both orders agree modulo 2**32."""
    op = defining_op(value)
    if op is not None and op.name == "arith.addi":
        for operand in op.operands:
            yield from _terms(operand)
    elif op is not None and op.name == "arith.trunci":
        yield from _terms(op.operands[0])
    else:
        yield value


def is_uniform(value: ir.Value, known: dict[ir.Value, bool]) -> bool:
    """True if all threads of a wave are known to have the same value."""
    if value not in known:
        known[value] = _is_uniform(value, known)
    return known[value]


def _is_uniform(value: ir.Value, known: dict[ir.Value, bool]) -> bool:
    op = defining_op(value)
    if op is not None:
        if op.name in _UNIFORM_SOURCES:
            return True
        return op.name.startswith(_UNIFORM_ON_UNIFORM) and all(is_uniform(operand, known) for operand in op.operands)
    owner = value.owner.owner.operation
    if owner.name == "gpu.func":
        return True  # an argument of the kernel
    argument = ir.BlockArgument(value)
    # The induction variable of a loop; what it carries may differ.
    return (
        owner.name == "scf.for"
        and argument.arg_number == 0
        and all(is_uniform(bound, known) for bound in list(owner.operands)[:3])
    )


def is_nonnegative(value: ir.Value, known: dict[ir.Value, bool]) -> bool:
    """True if a value is known not to be negative.

    These are ids, extents and strides of tensors, constants from 0 on, and arithmetic on them.
    """
    if value not in known:
        known[value] = _is_nonnegative(value, known)
    return known[value]


def _is_nonnegative(value: ir.Value, known: dict[ir.Value, bool]) -> bool:
    op = defining_op(value)
    if op is None:
        owner, argument = value.owner.owner.operation, ir.BlockArgument(value)
        return owner.name == "scf.for" and argument.arg_number == 0 and is_nonnegative(owner.operands[0], known)
    number = constant_of(value)
    if number is not None:
        return number >= 0
    if op.name in _NONNEGATIVE_SOURCES or _is_extent_or_stride(op):
        return True
    if op.name == "arith.andi":
        return any(is_nonnegative(operand, known) for operand in op.operands)
    return op.name in _NONNEGATIVE_ON_NONNEGATIVE and all(is_nonnegative(operand, known) for operand in op.operands)


def _is_extent_or_stride(op: ir.Operation) -> bool:
    """True if an operation reads a part of the struct ((extents), (strides)) that holds a tensor's layout in a kernel.

    The parts of other structs, such as those of a tuple of integers, may be negative.
    """
    return (
        op.name == "llvm.extractvalue" and defining_op(op.operands[0]) is None and len(op.attributes["position"]) == 2
    )


def _sum(terms: list[ir.Value], at: ir.Location) -> ir.Value | None:
    i32 = element_type("i32")
    total: ir.Value | None = None
    for term in terms:
        narrow = term if term.type == i32 else create("arith.trunci", [term], [i32], at).result
        total = narrow if total is None else create("arith.addi", [total, narrow], [i32], at).result
    return total
