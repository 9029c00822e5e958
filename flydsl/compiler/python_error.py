"""Errors that Python itself raises while a kernel is traced, as errors with a place and a hint."""

from __future__ import annotations

import builtins
import dis
import inspect
import os
import re
from collections import Counter
from types import FrameType, ModuleType, TracebackType
from typing import Any

from mlir import ir

import flydsl.expr as fx
from flydsl.errors import SourceLocation, TraceError, did_you_mean
from flydsl.errors.places import in_standard_library, is_user_frame, location_of, steps_of
from flydsl.expr.control_flow import recursion
from flydsl.expr.flydsl_names.other_names import OTHER_NAMES
from flydsl.expr.numbers.arith_value import ArithValue
from flydsl.expr.threads.positions import Tuple3D
from flydsl.expr.tracing.operands import FlyValue

_KINDS = (
    TypeError, AttributeError, NameError, UnboundLocalError, ValueError, KeyError, IndexError, ZeroDivisionError,
    OverflowError, RecursionError, RuntimeError, OSError, FileNotFoundError, FileExistsError, IsADirectoryError,
    NotADirectoryError, PermissionError,
)  # fmt: skip


class MLIRError(TraceError, ir.MLIRError):
    """An error of MLIR's bindings in the user's code."""

    def __init__(self, message: str, *, at: SourceLocation | None = None, hint: str | None = None) -> None:
        ir.MLIRError.__init__(self, message, [])
        self.at, self.hint = at, hint


# Each is a TraceError, and an error of Python's kind for who catches that.
ATTRIBUTE_HOOKS = ("__getattr__", "__get__")
"""The functions that say of an attribute that it is missing. That is the fault of the code that asked for it."""
_TRACED: dict[type[Exception], Any] = {
    kind: type(kind.__name__, (TraceError, kind), {"__module__": __name__}) for kind in _KINDS
} | {ir.MLIRError: MLIRError}


def as_trace_error(error: Exception, at: SourceLocation | None) -> Exception:
    """A TraceError for an error that Python itself raises. An error from a `raise` statement of the user's is kept."""
    kind = _TRACED.get(type(error))
    if kind is None or at is None or error.__cause__ is not None or _is_raised(error.__traceback__):
        return error
    if isinstance(error, RecursionError):
        again = _recursive(error)
        at = location_of(again.tb_frame.f_code, again.tb_lasti, again.tb_lineno)
    made: Exception = kind(_message(error), at=at, hint=_hint(error))
    made.__suppress_context__ = True
    if isinstance(error, OSError) and isinstance(made, OSError):
        made.errno, made.strerror, made.filename = error.errno, error.strerror, error.filename
    return made


def as_fault(error: Exception, at: SourceLocation | None) -> Exception:
    """A TraceError for an error of Python's kinds that this package did not expect; that one is its cause."""
    if type(error) not in _TRACED or at is None:
        return error
    if isinstance(error, OSError) or (isinstance(error, TypeError) and _OTHER_NUMBER.match(str(error))):
        return as_trace_error(error, at)
    made = TraceError(
        f"flydsl cannot make sense of this: {type(error).__name__}: {error}",
        at=at,
        hint="look at the operands, help(...) says what they may be; if they are right, this is an error of flydsl, "
        "whose traceback is the cause of this one",
    )
    made.__cause__ = error
    return made


def _is_raised(traceback: TracebackType | None) -> bool:
    """True if the innermost frame has a `raise` statement there. One for a missing attribute does not count."""
    last = _innermost(traceback)
    if last is None or last.tb_frame.f_code.co_name in ATTRIBUTE_HOOKS:
        return False
    if in_standard_library(last.tb_frame.f_code.co_filename):
        return False  # as if Python itself did
    code = last.tb_frame.f_code.co_code
    return 0 <= last.tb_lasti < len(code) and dis.opname[code[last.tb_lasti]] == "RAISE_VARARGS"


