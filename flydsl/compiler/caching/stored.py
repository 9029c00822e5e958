"""A compiled artifact as plain data: for the cache on disk, and for files that are loaded elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, replace
from typing import Any

from mlir import ir

from flydsl.arch import get_arch
from flydsl.codegen import CodeObject
from flydsl.compiler.arguments.argument import Argument
from flydsl.compiler.arguments.signature import Signature
from flydsl.compiler.artifact import CompiledArtifact
from flydsl.compiler.hints import CompileHints
from flydsl.compiler.pipeline import Pipeline, bytecode
from flydsl.compiler.trace import KernelRecord, Traced
from flydsl.dialect.context import context, lock
from flydsl.dialect.walk import operations
from flydsl.errors import FlyError, SourceLocation
from flydsl.printing import FORMATS

_CODE_FIELDS = ("llvm_ir", "opt_level", "bitcode", "hsaco", "listing", "diagnostics")


def to_record(artifact: CompiledArtifact) -> dict[str, Any]:
    """All that an artifact consists of but its arguments and signature, as numbers, text, bytes and lists of them."""
    pipeline, traced, code = artifact.pipeline, artifact.pipeline.traced, artifact.code
    with lock:
        module = bytecode(traced.module.operation)
    return {
        "name": pipeline.name,
        "arch": code.arch.name,
        "code": {name: getattr(code, name) for name in _CODE_FIELDS},
        "origin": pipeline.origin_bytecode,
        "module": module,
        "entry": traced.entry,
        "kernels": [_of_kernel(kernel) for kernel in traced.kernels],
        "extra_stream": traced.extra_stream,
        "operations": traced.operations,
        "hints": asdict(traced.hints),
        "times_ms": [stage.time_ms for stage in pipeline],
    }


def from_record(
    record: Mapping[str, Any], arguments: tuple[Argument, ...], signature: Signature
) -> CompiledArtifact | None:
    """The artifact of a record; None if it is none of ours."""
    try:
        return _artifact(record, arguments, signature)
    except (KeyError, TypeError, ValueError, AttributeError, FlyError, ir.MLIRError):
        return None


def _artifact(record: Mapping[str, Any], arguments: tuple[Argument, ...], signature: Signature) -> CompiledArtifact:
    arch = get_arch(record["arch"])
    code = CodeObject(arch, **{name: record["code"][name] for name in _CODE_FIELDS}, from_cache=True)
    with lock, context():
        module = ir.Module.parse(record["module"])
    hints = record["hints"]
    traced = Traced(
        module,
        record["entry"],
        tuple(_to_kernel(kernel) for kernel in record["kernels"]),
        record["extra_stream"],
        record["operations"],
        CompileHints(**hints | {"llvm_options": tuple(hints["llvm_options"])}),
    )
    pipeline = Pipeline.that_has_run(
        record["name"],
        traced,
        arch,
        arguments,
        signature,
        origin=record["origin"],
        code=code,
        times_ms=record["times_ms"],
    )
    artifact = pipeline.artifact
    if {kernel.name for kernel in artifact.kernels} != {kernel.name for kernel in traced.kernels}:
        raise ValueError("the launcher launches other kernels than the code object has")
    if _parameter_count(module, traced.entry) != len(artifact.codes) + (FORMATS in module.operation.attributes):
        raise ValueError("the launcher has other parameters than its host code")
    return artifact


def _parameter_count(module: ir.Module, entry: str) -> int:
    """The number of parameters of the compiled launcher."""
    functions = [op for op in operations(module.operation) if op.name == "llvm.func"]  # plain: no dialect is imported
    found = [op for op in functions if ir.StringAttr(op.attributes["sym_name"]).value == entry]
    if not found or not found[0].regions[0].blocks:
        raise ValueError("there is no host code")
    return len(found[0].regions[0].blocks[0].arguments)


def _of_kernel(kernel: KernelRecord) -> list[Any]:
    return [*astuple(replace(kernel, at=None)), None if kernel.at is None else list(astuple(kernel.at)[:4])]


def _to_kernel(data: Sequence[Any]) -> KernelRecord:
    *fields, at = data
    return replace(KernelRecord(*fields), at=None if at is None else replace(SourceLocation(*at), is_claimed=True))
