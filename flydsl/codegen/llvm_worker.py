"""The process that runs LLVM's backend: it waits for modules and compiles each in a copy of itself.

It is a program of its own, which `llvm_process` starts by `llvm_program`, and small: Python's standard library,
llvmlite's library, and those modules of this package that need no more. So a copy takes a millisecond, where one of the
user's process, with torch in it, takes ten; and what LLVM's backend does to its process does not reach the user's.

The first compilation of a small kernel waits for its start: `typing`, `signal`, `socket`, `pickle` and `functools`
would be a half of that. What a copy needs besides is got ready while there is no request, for all copies.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import gc
import marshal
import os
import resource

from flydsl.codegen import llvm_bugs, llvm_functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

TRIPLE = "amdgcn-amd-amdhsa"

_STDERR = 2
_DESCRIPTOR_BYTES = 4
_TARGET_BYTES = 64
_PATIENCE_S = 0.2


class Request:
    """A module to compile.

    options: of LLVM's command line; those of `emitter_options` hold for the backend only.
    """

    def __init__(
        self,
        llvm_ir: str,
        cpu: str,
        opt_level: int,
        options: tuple[str, ...] = (),
        emitter_options: tuple[str, ...] = (),
    ) -> None:
        self.llvm_ir = llvm_ir
        self.cpu = cpu
        self.opt_level = opt_level
        self.options = options
        self.emitter_options = emitter_options

    @property
    def target(self) -> bytes:
        """GPU and level as the message that goes before a module; blank if they do not fit into it."""
        text = f"{self.cpu} {self.opt_level}".encode()
        return text.ljust(_TARGET_BYTES) if len(text) <= _TARGET_BYTES else b" " * _TARGET_BYTES


Result = tuple[bytes, str] | str
"""Optimized bitcode and listing; or why LLVM refuses the module."""


def compiled(request: Request) -> Result:
    """Compile a module, or return the message of LLVM's parser or verifier."""
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
    if request.emitter_options:  # one that has emitted nothing yet learns of them
        machine = _new_machine(request.cpu, request.opt_level)
    bitcode = module.bitcode()
    return bitcode, _emitted_well(bitcode, rewritten, machine)


def _emitted_well(bitcode: bytes, llvm_ir: str, machine: llvm_functions.Machine) -> str:
    """The assembly text of a module, emitted again where it shows what LLVM gets wrong."""
    listing = _text(bitcode, machine)
    if llvm_bugs.has_branches_of_lanes(listing):
        from flydsl.codegen.llvm_bugs import branch_masks

        if branch_masks.may_be_dropped(listing):
            llvm_functions.set_option("", branch_masks.WITHOUT_SHARING)
            listing = _text(bitcode, machine)
    if llvm_bugs.may_lose_signs(listing):
        from flydsl.codegen.llvm_bugs import half_products

        for vectors in (False, True):
            if half_products.loses_signs(listing, llvm_ir):
                opaque = half_products.hide_products(llvm_ir, vectors=vectors)
                bitcode = llvm_functions.Module(opaque).bitcode()
                listing = _text(bitcode, machine)
    if llvm_bugs.has_clauses(listing):
        from flydsl.codegen.llvm_bugs import clauses

        llvm_functions.set_option("", clauses.WITHOUT_CLAUSES)
        listing = clauses.restore_lines(listing, _silently(lambda: _text(bitcode, machine)))
    return listing


_machines: dict[tuple[str, int], llvm_functions.Machine] = {}
"""Machines that have emitted something, by GPU and optimization level: by then they know their registers."""


def _machine(request: Request) -> llvm_functions.Machine:
    target = request.cpu, request.opt_level
    return (None if request.options else _machines.get(target)) or _new_machine(*target)


def _new_machine(cpu: str, opt_level: int) -> llvm_functions.Machine:
    return llvm_functions.Machine(TRIPLE, cpu, opt_level)


def _rewritten(optimized: str, request: Request, machine: llvm_functions.Machine) -> str:
    """The optimized module without what the backend gets wrong."""

    def simplify(text: str) -> str:
        module = llvm_functions.Module(text)
        machine.combine_instructions(module)
        return str(module)

    return llvm_bugs.work_around(optimized, request.opt_level, simplify)


def _text(bitcode: bytes, machine: llvm_functions.Machine) -> str:
    text = machine.emit(llvm_functions.Module(bitcode))
    return text.decode(errors="replace")  # bytes of debug information stand as they are in comments


def _silently(work: Callable[[], str]) -> str:
    """Work without the warnings, which the first listing gave."""
    kept = os.dup(_STDERR)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), _STDERR)
    try:
        return work()
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)


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
        marshal.dump(compiled(Request(**marshal.load(incoming))), outgoing)


def serve(requests: _socket.socket, steps: list[Callable[[], object]]) -> None:
    """Take connections, one with each message, until the other end is closed.

    steps: what to do for the copies while there is no request. A target that was asked for is one of them: as a rule,
    it is asked for again.
    """
    patience_s, asked = 0.0, set[bytes]()
    while True:
        message, sent, _, _ = _next(requests, steps, patience_s)
        if not message:
            return
        descriptors = memoryview(sent[0][2]).cast("i").tolist()
        if os.fork() == 0:
            requests.close()
            _end_with(lambda: _compile(*descriptors))  # noqa: B023 - at once
        for descriptor in descriptors:
            os.close(descriptor)
        patience_s = _PATIENCE_S  # the copy has the processor
        if message.strip() and message not in asked:
            asked.add(message)
            steps.append(_getting_ready(*message.decode().split()))


def _next(
    requests: _socket.socket, steps: list[Callable[[], object]], patience_s: float
) -> tuple[bytes, list[Any], int, Any]:
    """The next message, as `recvmsg` has it, and the steps done for which there is time before it."""
    while True:
        requests.settimeout(patience_s if steps else None)
        try:
            return requests.recvmsg(_TARGET_BYTES, _socket.CMSG_LEN(2 * _DESCRIPTOR_BYTES))
        except (BlockingIOError, TimeoutError):
            steps.pop(0)()


def _get_ready(cpu: str, opt_level: int) -> None:
    """Emit a little, unless that is done: it takes a machine three times as long at first."""
    if (cpu, opt_level) in _machines:
        return
    machine = _new_machine(cpu, opt_level)
    module = llvm_functions.Module(_LITTLE)
    machine.prepare(module)
    machine.optimize(module, opt_level)
    machine.emit(module)
    _machines[cpu, opt_level] = machine


def _getting_ready(cpu: str, opt_level: str) -> Callable[[], object]:
    return lambda: _get_ready(cpu, int(opt_level))


_LITTLE = """
define amdgpu_kernel void @little(ptr addrspace(1) %x) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr float, ptr addrspace(1) %x, i32 %t
  %v = load float, ptr addrspace(1) %p
  %w = fadd float %v, %v
  store float %w, ptr addrspace(1) %p
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
"""


def main(descriptor: int, library: str, *target: str) -> None:
    """Become the process that serves the socket of that number. It is no child of the process that started it.

    target: GPU and opt level that are likely to be asked for.
    """
    if os.fork():
        os._exit(0)
    gc.disable()  # a collection would copy the pages of every object
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)  # the system buries the copies
    llvm_functions.load(library)
    steps: list[Callable[[], object]] = [llvm_bugs.load]
    if target:
        steps.insert(0, _getting_ready(*target))
    serve(_socket.socket(fileno=descriptor), steps)
