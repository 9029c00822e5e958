"""The process that runs LLVM's backend: it waits for modules and compiles each in a copy of itself.

It is a program of its own, started by `llvm_process`, and small: Python's standard library, llvmlite's library, and
those modules of this package that need no more. So a copy takes a millisecond, where one of the user's process, with
torch in it, takes ten; and what LLVM's backend does to its process does not reach the user's. `socket` and `pickle`
would be a sixth of its start, for which the first compilation of a small kernel waits.
"""

from __future__ import annotations

import _socket
import gc
import marshal
import os
import resource
import signal
import sys
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable


def _package(name: str, folder: str) -> None:
    """Have the modules of a package without its own `__init__`, which imports the compiler."""
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__path__ = [folder]


if __name__ == "__main__":
    _here = os.path.dirname(os.path.abspath(__file__))
    _package("flydsl", os.path.dirname(_here))
    _package("flydsl.codegen", _here)
    sys.modules["flydsl.codegen.llvm_worker"] = sys.modules["__main__"]  # what requests are made of

from flydsl.codegen import llvm_functions  # noqa: E402

TRIPLE = "amdgcn-amd-amdhsa"

_STDERR = 2
_DESCRIPTOR_BYTES = 4
_SMALL_BYTES = 16 << 10  # of bitcode: a softmax, not a GEMM


class Request(NamedTuple):
    """A module to compile.

    features: of the target, as LLVM writes them. options: of LLVM's command line; those of `emitter_options` hold for
    the backend only. is_rewritten: whether halves and fences are changed in the text of the optimized module.
    needs_object: False for a module whose inline assembly LLVM cannot assemble. in_order: make the object and the
    listing one after the other, which takes less of the processors in all, but longer where one of them is idle; None:
    where none is, and the module is small.
    """

    llvm_ir: str
    cpu: str
    features: str
    opt_level: int
    options: tuple[str, ...]
    emitter_options: tuple[str, ...]
    is_rewritten: bool
    needs_object: bool
    in_order: bool | None = None


Result = tuple[bytes, bytes | None, str] | str
"""Optimized bitcode, object and listing; or why LLVM refuses the module."""


def compiled(request: Request) -> Result:
    """Compile a module, or return the message of LLVM's parser or verifier.

    The backend runs twice from the same bitcode, once for the object and once for the text, in two processes, as each
    takes as long. These are copies of the same memory: LLVM lets an order of uses or of addresses decide here and
    there, and so these are the same too, as a rule. The caller compares them.
    """
    from flydsl.codegen import clauses, half_products

    for option in request.options:  # of this process, which is a copy
        llvm_functions.set_option("flydsl", option)
    machine = _machine(request)
    try:
        module = llvm_functions.Module(request.llvm_ir)
        machine.prepare(module)
    except llvm_functions.LLVMError as error:
        return str(error).strip()
    machine.optimize(module, request.opt_level)
    optimized = str(module)
    rewritten = _rewritten(optimized, request, machine)
    if rewritten != optimized:
        module = llvm_functions.Module(rewritten)
    for option in request.emitter_options:
        llvm_functions.set_option("", option)
    bitcode = emitted = module.bitcode()
    obj, listing = _emitted(bitcode, request)
    for vectors in (False, True):
        if half_products.lost_signs(listing, rewritten):
            opaque = half_products.with_opaque_products(rewritten, vectors=vectors)
            emitted = llvm_functions.Module(opaque).bitcode()
            obj, listing = _emitted(emitted, request)
    if clauses.occur_in(listing):
        llvm_functions.set_option("", clauses.WITHOUT_CLAUSES)
        listing = clauses.with_own_lines(listing, _silently(lambda: _text(emitted, request)))
    return bitcode, obj, listing


def _machine(request: Request) -> llvm_functions.Machine:
    return llvm_functions.Machine(TRIPLE, request.cpu, request.features, request.opt_level)


