"""MLIR's LLVM dialect to LLVM IR text.

MLIR's own Python function ends the process if the translation fails, for example for an intrinsic with types that LLVM
does not accept. The C function below it reports the failure.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

from mlir import _mlir_libs, ir

from flydsl.dialect.location import source_location
from flydsl.errors import CompileError

_FOLLOWS = "LLVM Translation failed"  # after the message that says what is wrong


def to_llvm_ir(module: ir.Module) -> str:
    """The LLVM IR. Raises CompileError, with MLIR's message and the user's line, if an operation has no translation."""
    diagnostics: list[ir.DiagnosticInfo] = []

    def keep(diagnostic: Any) -> bool:
        diagnostics.append(ir.DiagnosticInfo(diagnostic))
        return True

    handler = module.context.attach_diagnostic_handler(keep)
    try:
        text = _translate(module.operation)
    finally:
        handler.detach()
    if text is None:
        said = [d for d in diagnostics if not d.message.startswith(_FOLLOWS)] or diagnostics
        at = next((found for d in said if (found := source_location(d.location)) is not None), None)
        reason = "; ".join(d.message for d in said) or "MLIR does not say why"
        raise CompileError(f"there is no LLVM IR for this: {reason}", at=at)
    return text


def _translate(operation: ir.Operation) -> str | None:
    """The LLVM IR, or None."""
    library = _library()
    capsule = operation._CAPIPtr
    context = library.LLVMContextCreate()
    try:
        module = library.mlirTranslateModuleToLLVMIR(_pointer_of(capsule), context)
        if not module:
            return None
        text = library.LLVMPrintModuleToString(module)
        try:
            return ctypes.string_at(text).decode()
        finally:
            library.LLVMDisposeMessage(text)
            library.LLVMDisposeModule(module)
    finally:
        library.LLVMContextDispose(context)


def _pointer_of(capsule: Any) -> int | None:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return get(capsule, b"mlir.ir.Operation._CAPIPtr")


@functools.cache
def _library() -> ctypes.PyDLL:
    """The C functions of MLIR and LLVM. PyDLL keeps the GIL, because messages are handed to Python."""
    (folder,) = _mlir_libs.__path__
    (path,) = Path(folder).glob("libMLIRPythonCAPI.*")
    library, pointer = ctypes.PyDLL(str(path)), ctypes.c_void_p
    functions = {
        "LLVMContextCreate": ([], pointer),
        "LLVMContextDispose": ([pointer], None),
        "LLVMDisposeMessage": ([pointer], None),
        "LLVMDisposeModule": ([pointer], None),
        "LLVMPrintModuleToString": ([pointer], pointer),
        "mlirTranslateModuleToLLVMIR": ([pointer, pointer], pointer),
    }
    for name, (arguments, result) in functions.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result
    return library
