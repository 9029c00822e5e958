"""LLVM IR text to AMD machine code: optimize and emit with LLVM, assemble, link with LLD, read the result back."""

from __future__ import annotations

from flydsl.codegen.code_object import CodeObject, Kernel, Resources, compile_llvm_ir, start_llvm_ir

__all__ = ["CodeObject", "Kernel", "Resources", "compile_llvm_ir", "start_llvm_ir"]
