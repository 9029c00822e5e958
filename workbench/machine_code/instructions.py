"""The instructions of one function, from LLVM's listing of the module."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from flydsl.errors import ArgumentError, SourceLocation
from flydsl.hsaco.listing import Listing
from flydsl.hsaco.register_uses import Uses, base_name, uses

_FAR_BRANCH = "s_add_pc_i64"
"""LLVM writes `s_add_pc_i64 target-next`, where `next` is the label after it."""
_LEAVES = ("s_endpgm", "s_setpc", "s_set_pc", "s_branch", _FAR_BRANCH)

KINDS = ("VALU", "MFMA", "WMMA", "SALU", "VMEM", "LDS", "SMEM", "branch", "wait", "barrier")
"""The kinds of instructions: by the unit that executes them, or by their effect where no unit does."""

_PREFIXES = (
    ("MFMA", ("v_mfma", "v_smfmac")),
    ("WMMA", ("v_wmma", "v_swmmac")),
    ("VALU", ("v_",)),
    ("LDS", ("ds_",)),
    ("SMEM", ("s_load", "s_buffer_load", "s_scratch_load", "s_store", "s_dcache", "s_prefetch")),
    ("wait", ("s_wait", "s_nop", "s_delay_alu", "s_sleep")),
    ("barrier", ("s_barrier",)),
    ("branch", (*_LEAVES, "s_cbranch", "s_swappc", "s_swap_pc", "s_call")),
    ("SALU", ("s_",)),
)


@dataclass(frozen=True)
class MachineInstruction:
    """One instruction. index: in its function. labels: those that stand before it."""

    index: int
    text: str
    location: SourceLocation | None
    labels: tuple[str, ...]

    @property
    def mnemonic(self) -> str:
        """The name without its encoding."""
        return base_name(self.text.split(None, 1)[0])

    @cached_property
    def kind(self) -> str:
        """One of `KINDS`."""
        name = self.mnemonic
        # What is left accesses memory: buffer_, global_, flat_, scratch_, image_, tensor_.
        return next((kind for kind, prefixes in _PREFIXES if name.startswith(prefixes)), "VMEM")

    @cached_property
    def uses(self) -> Uses:
        """The registers that it reads and writes."""
        return uses(self.text)

    @property
    def target(self) -> str | None:
        """The label that a branch goes to."""
        name, _, rest = self.text.partition(" ")
        if name == _FAR_BRANCH:
            return rest.partition("-")[0].strip()
        return rest.strip() if name.startswith(("s_branch", "s_cbranch")) else None

    @property
    def ends_path(self) -> bool:
        """True if execution never continues with the next line: the end, a return, an unconditional branch."""
        return self.mnemonic.startswith((*_LEAVES, "s_trap"))


def read_function(listing: Listing, name: str) -> tuple[MachineInstruction, ...]:
    """The instructions of a kernel or function. Raises ArgumentError where the listing has none of that name."""
    start = listing.labels.get(name)
    if start is None:
        raise ArgumentError(f"the listing has no function {name!r}")
    ends = [index for label, index in listing.labels.items() if label.startswith(".Lfunc_end") and index > start]
    end = min(ends, default=len(listing.instructions))
    labels: dict[int, list[str]] = {}
    for label, index in listing.labels.items():
        if label.startswith(".LBB"):
            labels.setdefault(index, []).append(label)
    return tuple(
        MachineInstruction(index - start, listed.text, listed.location, tuple(labels.get(index, ())))
        for index, listed in enumerate(listing.instructions[start:end], start=start)
    )
