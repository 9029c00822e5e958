"""Accesses to LDS do not wait for asynchronous copies into it, as those of newer LLVMs do not.

LLVM 22.1 has no asynchronous form of the instructions that load into LDS: its back end waits for all of them before
LDS is read or written, though the program waits itself, by `s_waitcnt` and a barrier. Where all copies of a module are
marked as asynchronous (`dialect.async_copies`), accesses to LDS are said to be apart from them. What the
program has between a copy and a read, a wait or a barrier, nothing moves over in the back end. The optimizer could
move reads over waits, so it does not learn of this.
"""

from __future__ import annotations

import itertools
import re

from flydsl.codegen.llvm_bugs.ir_text import NAME, split_operands, up_to_closing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_CALL = ".load.lds("
_COPY = re.compile(rf"(?m)^ .* @llvm\.amdgcn\..*{re.escape(_CALL)}.*$")
_ACCESS = re.compile(
    r"(?m)^ .*(?:= load |^ *store |= atomicrmw |= cmpxchg | @llvm\.amdgcn\.ds\.read\.tr).*ptr addrspace\(3\).*$"
)
_LDS = "ptr addrspace(3)"
_ADDRESS = re.compile(rf"{re.escape(_LDS)} (?:(?:noundef|nonnull|align \d+) )*(?P<value>.*)")
_FIRST_LANE = f"@llvm.amdgcn.readfirstlane.p3({_LDS}"
_ADDRESS_OF_ACCESS = re.compile(rf"{re.escape(_LDS)} ({NAME}|@[\w.$-]+)")


def wait_for_none(llvm_ir: str) -> str:
    """Optimized LLVM IR text whose accesses to LDS are outside of the scope of the asynchronous copies."""
    scope = re.search(r'(?m)^(!\d+) = !\{!"flydsl\.async_copies"', llvm_ir)
    scopes = scope and re.search(rf"(?m)^(!\d+) = !\{{{scope[1]}\}}$", llvm_ir)
    if not scopes or any(f"!alias.scope {scopes[1]}" not in copy for copy in _COPY.findall(llvm_ir)):
        return llvm_ir
    accessed = {address[1] for access in _ACCESS.findall(llvm_ir) if (address := _ADDRESS_OF_ACCESS.search(access))}
    numbers = itertools.count()
    apart = _COPY.sub(lambda copy: _with_address_of_its_own(copy[0], accessed, next(numbers)), llvm_ir)
    if apart != llvm_ir and f"{_FIRST_LANE})" not in llvm_ir:
        apart = f"{apart}\ndeclare {_LDS} {_FIRST_LANE})\n"
    return _ACCESS.sub(lambda access: _outside(access[0], scopes[1]), apart)


def _with_address_of_its_own(copy: str, accessed: Collection[str], number: int) -> str:
    """A copy whose address has a name that no access has: LLVM takes those of one name for the same memory.

    It is that of the first lane, which is the one that the hardware takes.
    """
    before, _, rest = copy.partition(_CALL)
    given, after = up_to_closing(rest)
    operands, name = split_operands(given), f'%"copy {number}"'
    for i, operand in enumerate(operands):
        address = _ADDRESS.fullmatch(operand)
        if address and address["value"] in accessed:
            operands[i] = f"{_LDS} {name}"
            named = f"  {name} = call {_LDS} {_FIRST_LANE} {address['value']})"
            return f"{named}\n{before}{_CALL}{', '.join(operands)}){after}"
    return copy


def _outside(access: str, scopes: str) -> str:
    return access if "!noalias" in access else f"{access}, !noalias {scopes}"