def _rewritten(optimized: str, request: Request, machine: llvm_functions.Machine) -> str:
    """The optimized module without what the backend gets wrong."""
    from flydsl.codegen import float_fences, half_products, half_vectors, known_ones, numerators
    from flydsl.codegen.signed_differences import with_opaque_zeros
    from flydsl.codegen.signed_selections import with_own_signs

    def simplified(text: str) -> str:
        module = llvm_functions.Module(text)
        machine.combine_instructions(module)
        return str(module)

    text = known_ones.by_words(optimized, simplified) if request.opt_level else numerators.hidden(optimized)
    text = with_own_signs(with_opaque_zeros(text))
    if request.is_rewritten:
        text = half_products.with_signed_zeros(half_vectors.with_opaque_zeros(float_fences.opened(text)))
    return text


def _emitted(bitcode: bytes, request: Request) -> tuple[bytes | None, str]:
    """Object and assembly text."""
    if not request.needs_object:
        return None, _text(bitcode, request)
    in_order = request.in_order
    if in_order is None:  # a second process costs some 30 ms, which a large module earns on a busy machine, too
        in_order = len(bitcode) < _SMALL_BYTES and not _is_a_processor_idle()
    listing = None if in_order else _in_a_copy(lambda: _text(bitcode, request))
    obj = _machine(request).emit(llvm_functions.Module(bitcode), is_object=True)
    return obj, _silently(lambda: _text(bitcode, request)) if listing is None else listing()


def _text(bitcode: bytes, request: Request) -> str:
    return _machine(request).emit(llvm_functions.Module(bitcode), is_object=False).decode()


def _is_a_processor_idle() -> bool:
    """True if fewer processes run than there are processors, or if the system does not say."""
    try:
        with open("/proc/loadavg") as file:
            running = int(file.read().split()[3].partition("/")[0])
    except OSError:
        return True
    return running < (os.cpu_count() or 1)


def _silently(work: Callable[[], str]) -> str:
    """Work without the warnings, which making the object gave."""
    kept = os.dup(_STDERR)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), _STDERR)
    try:
        return work()
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)


def _in_a_copy(work: Callable[[], str]) -> Callable[[], str]:
    """Begin to make a text in a copy of this process. Call the result for it, once.

    Warnings of the backend come from this process: it has the same ones.
    """
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)  # else it would wait for ever to write to a process that has died
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDERR)
        _end_with(lambda: _write(writer, work().encode()))
    os.close(writer)

    def result() -> str:
        with open(reader, "rb") as file:
            content = file.read()
        if not content:
            raise RuntimeError("LLVM ended the process that writes the listing")
        return content.decode()

    return result


def _write(descriptor: int, content: bytes) -> None:
    with open(descriptor, "wb") as file:
        file.write(content)


def _end_with(work: Callable[[], None]) -> NoReturn:
    """Work, and end this copy, whatever happens."""
    status = 1
    try:
        work()
        status = 0
    except BaseException as error:  # noqa: BLE001 - said where the words of LLVM go
        os.write(_STDERR, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status)


def _compile(descriptor: int, stderr: int) -> None:
    """Compile what is asked for on a connection; the process group is that of this job alone."""
    os.setpgid(0, 0)
    os.dup2(stderr, _STDERR)
    with open(descriptor, "rb") as incoming, open(descriptor, "wb", closefd=False) as outgoing:
        marshal.dump(os.getpid(), outgoing)
        outgoing.flush()
        marshal.dump(compiled(Request(*marshal.load(incoming))), outgoing)


def serve(requests: _socket.socket) -> None:
    """Take connections, one with each message, until nobody holds the other end any more."""
    while True:
        message, sent, _, _ = requests.recvmsg(1, _socket.CMSG_LEN(2 * _DESCRIPTOR_BYTES))
        if not message:
            return
        descriptors = memoryview(sent[0][2]).cast("i").tolist()
        if os.fork() == 0:
            requests.close()
            _end_with(partial(_compile, *descriptors))
        for descriptor in descriptors:
            os.close(descriptor)


def main(descriptor: int, library: str) -> None:
    """Become the process that serves the socket of that number. It is no child of the process that started it."""
    if os.fork():
        os._exit(0)
    gc.disable()  # a collection would copy the pages of every object
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system buries the copies
    # For the copies.
    from flydsl.codegen import clauses, float_fences, half_products, half_vectors, known_ones, numerators  # noqa: F401

    llvm_functions.load(library)
    serve(_socket.socket(fileno=descriptor))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
