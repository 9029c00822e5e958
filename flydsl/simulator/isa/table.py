"""The table of instruction semantics: what each mnemonic reads, computes and writes.

`define("v_add_f32", "f32 = f32 f32", lambda b, x, y: b.fadd(x, y))` says it all for one instruction. The function gets
a builder `b` (see `flydsl.simulator.isa.builder`) and one value per word on the right; it returns one value per word on
the left. It never knows how many lanes or waves it computes, nor whether `b` computes now or emits code.

The words, in the order of the assembly text:

| word | meaning |
| --- | --- |
| `i16 i32 i64 f16 f32 f64` | a value in one or two registers; a float takes the modifiers neg, abs, clamp, omod |
| `i32x4 f64x4` | a tuple of that many values |
| `f16x2 i16x2 bf16x2` | the two halves of a register, as op_sel arranges them (VOP3P); a bf16 is an i16 |
| `mix bmix` | an f32, or an f16 or bf16 converted to f32, as op_sel_hi says |
| `bfloat` | the bits of a bf16, an i16; takes the modifiers neg and abs |
| `any` | by the number of registers: None for `off`, i32, i64, or a tuple |
| `mask` | one bit per lane, in a pair of scalar registers or, in waves of 32, in one; a value of type i1 |
| `imm` | a Python int that is part of the instruction; `word`, its text |
| `register` | the register itself, not its value |
| `offset` | an i64: a constant is sign-extended, a register zero-extended |
| `label` | a branch target, on the left: the branch is taken where the result is true |

These words stand for no operand in the text:

| word | meaning |
| --- | --- |
| `scc` | the scalar condition code, i1 |
| `vcc` | a mask; `vcc_bits` and `exec`, its bits as an i64; `m0`, i32; `cluster_state`, the register IB_STS2, i32 |
| `exec_b32 exec_b64` | the registers of EXEC, whatever the size of the wave |
| `dst` | the value that the first result's registers have before; `dst1`, the second's |
| `modifiers` | the `Modifiers` of the instruction |

A result may be followed by `~`: a 16-bit result that leaves the other half of its register as it is.

An entry is for every GPU, or, with `of`, for those with a set of instructions (`Arch.instruction_sets`): what only they
have, or what means something else there. The name of an entry is the mnemonic; `/` and a form follow if the modifiers
change the operands, and `@` and the set.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from threading import RLock
from typing import Any, Literal

from flydsl.hsaco.operands import CLUSTER_STATE, EXEC, M0, VCC, Register
from flydsl.system.interrupts import interrupt_afterwards

FIXED = {
    "vcc": ("mask", Register("s", VCC, 2)),
    "vcc_bits": ("lanes", Register("s", VCC, 2)),
    "exec": ("lanes", Register("s", EXEC, 2)),
    "exec_b32": ("i32", Register("s", EXEC, 1)),
    "exec_b64": ("i64", Register("s", EXEC, 2)),
    "m0": ("i32", Register("s", M0, 1)),
    "cluster_state": ("i32", Register("s", CLUSTER_STATE, 1)),
}
"""Words of a signature that always mean the same register: its type and place."""

FAMILIES = {
    "": (
        "argument_reduction buffer compare control convert cross_lane cube division extremes flat lds lds_barrier "
        "matrix packed register_indexing scalar scalar_memory scalar_quads transcendental vector_bytes vector_float "
        "vector_integer waits_and_hints"
    ),
    "cdna4": "scaled_convert scaled_matrix stochastic_packs",
    "cdna5": "async_copy bfloat16 scaled_convert scaled_wmma stochastic_packs tensor unsigned_floats",
    "rdna": "dual scalar_float sixteen_bits wmma",
}
"""The modules of families by instruction set; those under "" are for every GPU."""

HALVES = ("f16x2", "i16x2", "bf16x2")
IMPLICIT = ("scc", *FIXED, "dst", "dst1", "modifiers")


def fixed_register(word: str, wave_size: int) -> Register:
    """The registers that a word of `FIXED` means in waves of this size."""
    type_, register = FIXED[word]
    return Register("s", register.first, wave_size // 32) if type_ in ("mask", "lanes") else register


Effect = Literal["state", "wait", "cache", "hint"]


@dataclass(frozen=True)
class Semantics:
    """One entry of the table. `ignores_exec`: writes every lane, active or not. `packed`: computed once per half.

    instruction_set: of the GPUs that the entry is for; "" for all. effect: "state", or, for an instruction that changes
    no state, its kind: "wait", "cache" or "hint".
    """

    mnemonic: str
    results: tuple[str, ...]
    sources: tuple[str, ...]
    evaluate: Callable[..., Any]
    ignores_exec: bool = False
    packed: bool = False
    instruction_set: str = ""
    effect: Effect = "state"

    @property
    def entry(self) -> str:
        """Its name in the table."""
        return f"{self.mnemonic}@{self.instruction_set}" if self.instruction_set else self.mnemonic


ENTERED: dict[str, Semantics] = {}
"""The rows that have been entered so far, for families that build on others."""
EFFECTS: dict[str, Effect] = {}
"""The effects other than "state", by mnemonic: see `waits_and_hints`."""
_begun: set[str] = set()
_complete: set[str] = set()
_entering = RLock()


def enter_families(instruction_sets: Collection[str]) -> None:
    """Import the families of these sets, unless they have been. A Ctrl-C waits: half a family is never completed."""
    if _complete.issuperset(instruction_sets):
        return
    with _entering, interrupt_afterwards():
        for instruction_set in instruction_sets:
            if instruction_set not in _begun:  # a family may look a row up while it is entered
                _begun.add(instruction_set)
                for family in FAMILIES.get(instruction_set, "").split():
                    import_module(f"flydsl.simulator.isa.{family}")
                _complete.add(instruction_set)


class _Table(Mapping[str, Semantics]):
    """The rows of all families, by entry."""

    def __getitem__(self, entry: str) -> Semantics:
        if entry not in ENTERED:
            enter_families(FAMILIES)
        return ENTERED[entry]

    def __iter__(self) -> Iterator[str]:
        enter_families(FAMILIES)
        return iter(ENTERED)

    def __len__(self) -> int:
        enter_families(FAMILIES)
        return len(ENTERED)


TABLE = _Table()


def look_up(name: str, instruction_sets: Collection[str]) -> Semantics | None:
    """The entry of a mnemonic (with its form) on a GPU with these sets of instructions; None if it has none."""
    enter_families(instruction_sets)
    of_sets = (ENTERED.get(f"{name}@{instruction_set}") for instruction_set in instruction_sets)
    return next((semantics for semantics in of_sets if semantics), None) or ENTERED.get(name)


def mnemonic_of(entry: str) -> str:
    """The mnemonic alone.

    >>> mnemonic_of("buffer_load_dword/lds"), mnemonic_of("v_cvt_f32_fp8@ocp")
    ('buffer_load_dword', 'v_cvt_f32_fp8')
    """
    return entry.partition("@")[0].partition("/")[0]


def entries_of(instruction_sets: Collection[str]) -> dict[str, Semantics]:
    """The part of the table that a GPU with these sets has, by entry."""
    enter_families(instruction_sets)
    return {entry: s for entry, s in ENTERED.items() if look_up(s.mnemonic, instruction_sets) is s}


def define(
    mnemonics: str | Iterable[str],
    signature: str,
    evaluate: Callable[..., Any],
    *,
    ignores_exec: bool = False,
    packed: bool = False,
    of: str = "",
    effect: Effect = "state",
) -> None:
    """Enter one or more mnemonics (separated by spaces) of the same signature and semantics, for GPUs `of` a set, or of
    one of several."""
    results, sources = (tuple(side.split()) for side in signature.split("="))
    for mnemonic, instruction_set in product(
        mnemonics.split() if isinstance(mnemonics, str) else mnemonics, of.split() or [""]
    ):
        semantics = Semantics(mnemonic, results, sources, evaluate, ignores_exec, packed, instruction_set, effect)
        enter(semantics)


def enter(semantics: Semantics) -> None:
    """Enter a row."""
    if semantics.entry in ENTERED:
        raise ValueError(f"{semantics.entry} is defined twice")
    ENTERED[semantics.entry] = semantics
    if semantics.effect != "state":
        EFFECTS[mnemonic_of(semantics.mnemonic)] = semantics.effect
