"""Detect a scalar choice by a condition of lanes whose mask LLVM may have dropped.

The scalar unit takes a condition of the vector unit by `s_and_b64 vcc, exec, vcc`, which sets SCC. LLVM 22.1 lets a
branch and a choice share one of them, and then `SIPreEmitPeephole` drops it between `v_cmp` and `s_cbranch_vccnz`,
which need no mask: the choice reads an SCC from before (llvm-project #215745, gone with #215829). Each has its own when
equal instructions are not looked for.
"""

from __future__ import annotations

from collections.abc import Iterator

WITHOUT_SHARING = "-disable-machine-cse"

_READERS = ("s_cselect", "s_cbranch_scc", "s_addc", "s_subb", "s_add_co_ci", "s_sub_co_ci", "s_cmov")
_WRITERS = tuple(
    f"s_{name}"
    for name in (
        *("cmp", "bitcmp", "add_u32", "add_i32", "sub_u32", "sub_i32", "add_co", "sub_co", "addk", "abs", "bcnt"),
        *("min_i", "min_u", "max_i", "max_u", "and", "or", "xor", "nand", "nor", "xnor", "not"),
        *("lsh", "ash", "bfe", "wqm", "quadmask"),
    )
)
_ENDS = ("s_endpgm", "s_setpc", "s_set_pc", "s_swappc", "s_swap_pc")


def may_be_dropped(listing: str) -> bool:
    """True if SCC is read after a compare of lanes and the branch on it, and not written in between."""
    lines = [line.partition(";")[0].strip() for line in listing.split("\n")]
    labels = {line[:-1]: at for at, line in enumerate(lines) if line.endswith(":")}
    branches = (at for at, line in enumerate(lines) if line.startswith("s_cbranch_vcc"))
    return any(_reads_before_writing(lines, labels, at) for branch in branches for at in _compare(lines, branch))


def _compare(lines: list[str], branch: int) -> Iterator[int]:
    """The line of the compare of lanes that makes a branch's condition in its block; none if something else does."""
    for at in range(branch - 1, -1, -1):
        name, _, operands = lines[at].partition(" ")
        if name.endswith(":") or name.startswith("s_cbranch"):
            return
        if operands.lstrip().startswith("vcc"):
            if name.startswith("v_cmp"):
                yield at
            return


def _reads_before_writing(lines: list[str], labels: dict[str, int], start: int) -> bool:
    """True if a way from a line reads SCC before it writes it."""
    ways, seen = [start], set[int]()
    while ways:
        at = ways.pop()
        while at < len(lines) and at not in seen:
            seen.add(at)
            name, _, operands = lines[at].partition(" ")
            if name.startswith(_READERS):
                return True
            if name.startswith((*_WRITERS, *_ENDS)):
                break
            if "branch" in name:
                ways.append(labels.get(operands.strip(), len(lines)))
                if name == "s_branch":
                    break
            at += 1
    return False
