"""Linking of kernels with functions that are given as LLVM bitcode."""

from __future__ import annotations

from collections.abc import Sequence

from flydsl.errors import CompileError
from flydsl.system.interrupts import interrupt_afterwards


@interrupt_afterwards()
def linked(llvm_ir: str, libraries: Sequence[bytes]) -> str:
    """LLVM IR with what it calls from bitcode. Raises CompileError for bitcode that LLVM does not read, or link.

    Functions of the libraries become private to the result, so that LLVM drops those that no kernel calls.
    """
    from llvmlite import binding

    module = binding.parse_assembly(llvm_ir)
    own = {function.name for function in module.functions if not function.is_declaration}
    for library in libraries:
        try:
            module.link_in(binding.parse_bitcode(library))
        except RuntimeError as error:
            raise CompileError(f"bitcode to link with: {str(error).strip()}") from None
    for function in module.functions:
        if not function.is_declaration and function.name not in own:
            function.linkage = "internal"
    return str(module)
