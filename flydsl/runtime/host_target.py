"""The CPU that launchers are compiled for: one for all hosts of a kind, so that what they compute is the same on each.

MLIR's ExecutionEngine compiles for the CPU that it finds, and that changes results: the bf16 instructions of x86 take
denormals for zero, and LLVM's conversions of f16 NaNs to integers are wrong with AVX512-FP16. A launcher computes a few
scalars, so the features that every supported CPU has are enough. Where LLVM then calls a library for a conversion of
f16 or bf16, which not every process has loaded, the module defines that function itself.

The bits of a bf16 go through memory: LLVM 22's x86 back end ends the process where they are widened and shifted.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from mlir import ir

# The features must be given, though they are the CPU's own: LLVM takes the host's otherwise. NumPy needs v2, too.
_X86 = ("x86-64-v2", "+sse4.2")
_ARM = ("generic", "+neon")
TARGETS = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}
_PASSTHROUGH = "passthrough"

# By name: the type from which it converts, that to which it does, and of the latter mantissa bits and least exponent.
_TRUNCATIONS = {
    "__truncsfhf2": ("f32", "f16", 10, -14),
    "__truncdfhf2": ("f64", "f16", 10, -14),
    "__truncsfbf2": ("f32", "bf16", 7, -126),
    "__truncdfbf2": ("f64", "bf16", 7, -126),
}


@contextmanager
def for_any_host(module: ir.Module) -> Iterator[None]:
    """Inside the `with` block a module of the llvm dialect is for the CPU of `TARGETS`, whatever this host is."""
    with module.context, ir.Location.unknown():
        functions = [f.operation for f in module.body if f.operation.name == "llvm.func" and f.regions[0].blocks]
        narrow = list(filter(_uses_narrow_floats, functions))
        added = append(module, _conversions()) if narrow else []
        detours = [_through_memory(function, cast) for function in narrow for cast in _bits_of_bf16(function)]
        for function in functions + added:
            function.attributes[_PASSTHROUGH] = _target()
    try:
        yield
    finally:
        for function in functions:
            del function.attributes[_PASSTHROUGH]
        for function in added:
            function.erase()
        for cast, made in detours:
            made[-1].result.replace_all_uses_with(cast.result)
            for op in reversed(made):
                op.erase()


def _target() -> ir.Attribute:
    cpu, features = TARGETS.get(platform.machine().lower(), ("generic", ""))
    return ir.Attribute.parse(f'[["target-cpu", "{cpu}"], ["target-features", "{features}"]]')


def _operations(function: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _uses_narrow_floats(function: ir.Operation) -> bool:
    values = (value for op in _operations(function) for value in [*op.operands, *op.results])
    return any(isinstance(value.type, (ir.F16Type, ir.BF16Type)) for value in values)


def _bits_of_bf16(function: ir.Operation) -> list[ir.Operation]:
    return [op for op in _operations(function) if op.name == "llvm.bitcast" and "bf16" in str(op.operands[0].type)]


def _through_memory(function: ir.Operation, cast: ir.Operation) -> tuple[ir.Operation, list[ir.Operation]]:
    """Have users of a cast take what was stored and loaded instead; the cast, and what was made for that."""
    value, pointer, volatile = cast.operands[0], ir.Type.parse("!llvm.ptr"), {"volatile_": ir.UnitAttr.get()}
    made: list[ir.Operation] = []

    def make(name: str, results: list[ir.Type], operands: list[ir.Value], attributes: dict[str, ir.Attribute]) -> Any:
        made.append(ir.Operation.create(name, results, operands, attributes))
        return made[-1]

    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        count = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)
        one = make("llvm.mlir.constant", [count.type], [], {"value": count}).result
        place = make("llvm.alloca", [pointer], [one], {"elem_type": ir.TypeAttr.get(value.type)}).result
    with ir.InsertionPoint(cast):
        make("llvm.store", [], [value, place], volatile)
        loaded = make("llvm.load", [cast.result.type], [place], volatile)
    cast.result.replace_all_uses_with(loaded.result)
    return cast, made


def append(module: ir.Module, text: str) -> list[ir.Operation]:
    """Append the functions of a text to a module, and return them."""
    parsed = ir.Module.parse(text)  # which must live until they have another home: they stand in its memory
    functions = [function.operation for function in parsed.body]
    for function in functions:
        function.detach_from_parent()
        module.body.append(function)
    return functions


@cache
def _conversions() -> str:
    return "\n".join([_EXTENSION, *(_truncation(name, *rest) for name, rest in _TRUNCATIONS.items())])


def _truncation(name: str, source: str, result: str, mantissa: int, least: int) -> str:
    """Round to nearest even with one addition: of the power of two whose last bit is worth what the result's last is.

    By how much the sum's bits are more than that power's is the result's mantissa with its hidden bit, a carry, too.
    """
    infinity = (2 * (1 - least) + 1) << mantissa
    wide = "llvm.fpext %x : f32 to f64" if source == "f32" else "llvm.bitcast %x : f64 to f64"
    return f"""
