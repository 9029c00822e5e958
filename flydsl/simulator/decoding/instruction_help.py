"""Help about an instruction: what it does, with which operands, where, how long, and if it runs here.

Everything but the sentence comes from the tables that execute it and time it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from flydsl.arch import Arch
from flydsl.arch.instruction_costs import mfma_cycles, valu_cycles
from flydsl.arch.timing import is_timed, timing
from flydsl.hsaco.listing import ListedInstruction, ListingError
from flydsl.hsaco.operands import split_encoding
from flydsl.simulator.decoding.program import Instruction, decode
from flydsl.simulator.isa.meanings import meaning
from flydsl.simulator.isa.table import FIXED, IMPLICIT, Semantics
from flydsl.simulator.timing.instructions import unit_of, vector_cycles
from flydsl.simulator.timing.trace import Unit

UNITS = {
    Unit.SCALAR: "scalar unit",
    Unit.VALU: "vector unit",
    Unit.TRANSCENDENTAL: "transcendental unit",
    Unit.MATRIX: "matrix core",
    Unit.LDS: "LDS",
    Unit.VECTOR_MEMORY: "vector memory",
    Unit.SCALAR_MEMORY: "scalar memory",
    Unit.BRANCH: "branch unit",
    Unit.MESSAGE: "none: it is done where instructions are issued",
}
_TYPES = {"any": "", "imm": "number", "word": "word", "register": "", "mask": "mask", "offset": "offset"}
_ROLES = (
    (re.compile(r"buffer_load|buffer_store_lds"), ("offset", "resource", "scalar offset")),
    (re.compile(r"buffer_(store|atomic)"), ("data", "offset", "resource", "scalar offset")),
    (re.compile(r"(global|scratch)_load"), ("address", "base")),
    (re.compile(r"(global|scratch)_(store|atomic)_addtid"), ("data", "base")),
    (re.compile(r"(global|scratch)_(store|atomic)"), ("address", "data", "base")),
    (re.compile(r"flat_|ds_b?permute"), ("address", "data")),
    (re.compile(r"ds_(swizzle|write_addtid)"), ("data",)),
    (re.compile(r"ds_"), ("address", "data", "second data")),
    (re.compile(r"s_buffer_load"), ("resource", "offset")),
    (re.compile(r"s_load"), ("base", "offset")),
    (re.compile(r"v_(mfma|wmma)"), ("A", "B", "C", "scale of A", "scale of B")),
    (re.compile(r"v_(smfmac|swmmac)"), ("A", "B", "index")),
)
_STATE = {"scc": "SCC", "vcc": "VCC", "vcc_bits": "VCC", "m0": "M0", "dst": "D", "dst1": "the second D"}


@dataclass(frozen=True)
class InstructionHelp:
    """Help about a form of an instruction, whatever its registers.

    operands: the role and the type of each, in the order of the text; empty where the table has no such instruction.
    reads, writes: state that the text does not name. not_executed: why the simulator does not execute it, or "".
    """

    mnemonic: str
    meaning: str
    operands: tuple[tuple[str, str], ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    unit: str
    cost: str
    not_executed: str


@cache
def instruction_help(text: str, arch: Arch, wave_size: int | None = None) -> InstructionHelp:
    """Describe an instruction as a listing for a GPU has it. wave_size: lanes, by default as many as its waves have.

    >>> from flydsl.arch import GFX942
    >>> help = instruction_help("v_exp_f32_e32 v0, v1", GFX942)
    >>> help.meaning, help.operands, help.cost
    ('D = 2 to the power of S0, in f32.', (('D', 'f32'), ('S0', 'f32')), '16 cycles of its SIMD')
    """
    instruction = _decoded(text, arch, wave_size or arch.wave_size)
    semantics = instruction.semantics if instruction else None
    name = " :: ".join(split_encoding(part.split()[0])[0] for part in text.split("::"))
    reads, writes = _state(instruction)
    return InstructionHelp(
        name,
        meaning(name.replace(" ", "")),
        _operands(name, semantics) if semantics else (),
        reads,
        writes,
        _unit(name),
        _cost(name, instruction.table_name if instruction else name, arch, wave_size or arch.wave_size),
        _why_not(instruction),
    )


def _decoded(text: str, arch: Arch, wave_size: int) -> Instruction | None:
    try:
        return decode(0, ListedInstruction(text, 0, None), arch, wave_size=wave_size)
    except ListingError:
        return None


def _why_not(instruction: Instruction | None) -> str:
    if instruction is None:
        return "the simulator does not understand this line"
    return "" if instruction.semantics else f"the simulator does not know {instruction.problem}"


def _operands(name: str, semantics: Semantics) -> tuple[tuple[str, str], ...]:
    results = [_type(word) for word in semantics.results if word not in IMPLICIT]
    sources = [_type(word) for word in semantics.sources if word not in IMPLICIT and word != "..."]
    if semantics.results[:1] == ("label",):
        return (("label", ""),)
    if "::" in name:  # two sentences, each with operands of its own
        return ()
    numbers = [f"S{i}" for i in range(len(sources))]
    roles = next((names for pattern, names in _ROLES if pattern.match(name)), tuple(numbers))
    if name.startswith("buffer_atomic") and results:  # data and result are one operand
        roles = roles[1:]
    data = ["D", *("mask" if type_ == "mask" else f"D{i}" for i, type_ in enumerate(results[1:], 1))]
    return (*zip(data, results, strict=False), *zip((*roles, *numbers[len(roles) :]), sources, strict=False))


def _type(word: str) -> str:
    """A word of a signature for people: registers with several values say how many.

    >>> _type("i32x4"), _type("i32x1"), _type("f16~"), _type("mask")
    ('4 x i32', 'i32', 'f16', 'mask')
    """
    word = word.rstrip("~")
    kind, is_tuple, count = word.partition("x")
    if is_tuple and count.isdigit() and kind[:1] in "if":
        return kind if count == "1" else f"{count} x {kind}"
    return _TYPES.get(word, word)


def _state(instruction: Instruction | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The registers that it reads and writes without naming them."""
    if instruction is None or instruction.semantics is None:
        return (), ()
    semantics = instruction.semantics
    reads = list(_words(semantics.sources))
    is_vector = instruction.mnemonic.startswith(("v_", "ds_", "buffer_", "global_", "flat_", "scratch_"))
    if is_vector and not semantics.ignores_exec and (semantics.results or semantics.sources != ("...",)):
        reads.append("EXEC")
    return tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(_words(semantics.results)))