def _innermost(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback


def _recursive(error: Exception) -> TracebackType:
    """The first step of a traceback in the function of the user's that is called most often."""
    steps = [step for step in steps_of(error) if is_user_frame(step.tb_frame)]
    calls = Counter(step.tb_frame.f_code for step in steps)
    return next(step for step in steps if step.tb_frame.f_code is calls.most_common(1)[0][0])


def _message(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return recursion.without_end(_recursive(error).tb_frame.f_code.co_name)
    if isinstance(error, KeyError) and error.args:
        return f"there is no key {error.args[0]!r}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, AttributeError) and str(error) == "__delitem__":
        return "an element of a tensor cannot be deleted"
    if isinstance(error, AttributeError):
        return _of_module(error)[0]
    if isinstance(error, ir.MLIRError):
        return ": ".join([error.message, *(reason.message for reason in error.error_diagnostics)])
    return str(error).partition("\n")[0].removesuffix(", but expected one of:")


def _of_module(error: AttributeError) -> tuple[str, str]:
    """The message and the hint of a missing attribute: a module of this package gives both in one."""
    message, _, hint = str(error).partition("; ")
    return message, hint


def _hint(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return recursion.HINT
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], ArithValue | FlyValue):
        return "a runtime value is known on the device only: look it up in a tensor, or use a compile-time key"
    if isinstance(error, AttributeError):
        return _hint_of_attribute(error)
    if isinstance(error, FileNotFoundError):
        return f"is the path right? relative ones begin at {os.getcwd()}"
    if isinstance(error, OSError):
        return "so says the operating system: is it a file that may be read and written, and is there room?"
    if isinstance(error, UnboundLocalError):
        return "assign it before it is read, on every way that leads here"
    if isinstance(error, NameError):
        return _hint_of_name(error)
    if isinstance(error, TypeError):
        return _hint_of_type(str(error))
    if isinstance(error, RuntimeError) and "infer dtype" in str(error):
        return _ON_THE_HOST
    if isinstance(error, RuntimeError | ir.MLIRError):
        return "so says MLIR: look at the types, attributes and operations that it was given"
    if isinstance(error, ValueError) and "to unpack" in str(error):
        return "there are as many as fx.rank(...) says: one for each mode of a tensor or layout"
    if isinstance(error, IndexError) and "valid indices" in str(error):
        return "pass the tensor to the kernel as an argument: there a runtime value can be its index"
    return "Python computes this while the kernel is traced: its operands are compile-time values"


def _hint_of_attribute(error: AttributeError) -> str:
    name, hint = error.name or "", _of_module(error)[1]
    if str(error) == "__delitem__":
        return "x[i] = value changes it"
    if hint or name in OTHER_NAMES:
        return hint or OTHER_NAMES[name]
    if error.obj is None and name == "launch":
        return "what is launched is a kernel's call: is @flyc.kernel missing above the function?"
    if isinstance(error.obj, ModuleType):
        return f"dir(...) of the module has the names of {error.obj.__name__}"
    if isinstance(error.obj, Tuple3D):
        return "it has x, y and z"
    known = _public(dir(error.obj))
    few = f"it has {', '.join(known)}" if 0 < len(known) <= _FEW_NAMES else "dir(...) shows what it has"
    return did_you_mean(name, known).removesuffix(" ") or few


def _hint_of_name(error: NameError) -> str:
    name = error.name or ""
    if len(name) > 1 and name in OTHER_NAMES:
        return OTHER_NAMES[name]
    last = _innermost(error.__traceback__)
    known = [] if last is None else [known for known in _names(last.tb_frame) if known != name]
    if name in dir(fx):
        return f"did you mean fx.{name}?"
    return did_you_mean(name, known).removesuffix(" ") or "assign it, or import it"


def _names(frame: FrameType) -> list[str]:
    return _public([*frame.f_locals, *frame.f_globals, *dir(builtins)])


def _public(names: Any) -> list[str]:
    return [name for name in names if not name.startswith("_")]


_FEW_NAMES = 8
# Functions may be called through others of this package.
_OTHER_NUMBER = re.compile(r"(?:\w+\.)*(\w+)\(\) (?:missing|takes|got)")

_ON_THE_HOST = "torch computes on the host, while tracing: pass the tensor to the kernel; fx.make_rmem_tensor makes one"
# What Python says of an operand -> what to do instead.
_TYPE_HINTS = (
    (r"'KernelLauncher'|\blaunch\(\)", "kernel(arguments).launch(grid=..., block=..., smem=0, stream=None)"),
    ("not iterable|non-iterable", "a runtime number is not a sequence: `for i in range(n)` is a loop on the device"),
    ("len\\(\\)", "tensor.shape has the extents, fx.size(tensor.shape) their product"),
    ("can't assign a", "a tensor of the host holds no values of the device: fx.make_rmem_tensor(4, fx.Float32) does"),
    ("not subscriptable", "a scalar has no elements; of a matrix x[i, j] is one, and x[i, None] a row"),
    (r"Block(Reduce|Scan)\(\) takes", "fx.BlockReduce[fx.Float32, 256] is for Float32 and the 256 threads of a block"),
    ("'storage'", "storage is shared memory: fx.SharedAllocator().allocate(Sum.SharedStorage)"),
    ("'Tuple3D' object is not callable|'Tuple3D' and|and 'Tuple3D'", "take one of its three: fx.thread_idx.x"),
    (r"\b(Array|Align|Struct|Union|Storage)\(\) takes", "with brackets: fx.Array[fx.Float32, 64]"),
    (r"Arena\.allocate\(\) missing", "fx.SharedAllocator().allocate(...): the allocator is made first"),
    (
        "'Vector' object does not support item assignment",
        "a vector keeps its elements; those of fx.make_rmem_tensor(4, "
        "fx.Float32) are assigned, and it takes a vector: tensor.store(v)",
    ),
    (
        "does not support item assignment",
        "it keeps its elements: make another one; fx.make_view(fx.get_iter(tensor), "
        "layout) gives a tensor another shape",
    ),
    ("invalid combination of arguments", _ON_THE_HOST),
    ("not callable", "it is a value, not a function"),
    ("ufunc|must be Tensor|must be real number", "on values of the device: fx.exp, fx.sqrt, ... and fx.math"),
    (r"argument '\w+' \(position \d+\) must be", _ON_THE_HOST),
    ("'Tensor'", "index it, tensor[i], or work on fragments: fragment.load() is a vector with operators"),
    ("__format__|format string", "its value is known on the device only: write it to a tensor, and print that"),
    ("divmod", "n // d and n % d"),
    ("for @", "fx.gemm multiplies fragments, a * b numbers, and (v * w).reduce(...) is a dot product of vectors"),
    ("for [^:]+: .*'(Storage|Array)", "memory has no operators, its elements have: memory.peek()[i]"),
    ("unsupported operand|bad operand", "convert the operands to numbers or vectors: value.to(fx.Float32), tensor[i]"),
)


def _hint_of_type(message: str) -> str:
    found = next((hint for pattern, hint in _TYPE_HINTS if re.search(pattern, message)), None)
    named = _OTHER_NUMBER.match(message)
    if named and inspect.isfunction(vars(fx).get(named[1])):
        return f"its parameters are {inspect.signature(vars(fx)[named[1]])}".replace("'", "")
    if found is None and named:
        return "help(...) of it shows its parameters"
    return found or "Python does this while the kernel is traced, with values of the DSL as operands"