llvm.func internal @{name}(%x: {source}) -> {result} {{
  %least = llvm.mlir.constant({1023 + least} : i64) : i64
  %most = llvm.mlir.constant({1023 - least + 3} : i64) : i64
  %distance = llvm.mlir.constant({52 - mantissa} : i64) : i64
  %mantissa = llvm.mlir.constant({mantissa} : i64) : i64
  %infinity = llvm.mlir.constant({infinity} : i64) : i64
  %quiet = llvm.mlir.constant({infinity | 1 << mantissa - 1} : i64) : i64
  %fraction = llvm.mlir.constant({(1 << mantissa) - 1} : i64) : i64
  %magnitude_bits = llvm.mlir.constant({(1 << 63) - 1} : i64) : i64
  %wide_infinity = llvm.mlir.constant({0x7FF << 52} : i64) : i64
  %c52 = llvm.mlir.constant(52 : i64) : i64
  %c48 = llvm.mlir.constant(48 : i64) : i64
  %sign_bit = llvm.mlir.constant(-32768 : i16) : i16
  %wide = {wide}
  %bits = llvm.bitcast %wide : f64 to i64
  %magnitude = llvm.and %bits, %magnitude_bits : i64
  %own = llvm.lshr %magnitude, %c52 : i64
  %atleast = llvm.intr.smax(%own, %least) : (i64, i64) -> i64
  %exponent = llvm.intr.smin(%atleast, %most) : (i64, i64) -> i64
  %power_exponent = llvm.add %exponent, %distance : i64
  %power_bits = llvm.shl %power_exponent, %c52 : i64
  %power = llvm.bitcast %power_bits : i64 to f64
  %absolute = llvm.bitcast %magnitude : i64 to f64
  %sum = llvm.fadd %absolute, %power : f64
  %sum_bits = llvm.bitcast %sum : f64 to i64
  %units = llvm.sub %sum_bits, %power_bits : i64
  %above = llvm.sub %exponent, %least : i64
  %field = llvm.shl %above, %mantissa : i64
  %any = llvm.add %field, %units : i64
  %finite = llvm.intr.smin(%any, %infinity) : (i64, i64) -> i64
  %payload = llvm.lshr %magnitude, %distance : i64
  %kept = llvm.and %payload, %fraction : i64
  %nan = llvm.or %kept, %quiet : i64
  %is_nan = llvm.icmp "ugt" %magnitude, %wide_infinity : i64
  %chosen = llvm.select %is_nan, %nan, %finite : i1, i64
  %unsigned = llvm.trunc %chosen : i64 to i16
  %top = llvm.lshr %bits, %c48 : i64
  %top16 = llvm.trunc %top : i64 to i16
  %sign = llvm.and %top16, %sign_bit : i16
  %signed = llvm.or %sign, %unsigned : i16
  %result = llvm.bitcast %signed : i16 to {result}
  llvm.return %result : {result}
}}"""


# The exponent is moved by a product with 2**112, which is exact and takes denormals along.
_EXTENSION = """
llvm.func internal @__extendhfsf2(%x: f16) -> f32 {
  %magnitude_bits = llvm.mlir.constant(32767 : i32) : i32
  %sign_bit = llvm.mlir.constant(32768 : i32) : i32
  %infinity = llvm.mlir.constant(31744 : i32) : i32
  %wide_infinity = llvm.mlir.constant(2139095040 : i32) : i32
  %quiet = llvm.mlir.constant(4194304 : i32) : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %scale = llvm.mlir.constant(5.192296858534828e+33 : f32) : f32
  %c13 = llvm.mlir.constant(13 : i32) : i32
  %c16 = llvm.mlir.constant(16 : i32) : i32
  %narrow = llvm.bitcast %x : f16 to i16
  %bits = llvm.zext %narrow : i16 to i32
  %magnitude = llvm.and %bits, %magnitude_bits : i32
  %moved = llvm.shl %magnitude, %c13 : i32
  %small = llvm.bitcast %moved : i32 to f32
  %scaled = llvm.fmul %small, %scale : f32
  %finite = llvm.bitcast %scaled : f32 to i32
  %is_nan = llvm.icmp "ugt" %magnitude, %infinity : i32
  %is_special = llvm.icmp "uge" %magnitude, %infinity : i32
  %quieted = llvm.select %is_nan, %quiet, %zero : i1, i32
  %special = llvm.or %moved, %wide_infinity : i32
  %settled = llvm.or %special, %quieted : i32
  %unsigned = llvm.select %is_special, %settled, %finite : i1, i32
  %sign = llvm.and %bits, %sign_bit : i32
  %wide_sign = llvm.shl %sign, %c16 : i32
  %signed = llvm.or %unsigned, %wide_sign : i32
  %result = llvm.bitcast %signed : i32 to f32
  llvm.return %result : f32
}"""
