"""The meaning of `gpu` and `scf`: positions, barriers, output, and control flow built by operations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from mlir import ir

from flydsl.errors import ArgumentError, DeviceAssertion
from flydsl.interpreter.elements import Array, to_bytes
from flydsl.interpreter.execution import Execution, WavesPart, means
from flydsl.interpreter.meanings.choosing import chosen
from flydsl.printing import Format

# --- positions -------------------------------------------------------------------------------------------------------


def _dimension(op: ir.Operation) -> int:
    return "xyz".index(str(op.attributes["dimension"]).removesuffix(">")[-1])


@means("gpu.thread_id")
def _thread_id(x: Execution, op: ir.Operation) -> Array:
    width, height, _ = x.position.block
    lane = x.lane_numbers()
    return (lane % width, lane // width % height, lane // (width * height))[_dimension(op)].astype(np.int64)


@means("gpu.block_id", "gpu.block_dim", "gpu.grid_dim")
def _position(x: Execution, op: ir.Operation) -> Array:
    sizes = {"gpu.block_id": x.position.workgroup, "gpu.block_dim": x.position.block, "gpu.grid_dim": x.position.grid}
    return np.array([sizes[op.name][_dimension(op)]], np.int64)


@means("gpu.lane_id")
def _lane_id(x: Execution, op: ir.Operation) -> Array:
    return x.lane_numbers() % x.wave_size


@means("gpu.subgroup_size")
def _subgroup_size(x: Execution, op: ir.Operation) -> Array:
    return np.array([x.wave_size], np.int64)


@means("gpu.barrier", "rocdl.barrier", "rocdl.s.barrier", "rocdl.s.barrier.wait")
def barrier(x: Execution, op: ir.Operation) -> None:
    """Wait for the other waves. All of one execution are here, unless a wave has no lane in this branch."""
    if not x.mask.all():
        _warn_of_lanes_elsewhere(x)
    if x.at_barrier is not None:
        x.at_barrier()
    elif not x.by_waves(x.mask).any(axis=1).all():
        raise WavesPart("waves meet at barriers of different branches")


def _warn_of_lanes_elsewhere(x: Execution) -> None:
    """Warn of a wave that is here with some of its lanes: the barrier does not wait for the others."""
    active = x.by_waves(x.mask)
    for wave, lanes in enumerate(active):
        count = min(x.wave_size, x.lanes - wave * x.wave_size)
        missing = np.flatnonzero(~lanes[:count])
        if 0 < missing.size < count:
            first = x.first_lane + wave * x.wave_size
            at = x.place()
            warnings.warn_explicit(
                f"wave {first // x.wave_size} of workgroup {x.position.workgroup} comes to a barrier without "
                f"{missing.size} of its {count} lanes, the first of them thread "
                f"{x.position.thread(first + int(missing[0]))}: it is in a branch that they do not take, or they have "
                "returned. Let all threads come there",
                UserWarning,
                *((at.file, at.line) if at else ("?", 0)),
            )
            return


@means("gpu.return", "func.return")
def _return(x: Execution, op: ir.Operation, *values: Any) -> None:
    """The end."""


# --- output ----------------------------------------------------------------------------------------------------------


@means("gpu.printf")
def _printf(x: Execution, op: ir.Operation, *values: Array) -> None:
    written = Format.from_json(ir.StringAttr(op.attributes["fly.format"]).value)
    data = [to_bytes(x.spread(value), given.type) for value, given in zip(values, op.operands, strict=True)]
    lanes = np.flatnonzero(x.mask)
    for lane in lanes:
        line = written.line(b"".join(part[lane].tobytes() for part in data))
        if written.refusal is not None:
            error = ArgumentError(line, at=None, hint=written.refusal[1] or None)
            error.package = written.refusal[0]
            raise error
        if written.asserted_at is not None:
            raise _assertion(x, line, int(lane), len(lanes), written)
        x.printed.append((int(lane) + x.first_lane, line))


def _assertion(x: Execution, line: str, lane: int, threads: int, written: Format) -> DeviceAssertion:
    thread = x.position.thread(lane + x.first_lane)
    others = f", and {threads - 1} more" if threads > 1 else ""
    error = DeviceAssertion(
        f"{line}: workgroup {x.position.workgroup}, thread {thread}{others}", at=written.asserted_at
    )
    error.threads = threads
    return error


# --- control flow ----------------------------------------------------------------------------------------------------


@means("scf.if")
def _if(x: Execution, op: ir.Operation, condition: Array) -> Any:
    holds = x.spread(condition)
    sides: list[list[Any] | None] = []
    for region, mask in zip(op.regions, (x.mask & holds, x.mask & ~holds), strict=True):
        values = None
        if mask.any() and len(region.blocks):
            with x.only(mask):
                values = x.run_block(region.blocks[0])
        sides.append(values)
    then, otherwise = sides
    if then is None or otherwise is None:
        results = then or otherwise or [x.zero(result.type) for result in op.results]
    else:
        results = [chosen(holds, a, b) for a, b in zip(then, otherwise, strict=True)]
    return results[0] if len(op.results) == 1 else results


@means("scf.for")
def _for(x: Execution, op: ir.Operation, lower: Array, upper: Array, step: Array, *carried: Any) -> Any:
    item, values = lower, list(carried)
    active = x.mask & x.spread(item < upper)
    while active.any():
        with x.only(active):
            after = x.run_block(op.regions[0].blocks[0], [item, *values])
        values = [chosen(active, new, old) for new, old in zip(after, values, strict=True)]
        item = item + step
        active = active & x.spread(item < upper)
        x.turn()
    return values[0] if len(op.results) == 1 else values


@means("scf.while")
def _while(x: Execution, op: ir.Operation, *carried: Any) -> Any:
    before, after = (region.blocks[0] for region in op.regions)
    values, results, active = list(carried), None, x.mask
    while True:
        stores = x.stores
        with x.only(active):
            goes_on, *given = x.run_block(before, values)
        results = given if results is None else [chosen(active, n, o) for n, o in zip(given, results, strict=True)]
        active = active & x.spread(goes_on)
        if not active.any():
            break
        with x.only(active):
            made = x.run_block(after, given)
        idle = x.stores == stores and all(new is old or _same(new, old) for new, old in zip(made, values, strict=True))
        values = [chosen(active, new, old) for new, old in zip(made, values, strict=True)]
        x.turn(waits=True, idle=idle)
    return results[0] if len(op.results) == 1 else results


def _same(new: Any, old: Any) -> bool:
    return isinstance(new, np.ndarray) and isinstance(old, np.ndarray) and np.array_equal(new, old)


@means("scf.execute_region")
def _execute_region(x: Execution, op: ir.Operation) -> Any:
    results = x.run_block(op.regions[0].blocks[0])
    return results[0] if len(op.results) == 1 else results
