"""The claims of CDNA's instructions."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from flydsl.arch import Arch
from flydsl.arch.wait_states import Product, WaitStates, product
from flydsl.hsaco.register_uses import registers_of
from flydsl.simulator.isa.forms import SCALED_FORMATS
from flydsl.simulator.waits.claims import SCALARS, TRANSCENDENTAL, Claim, Known, operands_of, union
from flydsl.simulator.waits.instructions import Facts

_VCC = int(registers_of("vcc"))
_SETREG, _GETREG = re.compile(r"s_setreg\w* hwreg\((\w+)"), re.compile(r"s_getreg\w* \w+, hwreg\((\w+)")
_TO_M0 = re.compile(r"s_\w+ m0,")
# So the ISA documents; LLVM, to be safe, also has buffer loads to LDS among them.
_ON_M0 = re.compile(
    r"s_sendmsg|s_movrel|s_ttracedata|ds_(read|write|load|store)_addtid|ds_gws|(global|scratch)_load_lds"
)
_PART = re.compile(r"dst_sel:(?!DWORD)\w+|op_sel:\[(?:[01],)+1\]$|op_sel:\[(?:[01],)+1\] ")
_WRITES_HIGH = re.compile(r"v_(fma|mad)_mixhi_")
_PACKED = re.compile(r"v_(pk|dot|mfma|smfmac|fma_mix|mad_mix)")
_WIDE_STORE = re.compile(r"\w+_store_\w*(x3|x4|xyzw?)$|\w+_atomic_f?cmpswap_x2$")
_LANE = ("v_readlane_b32", "v_readfirstlane_b32", "v_writelane_b32")


def claims_of_cdna(one: Known, figures: WaitStates, arch: Arch) -> list[Claim]:
    """The claims of an instruction. figures: of the architecture."""
    found = []
    if one.is_matrix:
        costs = product(arch, _with_formats(one.fact))
        if costs is not None:
            found.append(_after_product(one, costs))
        if "_f64" in one.fact.mnemonic:
            found.append(Claim(one.fact.index, figures.fma64, _fma64(figures)))
    elif one.is_vector:
        found += _after_vector(one, figures)
    elif one.is_memory:
        found += _after_store(one, figures)
    else:
        found += _after_scalar(one, figures)
    return [claim for claim in found if claim.most]


def _after_product(one: Known, costs: Product) -> Claim:
    written = one.operands[0]
    is_sparse = one.fact.mnemonic.startswith("v_smfmac")
    added = written if is_sparse else one.operands[3] if len(one.operands) > 3 else 0

    def needs(later: Known) -> tuple[int, str, int]:
        if later.is_matrix:
            return _of_products(later, written, costs)
        if not (later.is_vector or later.is_memory):
            return 0, "", 0
        read = later.reads & written
        if read:
            cost = costs.memory if later.is_memory else costs.vector
            return cost, "reads the sums of a matrix instruction", read
        if later.writes & written:
            return costs.overwritten, "overwrites the sums of a matrix instruction", later.writes & written
        return costs.added, "overwrites what a matrix instruction adds to", later.writes & added

    def guarded(later: Known) -> tuple[int, str, int]:
        needed, rule, registers = needs(later)
        return (needed, rule, registers) if registers else (0, "", 0)

    return Claim(one.fact.index, costs.most, guarded)


def _of_products(later: Known, written: int, costs: Product) -> tuple[int, str, int]:
    """The wait states of another matrix instruction that has the sums as factors, or adds to them."""
    is_sparse = later.fact.mnemonic.startswith("v_smfmac")
    added = later.operands[0] if is_sparse else later.operands[3] if len(later.operands) > 3 else 0
    others = [*later.operands[1:3], *later.operands[3 if is_sparse else 4 :]]
    factors = written & union(others)
    if factors:
        return costs.factors, "multiplies the sums of another matrix instruction", factors
    if not added & written:
        return 0, "", 0
    rule = "adds to the sums of another matrix instruction"
    if added == written:
        return costs.same, rule, added
    name = later.fact.mnemonic
    cost = costs.sums_f64 if "_f64" in name else costs.sums_f32 if name.endswith("_f32") else costs.sums
    return cost, rule, added & written


@cache
def _fma64(figures: WaitStates) -> Callable[[Known], tuple[int, str, int]]:
    def needs(later: Known) -> tuple[int, str, int]:
        is_fma = later.fact.mnemonic in ("v_fma_f64", "v_fmac_f64")
        return (figures.fma64 if is_fma else 0), "multiplies and adds f64 after a matrix instruction of f64", 0

    return needs


def _after_vector(one: Known, figures: WaitStates) -> list[Claim]:
    index, name = one.fact.index, one.fact.mnemonic
    scalars, vectors = one.writes & SCALARS, one.writes & ~SCALARS
    found = []
    if scalars:
        found.append(Claim(index, max(figures.memory_sgpr, figures.lane_select), _of_scalar(scalars, figures)))
    if name.startswith("v_cmpx") or re.search(r"^\S+ exec\b", one.fact.text):
        found.append(Claim(index, max(figures.dpp_exec, figures.lane_exec, figures.matrix_exec), _of_exec(figures)))
    if vectors:
        most = max(figures.dpp, figures.matrix_operand, figures.read_lane, figures.permlane_swap)
        is_dot = name.startswith("v_dot")
        found.append(Claim(index, most, _of_vector(vectors, figures, is_dot=is_dot)))
        if is_dot:
            found.append(Claim(index, figures.dot, _of_dot(one, figures)))
        if TRANSCENDENTAL.match(name):
            found.append(Claim(index, figures.transcendental, _of_transcendental(vectors, figures)))
        if _writes_part(one):
            found.append(Claim(index, figures.part, _of_part(vectors, figures)))
    return found


def _writes_part(one: Known) -> bool:
    """True for a result that is moved to another place of its register (SDWA, op_sel)."""
    if _WRITES_HIGH.match(one.fact.mnemonic):
        return True
    return not _PACKED.match(one.fact.mnemonic) and _PART.search(one.fact.text) is not None


def _of_scalar(scalars: int, figures: WaitStates) -> Callable[[Known], tuple[int, str, int]]:
    def needs(later: Known) -> tuple[int, str, int]:
        read = later.reads & scalars
        if not read:
            return 0, "", 0
        name = later.fact.mnemonic
        if later.is_memory:
            return figures.memory_sgpr, "reads for memory a scalar register that the vector ALU writes", read
        if not later.is_vector:
            return 0, "", 0
        if name in ("v_readlane_b32", "v_writelane_b32") and registers_of(operands_of(later.fact.text)[-1]) & scalars:
            return figures.lane_select, "chooses a lane by a scalar register that the vector ALU writes", read
        if name.startswith("v_div_fmas") and read & _VCC:
            return figures.division_vcc, "reads VCC that the vector ALU writes", read
        return figures.vector_sgpr, "reads a scalar register that the vector ALU writes", read

    return needs


def _of_exec(figures: WaitStates) -> Callable[[Known], tuple[int, str, int]]:
    def needs(later: Known) -> tuple[int, str, int]:
        rule = "uses EXEC that the vector ALU writes"
        if later.is_dpp:
            return figures.dpp_exec, rule, 0
        if later.is_matrix:
            return figures.matrix_exec, rule, 0
        return (figures.lane_exec if later.fact.mnemonic in _LANE else 0), rule, 0

    return needs


def _of_vector(vectors: int, figures: WaitStates, *, is_dot: bool) -> Callable[[Known], tuple[int, str, int]]:
    def needs(later: Known) -> tuple[int, str, int]:
        read = later.reads & vectors
        if not read or not later.is_vector:
            return 0, "", 0
        name = later.fact.mnemonic
        if later.is_dpp:
            return figures.dpp, "moves lanes of a register that the vector ALU writes", read
        if later.is_matrix:
            return (0 if is_dot else figures.matrix_operand), "multiplies what the vector ALU writes", read
        if name in _LANE[:2]:
            return figures.read_lane, "reads a lane of a register that the vector ALU writes", read
        if "_swap_b32" in name and name.startswith("v_permlane"):
            return figures.permlane_swap, "swaps lanes of a register that the vector ALU writes", read
        return 0, "", 0

    return needs


def _of_dot(one: Known, figures: WaitStates) -> Callable[[Known], tuple[int, str, int]]:
    written, name = one.writes, one.fact.mnemonic

    def needs(later: Known) -> tuple[int, str, int]:
        if later.is_matrix or not (later.is_vector or later.is_memory):
            return 0, "", 0
        is_same = later.fact.mnemonic == name
        read = later.reads & written
        if is_same:
            operands = operands_of(later.fact.text)
            read = written & union([int(registers_of(text)) for text in operands[1:3]])
            return (figures.dot if read else 0), "multiplies the sum of a dot product", read
        if read:
            return figures.dot, "reads the sum of a dot product", read
        overwritten = later.writes & written
        return (figures.dot if overwritten else 0), "overwrites the sum of a dot product", overwritten

    return needs


def _of_transcendental(vectors: int, figures: WaitStates) -> Callable[[Known], tuple[int, str, int]]:
    def needs(later: Known) -> tuple[int, str, int]:
        read = later.reads & vectors
        if not read or not later.is_vector or TRANSCENDENTAL.match(later.fact.mnemonic):
            return 0, "", 0
        return figures.transcendental, "reads the result of a transcendental function", read

    return needs


def _of_part(vectors: int, figures: WaitStates) -> Callable[[Known], tuple[int, str, int]]:
    def needs(later: Known) -> tuple[int, str, int]:
        read = later.reads & vectors if later.is_vector else 0
        return (figures.part if read else 0), "reads a register of which a part is written", read

    return needs


def _after_store(one: Known, figures: WaitStates) -> list[Claim]:
    """A store of more than 64 bits reads its data a little later, unless a scalar register is its offset."""
    text, name = one.fact.text, one.fact.mnemonic
    if not _WIDE_STORE.match(name):
        return []
    operands = operands_of(text)
    if name.startswith("buffer_") and registers_of(operands[-1] if len(operands) < 4 else operands[3]):
        return []
    data = int(registers_of(operands[0] if name.startswith("buffer_") else operands[1]))

    def needs(later: Known) -> tuple[int, str, int]:
        overwritten = later.writes & data if later.is_vector else 0
        return (figures.stored if overwritten else 0), "overwrites the data of a store", overwritten

    return [Claim(one.fact.index, figures.stored, needs)]


def _after_scalar(one: Known, figures: WaitStates) -> list[Claim]:
    found = []
    if _TO_M0.match(one.fact.text):
        found.append(Claim(one.fact.index, figures.m0, _of_m0(figures)))
    if match := _SETREG.match(one.fact.text):
        found.append(Claim(one.fact.index, figures.mode, _of_mode(match[1], figures)))
    return found


@cache
def _of_m0(figures: WaitStates) -> Callable[[Known], tuple[int, str, int]]:
    def needs(later: Known) -> tuple[int, str, int]:
        reads = _ON_M0.match(later.fact.mnemonic) or "lds_direct" in later.fact.text
        return (figures.m0 if reads else 0), "uses M0 that a scalar instruction writes", 0

    return needs


@cache
def _of_mode(register: str, figures: WaitStates) -> Callable[[Known], tuple[int, str, int]]:
    def needs(later: Known) -> tuple[int, str, int]:
        match = _SETREG.match(later.fact.text) or _GETREG.match(later.fact.text)
        return (figures.mode if match and match[1] == register else 0), f"accesses {register} that is written", 0

    return needs


def _with_formats(fact: Facts) -> str:
    """The mnemonic, with the formats of A and B where the modifiers tell them."""
    if not fact.mnemonic.endswith("_f8f6f4"):
        return fact.mnemonic
    numbers = [int(match[1]) if (match := re.search(rf"{name}:(\d)", fact.text)) else 0 for name in ("cbsz", "blgp")]
    return f"{fact.mnemonic}/" + "_".join(SCALED_FORMATS[n] if n < len(SCALED_FORMATS) else "" for n in numbers)