def _words(words: tuple[str, ...]) -> Iterator[str]:
    for word in words:
        if word in _STATE:
            yield _STATE[word]
        elif word in FIXED:
            yield "EXEC"


def _unit(name: str) -> str:
    return UNITS[unit_of(name.partition(" ")[0].replace("v_dual_", "v_"))]


def _cost(name: str, table_name: str, arch: Arch, wave_size: int) -> str:
    """Its duration, in cycles of a compute unit."""
    unit = unit_of(name.partition(" ")[0].replace("v_dual_", "v_"))
    if unit == Unit.MATRIX:
        return _matrix_cost(table_name, arch)
    if unit in (Unit.VALU, Unit.TRANSCENDENTAL):
        cycles = valu_cycles(arch, name.replace(" ", ""), wave_size)
        if cycles is not None:
            return f"{_cycles(cycles)} of its SIMD"
        return (
            f"not published; the model of time assumes {vector_cycles(arch, name, wave_size)} cycles"
            if is_timed(arch)
            else ""
        )
    return _latency(unit, name, arch) if is_timed(arch) else ""


def _matrix_cost(table_name: str, arch: Arch) -> str:
    cycles = mfma_cycles(arch, table_name)
    return "" if cycles is None else f"{_cycles(cycles)} of the matrix core of its SIMD"


def _latency(unit: Unit, name: str, arch: Arch) -> str:
    figures = timing(arch)
    if unit == Unit.SCALAR:
        return f"{figures.scalar_latency.value:g} cycles"
    if unit == Unit.BRANCH:
        return f"{figures.branch_cycles.value:g} cycles where it is taken"
    if unit == Unit.LDS:
        return f"{figures.lds_latency.value:g} cycles until the result is there, without bank conflicts"
    if unit == Unit.SCALAR_MEMORY:
        return (
            f"{figures.scalar_cache_latency.value:g} cycles from its cache, {figures.scalar_miss_latency.value:g} else"
        )
    if unit == Unit.VECTOR_MEMORY and "_store" not in name:
        return f"{figures.l1_latency.value:g} cycles from L1, {figures.l2_latency.value:g} from L2, more from memory"
    if name.startswith("s_barrier"):
        return f"{figures.barrier_cycles.value:g} cycles once every wave is there"
    return "as long as it waits" if name.startswith("s_wait") else ""


def _cycles(count: int) -> str:
    return "1 cycle" if count == 1 else f"{count} cycles"
