"""LLVM as its process (`llvm_worker`) calls it: the functions of llvmlite's library, without llvmlite's own modules.

To import those takes twice as long as to load LLVM. No module and no machine is ever freed: each compilation has a
process of its own, which ends with it.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_size_t, c_void_p

_functions: ctypes.CDLL


class LLVMError(RuntimeError):
    """The complaint of LLVM's parser, verifier or backend about a module."""


def load(library: str) -> None:
    """Load llvmlite's library, with all targets ready. Must be called first."""
    global _functions
    _functions = ctypes.CDLL(library)
    for parts in ("TargetInfos", "Targets", "TargetMCs", "AsmPrinters"):
        getattr(_functions, f"LLVMPY_InitializeAll{parts}")()


def set_option(program: str, option: str) -> None:
    """Set an option of LLVM's command line, for this process."""
    _functions.LLVMPY_SetCommandLine(program.encode(), option.encode())


class Machine:
    """A target machine."""

    def __init__(self, triple: str, cpu: str, opt_level: int) -> None:
        message = c_char_p()
        target = _address("GetTargetFromTriple", triple.encode(), byref(message))
        names = triple.encode(), cpu.encode(), b""  # no features besides the GPU's
        models = b"pic", b"jitdefault"  # relocations and code
        self._as_parameter_ = _address("CreateTargetMachine", target, *names, opt_level, *models, 0, 0, b"")
        self._triple = triple
        _functions.LLVMPY_SetTargetMachineAsmVerbosity(self, 1)

    def prepare(self, module: Module) -> None:
        """Make a module one for this machine, and verify it."""
        layout, message = c_char_p(), c_char_p()
        _functions.LLVMPY_CopyStringRepOfTargetData(_address("CreateTargetMachineData", self), byref(layout))
        _functions.LLVMPY_SetTarget(module, self._triple.encode())
        _functions.LLVMPY_SetDataLayout(module, layout)
        if _functions.LLVMPY_VerifyModule(module, byref(message)):
            raise LLVMError(_text(message))

    def optimize(self, module: Module, opt_level: int) -> None:
        """Run LLVM's pipeline of a level on a module."""
        builder = self._pass_builder()
        passes = _address("buildPerModuleDefaultPipeline", builder, opt_level)
        _functions.LLVMPY_RunNewModulePassManager(passes, module, builder)

    def combine_instructions(self, module: Module) -> None:
        """Run instcombine on a module."""
        passes = _address("CreateNewModulePassManager")
        _functions.LLVMPY_module_AddInstCombinePass(passes)
        _functions.LLVMPY_RunNewModulePassManager(passes, module, self._pass_builder())

    def emit(self, module: Module) -> bytes:
        """The assembly text, with comments."""
        message = c_char_p()
        buffer = _address("TargetMachineEmitToMemory", self, module, 0, byref(message))  # not the object
        if not buffer:
            raise LLVMError(_text(message))
        size = _size("GetBufferSize", buffer)
        return ctypes.string_at(_address("GetBufferStart", buffer), size)

    def _pass_builder(self) -> c_void_p:
        return _address("CreatePassBuilder", self, _address("CreatePipelineTuningOptions"))


class Module:
    """A module of LLVM IR, in a context of its own. Raises LLVMError for text or bitcode that does not parse."""

    def __init__(self, content: str | bytes) -> None:
        message, context = c_char_p(), _address("ContextCreate")
        if isinstance(content, str):
            self._as_parameter_ = _address("ParseAssembly", context, content.encode(), byref(message))
        else:
            size = c_size_t(len(content))
            self._as_parameter_ = _address("ParseBitcode", context, content, size, byref(message))
        if message:
            raise LLVMError(f"LLVM IR parsing error\n{_text(message)}")

    def __str__(self) -> str:
        text = c_char_p()
        _functions.LLVMPY_PrintModuleToString(self, byref(text))
        return _text(text)

    def bitcode(self) -> bytes:
        """The module as LLVM's bitcode."""
        start, size = c_char_p(), c_size_t()
        _functions.LLVMPY_WriteBitcodeToString(self, byref(start), byref(size))
        return ctypes.string_at(start, size.value)


def _address(name: str, *arguments: object) -> c_void_p:
    """The address that a function returns; it may be null."""
    function = getattr(_functions, f"LLVMPY_{name}")
    function.restype = c_void_p
    return c_void_p(function(*arguments))


def _size(name: str, *arguments: object) -> int:
    """The size that a function returns."""
    function = getattr(_functions, f"LLVMPY_{name}")
    function.restype = c_size_t
    return int(function(*arguments))


def _text(string: c_char_p) -> str:
    return (string.value or b"").decode("utf-8", "replace")
